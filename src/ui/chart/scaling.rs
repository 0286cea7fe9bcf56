//! Bandwidth by number of threads: how many it takes to fill a memory.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw as draw_plot};
use super::svg::{COLOURS, Look, cut};
use nearfar_core::node::Node;

/// The curves of `node`; `None` when there is none.
pub fn draw(node: &Node) -> Option<String> {
    let mut lines = Vec::new();
    for (colour, row) in node.scaling.iter().enumerate() {
        let points = || row.points.iter().filter(|point| point.rate.is_usable() && point.threads > 0);
        if points().next().is_none() {
            continue;
        }
        // A published curve does not say how it stored; its sources do.
        let published = points().all(|point| point.rate.source.is_some());
        let stores = if published { String::new() } else { format!(", {}", row.stores.name()) };
        lines.push(Line {
            label: format!("{} {}{stores}", node.memory_name(row.memory), row.operation.name()),
            points: points().map(|point| (f64::from(point.threads), point.rate.median)).collect(),
            spread: points().map(|point| (point.rate.low, point.rate.high)).collect(),
            look: Look { colour, dashes: colour / COLOURS, thin: false },
            marks: true,
        });
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let most = all().map(|point| point.0).fold(0f64, f64::max);
    let scale = if most > 12.0 { Scale::Log2 } else { Scale::Linear };
    let x = Axis::spanning("threads, one per CPU", scale, all().map(|point| point.0), axis::short)?;
    let (low, high) = all().map(|point| point.1).fold((f64::INFINITY, 0f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let scale = if high > 50.0 * low { Scale::Log10 } else { Scale::Linear };
    let y = Axis::spanning("bandwidth, as counted by the operation", scale, all().map(|point| point.1), axis::rate)?;
    let title = format!("Bandwidth by threads of {}", cut(&node.name, 50));
    let note = "Bytes: what the program asks for. Bands: 95 % intervals of the median.".to_owned();
    Some(draw_plot(&Frame::new(x, y), &title, &lines, &[note]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Figure, Scaling, ScalingPoint};

    #[test]
    fn curves_and_their_absence() {
        assert!(draw(&Node::default()).is_none());
        let points = [(1, 10e9), (2, 14e9), (64, 90e9)];
        let points = points.map(|(threads, rate): (u32, f64)| ScalingPoint { threads, rate: Figure::of(&[rate]) });
        let node = Node { scaling: vec![Scaling { points: points.into(), ..Scaling::default() }], ..Node::default() };
        let svg = draw(&node).expect("a chart");
        assert!(svg.contains("threads, one per CPU") && svg.contains("node 0 read"));
        assert!(draw(&crate::files::preset::find("knl-flat").expect("found")).is_some());
    }
}

//! Bandwidth by number of threads: how many it takes to fill a memory.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw as draw_plot, xs, ys};
use super::svg::cut;
use nearfar_core::node::Node;

/// The curves of `node`; `None` when there is none.
pub fn draw(node: &Node) -> Option<String> {
    let mut lines = Vec::new();
    for (number, row) in node.scaling.iter().enumerate() {
        let points = || row.points.iter().filter(|point| point.rate.is_usable() && point.threads > 0);
        // A published curve does not say how it stored; its sources do.
        let published = points().all(|point| point.rate.source.is_some());
        let stores = if published { String::new() } else { format!(", {}", row.stores.name()) };
        let label = format!("{} {}{stores}", node.memory_name(row.memory), row.operation.name());
        lines.push(Line::of(number, label, points().map(|point| (f64::from(point.threads), &point.rate))));
    }
    let scale = if xs(&lines).any(|threads| threads > 12.0) { Scale::Log2 } else { Scale::Linear };
    let x = Axis::spanning("threads, one per CPU", scale, xs(&lines), axis::short)?;
    let y = Axis::fitting("bandwidth, as counted by the operation", 50.0, ys(&lines), axis::rate)?;
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

//! Loaded latency: what a load costs while the memory is busy. A curve that turns upwards early is a memory that is soon full.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw as draw_plot, xs, ys};
use super::svg::cut;
use nearfar_core::node::{Injection, LoadPoint, Node};

/// The curves of `node`; `None` when there is none.
pub fn draw(node: &Node) -> Option<String> {
    let mut lines = Vec::new();
    let several = node.loaded.iter().any(|row| row.cpu_node != node.loaded[0].cpu_node);
    for (number, row) in node.loaded.iter().enumerate() {
        let from = if several { format!(" from node {}", row.cpu_node) } else { String::new() };
        let load = match row.injection {
            Injection::Reads => "reads",
            Injection::ReadsAndWrites => "2 reads : 1 write",
        };
        let label = format!("{}{from}, {load}", node.memory_name(row.memory));
        // Without load there is no rate; that is the left end of the curve.
        let rate = |point: &LoadPoint| if point.delay.is_none() || !point.rate.is_usable() { 0.0 } else { point.rate.median };
        let points = row.points.iter().filter(|point| point.time.is_usable());
        lines.push(Line::of(number, label, points.map(|point| (rate(point), &point.time))));
    }
    let y = Axis::fitting("latency of a dependent load", 20.0, ys(&lines), axis::time)?;
    let x = Axis::spanning("bandwidth of the other CPUs meanwhile", Scale::Linear, xs(&lines), axis::rate)
        .unwrap_or_else(|| Axis::new("bandwidth of the other CPUs meanwhile", Scale::Linear, 0.0, 1e9, axis::rate));
    let title = format!("Loaded latency of {}", cut(&node.name, 50));
    let note = "Each point: one strength of load, the lowest at the left. Bands: 95 % intervals of the median.".to_owned();
    Some(draw_plot(&Frame::new(x, y), &title, &lines, &[note]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Figure, LoadedLatency};

    #[test]
    fn curves_and_their_absence() {
        assert!(draw(&Node::default()).is_none());
        let point = |delay, ns: f64, rate| LoadPoint { delay, time: Figure::of(&[ns]), rate: Figure::of(&[rate]) };
        let points = vec![point(None, 90.0, f64::NAN), point(Some(100), 95.0, 10e9), point(Some(0), 260.0, 40e9)];
        let mut node = Node { loaded: vec![LoadedLatency { points, ..LoadedLatency::default() }], ..Node::default() };
        let svg = draw(&node).expect("a chart");
        assert!(svg.contains("node 0, reads") && !svg.contains("NaN"));
        node.loaded[0].points.truncate(1);
        assert!(draw(&node).is_some(), "one point is a chart too");
        node.loaded[0].points[0].time = Figure::invalid("no");
        assert!(draw(&node).is_none());
    }
}

//! Loaded latency: what a load costs while the memory is busy. A curve that turns upwards early is a memory that is soon full.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw as draw_plot};
use super::svg::{Look, cut};
use nearfar_core::node::{Injection, Node};

/// The curves of `node`; `None` when there is none.
pub fn draw(node: &Node) -> Option<String> {
    let mut lines = Vec::new();
    let several = node.loaded.iter().any(|row| row.cpu_node != node.loaded[0].cpu_node);
    for (colour, row) in node.loaded.iter().enumerate() {
        let mut points: Vec<(f64, f64, f64, f64)> = Vec::new();
        for point in row.points.iter().filter(|point| point.time.is_usable()) {
            // Without load there is no rate; that is the left end of the curve.
            let rate = if point.delay.is_none() || !point.rate.is_usable() { 0.0 } else { point.rate.median };
            points.push((rate, point.time.median, point.time.low, point.time.high));
        }
        if points.is_empty() {
            continue;
        }
        let from = if several { format!(" from node {}", row.cpu_node) } else { String::new() };
        let load = match row.injection {
            Injection::Reads => "reads",
            Injection::ReadsAndWrites => "2 reads : 1 write",
        };
        let label = format!("{}{from}, {load}", node.memory_name(row.memory));
        lines.push(Line {
            label,
            points: points.iter().map(|point| (point.0, point.1)).collect(),
            spread: points.iter().map(|point| (point.2, point.3)).collect(),
            look: Look { colour, dashes: colour / super::svg::COLOURS, thin: false },
            marks: true,
        });
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let (lowest, highest) = all().map(|point| point.1).fold((f64::INFINITY, 0f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let scale = if highest > 20.0 * lowest { Scale::Log10 } else { Scale::Linear };
    let y = Axis::spanning("latency of a dependent load", scale, all().map(|point| point.1), axis::time)?;
    let x = Axis::spanning("bandwidth of the other CPUs meanwhile", Scale::Linear, all().map(|point| point.0), axis::rate)
        .unwrap_or_else(|| Axis::new("bandwidth of the other CPUs meanwhile", Scale::Linear, 0.0, 1e9, axis::rate));
    let title = format!("Loaded latency of {}", cut(&node.name, 50));
    let note = "Each point: one strength of load, the lowest at the left. Bands: 95 % intervals of the median.".to_owned();
    Some(draw_plot(&Frame::new(x, y), &title, &lines, &[note]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Figure, LoadPoint, LoadedLatency};

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

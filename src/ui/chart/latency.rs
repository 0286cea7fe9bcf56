//! Latency of a dependent load: by size of the data where several were measured, beside each other otherwise.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, LABEL_GAP, Line, WIDTH, draw as draw_plot, xs, ys};
use super::svg::{Anchor, Look, Svg, cut, text_width};
use nearfar_core::node::{Latency, Memory, Node, words};

/// The chart of `node`; `None` when no latency was measured.
pub fn draw(node: &Node) -> Option<String> {
    let rows: Vec<&Latency> = node.latency.iter().filter(|row| row.time.is_usable()).collect();
    if rows.is_empty() {
        return None;
    }
    curves(node, &rows).or_else(|| marks(node, &rows))
}

/// Fewer sizes than this of one kind are not a curve.
const CURVE: usize = 5;

/// Curves by size; `None` when too few sizes were measured. Caches are points of the curve of the node that they belong to.
fn curves(node: &Node, rows: &[&Latency]) -> Option<String> {
    let key =
        |row: &Latency| (row.cpu_node, row.chase, row.pages, if let Memory::Node(id) = row.memory { Some(id) } else { None });
    let mut lines: Vec<Line> = Vec::new();
    let mut seen = Vec::new();
    for row in rows.iter().filter(|row| row.bytes > 0) {
        let this = key(row);
        if seen.contains(&this) {
            continue;
        }
        seen.push(this);
        let mut points: Vec<&&Latency> = rows.iter().filter(|other| key(other) == this && other.bytes > 0).collect();
        points.sort_by_key(|point| point.bytes);
        points.dedup_by_key(|point| point.bytes);
        if points.len() < CURVE {
            continue;
        }
        let place = if matches!(row.memory, Memory::Node(_)) { node.memory_name(row.memory) } else { "caches".to_owned() };
        let label = format!("{place}, {}, {}", row.chase.name(), row.pages.name());
        lines.push(Line::of(lines.len(), label, points.iter().map(|point| (point.bytes as f64, &point.time))));
    }
    let x = Axis::spanning("bytes of the data", Scale::Log2, xs(&lines), axis::size)?;
    let y = Axis::spanning("latency of a dependent load", Scale::Log10, ys(&lines), axis::time)?;
    let title = format!("Idle latency of {} by size of the data", cut(&node.name, 40));
    let note = "Bands: 95 % intervals of the median.".to_owned();
    Some(draw_plot(&Frame::new(x, y), &title, &lines, &[note]))
}

/// So many rows fit on a chart that people read.
const MOST: usize = 30;

/// One mark per row with its interval, on a logarithmic axis (bars would have no meaningful length there).
fn marks(node: &Node, rows: &[&Latency]) -> Option<String> {
    let mut shown: Vec<&&Latency> = rows.iter().collect();
    shown.sort_by(|a, b| a.time.median.total_cmp(&b.time.median));
    shown.truncate(MOST);
    let values = shown.iter().flat_map(|row| [row.time.low, row.time.median, row.time.high]);
    let x = Axis::spanning("latency of a dependent load", Scale::Log10, values, axis::time)?;
    let labels: Vec<String> = shown.iter().map(|row| cut(&label(node, row), 52)).collect();
    let left = labels.iter().map(|label| text_width(label)).fold(80.0, f64::max).min(360.0) + 16.0;
    let (top, gap, right) = (44.0, LABEL_GAP + 7.0, WIDTH - 90.0);
    let bottom = top + gap * shown.len() as f64;
    let at = |ns: f64| left + x.place(ns).clamp(0.0, 1.0) * (right - left);
    let title = format!("Idle latency of {}", cut(&node.name, 50));
    let mut svg = Svg::new(WIDTH, bottom + 64.0);
    svg.text("title", (12.0, 24.0), Anchor::Start, &title);
    for tick in x.ticks() {
        let place = at(tick.value);
        svg.rule(if tick.text.is_some() { "grid" } else { "fine" }, (place, top), (place, bottom));
        if let Some(text) = tick.text {
            svg.text("small", (place, bottom + 16.0), Anchor::Middle, &text);
        }
    }
    svg.rule("axis", (left, bottom), (right, bottom));
    for (index, (row, label)) in shown.iter().zip(&labels).enumerate() {
        let y = top + gap * (index as f64 + 0.5);
        let colour = match row.memory {
            Memory::Cache(_) => 6,
            Memory::Node(id) => id as usize % 6,
        };
        let look = Look { colour, dashes: 0, thin: false };
        svg.text("", (left - 8.0, y + 4.0), Anchor::End, label);
        svg.polyline(look, &[(at(row.time.low), y), (at(row.time.high), y)]);
        svg.marker(look, (at(row.time.median), y));
        svg.text("", (at(row.time.high.max(row.time.median)) + 9.0, y + 4.0), Anchor::Start, &words::time(row.time.median));
    }
    svg.text("", ((left + right) / 2.0, bottom + 34.0), Anchor::Middle, x.label());
    let rest = rows.len() - shown.len();
    let more = if rest > 0 { format!(" {rest} slower rows are in the table only.") } else { String::new() };
    svg.text("small", (12.0, bottom + 54.0), Anchor::Start, &format!("Mark: median; bar: 95 % interval.{more}"));
    Some(svg.finish(&title))
}

fn label(node: &Node, row: &Latency) -> String {
    let memory = node.memory_name(row.memory);
    let from = if matches!(row.memory, Memory::Node(id) if id != row.cpu_node) {
        format!(" from node {}", row.cpu_node)
    } else {
        String::new()
    };
    match row.method() {
        Some((chase, pages)) => format!("{memory}{from}, {}, {}", chase.name(), pages.name()),
        None => format!("{memory}{from}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::Figure;

    #[test]
    fn marks_where_there_are_few_sizes_and_curves_where_there_are_many() {
        assert!(draw(&Node::default()).is_none());
        let row = |shift: u32, ns: f64| Latency { bytes: 1 << shift, time: Figure::of(&[ns]), ..Latency::default() };
        let mut node = Node { latency: vec![row(14, 1.2), row(30, 95.0)], ..Node::default() };
        let few = draw(&node).expect("a chart");
        assert!(few.contains("node 0, page-local, small pages") && few.contains("95.0 ns"));
        node.latency = (10..30).map(|shift| row(shift, f64::from(shift))).collect();
        assert!(draw(&node).expect("a chart").contains("bytes of the data"));
        let knl = draw(&crate::files::preset::find("knl-flat").expect("found")).expect("a chart");
        assert!(knl.contains("HBM, node 1") && knl.contains("170 ns"));
    }
}

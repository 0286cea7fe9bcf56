//! Far tiers by size of the request and depth, with the memories of the machine as flat lines on the same axes.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw as draw_plot, xs, ys};
use super::svg::{COLOURS, Look, cut};
use nearfar_core::node::{CpuList, FarAccess, FarPoint, FarTier, Figure, Memory, MemoryKind, Node, words};

/// Bandwidth; `None` when no far tier was measured.
pub fn draw_bandwidth(node: &Node) -> Option<String> {
    let references = references(node, |memory| node.best_bandwidth(memory).map(|row| &row.rate), |a, b| a > b);
    let title = format!("Bandwidth of far tiers and memories of {}", cut(&node.name, 40));
    draw(node, &title, "bandwidth", |point| &point.rate, &references, words::rate, axis::rate)
}

/// Time of a request; `None` when no far tier was measured.
pub fn draw_latency(node: &Node) -> Option<String> {
    let lowest = |memory| {
        let times = node.settled_latencies(memory).map(|row| &row.time);
        times.min_by(|a, b| a.median.total_cmp(&b.median))
    };
    let title = format!("Time of a request to far tiers, and of a load from memories, of {}", cut(&node.name, 30));
    draw(node, &title, "time of a request", |point| &point.time, &references(node, lowest, |a, b| a < b), words::time, axis::time)
}

/// Label without the number, and the number: the best of each kind of memory, since twenty flat lines would be a wall. `better` is true
/// when its first number is better than its second.
fn references<'a>(
    node: &'a Node,
    figure: impl Fn(Memory) -> Option<&'a Figure>,
    better: fn(f64, f64) -> bool,
) -> Vec<(String, f64)> {
    let mut best: Vec<(MemoryKind, Vec<Memory>, f64)> = Vec::new();
    for memory in node.measured_memories() {
        if matches!(memory, Memory::Cache(level) if !node.is_side_cache(level)) {
            continue;
        }
        let Some(value) = figure(memory).filter(|figure| figure.is_usable()).map(|figure| figure.median) else { continue };
        let alike = |other: &&mut (MemoryKind, Vec<Memory>, f64)| {
            other.0 == node.kind(memory)
                && other.1.iter().all(|other| matches!((other, memory), (Memory::Node(_), Memory::Node(_))))
        };
        match best.iter_mut().find(alike) {
            Some(group) => {
                group.1.push(memory);
                group.2 = if better(value, group.2) { value } else { group.2 };
            }
            None => best.push((node.kind(memory), vec![memory], value)),
        }
    }
    let named = |(kind, memories, value): (MemoryKind, Vec<Memory>, f64)| match memories[..] {
        [memory] => (node.memory_name(memory), value),
        _ => {
            let ids: CpuList =
                memories.iter().filter_map(|memory| if let Memory::Node(id) = memory { Some(*id) } else { None }).collect();
            (format!("{} nodes {ids}, best", kind.name()).trim_start().to_owned(), value)
        }
    };
    best.into_iter().map(named).collect()
}

/// More lines than this are a tangle: of each access only the least and the greatest depth are drawn then.
const MOST: usize = 10;

fn draw(
    node: &Node,
    title: &str,
    label: &str,
    figure: impl Fn(&FarPoint) -> &Figure,
    references: &[(String, f64)],
    number: fn(f64) -> String,
    tick: fn(f64) -> String,
) -> Option<String> {
    let mut lines = Vec::new();
    let mut flat: Vec<(String, f64)> = Vec::new();
    let mut notes = Vec::new();
    for (index, tier) in node.far.iter().enumerate() {
        // Behind the rest: a long one may be cut there.
        let name = if node.far.len() > 1 { format!(", {}", tier.spec) } else { String::new() };
        lines.extend(tier_lines(tier, &name, index, &figure));
        let sizeless = tier.points.iter().filter(|point| point.request_bytes == 0 && figure(point).is_usable());
        flat.extend(
            sizeless
                .map(|point| (format!("{} {}{name}", point.access.name(), number(figure(point).median)), figure(point).median)),
        );
        notes.push(format!("{}: {}{}", tier.spec, tier.about, if tier.direct { "" } else { "; through the page cache" }));
    }
    if lines.is_empty() && flat.is_empty() {
        return None;
    }
    for (colour, line) in lines.iter_mut().enumerate() {
        line.look = Look { colour, dashes: line.look.dashes, thin: false };
    }
    let x = Axis::spanning("bytes of a request", Scale::Log2, xs(&lines), axis::size)
        .unwrap_or_else(|| Axis::new("bytes of a request (not published)", Scale::Log2, 4096.0, (1 << 21) as f64, axis::size));
    let values = ys(&lines).chain(flat.iter().chain(references).map(|(_, value)| *value));
    let y = Axis::spanning(label, Scale::Log10, values, tick)?;
    let across = |name: &str, value: f64, dashes| Line {
        label: name.to_owned(),
        points: vec![(x.low(), value), (x.high(), value)],
        look: Look { colour: COLOURS - 1, dashes, thin: true },
        ..Line::default()
    };
    let extra: Vec<Line> = flat.iter().map(|(label, value)| across(label, *value, 2)).collect();
    let memories: Vec<Line> =
        references.iter().map(|(name, value)| across(&format!("{name} {}", number(*value)), *value, 1)).collect();
    lines.extend(extra);
    lines.extend(memories);
    if !references.is_empty() {
        notes.push("Dashed: memories of this machine, whatever the size of a request. x 32: 32 requests under way.".to_owned());
    }
    notes.truncate(5);
    Some(draw_plot(&Frame::new(x, y), title, &lines, &notes))
}

fn tier_lines(tier: &FarTier, name: &str, index: usize, figure: impl Fn(&FarPoint) -> &Figure) -> Vec<Line> {
    let mut kinds: Vec<(FarAccess, u32)> = Vec::new();
    for point in tier.points.iter().filter(|point| point.request_bytes > 0 && figure(point).is_usable()) {
        if !kinds.contains(&(point.access, point.depth)) {
            kinds.push((point.access, point.depth));
        }
    }
    if kinds.len() > MOST {
        let all = kinds.clone();
        kinds.retain(|(access, depth)| {
            let depths = || all.iter().filter(|(other, _)| other == access).map(|(_, depth)| *depth);
            depths().min() == Some(*depth) || depths().max() == Some(*depth)
        });
    }
    kinds
        .into_iter()
        .map(|(access, depth)| {
            let same = |point: &&FarPoint| (point.access, point.depth) == (access, depth) && figure(point).is_usable();
            let mut points: Vec<&FarPoint> = tier.points.iter().filter(same).filter(|point| point.request_bytes > 0).collect();
            points.sort_by_key(|point| point.request_bytes);
            let at_once = if depth == 0 { String::new() } else { format!(" x {depth}") };
            let label = format!("{}{at_once}{name}", access.name());
            let line = Line::of(0, label, points.iter().map(|point| (point.request_bytes as f64, figure(point))));
            Line { look: Look { dashes: if index > 0 { 3 } else { 0 }, ..line.look }, ..line }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    #[test]
    fn requests_beside_memory() {
        assert!(draw_bandwidth(&Node::default()).is_none() && draw_latency(&Node::default()).is_none());
        let imdt = preset::find("imdt").expect("found");
        let bandwidth = draw_bandwidth(&imdt).expect("a chart");
        assert!(bandwidth.contains("random read x 16") && bandwidth.contains("sequential write 2.00 GB/s"));
        assert!(bandwidth.contains("PMem, node 0 10.0 GB/s") && bandwidth.contains("memory-side cache 90.0 GB/s"));
        assert!(draw_latency(&imdt).expect("a chart").contains("random read x 1"));
        assert!(draw_latency(&preset::find("nvme-gen5").expect("found")).is_some());
        let mut node = imdt;
        node.topology = preset::find("ice-lake-8360y").expect("found").topology;
        node.bandwidth = preset::find("ice-lake-8360y").expect("found").bandwidth;
        assert!(draw_bandwidth(&node).expect("a chart").contains("DRAM nodes 0-1, best 352 GB/s"));
    }

    #[test]
    fn many_depths_are_thinned() {
        let depths = [1, 2, 4, 8, 16, 32, 64, 128];
        let points = depths.into_iter().flat_map(|depth| {
            [FarAccess::RandomRead, FarAccess::RandomWrite].map(|access| FarPoint {
                access,
                depth,
                request_bytes: 4096,
                rate: Figure::of(&[1e9]),
                time: Figure::of(&[9e4]),
            })
        });
        let tier = FarTier { points: points.collect(), ..FarTier::default() };
        assert_eq!(tier_lines(&tier, "", 0, |point| &point.rate).len(), 4);
    }
}

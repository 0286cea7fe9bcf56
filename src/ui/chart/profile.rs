//! Charts of a profile: traffic and bytes over time per object, and the share of page visits that miss by bytes near.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, Line, draw};
use super::svg::{Look, cut};
use nearfar_core::profile::summary::{ObjectGroup, Summary};

/// Objects with a line of their own; the rest is one line.
const LINES: usize = 7;

/// Lines of `values` over time for the first objects, and the sum of all others.
fn over_time(
    summary: &Summary,
    title: &str,
    y_label: &str,
    words: fn(f64) -> String,
    values: impl Fn(&ObjectGroup) -> Vec<f64>,
    what: &str,
) -> Option<String> {
    let series: Vec<(String, Vec<f64>)> = summary.objects.iter().map(|object| (object.name.clone(), values(object))).collect();
    let (first, rest) = series.split_at(series.len().min(LINES));
    let mut shown = first.to_vec();
    if !rest.is_empty() {
        let bins = rest.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let sum = (0..bins).map(|bin| rest.iter().filter_map(|(_, values)| values.get(bin)).sum()).collect();
        shown.push((format!("{} others", rest.len()), sum));
    }
    shown.retain(|(_, values)| values.iter().any(|value| *value > 0.0));
    let most = shown.iter().flat_map(|(_, values)| values).copied().fold(0f64, f64::max);
    let bins = shown.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    if most <= 0.0 || bins < 2 || summary.bin_s <= 0.0 {
        return None;
    }
    let lines: Vec<Line> = shown
        .into_iter()
        .enumerate()
        .map(|(colour, (label, values))| Line {
            label,
            points: (0..).zip(values).map(|(bin, value)| ((f64::from(bin) + 0.5) * summary.bin_s, value)).collect(),
            look: Look::of(colour),
            ..Line::default()
        })
        .collect();
    let x = Axis::new("seconds", Scale::Linear, 0.0, bins as f64 * summary.bin_s, axis::short);
    let y = Axis::new(y_label, Scale::Linear, 0.0, most * 1.05, words);
    Some(draw(&Frame::new(x, y), title, &lines, &[format!("Each point is {what} {:.2} s.", summary.bin_s)]))
}

/// Seconds of a bin: the run may end within the last one.
fn seconds(summary: &Summary, at: u32) -> f64 {
    let left = summary.wall_s - f64::from(at) * summary.bin_s;
    if left > 1e-6 * summary.bin_s { left.min(summary.bin_s) } else { summary.bin_s }
}

/// Bytes per second from and to memory, over time. `None` without any.
pub fn traffic(summary: &Summary) -> Option<String> {
    let rates = |object: &ObjectGroup| (0..).zip(&object.traffic).map(|(at, bytes)| bytes / seconds(summary, at)).collect();
    over_time(summary, "Memory traffic over time", "from and to memory", axis::rate, rates, "the mean of")
}

/// Bytes of live objects, over time. `None` without any.
pub fn live(summary: &Summary) -> Option<String> {
    over_time(summary, "Bytes of live objects over time", "bytes", axis::size, |object| object.live_bytes.clone(), "the most in")
}

/// The share of page visits that miss, by bytes near (least recently used goes first): of the whole program. `None` when not known.
pub fn misses(summary: &Summary) -> Option<String> {
    let points: Vec<(f64, f64)> =
        summary.misses.points.iter().copied().filter(|point| point.0.is_finite() && point.1.is_finite()).collect();
    let most = points.iter().map(|point| point.0).fold(0f64, f64::max);
    if points.len() < 2 || most <= 0.0 {
        return None;
    }
    let line = Line { label: cut(&summary.program, 40), points, look: Look::of(0), ..Line::default() };
    let x = Axis::new("near memory", Scale::Linear, 0.0, most, axis::size);
    let y = Axis::new("share of page visits that miss", Scale::Linear, 0.0, 1.0, axis::short);
    let note = "If memory were paged and the page least recently used went first.".to_owned();
    Some(draw(&Frame::new(x, y), "Misses by near memory", &[line], &[note]))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nearfar_core::profile::record::Method;
    use nearfar_core::profile::summary::{Curve, Estimate, FORMAT, NamedFrame, Pattern, Routine};

    /// A group of 1 MiB with so much traffic in each of two bins.
    pub fn object(name: &str, traffic: f64) -> ObjectGroup {
        let frame = NamedFrame { module: "a.out".into(), function: "main".into(), line: "a.c:3".into(), ..NamedFrame::default() };
        ObjectGroup {
            name: name.into(),
            frames: vec![frame],
            count: 1,
            least: 1 << 20,
            most: 1 << 20,
            peak_bytes: 1 << 20,
            live_bytes: vec![1048576.0, 524288.0],
            lifetime_s: 1.5,
            footprint: Estimate::exact(1048576.0),
            read: Estimate { value: traffic, low: traffic * 0.9, high: traffic * 1.1 },
            written: Estimate::exact(traffic),
            changed: None,
            traffic: vec![traffic, traffic],
            lines_per_visit: Estimate::exact(64.0),
            pattern: Pattern::Stream,
            routines: vec![("main".into(), 1.0)],
            looks: 100,
            touches: 90,
            ..ObjectGroup::default()
        }
    }

    pub fn summary() -> Summary {
        let routine = Routine {
            function: "main".into(),
            module: "a.out".into(),
            self_s: 2.0,
            time: vec![1.0, 1.0],
            traffic: Estimate::exact(4e9),
            flops_per_access_byte: Some(0.1),
        };
        Summary {
            format: FORMAT,
            least: 4096,
            program: "a.out".into(),
            args: vec!["1".into()],
            processes: 1,
            host: "here".into(),
            method: Method::PageFaults,
            wall_s: 2.0,
            cpu_s: 2.0,
            bin_s: 1.0,
            cache_bytes: 1 << 25,
            peak_bytes: 9 << 20,
            objects: (0..9).map(|number| object(&format!("object {number}"), 1e9 / f64::from(number + 1))).collect(),
            routines: vec![routine],
            misses: Curve { points: vec![(0.0, 1.0), (1e6, 0.5), (9e6, 0.0)] },
            overhead: 0.02,
            notes: vec!["a note".into()],
            ..Summary::default()
        }
    }

    #[test]
    fn charts_of_a_profile_and_their_absence() {
        let full = summary();
        let charts = [traffic(&full), live(&full), misses(&full)].map(|chart| chart.expect("a chart"));
        assert!(charts.iter().all(|svg| !svg.contains("NaN") && svg.contains("</svg>")));
        assert!(charts[0].contains("2 others") && charts[0].contains("object 6") && !charts[0].contains("object 7"));
        let empty = Summary { objects: Vec::new(), misses: Curve::default(), ..summary() };
        assert!([traffic(&empty), live(&empty), misses(&empty)].iter().all(Option::is_none));
        let still = Summary { bin_s: 0.0, ..summary() };
        assert!(traffic(&still).is_none(), "no time, no rate");
    }
}

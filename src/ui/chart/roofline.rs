//! The tiered roofline: what a program can reach at each arithmetic intensity, from each memory down to the disk.

use super::axis::{self, Axis, Scale};
use super::labels::{Track, along};
use super::plot::Frame;
use super::roofs::{Ceiling, Roof, ceilings, roofs};
use super::svg::{Anchor, Look, Svg, cut, text_width};
use nearfar_core::node::{Node, words};

/// A program or a routine on the chart. Its bandwidth is known; its intensity may be a bracket, since nobody counts operations without
/// counters: then it is a piece of the line of that bandwidth.
#[derive(Clone, Debug)]
pub struct Application {
    /// What it is called.
    pub name: String,
    /// Least FLOP per byte.
    pub low: f64,
    /// Most FLOP per byte.
    pub high: f64,
    /// Bytes per second from and to memory.
    pub rate: f64,
}

/// One slanted line with its label: a roof of this machine or of the other.
struct Slope {
    label: String,
    rate: f64,
    look: Look,
}

/// The chart of `node`, with the roofs of `other` dashed beside them, and `applications`. `None` when `node` has no roof at all.
pub fn draw(node: &Node, other: Option<&Node>, applications: &[Application]) -> Option<String> {
    let (ours, mut theirs) = (roofs(node), other.map(roofs).unwrap_or_default());
    let (tops, mut their_tops) = (ceilings(node), other.map(ceilings).unwrap_or_default());
    let all = theirs.len() + their_tops.len();
    theirs.retain(|roof| ours.iter().all(|our| !is_close(our.rate, roof.rate)));
    their_tops.retain(|top| tops.iter().all(|our| our.single != top.single || !is_close(our.flops, top.flops)));
    let hidden = all - theirs.len() - their_tops.len();
    let slowest = ours.iter().chain(&theirs).map(|roof| roof.rate).reduce(f64::min)?;
    let fastest = ours.iter().chain(&theirs).map(|roof| roof.rate).reduce(f64::max)?;
    let highest = tops.iter().chain(&their_tops).map(|top| top.flops).reduce(f64::max);
    // Room to the left of the first ridge for labels along the roofs, and to the right of the last.
    let left = highest.map_or(1.0 / 64.0, |peak| (peak / fastest / 200.0).clamp(1e-4, 1.0 / 32.0));
    let right = highest.map_or(64.0, |peak| (peak / slowest * 4.0).clamp(64.0, 1e6));
    let top = highest.unwrap_or(fastest * right) * 3.0;
    let low = applications.iter().map(|app| app.low).filter(|low| *low > 0.0).fold(left, f64::min);
    let x = Axis::new(X_LABEL, Scale::Log10, low, right, axis::short);
    let y = Axis::new("FLOP/s", Scale::Log10, slowest * low, top, axis::flops);
    let mut frame = Frame::new(x, y);
    frame.height = 460.0;

    let mut notes = notes(node, other, &ours, &tops);
    if let (Some(other), 1..) = (other, hidden) {
        notes.push(format!("{}: {hidden} roofs that are within 3 % of ours are not drawn.", cut(&other.name, 40)));
    }
    let limit = |tops: &[Ceiling]| tops.iter().map(|top| top.flops).reduce(f64::max).unwrap_or(highest.unwrap_or(top));
    let prefix = |roof: &Roof| other.map_or(String::new(), |other| format!("{}: {}", cut(&other.name, 20), roof.label));
    let mut slopes: Vec<(Slope, f64)> = Vec::new();
    for (colour, roof) in ours.iter().enumerate() {
        let look = Look { colour, dashes: if roof.theoretical { 2 } else { 0 }, thin: roof.theoretical };
        slopes.push((Slope { label: roof.label.clone(), rate: roof.rate, look }, limit(&tops)));
    }
    for (colour, roof) in theirs.iter().enumerate() {
        let look = Look { colour, dashes: if roof.theoretical { 2 } else { 1 }, thin: true };
        slopes.push((Slope { label: prefix(roof), rate: roof.rate, look }, limit(&their_tops)));
    }
    let lines: Vec<[(f64, f64); 2]> = slopes.iter().map(|(slope, limit)| ends(&frame, slope.rate, *limit)).collect();
    let spots = label_spots(&frame, &slopes, &lines);
    for ((slope, _), spot) in slopes.iter().zip(&spots) {
        if spot.is_none() {
            notes.push(format!("Without a label, for want of room: {}", slope.label));
        }
    }
    let title = match other {
        Some(other) => format!("Roofline of {}, beside {} (dashed)", cut(&node.name, 30), cut(&other.name, 30)),
        None => format!("Roofline of {}", cut(&node.name, 50)),
    };
    let mut svg = frame.begin(&title, &notes);
    for ((slope, _), line) in slopes.iter().zip(&lines) {
        svg.polyline(slope.look, &[frame.at(line[0].0, line[0].1), frame.at(line[1].0, line[1].1)]);
    }
    draw_ceilings(&frame, &mut svg, (&tops, &ours), (&their_tops, &theirs), other);
    for ((slope, _), spot) in slopes.iter().zip(spots) {
        if let Some((at, degrees)) = spot {
            svg.line_label(slope.look, at, degrees, &slope.label);
        }
    }
    for app in applications.iter().filter(|app| app.rate > 0.0 && app.low > 0.0 && app.high >= app.low) {
        bracket(&frame, &mut svg, app);
    }
    Some(svg.finish(&title))
}

/// Two lines that nobody could tell apart.
fn is_close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.03
}

const X_LABEL: &str = "FLOP per byte of DRAM-side traffic as counted by triad";

fn notes(node: &Node, other: Option<&Node>, ours: &[Roof], tops: &[Ceiling]) -> Vec<String> {
    let mut notes = vec![
        "Bytes: what the program asks of that memory (reads and writes of its arrays), without the reads of write-allocate."
            .to_owned(),
        "Caches: bytes at that cache. A far tier: bytes moved between it and near memory.".to_owned(),
    ];
    if tops.is_empty() {
        notes.push(format!("No compute roof of {}: not measured.", node.name));
    }
    if node.far.is_empty() && other.is_none_or(|other| other.far.is_empty()) {
        notes.push("No far tier: not measured (nearfar probe --far PATH).".to_owned());
    }
    if ours.is_empty() {
        notes.push(format!("No memory roof of {}: not measured.", node.name));
    }
    notes
}

/// Both ends of the roof within the frame: from the left or lower edge to where it meets `limit` or leaves.
fn ends(frame: &Frame, rate: f64, limit: f64) -> [(f64, f64); 2] {
    let start = frame.x.low().max(frame.y.low() / rate);
    let end = (limit / rate).min(frame.y.high() / rate).min(frame.x.high()).max(start);
    [(start, start * rate), (end, end * rate)]
}

/// For each slope the pixel where its label begins and the degrees by which it is turned; `None` where there is no room.
fn label_spots(frame: &Frame, slopes: &[(Slope, f64)], lines: &[[(f64, f64); 2]]) -> Vec<Option<((f64, f64), f64)>> {
    // On logarithmic axes all roofs are parallel: one turn for all.
    let decade = |axis: &Axis, pixels: f64| pixels / (axis.high() / axis.low()).log10();
    let (dx, dy) = (decade(&frame.x, frame.right() - frame.left()), decade(&frame.y, frame.height));
    let angle = dy.atan2(dx);
    let (sin, cos) = angle.sin_cos();
    let tracks: Vec<Track> = slopes
        .iter()
        .zip(lines)
        .map(|((slope, _), line)| {
            let pixel = |point: (f64, f64)| frame.at(point.0, point.1);
            let ((x0, y0), (x1, y1)) = (pixel(line[0]), pixel(line[1]));
            // Screen y grows downwards, and the lines rise.
            Track {
                from: x0 * cos - y0 * sin,
                to: x1 * cos - y1 * sin,
                across: x0 * sin + y0 * cos,
                width: text_width(&slope.label),
            }
        })
        .collect();
    let spots = along(&tracks);
    let back = |spot: super::labels::Spot| {
        let (a, b) = (spot.along, spot.across);
        ((a * cos + b * sin, b * cos - a * sin), -angle.to_degrees())
    };
    spots.into_iter().map(|spot| spot.map(back)).collect()
}

type Machine<'a> = (&'a [Ceiling], &'a [Roof]);

fn draw_ceilings(frame: &Frame, svg: &mut Svg, ours: Machine<'_>, theirs: Machine<'_>, other: Option<&Node>) {
    let mut labels = Vec::new();
    let mut draw = |(tops, roofs): Machine<'_>, of: &str, dashes: usize| {
        let fastest = roofs.iter().map(|roof| roof.rate).reduce(f64::max);
        for top in tops {
            // A ceiling begins where the fastest memory can feed it.
            let start = fastest.map_or(frame.x.low(), |rate| (top.flops / rate).clamp(frame.x.low(), frame.x.high()));
            let look =
                Look { colour: 6, dashes: if top.single { 3 } else { dashes.max(usize::from(top.theoretical) * 2) }, thin: true };
            let end = frame.at(frame.x.high(), top.flops);
            svg.polyline(look, &[frame.at(start, top.flops), end]);
            labels.push((end, format!("{}{of}", top.label)));
        }
    };
    draw(ours, "", 0);
    draw(theirs, &other.map_or(String::new(), |other| format!(", {}", other.name)), 1);
    frame.labels_at_right(svg, &labels);
}

fn bracket(frame: &Frame, svg: &mut Svg, app: &Application) {
    // Within the frame: beyond it there is nothing to be told apart.
    let inside = |intensity: f64| {
        let least = frame.x.low().max(frame.y.low() / app.rate);
        intensity.clamp(least, frame.x.high().min(frame.y.high() / app.rate).max(least))
    };
    let at = |intensity: f64| frame.at(intensity, intensity * app.rate);
    let (from, to) = (at(inside(app.low)), at(inside(app.high)));
    svg.rule("axis", from, to);
    for (x, y) in [from, to] {
        svg.rule("axis", (x - 4.0, y - 4.0), (x + 4.0, y + 4.0));
    }
    let text = format!("{} {}", cut(&app.name, 30), words::rate(app.rate));
    svg.text("", ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0 - 8.0), Anchor::Middle, &text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    #[test]
    fn every_preset_can_be_drawn_alone_and_beside_another() {
        let max = preset::find("xeon-max-9480-flat").expect("found");
        for name in preset::names() {
            let node = preset::find(name).expect("found");
            let alone = draw(&node, None, &[]).unwrap_or_else(|| panic!("{name}: no roof"));
            let beside = draw(&node, Some(&max), &[]).expect("a chart");
            for svg in [&alone, &beside] {
                assert!(
                    svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"),
                    "{name}"
                );
                assert!(svg.contains("FLOP per byte"), "{name}");
            }
            assert_eq!(beside.contains("xeon-max-9480-flat: HBM, node 1 560 GB/s"), name != max.name, "{name}");
        }
        assert!(draw(&Node::default(), None, &[]).is_none());
    }

    #[test]
    fn programs_are_brackets() {
        let node = preset::find("knl-flat").expect("found");
        let app = Application { name: "a <b>".to_owned(), low: 0.1, high: 0.5, rate: 4e10 };
        let svg = draw(&node, None, &[app]).expect("a chart");
        assert!(svg.contains("a &lt;b&gt; 40.0 GB/s"));
    }
}

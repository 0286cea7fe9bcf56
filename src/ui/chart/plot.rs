//! A chart of lines: frame, axes, grid, lines with markers, and a label at the right end of each line.

use super::axis::Axis;
use super::labels::spread;
use super::svg::{Anchor, Look, Svg, cut};
use nearfar_core::node::Figure;

/// Width of every chart in pixels.
pub const WIDTH: f64 = 950.0;
const TOP: f64 = 40.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 290.0;
const HEIGHT: f64 = 400.0;
/// Between labels.
pub const LABEL_GAP: f64 = 15.0;

/// Where the axes are, in pixels.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical one.
    pub y: Axis,
    /// Pixels from the top to the bottom of the plot.
    pub height: f64,
}

impl Frame {
    /// A frame of the usual height.
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, height: HEIGHT }
    }

    /// Left edge of the plot.
    pub const fn left(&self) -> f64 {
        LEFT
    }

    /// Right edge of the plot; labels are beyond it.
    pub fn right(&self) -> f64 {
        WIDTH - RIGHT
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        TOP + self.height
    }

    /// The pixel of a point, on the edge where it is outside.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let inside = |place: f64| if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 };
        let across = self.left() + inside(self.x.place(x)) * (self.right() - self.left());
        (across, self.bottom() - inside(self.y.place(y)) * self.height)
    }

    /// A drawing with title, grid and axes, and `notes` below.
    pub fn begin(&self, title: &str, notes: &[String]) -> Svg {
        let mut svg = Svg::new(WIDTH, self.bottom() + 48.0 + 16.0 * notes.len() as f64);
        svg.text("title", (LEFT, 24.0), Anchor::Start, title);
        for tick in self.x.ticks() {
            let (x, _) = self.at(tick.value, self.y.low());
            svg.rule(if tick.text.is_some() { "grid" } else { "fine" }, (x, TOP), (x, self.bottom()));
            if let Some(text) = tick.text {
                svg.text("small", (x, self.bottom() + 16.0), Anchor::Middle, &text);
            }
        }
        for tick in self.y.ticks() {
            let (_, y) = self.at(self.x.low(), tick.value);
            svg.rule(if tick.text.is_some() { "grid" } else { "fine" }, (LEFT, y), (self.right(), y));
            if let Some(text) = tick.text {
                svg.text("small", (LEFT - 6.0, y + 4.0), Anchor::End, &text);
            }
        }
        svg.rule("axis", (LEFT, TOP), (LEFT, self.bottom()));
        svg.rule("axis", (LEFT, self.bottom()), (self.right(), self.bottom()));
        let middle = (LEFT + self.right()) / 2.0;
        svg.text("", (middle, self.bottom() + 36.0), Anchor::Middle, self.x.label());
        svg.turned_text("", (14.0, TOP + self.height / 2.0), Anchor::Middle, -90.0, self.y.label());
        for (line, note) in (0..).zip(notes) {
            svg.text("small", (LEFT, self.bottom() + 56.0 + 16.0 * f64::from(line)), Anchor::Start, &cut(note, 140));
        }
        svg
    }

    /// Labels beyond the right edge, each with a thin line from `end`, the pixel that it belongs to.
    pub fn labels_at_right(&self, svg: &mut Svg, ends: &[((f64, f64), String)]) {
        let wanted: Vec<f64> = ends.iter().map(|((_, y), _)| *y).collect();
        let places = spread(&wanted, LABEL_GAP, TOP + 4.0, self.bottom() - 2.0);
        for (((x, y), text), place) in ends.iter().zip(places) {
            svg.rule("leader", (x + 5.0, *y), (self.right() + 10.0, place));
            svg.text("", (self.right() + 14.0, place + 4.0), Anchor::Start, &cut(text, 41));
        }
    }
}

/// One line of a chart.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// What it is, at its end.
    pub label: String,
    /// Its points, ascending in x.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of the interval at each point; empty for none.
    pub spread: Vec<(f64, f64)>,
    /// What it looks like.
    pub look: Look,
    /// Marks at the points.
    pub marks: bool,
}

impl Line {
    /// Line number `number`, with marks: where each point is in x, and the figure there.
    pub fn of<'a>(number: usize, label: String, points: impl Iterator<Item = (f64, &'a Figure)>) -> Self {
        let (points, spread) = points.map(|(x, figure)| ((x, figure.median), (figure.low, figure.high))).unzip();
        Self { label, points, spread, look: Look::of(number), marks: true }
    }
}

/// Where the points of all `lines` are in x.
pub fn xs(lines: &[Line]) -> impl Iterator<Item = f64> + Clone {
    lines.iter().flat_map(|line| &line.points).map(|point| point.0)
}

/// Where the points of all `lines` are in y.
pub fn ys(lines: &[Line]) -> impl Iterator<Item = f64> + Clone {
    lines.iter().flat_map(|line| &line.points).map(|point| point.1)
}

/// Draws `lines` with the axes of `frame`.
pub fn draw(frame: &Frame, title: &str, lines: &[Line], notes: &[String]) -> String {
    let mut svg = frame.begin(title, notes);
    for line in lines.iter().filter(|line| line.spread.len() == line.points.len() && line.points.len() > 1) {
        let upper = line.points.iter().zip(&line.spread).map(|((x, _), (_, high))| frame.at(*x, *high));
        let lower = line.points.iter().zip(&line.spread).map(|((x, _), (low, _))| frame.at(*x, *low)).rev();
        svg.area(line.look, &upper.chain(lower).collect::<Vec<_>>());
    }
    let mut ends = Vec::new();
    for line in lines {
        let points: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| frame.at(*x, *y)).collect();
        if points.len() > 1 {
            svg.polyline(line.look, &points);
        }
        if line.marks {
            points.iter().for_each(|&point| svg.marker(line.look, point));
        }
        ends.extend(points.last().map(|&end| (end, line.label.clone())));
    }
    frame.labels_at_right(&mut svg, &ends);
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use super::super::axis::{Scale, short};
    use super::*;

    #[test]
    fn points_outside_are_drawn_on_the_edge() {
        let frame = Frame::new(Axis::new("x", Scale::Log10, 1.0, 100.0, short), Axis::new("y", Scale::Linear, 0.0, 10.0, short));
        assert_eq!(frame.at(10.0, 5.0), ((frame.left() + frame.right()) / 2.0, TOP + HEIGHT / 2.0));
        assert_eq!(frame.at(1e9, f64::NAN), (frame.right(), frame.bottom()));
        let line = Line { label: "<a>".to_owned(), points: vec![(1.0, 1.0), (50.0, 9.0)], marks: true, ..Line::default() };
        let svg = draw(&frame, "T", &[line], &["a note".to_owned()]);
        assert!(svg.contains("&lt;a&gt;") && svg.contains("a note") && svg.contains("polyline"));
        assert!(!svg.contains("NaN"));
    }
}

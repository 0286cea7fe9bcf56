//! Predicted beside measured run times, stacked by routine: a pair of bars for each way to place, as in the paper on which the method
//! rests.

use super::axis::{self, Axis, Scale};
use super::plot::{Frame, LABEL_GAP, WIDTH};
use super::svg::{Anchor, COLOURS, Look, Svg, cut};
use crate::files::advice::{OTHER, Row};
use crate::ui::routine::{Column, Key};

/// Pixels from the axis to the middle of what it says.
const BELOW: f64 = 16.0;
/// Of the width of a case, what its two bars take.
const FILLED: f64 = 0.62;
/// Cases that have room.
const MOST: usize = 12;

fn words(seconds: f64) -> String {
    format!("{} s", axis::short(seconds))
}

/// Of what is of no routine that has a name: no other part looks so.
const REST: Look = Look { colour: COLOURS - 1, dashes: 1, thin: false };

/// The chart; `None` without anything to draw.
pub fn draw(rows: &[Row]) -> Option<String> {
    let rows = &rows[..rows.len().min(MOST)];
    let most = rows.iter().map(|row| row.median.max(row.predicted.value)).filter(|time| time.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let key = Key::of(rows.iter().map(|row| row.routines.as_slice()));
    // Ticks of the horizontal axis would say nothing.
    let x = Axis::new("", Scale::Linear, 0.0, 1.0, |_| String::new());
    let y = Axis::new("run time", Scale::Linear, 0.0, most * 1.08, words);
    let frame = Frame { height: 340.0, ..Frame::new(x, y) };
    let title = "Predicted (left) and measured (right) run time";
    let mut svg = Svg::new(WIDTH, frame.bottom() + 48.0);
    svg.text("title", (frame.left(), 24.0), Anchor::Start, title);
    for tick in frame.y.ticks() {
        let (_, y) = frame.at(0.0, tick.value);
        svg.rule(if tick.text.is_some() { "grid" } else { "fine" }, (frame.left(), y), (frame.right(), y));
        tick.text.iter().for_each(|text| svg.text("small", (frame.left() - 6.0, y + 4.0), Anchor::End, text));
    }
    let case = 1.0 / rows.len() as f64;
    let columns: [Column; 2] = [|row| row.predicted, |row| row.measured];
    for (row, number) in rows.iter().zip(0u32..) {
        let left = case * (f64::from(number) + (1.0 - FILLED) / 2.0);
        let bar = case * FILLED / 2.0;
        for (of, (total, begin)) in columns.into_iter().zip([(row.predicted.value, left), (row.median, left + bar)]) {
            stack(&mut svg, &frame, key.parts(&row.routines, of), total, (begin, begin + 0.9 * bar));
        }
        let (middle, _) = frame.at(left + bar, 0.0);
        svg.text("small", (middle, frame.bottom() + BELOW), Anchor::Middle, &cut(&row.name, 140 / rows.len().max(4)));
        svg.text("small", (middle, frame.bottom() + 2.0 * BELOW), Anchor::Middle, &format!("{:+.0} %", 100.0 * row.error));
    }
    svg.rule("axis", (frame.left(), frame.at(0.0, most).1), (frame.left(), frame.bottom()));
    svg.rule("axis", (frame.left(), frame.bottom()), (frame.right(), frame.bottom()));
    let named: Vec<&str> = key.names().collect();
    for (part, name) in named.iter().copied().chain((!named.is_empty()).then_some(OTHER)).enumerate() {
        // As in the bars, the first at the bottom.
        let at = (frame.right() + 14.0, frame.bottom() - 6.0 - 1.3 * LABEL_GAP * part as f64);
        let colour = if part < named.len() { Look::of(part) } else { REST };
        svg.block(colour, (at.0, at.1 - 9.0), (at.0 + 10.0, at.1 + 1.0));
        svg.text("", (at.0 + 16.0, at.1), Anchor::Start, &cut(name, 36));
    }
    Some(svg.finish(title))
}

/// One bar from `ends.0` to `ends.1`, of its parts, or whole where they are not known.
fn stack(svg: &mut Svg, frame: &Frame, parts: Option<Vec<f64>>, total: f64, ends: (f64, f64)) {
    let parts = parts.unwrap_or_else(|| vec![total]);
    let last = parts.len() - 1;
    let mut until = 0.0;
    for (at, seconds) in parts.into_iter().enumerate().filter(|(_, seconds)| *seconds > 0.0) {
        let (low, high) = (frame.at(ends.0, until), frame.at(ends.1, until + seconds));
        svg.block(if at < last { Look::of(at) } else { REST }, (low.0, high.1), (high.0, low.1));
        until += seconds;
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::files::advice::Routine;
    use nearfar_core::profile::summary::Estimate;

    /// A case whose routines "sum" and "up<date" take so much.
    pub fn row(name: &str, said: [f64; 2], seen: Option<[f64; 2]>) -> Row {
        let routine = |function: &str, at: usize| Routine {
            function: function.into(),
            module: "app".into(),
            predicted: Some(said[at]),
            measured: seen.map(|seen| seen[at]),
            error: seen.map(|seen| said[at] / seen[at] - 1.0),
        };
        let predicted = said.iter().sum::<f64>();
        let median = seen.map_or(predicted, |seen| seen.iter().sum());
        Row {
            name: name.into(),
            predicted: Estimate { value: predicted, low: 0.9 * predicted, high: 1.1 * predicted },
            measured: vec![median],
            median,
            error: predicted / median - 1.0,
            routines: vec![routine("sum", 0), routine("up<date", 1)],
            ..Row::default()
        }
    }

    #[test]
    fn bars_are_stacked_and_as_high_as_their_times() {
        let rows = [row("All far", [6.0, 2.0], Some([5.0, 3.0])), row("All near", [1.0, 3.0], None)];
        let svg = draw(&rows).expect("a chart");
        assert!(svg.contains("All far") && svg.contains("up&lt;date") && !svg.contains("NaN"));
        // Three bars of two parts, one that is whole, and a legend of three.
        assert_eq!(svg.matches("class=\"block").count(), 10, "{svg}");
        assert!(draw(&[]).is_none());
        let none = Row { median: f64::NAN, ..Row::default() };
        assert!(draw(&[none]).is_none());
    }
}

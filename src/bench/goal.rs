//! What nearfar should reach, and whether it did: one line of the table of speed per goal.
//!
//! Pure. Invariant: a goal without a figure is neither met nor missed, and says why there is none.

use super::rival::Rival;
use crate::sample::{median, show_ratio};
use serde::Serialize;

/// What a rate is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The rate of another system in the same run.
    Rival(Rival),
    /// The best of the fixed grains in the same run.
    BestGrain,
    /// What the device allows, measured in the same run.
    Bound,
}

/// A least ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Of what.
    pub against: Baseline,
    /// The least.
    pub least: f64,
    /// How it is written.
    pub unit: Unit,
    /// Somebody's published figure that belongs beside it.
    pub beside: Option<&'static str>,
}

/// What a figure counts, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A ratio, as `1.23x`.
    Times,
    /// A ratio, as `85 %`.
    Share,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

/// A measured figure with its spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// True when the other was stopped, so that it is more than this.
    pub at_least: bool,
}

/// Which way a target lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This or more.
    AtLeast,
    /// This or less.
    AtMost,
}

/// One line of the table of speed.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What was measured.
    pub work: String,
    /// Against what.
    pub against: String,
    /// What came out.
    pub figure: Option<Figure>,
    /// How it is written.
    pub unit: Unit,
    /// What was aimed at.
    pub target: f64,
    /// Which way.
    pub direction: Target,
    /// Whether that was reached; `None` where it cannot be told.
    pub met: Option<bool>,
    /// Why there is no figure.
    pub missing: Option<String>,
}

impl Goal {
    /// At least `least` times as fast.
    pub const fn times(against: Baseline, least: f64) -> Self {
        Self { against, least, unit: Unit::Times, beside: None }
    }

    /// At least this share.
    pub const fn share(against: Baseline, least: f64) -> Self {
        Self { against, least, unit: Unit::Share, beside: None }
    }

    /// With somebody's published figure.
    pub const fn beside(self, published: &'static str) -> Self {
        Self { beside: Some(published), ..self }
    }

    /// What it is held against, for people.
    pub fn label(&self) -> String {
        let name = match self.against {
            Baseline::Rival(rival) => rival.name(),
            Baseline::BestGrain => "best fixed grain",
            Baseline::Bound => "bound",
        };
        self.beside.map_or_else(|| name.to_owned(), |published| format!("{name}; {published}"))
    }
}

impl Figure {
    /// The figures of several rounds put together; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            at_least: false,
        })
    }
}

impl Unit {
    /// A figure with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Times => show_ratio(value),
            Unit::Share => format!("{:.*} %", if value < 0.01 { 3 } else { 1 }, 100.0 * value),
            Unit::Us => format!("{value:.1} us"),
            Unit::Ms => format!("{value:.2} ms"),
        }
    }
}

impl Verdict {
    /// Holds `figure` (or the reason for its lack) against the target.
    pub fn new(
        work: impl Into<String>,
        against: impl Into<String>,
        figure: Result<Figure, String>,
        unit: Unit,
        (direction, target): (Target, f64),
    ) -> Self {
        let (figure, missing) = match figure {
            Ok(figure) => (Some(figure), None),
            Err(why) => (None, Some(why)),
        };
        let met = figure.and_then(|figure| match direction {
            Target::AtLeast if figure.at_least && figure.median < target => None,
            Target::AtLeast => Some(figure.median >= target),
            Target::AtMost => Some(figure.median <= target),
        });
        Self { work: work.into(), against: against.into(), figure, unit, target, direction, met, missing }
    }

    /// Median, spread, target and outcome for people.
    pub fn cells(&self) -> [String; 4] {
        let (measured, spread) = match &self.figure {
            Some(figure) => (
                format!("{}{}", if figure.at_least { ">= " } else { "" }, self.unit.show(figure.median)),
                format!("{} .. {}", self.unit.show(figure.min), self.unit.show(figure.max)),
            ),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let sign = if self.direction == Target::AtLeast { ">=" } else { "<=" };
        let outcome = match (self.met, &self.missing) {
            (Some(true), _) => "met".to_owned(),
            (Some(false), _) => "MISSED".to_owned(),
            (None, Some(why)) => format!("skipped: {why}"),
            (None, None) => "open: the other one was stopped".to_owned(),
        };
        [measured, spread, format!("{sign} {}", self.unit.show(self.target)), outcome]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(figure: Result<Figure, String>, direction: Target) -> Verdict {
        Verdict::new("work", "rival", figure, Unit::Times, (direction, 2.0))
    }

    #[test]
    fn goals_are_met_missed_or_open() {
        let figure = Figure::of(&[1.0, 3.0, 2.5]).expect("three");
        assert_eq!((figure.median, figure.min, figure.max), (2.5, 1.0, 3.0));
        assert_eq!(verdict(Ok(figure), Target::AtLeast).cells(), ["2.50x", "1.00x .. 3.00x", ">= 2.00x", "met"]);
        assert_eq!(verdict(Ok(figure), Target::AtMost).met, Some(false));
        // The rival was stopped: more than 1.5x may be 2x, and more than 2.5x is.
        let low = Figure { median: 1.5, at_least: true, ..figure };
        assert_eq!(verdict(Ok(low), Target::AtLeast).met, None);
        assert_eq!(verdict(Ok(Figure { at_least: true, ..figure }), Target::AtLeast).cells()[0], ">= 2.50x");
        assert_eq!(verdict(Ok(Figure { at_least: true, ..figure }), Target::AtLeast).met, Some(true));
    }

    #[test]
    fn what_was_not_measured_says_why() {
        let cells = verdict(Err("needs root".to_owned()), Target::AtLeast).cells();
        assert_eq!((cells[0].as_str(), cells[3].as_str()), ("-", "skipped: needs root"));
        assert!(Figure::of(&[]).is_none());
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!(Unit::Share.show(0.856), "85.6 %");
        assert_eq!(Unit::Share.show(0.00084), "0.084 %");
        assert_eq!((Unit::Us.show(7.96), Unit::Ms.show(4.0)), ("8.0 us".to_owned(), "4.00 ms".to_owned()));
    }
}

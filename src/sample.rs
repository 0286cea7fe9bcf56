//! Figures of repeated runs: median and spread, and what stands in their place when a run gave none.
//!
//! Pure. Invariant: a run that was cut off never enters a median as if it had ended; it gives a bound.

use serde::Serialize;

/// What one run of one system gave. Values are rates: more is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The measured rate.
    Value(f64),
    /// The run was stopped by its time limit: the rate is below this.
    Below(f64),
    /// The run failed, and why.
    Failed(String),
}

/// Several runs of one system put together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Summary {
    /// Measured rates.
    Measured {
        /// The middle one.
        median: f64,
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// How many.
        runs: usize,
    },
    /// At least half of the runs were stopped: the median is below this.
    Below {
        /// The highest of the runs' bounds.
        bound: f64,
        /// How many runs.
        runs: usize,
    },
    /// No run gave a rate.
    Nothing,
}

/// The median of `values`; `None` without any.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

impl Summary {
    /// Puts runs together; failed ones are left out (their reason is printed beside the table).
    pub fn of(outcomes: &[Outcome]) -> Self {
        let values: Vec<f64> = outcomes.iter().filter_map(|o| if let Outcome::Value(v) = o { Some(*v) } else { None }).collect();
        let bounds: Vec<f64> = outcomes.iter().filter_map(|o| if let Outcome::Below(b) = o { Some(*b) } else { None }).collect();
        if !bounds.is_empty() && bounds.len() >= values.len() {
            let bound = bounds.iter().copied().fold(0.0, f64::max);
            return Summary::Below { bound, runs: bounds.len() + values.len() };
        }
        let Some(median) = median(&values) else { return Summary::Nothing };
        Summary::Measured {
            median,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            runs: values.len(),
        }
    }

    /// The median, where there is one.
    pub fn median(&self) -> Option<f64> {
        if let Summary::Measured { median, .. } = self { Some(*median) } else { None }
    }

    /// How many times as fast as `other` this is: `12.3x`, `>= 12.3x` where the other was stopped, `-` where one is missing.
    pub fn ratio_to(&self, other: &Summary) -> String {
        match (self, other) {
            (Summary::Measured { median, .. }, Summary::Measured { median: rival, .. }) => show_ratio(median / rival),
            (Summary::Measured { median, .. }, Summary::Below { bound, .. }) => format!(">= {}", show_ratio(median / bound)),
            (Summary::Below { bound, .. }, Summary::Measured { median, .. }) => format!("<= {}", show_ratio(bound / median)),
            _ => "-".to_owned(),
        }
    }
}

/// A ratio with as many digits as it deserves.
pub fn show_ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0}x"),
        r if r >= 10.0 => format!("{r:.1}x"),
        r if r >= 0.1 => format!("{r:.2}x"),
        r => format!("{r:.4}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_stopped_rival_gives_a_lower_bound_of_the_ratio() {
        let ours = Summary::of(&[Outcome::Value(1.0), Outcome::Value(3.0), Outcome::Failed("no".into())]);
        let rival = Summary::of(&[Outcome::Below(0.1), Outcome::Value(0.05)]);
        assert_eq!(ours.ratio_to(&rival), ">= 20.0x");
        assert_eq!(rival.ratio_to(&ours), "<= 0.0500x");
        assert_eq!(ours.ratio_to(&Summary::of(&[])), "-");
    }
}

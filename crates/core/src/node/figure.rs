//! One measured number: median, interval, number of runs, whether it can be trusted, and where it comes from.

use serde::{Deserialize, Serialize};

/// Whether a figure can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// Measured, checked, and steady.
    #[default]
    Valid,
    /// Measured and checked, but its runs differ much or the machine was busy.
    Noisy,
    /// A condition of the method was not met: not to be used.
    Invalid,
}

/// A number in the unit that its field says. Not a number at all (`median` 0, `runs` 0) where only other parts are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// Median of the runs.
    pub median: f64,
    /// Lower end of the 95 % confidence interval of the median (of order statistics).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Timed runs behind it; 0 for a figure that somebody else measured.
    pub runs: u32,
    /// Whether it can be trusted.
    pub validity: Validity,
    /// Why not; empty when valid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Who measured it, where and when, for figures of presets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Spread of the interval around the median above which a figure is noisy.
pub const NOISY_SPREAD: f64 = 0.10;

/// First words of [`Figure::source`] of figures that are arithmetic, not measurements.
pub const THEORETICAL: &str = "theoretical peak";

impl Figure {
    /// The figure of `runs`: noisy when the interval is wider than a tenth of the median on either side; invalid when a run is not a
    /// positive finite number.
    pub fn of(runs: &[f64]) -> Self {
        if runs.is_empty() || !runs.iter().all(|run| run.is_finite() && *run > 0.0) {
            return Self::invalid("a run gave no positive number");
        }
        let (median, low, high) = median_with_interval(runs);
        let mut figure = Self { median, low, high, runs: runs.len() as u32, ..Self::default() };
        let spread = (high - median).max(median - low) / median;
        if spread > NOISY_SPREAD {
            figure.validity = Validity::Noisy;
            figure.why = format!("runs differ by {:.0} %", spread * 100.0);
        }
        figure
    }

    /// A figure that must not be used.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self { validity: Validity::Invalid, why: why.into(), ..Self::default() }
    }

    /// A figure that somebody published.
    pub fn published(value: f64, source: impl Into<String>) -> Self {
        Self { median: value, low: value, high: value, source: Some(source.into()), ..Self::default() }
    }

    /// The same number, marked as not to be used; keeps the first reason.
    pub fn condemned(mut self, why: impl Into<String>) -> Self {
        if self.validity != Validity::Invalid {
            (self.validity, self.why) = (Validity::Invalid, why.into());
        }
        self
    }

    /// The same figure in another unit.
    pub fn times(mut self, factor: f64) -> Self {
        self.median *= factor;
        (self.low, self.high) = (self.low * factor, self.high * factor);
        self
    }

    /// A figure that follows from a data sheet by arithmetic and that no program reaches; `how` says from what.
    pub fn theoretical(value: f64, how: &str) -> Self {
        Self::published(value, format!("{THEORETICAL}: {how}"))
    }

    /// True for arithmetic on a data sheet: its source begins with [`THEORETICAL`].
    pub fn is_theoretical(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.starts_with(THEORETICAL))
    }

    /// True when there is a number at all, trusted or not.
    pub fn is_known(&self) -> bool {
        self.median.is_finite() && self.median > 0.0
    }

    /// True when it can be compared and drawn: there is a number, and it is not invalid.
    pub fn is_usable(&self) -> bool {
        self.is_known() && self.is_valid()
    }

    /// True unless invalid.
    pub fn is_valid(&self) -> bool {
        self.validity != Validity::Invalid
    }
}

/// Median of `runs` and the 95 % confidence interval of the median by order statistics (Le Boudec, Performance Evaluation, 2.2): no
/// assumption about the distribution. With fewer than 6 runs there is no such interval: smallest and largest are given. Runs must not
/// be empty; they need not be sorted.
pub fn median_with_interval(runs: &[f64]) -> (f64, f64, f64) {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    if n < 6 {
        return (median, sorted[0], sorted[n - 1]);
    }
    // The rank of the lower end: n/2 - 0.98 sqrt(n), at least the first.
    let below = ((n as f64 / 2.0) - 0.98 * (n as f64).sqrt()).floor().max(1.0) as usize - 1;
    (median, sorted[below], sorted[n - 1 - below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_intervals() {
        assert_eq!(median_with_interval(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(median_with_interval(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0));
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(median_with_interval(&many), (50.5, 40.0, 61.0));
    }

    #[test]
    fn nonsense_is_invalid_and_spread_is_noise() {
        for bad in [vec![], vec![1.0, f64::NAN], vec![f64::INFINITY], vec![0.0, 1.0]] {
            assert_eq!(Figure::of(&bad).validity, Validity::Invalid);
        }
        assert_eq!(Figure::of(&[1.0, 1.01, 0.99]).validity, Validity::Valid);
        let noisy = Figure::of(&[1.0, 1.5, 0.9]);
        assert_eq!((noisy.validity, noisy.why.as_str()), (Validity::Noisy, "runs differ by 50 %"));
        assert_eq!(noisy.condemned("too small").why, "too small");
        assert!(Figure::theoretical(1.0, "2 x 0.5").is_theoretical() && !Figure::published(1.0, "somebody").is_theoretical());
        assert!(!Figure::default().is_usable() && !Figure::invalid("no").is_usable() && Figure::of(&[2.0]).is_usable());
    }
}

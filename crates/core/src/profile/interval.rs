//! Intervals: all estimates again with looks drawn anew (Rubin's Bayesian bootstrap: each look counts by a random amount), widened to what so
//! few touches can tell at all.

use super::recurrence::{least, most};
use super::summary::Estimate;

/// How often everything is estimated again.
pub const REPLICATES: usize = 60;

/// The interval of `value`, of which `again` are other estimates and which rests on so many touches.
pub fn interval(value: f64, again: &mut [f64], touches: f64, most_value: f64) -> Estimate {
    again.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = (again.len() as f64 * share) as usize;
        again.get(place.min(again.len().saturating_sub(1))).copied().unwrap_or(value)
    };
    let (mut low, mut high) = (quantile(0.05), quantile(0.95));
    if touches > 0.0 {
        low = low.min(value * least(touches) / touches);
        high = high.max(value * most(touches) / touches);
    } else {
        low = 0.0;
        high = high.max(most_value);
    }
    finite(value, low, high)
}

/// An estimate whose numbers are in order and finite, whatever went in.
pub fn finite(value: f64, low: f64, high: f64) -> Estimate {
    let clean = |number: f64| if number.is_finite() { number.clamp(0.0, 1e24) } else { 0.0 };
    let value = clean(value);
    Estimate { value, low: clean(low).min(value), high: clean(high).max(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_touches_make_wide_intervals() {
        let mut same = [100.0; REPLICATES];
        let few = interval(100.0, &mut same, 2.0, 0.0);
        assert!(few.low < 25.0 && few.high > 300.0, "{few:?}");
        let many = interval(100.0, &mut same, 1000.0, 0.0);
        assert!(many.low > 93.0 && many.high < 107.0, "{many:?}");
        assert_eq!(interval(0.0, &mut [], 0.0, 7.0), Estimate { value: 0.0, low: 0.0, high: 7.0 });
        assert_eq!(finite(f64::NAN, 1.0, f64::INFINITY), Estimate::exact(0.0));
    }
}

//! How often the pages of one group are visited, from looks that only tell "visited since the last look" or not.
//!
//! A look at a random page of the group finds it visited with probability `p = 1 - exp(-rate * interval)`. Looks grow old: what was seen a
//! half-life ago counts half. The bounds are Wilson's for `p`, so that few looks give wide bounds and nobody moves pages for noise.

/// What was seen this long ago counts half.
const HALF_LIFE_S: f64 = 20.0;
/// Width of the bounds in standard deviations: hundreds of groups are compared with each other, so that the outermost of them differ by chance.
const Z: f64 = 2.5;
/// Nothing is taken to be visited with more certainty than that.
const MOST: f64 = 0.999;

/// Looks at one group, and how many found a visit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heat {
    visits: f64,
    looks: f64,
    at_s: f64,
}

impl Heat {
    /// Adds looks that were taken at `now_s`.
    pub fn add(&mut self, now_s: f64, visits: u32, looks: u32) {
        let keep = self.keep(now_s);
        self.visits = self.visits * keep + f64::from(visits.min(looks));
        self.looks = self.looks * keep + f64::from(looks);
        self.at_s = now_s;
    }

    /// The interval between looks is `factor` times what it was: what was seen before is made comparable.
    pub fn stretch(&mut self, factor: f64) {
        if self.looks > 0.0 {
            let p = (self.visits / self.looks).min(MOST);
            self.visits = self.looks * (1.0 - (1.0 - p).powf(factor));
        }
    }

    /// True when it was looked at.
    pub fn is_known(&self) -> bool {
        self.looks > 0.0
    }

    /// When it was looked at last.
    pub fn at_s(&self) -> f64 {
        self.at_s
    }

    /// Visits per page and interval, most likely.
    pub fn rate(&self) -> f64 {
        rate(self.visits, self.looks)
    }

    /// The least and the most that the rate may be, as of `now_s`.
    pub fn bounds(&self, now_s: f64) -> (f64, f64) {
        let n = self.looks * self.keep(now_s);
        if n <= 0.0 {
            return (0.0, f64::INFINITY);
        }
        let p = (self.visits / self.looks).clamp(0.0, 1.0);
        let square = Z * Z / n;
        let half = Z * (p * (1.0 - p) / n + square / (4.0 * n)).sqrt();
        let end = |sign: f64| ((p + square / 2.0 + sign * half) / (1.0 + square)).clamp(0.0, MOST);
        (visits_of(end(-1.0)), visits_of(end(1.0)))
    }

    fn keep(&self, now_s: f64) -> f64 {
        (-(now_s - self.at_s).max(0.0) / HALF_LIFE_S).exp2()
    }
}

/// Visits per page and interval from looks alone. All looks having found a visit, half a look is taken to have found none.
pub fn rate(visits: f64, looks: f64) -> f64 {
    if looks <= 0.0 { 0.0 } else { visits_of((visits / looks).min(1.0 - 0.5 / looks.max(1.0)).min(MOST)) }
}

fn visits_of(p: f64) -> f64 {
    -(1.0 - p).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_looks_tell_hot_from_cold_but_not_warm_from_warm() {
        let heat = |visits| {
            let mut heat = Heat::default();
            heat.add(0.0, visits, 10);
            heat
        };
        let (hot, cold, warm, cool) = (heat(10), heat(0), heat(6), heat(4));
        assert!(hot.bounds(0.0).0 > 1.5 * cold.bounds(0.0).1, "{:?} {:?}", hot.bounds(0.0), cold.bounds(0.0));
        assert!(warm.bounds(0.0).0 < cool.bounds(0.0).1);
        assert_eq!(Heat::default().bounds(0.0), (0.0, f64::INFINITY));
        // What was seen long ago says little.
        assert!(hot.bounds(200.0).0 < 0.01 && cold.bounds(200.0).1 > 4.0);
        assert!(hot.rate() > 2.0 && cold.rate() == 0.0);
    }

    #[test]
    fn the_new_replaces_the_old() {
        let mut heat = Heat::default();
        heat.add(0.0, 10, 10);
        for second in 1..100 {
            heat.add(f64::from(second), 0, 10);
        }
        assert!(heat.rate() < 0.01, "{heat:?}");
    }

    #[test]
    fn another_interval() {
        let mut heat = Heat::default();
        heat.add(0.0, 50, 100);
        let before = heat.rate();
        heat.stretch(0.5);
        assert!((heat.rate() - before / 2.0).abs() < 1e-9, "{heat:?}");
    }
}

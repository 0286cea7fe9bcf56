//! How fast evicted pages come back: the measure by which adaptive eviction compares its queues.

/// Rate of return of a queue's ghosts, averaged over about a capacity of misses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    /// Pages that came back.
    pub back: f64,
    // Pages that were away, times the pages of misses during which they were.
    away: f64,
}

impl Rate {
    /// Fades what was by `keep`, and adds pages that are `away`.
    pub fn pass(&mut self, keep: f64, away: f64) {
        self.back *= keep;
        self.away = self.away * keep + away;
    }

    /// Per page of misses; 0 without `evidence` pages that came back.
    pub fn measured(&self, evidence: f64) -> f64 {
        if self.back > evidence { self.back / self.away.max(1.0) } else { 0.0 }
    }

    /// Per page of misses, drawn towards `prior` as if `weight` pages had come back at that rate.
    pub fn drawn(&self, prior: f64, weight: f64) -> f64 {
        (self.back + weight) / (self.away + weight / prior)
    }
}

/// Rates of IN and MAIN in one window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    pub newcomers: Rate,
    /// Of newcomers those that IN would have kept if it were as long as it can be.
    pub reached: Rate,
    pub main: Rate,
}

/// What [`Pair`] knows, per page of misses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub newcomers: f64,
    pub reached: f64,
    pub main: f64,
}

impl Pair {
    /// Rates where near has `capacity` pages and large units `unit`. MAIN is expected to do as in a loop, twice as well as
    /// newcomers, until seen to do worse.
    pub fn rates(&self, capacity: f64, unit: f64) -> Known {
        // One or two units that came back by chance say nothing.
        let evidence = (capacity / 64.0).max(2.0 * unit);
        let newcomers = self.newcomers.measured(evidence);
        let prior = if newcomers > 0.0 { 2.0 * newcomers } else { 1.0 / capacity };
        Known { newcomers, reached: self.reached.measured(evidence), main: self.main.drawn(prior, capacity / 256.0) }
    }
}

//! Whether moves pay: what they cost against the visits that they made cheaper, counted after the fact.
//!
//! Each visit to a promoted group saves the gain of a visit, each to a demoted group loses it; a move is settled when it has been watched for
//! a while. So it does not matter why moves do not pay: groups that are all alike, a hot set that wanders faster than pages move, moves that
//! are dear.

use crate::placement::Tier;

/// A move is watched that long before it is settled.
pub const WATCH_S: f64 = 8.0;
/// Over this time a move must pay: what is hot stays hot for about that long, or it is not worth moving.
pub const HORIZON_S: f64 = 30.0;
/// Judgement needs that many settled promotions.
const FEWEST: u32 = 6;

/// A move under watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    /// Where to.
    pub to: Tier,
    at_s: f64,
    seen_s: f64,
    cost_ns: f64,
    saved_ns: f64,
}

impl Watched {
    /// A move that was made at `now_s` and took `cost_ns`.
    pub fn new(to: Tier, now_s: f64, cost_ns: f64) -> Self {
        Self { to, at_s: now_s, seen_s: now_s, cost_ns, saved_ns: 0.0 }
    }

    /// Between the last look and `now_s`, visits came that are worth `gain_ns_per_s`.
    pub fn see(&mut self, now_s: f64, gain_ns_per_s: f64) {
        let saved = gain_ns_per_s * (now_s - self.seen_s).max(0.0);
        self.saved_ns += if self.to == Tier::Near { saved } else { -saved };
        self.seen_s = now_s;
    }

    fn is_ripe(&self) -> bool {
        self.seen_s - self.at_s >= WATCH_S
    }
}

/// Settled moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ledger {
    promotions: u32,
    cost_ns: f64,
    saved_ns: f64,
}

impl Ledger {
    /// Settles a move when it has been watched long enough.
    pub fn settle(&mut self, watched: Watched) -> bool {
        if watched.is_ripe() {
            // What made room is judged with what came into it, not by itself.
            self.promotions += u32::from(watched.to == Tier::Near);
            self.cost_ns += watched.cost_ns;
            self.saved_ns += watched.saved_ns * HORIZON_S / (watched.seen_s - watched.at_s);
        }
        watched.is_ripe()
    }

    /// Whether moves have paid; `None` as long as too few are settled.
    pub fn pays(&self) -> Option<bool> {
        (self.promotions >= FEWEST).then_some(self.saved_ns > self.cost_ns)
    }

    /// What was long ago says less and less.
    pub fn age(&mut self) {
        if self.promotions > 8 * FEWEST {
            self.promotions /= 2;
            self.cost_ns /= 2.0;
            self.saved_ns /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(promoted_gain: f64, demoted_gain: f64, cost_ns: f64) -> Option<bool> {
        let mut ledger = Ledger::default();
        for _ in 0..FEWEST {
            for (to, gain) in [(Tier::Near, promoted_gain), (Tier::Far, demoted_gain)] {
                let mut watched = Watched::new(to, 0.0, cost_ns);
                watched.see(4.0, gain);
                assert!(!ledger.settle(watched), "too early");
                watched.see(10.0, gain);
                assert!(ledger.settle(watched));
            }
        }
        ledger.pays()
    }

    #[test]
    fn hot_for_cold_pays_and_like_for_like_does_not() {
        assert_eq!(settled(1e6, 0.0, 1e6), Some(true));
        assert_eq!(settled(1e6, 1e6, 1e6), Some(false));
        assert_eq!(settled(1e6, 0.0, 1e9), Some(false), "dear moves");
        assert_eq!(Ledger::default().pays(), None);
        let mut making_room = Ledger::default();
        for _ in 0..100 {
            let mut watched = Watched::new(Tier::Far, 0.0, 1e6);
            watched.see(10.0, 0.0);
            making_room.settle(watched);
        }
        assert_eq!(making_room.pays(), None, "nothing was promoted yet");
    }
}

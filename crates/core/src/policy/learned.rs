//! What would be gained by replaying learned cycles: eviction by the order in which the program went the last time.
//!
//! The visits so far are the log. Where the last few visits occurred in it before, it is followed, and tells when each unit
//! will be visited next; the unit that is due last leaves, as under Belady. For comparison only, and an upper bound: it sees
//! every visit, where the pager sees only those that fault, and its log of the whole past costs nothing.

use crate::policy::Unit;
use crate::policy::replay::{Access, Action, Ranked, Tally, next_visits};
use crate::policy::units::UnitMap;
use std::collections::HashMap;

/// Visits that must agree before the log is believed.
const CONTEXT: usize = 4;
/// Visits by which a unit may be late.
const LATE: usize = 64;

/// Follows the log of visits.
struct Log<'a> {
    trace: &'a [Access],
    /// Where the last `CONTEXT` units were seen last.
    seen: HashMap<[Unit; CONTEXT], usize>,
    recent: [Unit; CONTEXT],
    at: Option<usize>,
}

impl Log<'_> {
    /// Position in the log that visit `now` repeats.
    fn follow(&mut self, now: usize) -> Option<usize> {
        let unit = self.trace[now].unit;
        self.recent.rotate_left(1);
        self.recent[CONTEXT - 1] = unit;
        let next = self.at.map(|at| at + 1).filter(|&at| self.trace[at].unit == unit);
        let known = self.seen.insert(self.recent, now);
        self.at = next.or(known);
        self.at
    }
}

/// Replays `trace` with `capacity` pages, evicting by what was learned from its own past.
pub fn learned(trace: &[Access], capacity: u64) -> Tally {
    let next = next_visits(trace);
    let mut log = Log { trace, seen: HashMap::new(), recent: [Unit::block(0); CONTEXT], at: None };
    let mut near = Ranked::new();
    let mut last: UnitMap<usize> = UnitMap::default();
    for (now, access) in trace.iter().enumerate() {
        let at = if access.act == Action::Discard { None } else { log.follow(now) };
        // Only what has happened is known.
        let due = at.filter(|&at| next[at] <= now).map(|at| now + (next[at] - at));
        let unknown = usize::MAX / 2 + now;
        let before = last.insert(access.unit, now);
        // Without a prediction: after the same time as the last time.
        let due = due.or(before.map(|before| now + (now - before))).unwrap_or(unknown);
        // What did not come when it was due is not known any more.
        near.rank_again(usize::MAX - now.saturating_sub(LATE), usize::MAX - unknown);
        near.access(access, usize::MAX - due, capacity);
    }
    near.tally()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::replay::belady;
    use crate::policy::traces::Trace;

    #[test]
    fn a_cycle_is_learned_in_one_lap() {
        let trace = Trace::new(16).sweep(0, 1000, 20).done();
        let (ours, best) = (learned(&trace, 500 * 16), belady(&trace, 500 * 16));
        assert!(ours.misses >= best.misses);
        assert!(ours.hit_rate() >= 0.95 * best.hit_rate(), "{} {}", ours.hit_rate(), best.hit_rate());
    }
}

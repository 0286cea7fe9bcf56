//! Percentiles of times in bins, and which of a program's touches were faults of which kind.
//!
//! Pure. A program cannot see what a touch met. The pager's counters say how many faults there were of each kind; since a fault that
//! waits for a device takes longer than one that does not, the slowest touches are those, and the fastest of the rest the others.

use serde::Serialize;

/// A touch of a page in place takes less, TLB miss included; a fault takes more, since a thread must be woken.
const PRESENT_NS: u64 = 2000;

/// Times in ascending bins: (nanoseconds, count).
pub type Bins = [(u64, u64)];

/// The middle and the slow end of times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half take at most this.
    pub p50_us: f64,
    /// All but one in a hundred.
    pub p99_us: f64,
    /// How many.
    pub count: u64,
}

impl Percentiles {
    /// Of all of `bins`; `None` without any.
    pub fn of(bins: &Bins) -> Option<Self> {
        let count: u64 = bins.iter().map(|(_, count)| count).sum();
        let at = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
            let mut seen = 0;
            let bin = bins.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            bin.map(|(ns, _)| *ns as f64 / 1e3)
        };
        Some(Self { p50_us: at(0.5)?, p99_us: at(0.99)?, count })
    }
}

/// Touches that were faults.
pub fn slow(bins: &Bins) -> Vec<(u64, u64)> {
    bins.iter().copied().filter(|(ns, _)| *ns >= PRESENT_NS).collect()
}

/// The `count` fastest of `bins`.
pub fn fastest(bins: &Bins, count: u64) -> Vec<(u64, u64)> {
    let mut left = count;
    let mut taken = Vec::new();
    for &(ns, here) in bins {
        let some = here.min(left);
        if some > 0 {
            taken.push((ns, some));
        }
        left -= some;
    }
    taken
}

/// The `count` slowest of `bins`.
pub fn slowest(bins: &Bins, count: u64) -> Vec<(u64, u64)> {
    let backwards: Vec<_> = bins.iter().rev().copied().collect();
    let mut taken = fastest(&backwards, count);
    taken.reverse();
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINS: [(u64, u64); 4] = [(100, 1000), (8000, 60), (9000, 40), (90_000, 10)];

    #[test]
    fn percentiles_count_whole_bins() {
        let all = Percentiles::of(&BINS[1..]).expect("some");
        assert_eq!((all.p50_us, all.p99_us, all.count), (8.0, 90.0, 110));
        assert_eq!(Percentiles::of(&[]), None);
        assert_eq!(Percentiles::of(&[(5000, 1)]).map(|one| (one.p50_us, one.p99_us)), Some((5.0, 5.0)));
    }

    #[test]
    fn faults_are_told_apart_by_their_numbers() {
        let faults = slow(&BINS);
        assert_eq!(faults, BINS[1..]);
        assert_eq!(fastest(&faults, 70), [(8000, 60), (9000, 10)]);
        assert_eq!(slowest(&faults, 12), [(9000, 2), (90_000, 10)]);
        assert_eq!(slowest(&faults, 1000), BINS[1..]);
        assert!(fastest(&faults, 0).is_empty());
    }
}

//! What a run came to: measured facts, and the figures derived from them in one place for the summary and the run file.

use crate::launch::supervisor::End;
use nearfar_core::stats::{Counter, Snapshot};
use nearfar_host::residence::Residence;
use serde::Serialize;
use std::time::Duration;

/// What was measured from start to end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From before the start of the program to its end.
    pub wall: Duration,
    /// Processor time in user mode, of the program and the children that it waited for.
    pub cpu_user: Duration,
    /// Their processor time in the kernel.
    pub cpu_system: Duration,
    /// Largest resident set of one of them, in bytes; of ranks 0.
    pub resident_peak: u64,
    /// How it ended.
    pub end: End,
    /// Counters of all processes together.
    pub counters: Snapshot,
    /// Processes that were managed (one that execs counts again).
    pub processes: u64,
    /// Processes that could not be managed.
    pub unmanaged: u64,
    /// Processes of the job that still ran when the program had ended.
    pub still_running: u32,
    /// Highest near memory of all processes together that was seen at a tick.
    pub near_peak_seen: u64,
    /// Where memory lay, of a run between nodes.
    pub residence: Option<Residence>,
}

impl Outcome {
    /// Most near memory in use at a time, as far as is known: sampled over all processes, exact within one.
    pub fn near_peak(&self) -> u64 {
        self.near_peak_seen.max(self.counters.get(Counter::NearPeak))
    }

    /// Bytes that one process had resident at its peak beyond all that was charged to near. Pages that are mapped twice count twice.
    pub fn outside_near(&self) -> u64 {
        self.resident_peak.saturating_sub(self.near_peak())
    }

    /// False when nothing ever had to leave near.
    pub fn was_paged(&self) -> bool {
        [Counter::EvictedBytes, Counter::BytesIn, Counter::BytesOut].iter().any(|&counter| self.counters.get(counter) > 0)
    }
}

/// Figures that follow from an outcome, as the run file has them. `None`: the run was too short or too small to say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Derived {
    /// See [`Outcome::near_peak`].
    pub near_peak_bytes: u64,
    /// Share of faults on existing data that found it in near, 0 to 1.
    pub near_hit_share: Option<f64>,
    /// The larger of the two below, at most the wall time.
    pub bound_s: Option<f64>,
    /// Seconds that far needs for the bytes moved at the highest rate it reached in this run.
    pub bound_far_s: Option<f64>,
    /// Seconds of computing: wall time less the stalls of all threads, or the processor time in user mode where that is less.
    /// Each is too large in some cases (paging costs more than stalls; threads compute at once), so that the smaller one is
    /// taken: efficiency comes out too low rather than too high.
    pub bound_compute_s: f64,
    /// How the bound is found, in words.
    pub bound_method: &'static str,
    /// `bound_s` over wall time.
    pub efficiency_vs_bound: Option<f64>,
    /// Stalled thread-seconds per second of wall time; above 1 when several threads wait at once.
    pub stall_share: f64,
    /// Share of prefetched bytes that the program did not come to use.
    pub useless_prefetch_share: Option<f64>,
    /// Reads and writes of far under way while at least one was.
    pub mean_queue_depth: Option<f64>,
}

const BOUND_METHOD: &str = "the larger of: bytes moved to and from far at the highest rate that far reached in this run over 64 MiB; \
                            computing, the smaller of wall time less stalls and processor time in user mode. For the bytes that were \
                            moved, not for the fewest possible";

impl Derived {
    /// Derives everything from `outcome`.
    pub fn of(outcome: &Outcome) -> Self {
        let get = |counter| outcome.counters.get(counter) as f64;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let wall = outcome.wall.as_secs_f64();
        let stall = get(Counter::StallNs) / 1e9;
        let bound_far_s = outcome.counters.bound_seconds();
        let bound_compute_s = (wall - stall).max(0.0).min(outcome.cpu_user.as_secs_f64());
        // The rate is a maximum over a part of the run, so the bound cannot exceed the wall time but by its own granularity.
        let bound_s = bound_far_s.map(|far| far.max(bound_compute_s).min(wall));
        let prefetched = get(Counter::PrefetchBytes);
        Self {
            near_peak_bytes: outcome.near_peak(),
            near_hit_share: outcome.counters.near_hit_share(),
            bound_s,
            bound_far_s,
            bound_compute_s,
            bound_method: BOUND_METHOD,
            efficiency_vs_bound: bound_s.and_then(|bound| share(bound, wall)),
            stall_share: share(stall, wall).unwrap_or(0.0),
            useless_prefetch_share: share((prefetched - get(Counter::PrefetchUsedBytes)).max(0.0), prefetched),
            mean_queue_depth: share(get(Counter::FarQueueNs), get(Counter::FarBusyNs)),
        }
    }
}

#[cfg(test)]
impl Outcome {
    /// Of one process that computed for so long and ended well.
    pub fn sample(wall_s: f64, counters: &[(Counter, u64)]) -> Self {
        let mut snapshot = Snapshot::default();
        counters.iter().for_each(|&(counter, value)| snapshot.set(counter, value));
        Self {
            wall: Duration::from_secs_f64(wall_s),
            cpu_user: Duration::from_secs_f64(wall_s),
            cpu_system: Duration::ZERO,
            resident_peak: 0,
            end: End::Status(0),
            counters: snapshot,
            processes: 1,
            unmanaged: 0,
            still_running: 0,
            near_peak_seen: 0,
            residence: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_paged_gives_no_figures() {
        let quiet = Outcome::sample(1.0, &[(Counter::FaultsZero, 10)]);
        let derived = Derived::of(&quiet);
        assert!(!quiet.was_paged());
        assert_eq!((derived.near_hit_share, derived.efficiency_vs_bound, derived.mean_queue_depth), (None, None, None));
        assert_eq!((derived.bound_compute_s, derived.stall_share), (1.0, 0.0));
    }

    #[test]
    fn the_bound_is_the_larger_of_moving_and_computing() {
        let moved = [(Counter::BytesIn, 3 << 30), (Counter::BytesOut, 1 << 30), (Counter::FarPeakBps, 1 << 30)];
        let slow_disk = Outcome::sample(10.0, &[&moved[..], &[(Counter::StallNs, 9_000_000_000)]].concat());
        assert_eq!(Derived::of(&slow_disk).efficiency_vs_bound, Some(0.4));
        let busy_program = Outcome::sample(10.0, &[&moved[..], &[(Counter::StallNs, 2_000_000_000)]].concat());
        assert_eq!(Derived::of(&busy_program).efficiency_vs_bound, Some(0.8));
        let idle_program = Outcome { cpu_user: Duration::from_secs(1), ..busy_program };
        assert_eq!(Derived::of(&idle_program).efficiency_vs_bound, Some(0.4));
        let many_threads = Outcome::sample(5.0, &[&moved[..], &[(Counter::StallNs, 90_000_000_000)]].concat());
        assert_eq!((Derived::of(&many_threads).bound_compute_s, Derived::of(&many_threads).stall_share), (0.0, 18.0));
    }
}

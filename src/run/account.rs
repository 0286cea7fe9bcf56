//! What one rank of a job came to, as it is handed to the last one to leave a node, and what the ranks of a node came to together.

use crate::launch::supervisor::End;
use crate::run::outcome::Outcome;
use nearfar_core::stats::{COUNTERS, Counter, Snapshot};
use nearfar_host::residence::{Residence, Resident};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One rank's part of a merged run file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// Number in the job.
    pub rank: u32,
    /// Name of the node.
    pub host: String,
    /// The rank's `nearfar run`.
    pub pid: u32,
    /// What was run.
    pub program: String,
    /// Its share of near.
    pub near_bytes: u64,
    /// It was killed before it could tell: nothing below is known.
    pub lost: bool,
    /// As in a run file, from here on.
    pub wall_s: f64,
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    pub status: Option<u8>,
    pub signal: Option<i32>,
    pub processes: u64,
    pub unmanaged: u64,
    pub still_running: u32,
    pub near_peak_bytes: u64,
    pub counters: BTreeMap<String, u64>,
    /// Where its memory lay, of a run between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<RankNodes>,
}

/// Memory of a rank on near and far nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankNodes {
    /// As in `nodes` of a run file.
    pub looks: u32,
    pub near_bytes: u64,
    pub far_bytes: u64,
    pub other_bytes: u64,
    pub near_peak_bytes: u64,
}

/// What is reported: of one run, or of all ranks of a node.
pub struct Account {
    /// Measured; of ranks, added up.
    pub outcome: Outcome,
    /// Near of all of them.
    pub near_bytes: u64,
    /// The ranks, in order; empty without ranks.
    pub ranks: Vec<RankRecord>,
}

impl RankRecord {
    /// What `outcome` adds to who the rank is.
    pub fn with(self, outcome: &Outcome) -> Self {
        let (status, signal) = match outcome.end {
            End::Status(status) => (Some(status), None),
            End::Signal(signal) => (None, Some(signal)),
        };
        Self {
            wall_s: outcome.wall.as_secs_f64(),
            cpu_user_s: outcome.cpu_user.as_secs_f64(),
            cpu_system_s: outcome.cpu_system.as_secs_f64(),
            status,
            signal,
            processes: outcome.processes,
            unmanaged: outcome.unmanaged,
            still_running: outcome.still_running,
            near_peak_bytes: outcome.near_peak(),
            counters: COUNTERS.iter().map(|&counter| (counter.name().to_owned(), outcome.counters.get(counter))).collect(),
            nodes: outcome.residence.as_ref().map(|residence| RankNodes {
                looks: residence.looks,
                near_bytes: residence.peak.near,
                far_bytes: residence.peak.far,
                other_bytes: residence.peak.other,
                near_peak_bytes: residence.near_peak_bytes,
            }),
            ..self
        }
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for &counter in COUNTERS {
            snapshot.set(counter, self.counters.get(counter.name()).copied().unwrap_or(0));
        }
        snapshot
    }

    /// How it ended, where that is worth a line.
    pub fn trouble(&self) -> Option<String> {
        let rank = self.rank;
        match (self.lost, self.signal, self.status) {
            (true, ..) => Some(format!("rank {rank}: its nearfar (process {}) was killed, and its figures are lost", self.pid)),
            (_, Some(signal), _) => Some(format!("rank {rank} was ended by {}", nearfar_sys::child::signal_name(signal))),
            (_, _, Some(status)) if status != 0 => Some(format!("rank {rank} ended with status {status}")),
            _ => None,
        }
    }
}

impl Account {
    /// One run.
    pub fn alone(outcome: Outcome, near_bytes: u64) -> Self {
        Self { outcome, near_bytes, ranks: Vec::new() }
    }

    /// Ranks: counters as those of the processes of a job, except that far's rates add up (each rank has its own spill file and its
    /// own best moment), which makes the bound rather too small; the longest wall time; near peaks add up, as if they had come at
    /// the same time.
    pub fn of(mut ranks: Vec<RankRecord>) -> Self {
        ranks.sort_by_key(|rank| (rank.rank, rank.lost));
        let mut counters = Snapshot::default();
        let mut rate = 0u64;
        for rank in &ranks {
            let snapshot = rank.snapshot();
            rate = rate.saturating_add(snapshot.get(Counter::FarPeakBps));
            counters.combine(&snapshot, false);
        }
        counters.set(Counter::FarPeakBps, rate);
        let seconds = |of: fn(&RankRecord) -> f64| ranks.iter().map(of).filter(|seconds| seconds.is_finite());
        let sum = |of: fn(&RankRecord) -> f64| Duration::try_from_secs_f64(seconds(of).sum()).unwrap_or_default();
        let worst = ranks.iter().find_map(|rank| rank.signal).map(End::Signal);
        let outcome = Outcome {
            wall: Duration::try_from_secs_f64(seconds(|rank| rank.wall_s).fold(0.0, f64::max)).unwrap_or_default(),
            cpu_user: sum(|rank| rank.cpu_user_s),
            cpu_system: sum(|rank| rank.cpu_system_s),
            resident_peak: 0,
            end: worst.unwrap_or(End::Status(ranks.iter().filter_map(|rank| rank.status).max().unwrap_or(0))),
            counters,
            processes: ranks.iter().map(|rank| rank.processes).sum(),
            unmanaged: ranks.iter().map(|rank| rank.unmanaged).sum(),
            still_running: ranks.iter().map(|rank| rank.still_running).sum(),
            near_peak_seen: ranks.iter().map(|rank| rank.near_peak_bytes).sum(),
            residence: residence(&ranks),
        };
        let near_bytes = ranks.iter().map(|rank| rank.near_bytes).sum();
        Self { outcome, near_bytes, ranks }
    }
}

/// Peaks of all ranks added up, seen at as many looks as the rank that had most.
fn residence(ranks: &[RankRecord]) -> Option<Residence> {
    let nodes = || ranks.iter().filter_map(|rank| rank.nodes.as_ref());
    nodes().next()?;
    let sum = |of: fn(&RankNodes) -> u64| nodes().map(of).sum();
    let peak = Resident {
        near: sum(|nodes| nodes.near_bytes),
        far: sum(|nodes| nodes.far_bytes),
        other: sum(|nodes| nodes.other_bytes),
    };
    let looks = nodes().map(|nodes| nodes.looks).max().unwrap_or(0);
    Some(Residence { looks, peak, near_peak_bytes: sum(|nodes| nodes.near_peak_bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rank: u32, wall: f64, end: End, counters: &[(Counter, u64)]) -> RankRecord {
        let (cpu_user, near_peak_seen) = (Duration::from_secs(1), 100);
        let outcome = Outcome { cpu_user, end, near_peak_seen, ..Outcome::sample(wall, counters) };
        RankRecord { rank, near_bytes: 1000, ..RankRecord::default() }.with(&outcome)
    }

    #[test]
    fn ranks_add_up() {
        let first = record(1, 3.0, End::Status(0), &[(Counter::BytesIn, 5), (Counter::NearPeak, 300), (Counter::FarPeakBps, 7)]);
        let second = record(0, 2.0, End::Status(4), &[(Counter::BytesIn, 6), (Counter::NearPeak, 90), (Counter::FarPeakBps, 8)]);
        let text = serde_json::to_string(&first).expect("JSON");
        assert_eq!(serde_json::from_str::<RankRecord>(&text).expect("read"), first);
        let lost = RankRecord { rank: 2, lost: true, near_bytes: 1000, ..RankRecord::default() };
        let both = Account::of(vec![first, second, lost]);
        let get = |counter| both.outcome.counters.get(counter);
        assert_eq!((get(Counter::BytesIn), get(Counter::NearPeak), get(Counter::FarPeakBps)), (11, 300, 15));
        assert_eq!((both.outcome.wall.as_secs(), both.outcome.cpu_user.as_secs(), both.outcome.processes), (3, 2, 2));
        assert_eq!((both.outcome.near_peak(), both.near_bytes, both.outcome.end), (400, 3000, End::Status(4)));
        assert_eq!(both.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1, 2]);
        let trouble: Vec<_> = both.ranks.iter().filter_map(RankRecord::trouble).collect();
        assert!(trouble.len() == 2 && trouble[0].contains("status 4") && trouble[1].contains("lost"), "{trouble:?}");
        let killed = Account::of(vec![record(0, 1.0, End::Status(9), &[]), record(1, 1.0, End::Signal(9), &[])]);
        assert_eq!(killed.outcome.end, End::Signal(9));
    }
}

//! A job that is watched: what it was last seen to be, the rates since, and their past.

use crate::top::objects::{self, ObjectRates};
use crate::top::program::Program;
use crate::top::rates::{Paging, Rates, Totals, of_process};
use nearfar_core::tier::FarSpec;
use nearfar_core::units::Bytes;
use nearfar_tiers::job::view::{Member, Seen};
use std::collections::VecDeque;

/// Looks that are kept; wider than any terminal.
const HISTORY: usize = 512;

/// A job.
pub struct Watched {
    /// The number of its segment.
    pub id: u64,
    /// The process of its command.
    pub command: u32,
    /// When that started, in ticks since the machine did.
    pub command_start: u64,
    /// What it runs.
    pub program: Program,
    /// As it was last seen.
    pub seen: Seen,
    /// Since the look before; `None` after one look.
    pub rates: Option<Rates>,
    /// Of each of `seen.members`.
    pub members: Vec<Option<Rates>>,
    /// What each of them is called.
    pub names: Vec<String>,
    /// Its large objects, those that were waited for most first.
    pub objects: Vec<ObjectRates>,
    /// The last looks, the latest at the end.
    pub history: VecDeque<Rates>,
    /// When it was found to have ended, ns.
    pub ended_ns: Option<u64>,
    totals: Totals,
    at_ns: u64,
}

impl Watched {
    /// A job that was seen for the first time, at `at_ns`; its command is this process, which started then.
    pub fn new(id: u64, (command, command_start): (u32, u64), program: Program, seen: Seen, at_ns: u64) -> Self {
        let (totals, members) = (Totals::from(&seen.counters), vec![None; seen.members.len()]);
        let (names, objects, history, ended_ns) = (Vec::new(), Vec::new(), VecDeque::new(), None);
        Self { id, command, command_start, program, seen, rates: None, members, names, objects, history, ended_ns, totals, at_ns }
    }

    /// It has been seen again.
    pub fn update(&mut self, seen: Seen, at_ns: u64) {
        let seconds = at_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let paging = paging(&seen);
        let rates = Rates::of(&self.totals.next(&seen.counters), seconds, paging);
        let of_member = |member: &Member| {
            let before = self.seen.members.iter().find(|other| (other.pid, other.start) == (member.pid, member.start))?;
            Some(Rates::of(&of_process(&before.counters, &member.counters), seconds, paging))
        };
        self.members = seen.members.iter().map(of_member).collect();
        self.objects = objects::between(&self.seen, &seen, seconds, paging);
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(rates.clone());
        (self.rates, self.seen, self.at_ns) = (Some(rates), seen, at_ns);
    }

    /// Who moves its pages.
    pub fn paging(&self) -> Paging {
        paging(&self.seen)
    }

    /// Near memory in use, in bytes; `None` where nobody counts it.
    pub fn near_used(&self) -> Option<u64> {
        let used = self.seen.near_used_bytes;
        (used > 0 || self.paging() != Paging::Nodes).then_some(used)
    }

    /// Its far tier, as it is written after `--far`.
    pub fn far(&self) -> String {
        let seen = &self.seen;
        let spec = match seen.emulated {
            _ if !seen.near_nodes.is_empty() => FarSpec::Node { nodes: seen.far_nodes.iter().collect() },
            Some((bytes_per_s, latency_ns)) => FarSpec::Emulated { bytes_per_s, latency_ns },
            None => FarSpec::Path(seen.far_dir.clone()),
        };
        spec.to_string()
    }

    /// What was asked for with `--grain`.
    pub fn asked_grain(&self) -> Option<Bytes> {
        let pages = u64::from(self.seen.grain_pages);
        (pages > 0).then_some(Bytes(pages * nearfar_core::addr::PAGE as u64))
    }

    /// Its first process, which is most often the program's own; the command while there is none.
    pub fn pid(&self) -> u32 {
        self.seen.members.first().map_or(self.command, |member| member.pid)
    }

    /// True when `pid` is its command or one of its processes.
    pub fn has(&self, pid: u32) -> bool {
        self.command == pid || self.seen.members.iter().any(|member| member.pid == pid)
    }
}

fn paging(seen: &Seen) -> Paging {
    if !seen.near_nodes.is_empty() {
        Paging::Nodes
    } else if seen.kernel_paging {
        Paging::Kernel
    } else {
        Paging::Pager
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nearfar_core::stats::{Counter, Snapshot};

    /// A process that has counted so much.
    pub fn member(pid: u32, counters: &[(Counter, u64)]) -> Member {
        let mut snapshot = Snapshot::default();
        counters.iter().for_each(|&(counter, value)| snapshot.set(counter, value));
        Member { pid, start: 1, near_used_bytes: 799 << 20, counters: snapshot, objects: Vec::new() }
    }

    /// A job of these processes with a budget of 800 MiB.
    pub fn seen(members: Vec<Member>) -> Seen {
        let mut counters = Snapshot::default();
        members.iter().for_each(|member| counters.combine(&member.counters, true));
        Seen {
            near_bytes: 800 << 20,
            near_used_bytes: members.iter().map(|member| member.near_used_bytes).sum(),
            far_dir: "/var/tmp".into(),
            counters,
            members,
            ..Seen::default()
        }
    }

    /// A job that was busy for a second.
    pub fn busy(id: u64, name: &str) -> Watched {
        let pid = 4710 + id as u32;
        let program = Program { name: name.into(), args: vec!["--size".into(), "4G".into()] };
        let mut job = Watched::new(id, (pid - 1, 1), program, seen(vec![member(pid, &[])]), 0);
        let counters = [
            (Counter::Faults, 5000),
            (Counter::FaultsDemand, 1234),
            (Counter::FaultsStaged, 3702),
            (Counter::BytesIn, 1_500_000_000),
            (Counter::BytesOut, 250_000_000),
            (Counter::StallNs, 1_250_000_000),
            (Counter::FarBusyNs, 930_000_000),
            (Counter::FarQueueNs, 7_300_000_000),
            (Counter::Demand64K, 1234),
            (Counter::FarUsed, 3 << 30),
            (Counter::Metadata, 12 << 20),
        ];
        job.update(seen(vec![member(pid, &counters)]), 1_000_000_000);
        job
    }

    #[test]
    fn rates_of_the_job_and_its_processes() {
        let mut job = busy(1, "./stream");
        let rates = job.rates.clone().expect("two looks");
        assert_eq!((rates.hit_share, rates.misses_per_s, rates.wait_share), (Some(0.75), Some(1234.0), Some(1.25)));
        assert_eq!(job.members, [Some(rates)]);
        // A second process: nothing is known of its past; the job has counted what it did.
        let old = job.seen.members[0].clone();
        job.update(seen(vec![old, member(4712, &[(Counter::FaultsDemand, 10)])]), 3_000_000_000);
        assert_eq!(job.rates.as_ref().and_then(|rates| rates.misses_per_s), Some(5.0));
        assert!(job.members[0].is_some() && job.members[1].is_none() && job.history.len() == 2);
        assert!(job.has(4710) && job.has(4712) && !job.has(1));
    }

    #[test]
    fn far_as_it_is_written() {
        let job = |change: &dyn Fn(&mut Seen)| {
            let mut seen = seen(vec![]);
            change(&mut seen);
            Watched::new(1, (7, 1), Program::default(), seen, 0)
        };
        assert_eq!((job(&|_| {}).far(), job(&|_| {}).pid()), ("/var/tmp".into(), 7));
        assert_eq!(job(&|seen| seen.emulated = Some((4 << 30, 10_000))).far(), "emu:bw=4G,lat=10000ns");
        let nodes = job(&|seen| {
            seen.near_nodes.insert(1);
            seen.far_nodes.insert(0);
        });
        assert_eq!((nodes.far(), nodes.paging(), nodes.near_used()), ("node:0".into(), Paging::Nodes, None));
    }
}

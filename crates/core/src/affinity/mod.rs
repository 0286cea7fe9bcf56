//! What was seen of a running program: its processes, where their threads ran, where their pages lie. `nearfar map` fills it in,
//! [`judge()`] says what is wrong with it.
//!
//! Counts of "looks" are samples: what happens between two looks is not seen, and shares of looks are shares of samples, not of time.

mod judge;
mod object;
mod openmp;
mod rank;
mod tier;
mod warning;

pub use judge::judge;
pub use object::{Area, Object, classify};
pub use openmp::{has_pool_of, number_threads, runtime_of, team};
pub use rank::{Launcher, Rank, rank_of};
pub use tier::{Tier, tier_of};
pub use warning::{PidList, Pool, Warning};

use crate::node::{CpuList, MemoryNode, Placement};
use serde::Serialize;
use std::collections::BTreeMap;

/// Environment variables that decide how many threads there are and where they run; those that are set are kept.
pub const SETTINGS: &[&str] = &[
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NESTED",
    "OMP_DYNAMIC",
    "OMP_THREAD_LIMIT",
    "OMP_STACKSIZE",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_HW_SUBSET",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "JULIA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "GLIBC_TUNABLES",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "I_MPI_PIN_DOMAIN",
];

/// A program as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Survey {
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Seconds of CPU time of the whole program, threads between two looks included; null where nobody counted them.
    pub cpu_s: Option<f64>,
    /// How often it was looked at.
    pub looks: u32,
    /// Longest time between two searches for new threads, in seconds: threads that lived shorter may be missing.
    pub longest_gap_s: f64,
    /// Where each CPU is.
    pub placement: Vec<Placement>,
    /// NUMA nodes.
    pub nodes: Vec<MemoryNode>,
    /// What the control group and the kernel's settings allow.
    pub limits: Limits,
    /// All processes, in the order in which they were first seen.
    pub processes: Vec<Process>,
    /// Running threads of all processes together.
    pub crowding: Crowding,
    /// Threads that were seen but are not listed, since there are too many.
    pub unlisted_threads: u64,
    /// What could not be seen, and why.
    pub notes: Vec<String>,
}

/// Limits from outside of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limits {
    /// CPUs' worth of time (quota / period) of the control group; null without a limit.
    pub quota_cpus: Option<f64>,
    /// How often the group was stopped for want of quota while the program was watched.
    pub throttled: Option<u64>,
    /// Bytes of memory that the control group may have; null without a limit.
    pub memory_bytes: Option<u64>,
    /// Most bytes of memory that were seen in use by it, caches of files not counted.
    pub memory_used_bytes: Option<u64>,
    /// Transparent huge pages: "always", "madvise", "never".
    pub huge_pages: Option<String>,
}

/// How many threads wanted to run at one moment, against the CPUs that they may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crowding {
    /// Looks at which at least one thread ran or wanted to.
    pub looks: u32,
    /// Most threads that ran or wanted to at one look.
    pub most: u32,
    /// CPUs that these threads may use.
    pub cpus: u32,
    /// Looks at which more threads ran or wanted to than they have CPUs.
    pub over: u32,
    /// Looks at which two were on one CPU while another that they may use had none.
    pub stacked: u32,
    /// Looks at which two were on the hardware threads of one core while another core that they may use had none.
    pub siblings: u32,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Its name, at most 15 bytes (the kernel's comm).
    pub name: String,
    /// Its command line.
    pub command: String,
    /// It ended while it was watched.
    pub ended: bool,
    /// Its place among MPI ranks.
    pub rank: Option<Rank>,
    /// OpenMP runtimes that are loaded: file names.
    pub openmp: Vec<String>,
    /// Other libraries with threads of their own.
    pub pools: Vec<Pool>,
    /// Those of [`SETTINGS`] in its environment.
    pub settings: BTreeMap<String, String>,
    /// It was started by `nearfar run`.
    pub under_nearfar: bool,
    /// CPUs that its first thread may use.
    pub allowed: CpuList,
    /// NUMA nodes that it may have memory of (cpuset).
    pub allowed_nodes: CpuList,
    /// Threads, in the order of their creation.
    pub threads: Vec<Thread>,
    /// Threads that were seen but are not listed.
    pub unlisted_threads: u64,
    /// Its running threads.
    pub crowding: Crowding,
    /// Where its pages lie, at the look at which it had most.
    pub memory: Option<Pages>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Thread {
    /// Its number; that of the first thread is the process's.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its number in the outermost OpenMP team; inferred from the order of creation, since threads of OpenMP have no names.
    pub openmp: Option<u32>,
    /// The kernel's letter: R running or wanting to, S and D waiting, T stopped.
    pub state: String,
    /// It ended while it was watched.
    pub ended: bool,
    /// Seconds from the first look until it was first seen, and last.
    pub first_s: f64,
    /// See `first_s`.
    pub last_s: f64,
    /// Seconds on a CPU while it was watched.
    pub cpu_s: f64,
    /// Seconds that it waited for a CPU; null where the kernel does not say.
    pub waited_s: Option<f64>,
    /// Seconds of its life that were watched.
    pub watched_s: f64,
    /// CPU that it is on, or was on last.
    pub cpu: Option<u32>,
    /// CPUs that it was seen on, and at how many looks.
    pub seen: Vec<(u32, u32)>,
    /// Looks at which it was on another CPU than at the look before.
    pub moves: u32,
    /// CPUs that it may use.
    pub allowed: CpuList,
}

/// Where the pages of a process lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pages {
    /// When this was seen, in seconds from the first look.
    pub at_s: f64,
    /// False where the kernel does not tell the node of a page; `by_node` is empty then.
    pub nodes_known: bool,
    /// By what the pages are for; only what there is any of.
    pub objects: Vec<ObjectPages>,
    /// Memory policies and the bytes under each.
    pub policies: BTreeMap<String, u64>,
}

/// Pages of one kind of object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectPages {
    /// What they are for.
    pub object: Object,
    /// Bytes in memory.
    pub bytes: u64,
    /// Of those, by NUMA node.
    pub by_node: BTreeMap<u32, u64>,
    /// Of those, in huge pages.
    pub huge_bytes: u64,
    /// Bytes in swap, which are not among `bytes`.
    pub swap_bytes: u64,
}

/// A thread is busy when it ran or waited for a CPU during at least this share of the time that it was watched.
pub const BUSY_SHARE: f64 = 0.25;

impl Thread {
    /// Share of the watched time on a CPU; `None` when it was not watched long enough to say.
    pub fn cpu_share(&self) -> Option<f64> {
        // Clocks of the kernel tick every 10 ms where it does not count nanoseconds.
        (self.watched_s >= 0.01).then(|| (self.cpu_s / self.watched_s).min(1.0))
    }

    /// Share of the watched time on a CPU or waiting for one.
    pub fn demand(&self) -> f64 {
        let wanted = self.cpu_s + self.waited_s.unwrap_or(0.0);
        if self.watched_s >= 0.01 { (wanted / self.watched_s).min(1.0) } else { 0.0 }
    }

    /// True for a thread that computes, not one that only waits.
    pub fn is_busy(&self) -> bool {
        self.demand() >= BUSY_SHARE
    }

    /// The CPU that it was most often seen on.
    pub fn usual_cpu(&self) -> Option<u32> {
        self.seen.iter().max_by_key(|(_, looks)| *looks).map(|(cpu, _)| *cpu)
    }

    /// CPUs that it was seen on.
    pub fn seen_cpus(&self) -> CpuList {
        self.seen.iter().map(|(cpu, _)| *cpu).collect()
    }
}

impl Pages {
    /// Adds up `areas`, each the kind of object at the same place of `objects`.
    pub fn of(at_s: f64, nodes_known: bool, areas: &[Area], objects: &[Option<Object>]) -> Self {
        let mut by_object: BTreeMap<Object, ObjectPages> = BTreeMap::new();
        let mut policies = BTreeMap::new();
        for (area, object) in areas.iter().zip(objects) {
            let (Some(object), true) = (*object, area.bytes + area.swap_bytes > 0) else { continue };
            let pages = by_object.entry(object).or_insert(ObjectPages { object, ..ObjectPages::default() });
            pages.bytes += area.bytes;
            pages.huge_bytes += area.huge_bytes;
            pages.swap_bytes += area.swap_bytes;
            for &(node, bytes) in &area.nodes {
                *pages.by_node.entry(node).or_default() += bytes;
            }
            if !area.policy.is_empty() && area.bytes > 0 {
                *policies.entry(area.policy.clone()).or_default() += area.bytes;
            }
        }
        Self { at_s, nodes_known, objects: by_object.into_values().collect(), policies }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|pages| pages.bytes).sum()
    }

    /// Bytes in swap.
    pub fn swap_bytes(&self) -> u64 {
        self.objects.iter().map(|pages| pages.swap_bytes).sum()
    }

    /// Bytes of data that are the process's own, by node: what threads compute on. Pages of files and shared memory are left out,
    /// since whoever touched them first decides where they lie.
    pub fn own_by_node(&self) -> BTreeMap<u32, u64> {
        let mut sum = BTreeMap::new();
        for pages in self.objects.iter().filter(|pages| pages.object.is_own_data()) {
            for (&node, &bytes) in &pages.by_node {
                *sum.entry(node).or_default() += bytes;
            }
        }
        sum
    }
}

impl Survey {
    /// Where `cpu` is; all unknown when nothing is known of it.
    pub fn place(&self, cpu: u32) -> Placement {
        let found = self.placement.iter().find(|place| place.cpu == cpu);
        found.cloned().unwrap_or(Placement { cpu, ..Placement::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_hardly_watched_is_not_busy() {
        let thread = |cpu_s, waited_s, watched_s| Thread { cpu_s, waited_s, watched_s, ..Thread::default() };
        assert!(!thread(0.001, None, 0.001).is_busy() && thread(0.001, None, 0.001).cpu_share().is_none());
        assert!(thread(0.1, Some(0.2), 1.0).is_busy() && !thread(0.1, None, 1.0).is_busy());
        assert_eq!(thread(1.1, None, 1.0).cpu_share(), Some(1.0));
    }

    #[test]
    fn areas_add_up() {
        let area = |bytes, node, policy: &str| Area {
            bytes,
            nodes: vec![(node, bytes)],
            policy: policy.into(),
            huge_bytes: bytes / 2,
            ..Area::default()
        };
        let areas = [area(4, 0, "default"), area(8, 1, "bind:1"), area(2, 1, "default"), area(9, 0, "default")];
        let objects = [Some(Object::Heap), Some(Object::Heap), Some(Object::Files), None];
        let pages = Pages::of(1.0, true, &areas, &objects);
        assert_eq!((pages.bytes(), pages.objects.len()), (14, 2));
        assert_eq!(pages.own_by_node(), BTreeMap::from([(0, 4), (1, 8)]));
        assert_eq!(pages.policies, BTreeMap::from([("default".into(), 6), ("bind:1".into(), 8)]));
        assert_eq!(pages.objects[0].huge_bytes, 6);
    }
}

//! What can be wrong with where a program runs, in words, and what to set to put it right.

use super::Launcher;
use crate::node::CpuList;
use crate::units::Bytes;
use serde::Serialize;
use std::fmt;

/// Libraries with threads of their own besides OpenMP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// OpenBLAS.
    OpenBlas,
    /// Intel's Math Kernel Library.
    Mkl,
    /// BLIS.
    Blis,
}

impl Pool {
    /// The environment variable that says how many threads it makes.
    pub const fn variable(self) -> &'static str {
        match self {
            Pool::OpenBlas => "OPENBLAS_NUM_THREADS",
            Pool::Mkl => "MKL_NUM_THREADS",
            Pool::Blis => "BLIS_NUM_THREADS",
        }
    }
}

/// Process numbers, for people: the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PidList(pub Vec<u32>);

impl fmt::Display for PidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        let shown: Vec<String> = self.0.iter().take(SHOWN).map(u32::to_string).collect();
        let plural = if self.0.len() == 1 { "" } else { "es" };
        write!(f, "process{plural} {}", shown.join(", "))?;
        if self.0.len() > SHOWN { write!(f, " and {} more", self.0.len() - SHOWN) } else { Ok(()) }
    }
}

/// Something wrong, with the figures behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Warning {
    /// More threads want to run than they may use CPUs.
    Oversubscribed {
        /// Processes that it is true of; none for all of the program together.
        processes: PidList,
        /// Most threads that wanted to run at once.
        threads: u32,
        /// CPUs that they may use.
        cpus: u32,
        /// Share of looks at which it was so.
        share: f64,
        /// An OpenMP runtime is loaded.
        openmp: bool,
        /// Other libraries with threads.
        pools: Vec<Pool>,
        /// What started them, for MPI ranks.
        launcher: Option<Launcher>,
    },
    /// More busy threads than an OpenMP team has.
    Nested {
        /// Whose.
        processes: PidList,
        /// Most threads that wanted to run at once.
        threads: u32,
        /// Threads of the outermost team.
        team: u32,
        /// OMP_NUM_THREADS is set.
        asked: bool,
        /// Other libraries with threads: the threads may be theirs.
        pools: Vec<Pool>,
    },
    /// MPI ranks times OpenMP threads are more than the CPUs.
    RanksTimesThreads {
        /// Ranks on this machine.
        ranks: u32,
        /// OpenMP threads of each.
        threads: u32,
        /// CPUs that they may use together.
        cpus: u32,
        /// What started them.
        launcher: Launcher,
    },
    /// Busy threads are pinned to the same CPUs.
    PinnedTogether {
        /// How many threads.
        threads: u32,
        /// The CPUs that they share.
        cpus: CpuList,
        /// Some have OpenMP numbers.
        openmp: bool,
        /// What started them, for MPI ranks.
        launcher: Option<Launcher>,
    },
    /// Busy threads are pinned to hardware threads of one core while other cores have none.
    PinnedToSiblings {
        /// How many threads.
        threads: u32,
        /// The CPUs that they have.
        cpus: CpuList,
        /// Cores without a busy thread.
        idle_cores: u32,
        /// Some have OpenMP numbers.
        openmp: bool,
    },
    /// Running threads were often on one CPU or core while another was free of them.
    Stacked {
        /// Share of looks at which it was so.
        share: f64,
        /// They were on the hardware threads of one core, not on one CPU.
        siblings: bool,
        /// An OpenMP runtime is loaded.
        openmp: bool,
    },
    /// Busy threads change their CPU often.
    Migrating {
        /// How many threads.
        threads: u32,
        /// Share of looks at which the worst of them had moved.
        share: f64,
        /// Some have OpenMP numbers.
        openmp: bool,
        /// What started them, for MPI ranks.
        launcher: Option<Launcher>,
    },
    /// Threads run on one node, most pages lie on another.
    RemoteMemory {
        /// Whose.
        pid: u32,
        /// Node that the busy threads run on.
        threads_on: u32,
        /// Node that has most pages.
        pages_on: u32,
        /// Share of the pages there.
        share: f64,
        /// The policy that put them there, unless it is the default.
        policy: Option<String>,
    },
    /// Threads run on several nodes, the pages lie on one.
    OneNodeHasAll {
        /// Whose.
        pid: u32,
        /// Node that has the pages.
        pages_on: u32,
        /// Share of the pages there.
        share: f64,
        /// Nodes that busy threads run on.
        threads_on: CpuList,
        /// The policy that put them there, unless it is the default.
        policy: Option<String>,
    },
    /// Most pages lie in slow memory although fast memory is free.
    PagesInFar {
        /// Whose.
        pid: u32,
        /// Bytes in far nodes.
        bytes: u64,
        /// Near nodes.
        near: CpuList,
        /// Bytes that were free there.
        near_free: u64,
    },
    /// The control group gives less CPU time than the threads want.
    QuotaBelowThreads {
        /// CPUs' worth of time.
        quota: f64,
        /// Most threads that wanted to run at once.
        threads: u32,
        /// How often the group was stopped meanwhile.
        throttled: Option<u64>,
        /// An OpenMP runtime is loaded.
        openmp: bool,
    },
    /// The control group's memory is nearly used up.
    MemoryLimitNear {
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A part of the program is in swap.
    Swapped {
        /// Whose.
        pid: u32,
        /// Bytes.
        bytes: u64,
    },
    /// Much data, in small pages.
    SmallPages {
        /// Whose.
        pid: u32,
        /// Bytes of data.
        bytes: u64,
        /// Share in huge pages.
        share: f64,
        /// The kernel's setting.
        setting: String,
    },
}

struct Share(f64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Oversubscribed { processes, threads, cpus, share, .. } => {
                let whom = if processes.0.is_empty() { "all processes together".to_owned() } else { processes.to_string() };
                write!(f, "oversubscription: {threads} threads wanted to run at once on {cpus} CPU{} ({whom}; ", s(*cpus))?;
                write!(f, "more than there are CPUs at {} of the looks)", Share(*share))
            }
            Warning::Nested { processes, threads, team, asked, pools } => {
                let size = if *asked { format!("OMP_NUM_THREADS={team}") } else { format!("a team of {team} (one per CPU)") };
                let what = if pools.is_empty() { "nested OpenMP" } else { "threads inside OpenMP threads" };
                write!(f, "{what}: {threads} busy threads at once with {size} ({processes})")
            }
            Warning::RanksTimesThreads { ranks, threads, cpus, .. } => {
                write!(f, "{ranks} MPI ranks x {threads} OpenMP threads = {} threads on {cpus} CPUs", ranks * threads)
            }
            Warning::PinnedTogether { threads, cpus, .. } => {
                write!(
                    f,
                    "{threads} busy threads are pinned together to CPU{} {cpus}, at least two on one CPU",
                    s(cpus.len() as u32)
                )
            }
            Warning::PinnedToSiblings { threads, cpus, idle_cores, .. } => write!(
                f,
                "{threads} busy threads are pinned to hardware threads of shared cores (CPUs {cpus}) while {idle_cores} core{} had none",
                s(*idle_cores)
            ),
            Warning::Stacked { share, siblings, .. } => {
                let place = if *siblings { "core" } else { "CPU" };
                write!(
                    f,
                    "at {} of the looks two threads were on one {place} while another {place} had none of them",
                    Share(*share)
                )
            }
            Warning::Migrating { threads, share, .. } => write!(
                f,
                "{threads} busy thread{} changed CPU often (the worst at {} of the looks): caches and first-touched pages stay behind",
                s(*threads),
                Share(*share)
            ),
            Warning::RemoteMemory { pid, threads_on, pages_on, share, policy } => write!(
                f,
                "remote memory: the threads of process {pid} run on node {threads_on}, {} of its data lie on node {pages_on}{}",
                Share(*share),
                under(policy.as_deref())
            ),
            Warning::OneNodeHasAll { pid, pages_on, share, threads_on, policy } => {
                let cause =
                    policy.as_deref().map_or_else(|| " (one thread touched them first)".to_owned(), |text| under(Some(text)));
                let share = Share(*share);
                write!(
                    f,
                    "{share} of the data of process {pid} lie on node {pages_on}, its threads run on nodes {threads_on}{cause}"
                )
            }
            Warning::PagesInFar { pid, bytes, near, near_free } => write!(
                f,
                "{} of the data of process {pid} lie in far memory, though near memory (node {near}) had {} free",
                Bytes(*bytes),
                Bytes(*near_free)
            ),
            Warning::QuotaBelowThreads { quota, threads, throttled, .. } => {
                write!(f, "the cgroup gives {quota:.1} CPUs of time, and {threads} threads wanted to run at once")?;
                match throttled {
                    Some(times) if *times > 0 => write!(f, "; it was stopped {times} times meanwhile"),
                    _ => Ok(()),
                }
            }
            Warning::MemoryLimitNear { used, limit } => {
                write!(f, "the cgroup uses {} of its memory limit of {}", Bytes(*used), Bytes(*limit))
            }
            Warning::Swapped { pid, bytes } => write!(f, "{} of process {pid} are in swap", Bytes(*bytes)),
            Warning::SmallPages { pid, bytes, share, setting } => write!(
                f,
                "small pages: {} of the {} of data of process {pid} are in huge pages (transparent huge pages: {setting})",
                Share(*share),
                Bytes(*bytes)
            ),
        }
    }
}

fn s(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn under(policy: Option<&str>) -> String {
    policy.map_or_else(String::new, |policy| format!(" (policy {policy})"))
}

const BIND: &str = "OMP_PROC_BIND=close OMP_PLACES=cores";

/// Binding, in the words of whoever made the threads.
fn bind(openmp: bool, launcher: Option<Launcher>) -> String {
    match (openmp, launcher) {
        (true, None) => format!("set {BIND} (or GOMP_CPU_AFFINITY, KMP_AFFINITY=granularity=core,compact)"),
        (true, Some(launcher)) => format!("start with {}, and set {BIND}", launcher.cores_per_rank("THREADS")),
        (false, Some(launcher)) => format!("start with {}", launcher.cores_per_rank(1)),
        (false, None) => {
            "give each thread a CPU with pthread_setaffinity_np, or the program a node with \"numactl --cpunodebind=0\"".into()
        }
    }
}

fn one_thread_each(pools: &[Pool]) -> String {
    let settings: Vec<String> = pools.iter().map(|pool| format!("{}=1", pool.variable())).collect();
    settings.join(" ")
}

impl Warning {
    /// What to do about it: the variables to set or the options to give.
    pub fn advice(&self) -> String {
        match self {
            Warning::Oversubscribed { cpus, openmp, pools, launcher, threads, processes, .. } => {
                let mut ways = Vec::new();
                let each = (cpus / processes.0.len().max(1) as u32).max(1);
                let each = if launcher.is_some() && !processes.0.is_empty() { *cpus } else { each };
                if *openmp {
                    ways.push(format!("set OMP_NUM_THREADS={each}"));
                }
                if !pools.is_empty() {
                    let fewer =
                        if *openmp { one_thread_each(pools) } else { one_thread_each(pools).replace("=1", &format!("={each}")) };
                    ways.push(format!("set {fewer}"));
                }
                if let Some(launcher) = launcher {
                    ways.push(format!("give every rank more CPUs: {}", launcher.cores_per_rank(*threads)));
                }
                if ways.is_empty() {
                    ways.push(format!("start at most {cpus} computing thread{}", s(*cpus)));
                }
                format!("{}; or allow more CPUs (taskset, cpuset, the batch system's request)", ways.join("; or "))
            }
            Warning::Nested { pools, team, .. } if !pools.is_empty() => {
                format!("set {} (keeps OMP_NUM_THREADS={team} for the outer level), or OMP_NUM_THREADS=1", one_thread_each(pools))
            }
            Warning::Nested { team, .. } => format!(
                "set OMP_MAX_ACTIVE_LEVELS=1 (OMP_NESTED=false for runtimes before OpenMP 5.0), or share them out: \
                 OMP_NUM_THREADS={},{}",
                (team / 2).max(1),
                2.min(*team)
            ),
            Warning::RanksTimesThreads { ranks, cpus, launcher, .. } => {
                let each = (cpus / ranks.max(&1)).max(1);
                format!("set OMP_NUM_THREADS={each} and start with {}; or use fewer ranks", launcher.cores_per_rank(each))
            }
            Warning::PinnedTogether { openmp, launcher, .. } => {
                format!(
                    "{}; a mask that a launcher, taskset or a library sets is inherited by all threads",
                    bind(*openmp, *launcher)
                )
            }
            Warning::PinnedToSiblings { openmp: true, .. } => "set OMP_PLACES=cores OMP_PROC_BIND=spread".into(),
            Warning::PinnedToSiblings { .. } => "pin to one CPU of each core first (lscpu -e lists them)".into(),
            Warning::Stacked { openmp, .. } => bind(*openmp, None),
            Warning::Migrating { openmp, launcher, .. } => bind(*openmp, *launcher),
            Warning::RemoteMemory { threads_on, policy: None, .. } => format!(
                "numactl --cpunodebind={threads_on} --membind={threads_on}, or let the threads that use the data touch it first"
            ),
            Warning::RemoteMemory { threads_on, .. } => format!("numactl --membind={threads_on} instead of that policy"),
            Warning::OneNodeHasAll { policy: None, .. } => format!(
                "initialise the data in the threads that use it (the same \"omp parallel for\", with {BIND}), or spread it: \
                 numactl --interleave=all"
            ),
            Warning::OneNodeHasAll { .. } => "numactl --interleave=all instead of that policy, or none at all".into(),
            Warning::PagesInFar { near, .. } => format!("numactl --preferred-many={near} (older kernels: --preferred, one node)"),
            Warning::QuotaBelowThreads { quota, openmp, .. } => {
                let whole = quota.floor().max(1.0);
                let threads = if *openmp { format!("OMP_NUM_THREADS={whole}") } else { format!("{whole} threads") };
                format!("use {threads}, or ask for more CPUs (docker --cpus, the pod's cpu limit, CPUQuota of the unit)")
            }
            Warning::MemoryLimitNear { .. } => "raise the limit, or run it in less: nearfar run --near 50% -- PROGRAM".to_owned(),
            Warning::Swapped { .. } => "use less, or let nearfar page it: nearfar run --near 50% -- PROGRAM".to_owned(),
            Warning::SmallPages { setting, .. } => match setting.as_str() {
                "never" => "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
                "madvise" => {
                    "set GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35 and later), or madvise(MADV_HUGEPAGE) in the program"
                        .into()
                }
                _ => "memory may be too fragmented, or allocated in small pieces: align large arrays to 2 MiB".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_advice() {
        let warning = Warning::Oversubscribed {
            processes: PidList(vec![7]),
            threads: 4,
            cpus: 2,
            share: 0.954,
            openmp: true,
            pools: vec![Pool::OpenBlas],
            launcher: None,
        };
        let (words, advice) = (warning.to_string(), warning.advice());
        assert_eq!(
            words,
            "oversubscription: 4 threads wanted to run at once on 2 CPUs (process 7; more than there are CPUs at 95 % of the looks)"
        );
        assert!(advice.contains("OMP_NUM_THREADS=2") && advice.contains("OPENBLAS_NUM_THREADS=1"), "{advice}");
        let bound = Warning::Oversubscribed {
            processes: PidList(vec![1, 2, 3, 4, 5]),
            threads: 4,
            cpus: 1,
            share: 1.0,
            openmp: true,
            pools: vec![],
            launcher: Some(Launcher::OpenMpi),
        };
        assert!(bound.to_string().contains("processes 1, 2, 3, 4 and 1 more"), "{bound}");
        assert!(bound.advice().contains("mpirun --map-by slot:PE=4 --bind-to core"), "{}", bound.advice());
        let nested = Warning::Nested { processes: PidList(vec![7]), threads: 16, team: 4, asked: true, pools: vec![] };
        assert!(nested.advice().contains("OMP_MAX_ACTIVE_LEVELS=1") && nested.advice().contains("OMP_NUM_THREADS=2,2"));
    }
}

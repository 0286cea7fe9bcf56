//! A rank's place on its node and the name of its job, from the environment that its launcher gives it.

use crate::affinity::{Launcher, Rank, rank_of};

/// A rank as its environment tells it. What the launcher does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its number in the job.
    pub rank: Rank,
    /// Its number on its node.
    pub local: Option<u32>,
    /// Ranks of the job on this node.
    pub local_size: Option<u32>,
    /// Ranks of the job on all nodes.
    pub world: Option<u32>,
    /// The job, by a name that no other job of this node has at the time.
    pub job: Option<String>,
    /// Its node, as srun calls it: one host may be several nodes of Slurm.
    pub node: Option<String>,
}

/// What tells the rest, for each variable that tells the number.
struct Source {
    rank: &'static str,
    local: &'static [&'static str],
    local_size: &'static [&'static str],
    world: &'static [&'static str],
    job: &'static [&'static str],
}

const SOURCES: &[Source] = &[
    Source {
        rank: "OMPI_COMM_WORLD_RANK",
        local: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        world: &["OMPI_COMM_WORLD_SIZE"],
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Source {
        rank: "MV2_COMM_WORLD_RANK",
        local: &["MV2_COMM_WORLD_LOCAL_RANK"],
        local_size: &["MV2_COMM_WORLD_LOCAL_SIZE"],
        world: &["MV2_COMM_WORLD_SIZE"],
        job: &[],
    },
    Source {
        rank: "PALS_RANKID",
        local: &["PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"],
        local_size: &["PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"],
        world: &["PALS_SIZE", "PMI_SIZE"],
        job: &["PALS_APID"],
    },
    Source { rank: "ALPS_APP_PE", local: &["PMI_LOCAL_RANK"], local_size: &["PMI_LOCAL_SIZE"], world: &["PMI_SIZE"], job: &[] },
    Source {
        rank: "FLUX_TASK_RANK",
        local: &["FLUX_TASK_LOCAL_ID"],
        local_size: &[],
        world: &["FLUX_JOB_SIZE"],
        job: &["FLUX_JOB_ID"],
    },
    // Hydra names no job: its proxy on the node, the ranks' common ancestor, stands for it.
    Source {
        rank: "PMI_RANK",
        local: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
        world: &["PMI_SIZE"],
        job: &[],
    },
    Source { rank: "PMIX_RANK", local: &[], local_size: &[], world: &[], job: &["PMIX_NAMESPACE"] },
    Source {
        rank: "MPI_LOCALRANKID",
        local: &["MPI_LOCALRANKID"],
        local_size: &["MPI_LOCALNRANKS"],
        world: &["PMI_SIZE"],
        job: &[],
    },
];

/// Steps from here on are no steps of srun: the batch script (0xfffffffb), the extern step and their like.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

/// The name of a node in the environment of what Slurm starts there.
pub const NODE_NAME: &str = "SLURMD_NODENAME";

/// The rank that a process with this environment is; `None` outside of jobs of several ranks. The batch script of a job is not a
/// rank, although Slurm numbers it as one.
pub fn member_of<'a>(environment: impl Fn(&str) -> Option<&'a str>) -> Option<Member> {
    let rank = rank_of(&environment)?;
    let number = |names: &[&str]| names.iter().find_map(|name| environment(name)?.trim().parse::<u32>().ok());
    let text = |names: &[&str]| names.iter().find_map(|name| environment(name)).filter(|text| !text.is_empty());

    let mut member = match SOURCES.iter().find(|source| source.rank == rank.source) {
        Some(source) => Member {
            local: number(source.local),
            local_size: number(source.local_size),
            world: number(source.world),
            job: text(source.job).map(|job| format!("{}-{job}", source.job_prefix())),
            node: None,
            rank,
        },
        None => Member { rank, ..Member::default() },
    };
    let step = number(&["SLURM_STEP_ID", "SLURM_STEPID"]).filter(|&step| step < FIRST_SPECIAL_STEP);
    if member.rank.source == "SLURM_PROCID" && step.is_none() {
        return None;
    }
    // Ranks that srun itself started; mpirun in a job of Slurm leaves the numbers of its own daemon in their environment.
    let by_srun = step.is_some()
        && member.rank.launcher == Launcher::Slurm
        && member.local.is_none()
        && number(&["SLURM_PROCID"]) == Some(member.rank.number);
    if by_srun {
        let node = number(&["SLURM_NODEID"]).unwrap_or(0) as usize;
        let listed = || tasks_per_node(text(&["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"])?)?.get(node).copied();
        // Of ranks that others started it would be the name of the node where mpirun runs: Hydra hands on all that it was given.
        member.node = text(&[NODE_NAME]).map(str::to_owned);
        member.local = number(&["SLURM_LOCALID"]);
        member.local_size = listed().or_else(|| number(&["SLURM_NTASKS_PER_NODE"]));
        member.world = number(&["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"]);
        member.job = text(&["SLURM_JOB_ID", "SLURM_JOBID"]).zip(step).map(|(job, step)| format!("slurm-{job}.{step}"));
    }
    let nodes = number(&["FLUX_JOB_NNODES", "SLURM_STEP_NUM_NODES", "SLURM_NNODES"]);
    if member.local_size.is_none() && nodes == Some(1) {
        member.local_size = member.world;
    }
    // What contradicts itself is of another job, left over in the environment.
    let fits = |size: &u32| *size > member.local.unwrap_or(0) && member.world.is_none_or(|world| *size <= world);
    member.local_size = member.local_size.filter(fits);
    (member.world != Some(1)).then_some(member)
}

impl Source {
    fn job_prefix(&self) -> &'static str {
        self.rank.split('_').next().unwrap_or_default()
    }
}

impl Member {
    /// Ranks that near is divided by, and whether that is their number on this node for sure. All ranks of the job are the most
    /// that there can be; when not even that is known, as many as there are `cpus`.
    pub fn places(&self, cpus: u32) -> (u32, bool) {
        match (self.local_size, self.world) {
            (Some(size), _) => (size.max(1), true),
            (None, Some(world)) => (world.max(1), false),
            (None, None) => (cpus.max(self.local.unwrap_or(0).saturating_add(1)), false),
        }
    }

    /// True unless all ranks are known to be on this node.
    pub fn on_several_nodes(&self) -> bool {
        self.local_size.is_none() || self.local_size != self.world
    }
}

/// Tasks of each node, from "2(x3),1"; `None` when it is not such a list.
pub fn tasks_per_node(list: &str) -> Option<Vec<u32>> {
    /// More nodes than any machine has.
    const MOST: usize = 1 << 20;
    let mut tasks = Vec::new();
    for part in list.trim().split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse::<usize>().ok()?),
            None => (part, 1),
        };
        let count: u32 = count.trim().parse().ok()?;
        if tasks.len().checked_add(times)? > MOST {
            return None;
        }
        tasks.extend(std::iter::repeat_n(count, times));
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_node_is_known_of_what_srun_starts() {
        let node = |text: &str| {
            let find = |name: &str| text.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            member_of(find).expect("a rank").node
        };
        let step = "SLURM_STEP_ID=0 SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURMD_NODENAME=n2";
        assert_eq!(node(&format!("{step} SLURM_PROCID=2 SLURM_LOCALID=0")), Some("n2".into()));
        assert_eq!(node(&format!("{step} SLURM_PROCID=2 SLURM_LOCALID=0 PMI_RANK=2 PMI_SIZE=4")), Some("n2".into()));
        // As Hydra gives it to ranks of other nodes.
        assert_eq!(node(&format!("{step} SLURM_PROCID=1 PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2")), None);
    }

    type Known = (u32, Option<u32>, Option<u32>, Option<u32>, Option<String>);

    fn member(text: &str) -> Option<Known> {
        let find = |name: &str| text.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let member = member_of(find)?;
        Some((member.rank.number, member.local, member.local_size, member.world, member.job))
    }

    #[test]
    fn launchers() {
        let open_mpi = "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_SIZE=8";
        assert_eq!(
            member(&format!("{open_mpi} PMIX_NAMESPACE=77")),
            Some((5, Some(1), Some(4), Some(8), Some("OMPI-77".into())))
        );
        assert_eq!(
            member(&format!("{open_mpi} SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=9 SLURM_STEP_ID=0")),
            Some((5, Some(1), Some(4), Some(8), None))
        );
        let hydra = "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4";
        assert_eq!(member(hydra), Some((3, Some(3), Some(4), Some(4), None)));
        // Hydra's proxies were started by srun: the numbers of Slurm are those of the proxy.
        assert_eq!(
            member(&format!("{hydra} SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_TASKS_PER_NODE=1")),
            Some((3, Some(3), Some(4), Some(4), None))
        );
        let srun = "SLURM_PROCID=6 SLURM_LOCALID=0 SLURM_NODEID=3 SLURM_NTASKS=7 SLURM_JOB_ID=55";
        assert_eq!(
            member(&format!("{srun} SLURM_STEP_ID=2 SLURM_STEP_TASKS_PER_NODE=2(x3),1")),
            Some((6, Some(0), Some(1), Some(7), Some("slurm-55.2".into())))
        );
        assert_eq!(
            member(
                "PMI_RANK=1 PMIX_RANK=1 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2 SLURM_NNODES=1 SLURM_STEPID=0 SLURM_JOBID=9"
            ),
            Some((1, Some(1), Some(2), Some(2), Some("slurm-9.0".into())))
        );
        assert_eq!(
            member("PALS_RANKID=9 PALS_LOCAL_RANKID=1 PMI_LOCAL_SIZE=8 PMI_SIZE=16 PALS_APID=ab-1"),
            Some((9, Some(1), Some(8), Some(16), Some("PALS-ab-1".into())))
        );
        assert_eq!(
            member("FLUX_TASK_RANK=2 FLUX_TASK_LOCAL_ID=2 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=1 FLUX_JOB_ID=f1"),
            Some((2, Some(2), Some(4), Some(4), Some("FLUX-f1".into())))
        );
        assert_eq!(
            member("PMIX_RANK=2 PMIX_NAMESPACE=prterun-h-1@1"),
            Some((2, None, None, None, Some("PMIX-prterun-h-1@1".into())))
        );
    }

    #[test]
    fn not_ranks() {
        assert_eq!(member(""), None);
        assert_eq!(member("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_SIZE=1"), None);
        // The batch script of a job of 8 tasks.
        let batch = "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_TASKS_PER_NODE=8 SLURM_JOB_ID=1";
        assert_eq!(member(batch), None);
        assert_eq!(member(&format!("{batch} SLURM_STEP_ID=4294967291")), None);
        // A step of one task in that job.
        assert_eq!(member(&format!("{batch} SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1")), None);
    }

    #[test]
    fn what_contradicts_itself_is_not_believed() {
        let text = "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_SIZE=8";
        assert_eq!(member(text), Some((5, Some(4), None, Some(8), None)));
        assert_eq!(member("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=3"), Some((0, Some(0), None, Some(2), None)));
    }

    #[test]
    fn places_are_never_too_few() {
        let with = |local, local_size, world| Member { local, local_size, world, ..Member::default() };
        assert_eq!(with(Some(1), Some(4), Some(8)).places(2), (4, true));
        assert_eq!(with(Some(1), None, Some(8)).places(2), (8, false));
        assert_eq!(with(Some(5), None, None).places(2), (6, false));
        assert_eq!(with(None, None, None).places(2), (2, false));
        assert!(with(None, Some(4), Some(8)).on_several_nodes() && !with(None, Some(4), Some(4)).on_several_nodes());
    }

    #[test]
    fn lists_of_tasks() {
        assert_eq!(tasks_per_node("2(x3),1"), Some(vec![2, 2, 2, 1]));
        assert_eq!(tasks_per_node("4"), Some(vec![4]));
        for bad in ["", "x", "2(x", "2(x3", "2(3)", "1,,2", "1(x9999999999)"] {
            assert_eq!(tasks_per_node(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(list in "[0-9(x),]{0,24}") {
            let _ = tasks_per_node(&list);
        }
    }
}

//! The number of a process among MPI ranks, from the environment that launchers give it.

use serde::Serialize;
use std::fmt;

/// What started the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// mpirun of Open MPI.
    OpenMpi,
    /// mpirun or mpiexec of MPICH, Intel MPI, MVAPICH.
    Mpich,
    /// srun.
    Slurm,
    /// aprun or mpiexec of HPE Cray (PALS).
    Pals,
    /// Something else with PMIx or PMI.
    #[default]
    Other,
}

/// A rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Its number.
    pub number: u32,
    /// The variable that says so.
    pub source: &'static str,
    /// What started it.
    pub launcher: Launcher,
}

/// In the order in which they are believed: global numbers first; a launcher's own name before the interfaces that several use.
const VARIABLES: &[(&str, Launcher)] = &[
    ("OMPI_COMM_WORLD_RANK", Launcher::OpenMpi),
    ("MV2_COMM_WORLD_RANK", Launcher::Mpich),
    ("PALS_RANKID", Launcher::Pals),
    ("ALPS_APP_PE", Launcher::Pals),
    ("FLUX_TASK_RANK", Launcher::Other),
    ("PMI_RANK", Launcher::Mpich),
    ("PMIX_RANK", Launcher::Other),
    ("SLURM_PROCID", Launcher::Slurm),
    ("MPI_LOCALRANKID", Launcher::Mpich),
];

/// The rank of a process with this environment. A batch job of Slurm with one task is not taken for a rank.
pub fn rank_of<'a>(environment: impl Fn(&str) -> Option<&'a str>) -> Option<Rank> {
    let in_step = environment("SLURM_STEP_ID").is_some() || environment("SLURM_STEPID").is_some();
    VARIABLES.iter().find_map(|&(source, launcher)| {
        let number = environment(source)?.trim().parse().ok()?;
        let tasks = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"].into_iter().find_map(&environment);
        let many = tasks.is_some_and(|tasks| tasks.trim() != "1");
        if launcher == Launcher::Slurm && !many {
            return None;
        }
        // srun speaks PMI as well.
        let launcher = if in_step && (launcher == Launcher::Other || source == "PMI_RANK") { Launcher::Slurm } else { launcher };
        Some(Rank { number, source, launcher })
    })
}

impl Launcher {
    /// How to give every rank `threads` cores of its own, in the words of this launcher.
    pub fn cores_per_rank(self, threads: impl fmt::Display) -> String {
        match self {
            Launcher::OpenMpi => format!("mpirun --map-by slot:PE={threads} --bind-to core"),
            Launcher::Mpich => {
                format!("mpiexec -bind-to core:{threads} -map-by core:{threads} (MPICH), I_MPI_PIN_DOMAIN={threads} (Intel MPI)")
            }
            Launcher::Slurm => format!("srun --cpus-per-task={threads} --cpu-bind=cores"),
            Launcher::Pals => format!("mpiexec --depth={threads} --cpu-bind depth"),
            Launcher::Other => {
                format!(
                    "mpirun --map-by slot:PE={threads} --bind-to core (Open MPI), srun --cpus-per-task={threads} --cpu-bind=cores (Slurm)"
                )
            }
        }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MPI rank {} ({})", self.number, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(variables: &[(&'static str, &'static str)]) -> Option<(u32, Launcher)> {
        let rank = rank_of(|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| *value))?;
        Some((rank.number, rank.launcher))
    }

    #[test]
    fn launchers() {
        assert_eq!(rank(&[("OMPI_COMM_WORLD_RANK", "3"), ("PMIX_RANK", "3")]), Some((3, Launcher::OpenMpi)));
        assert_eq!(rank(&[("PMI_RANK", "7"), ("MPI_LOCALRANKID", "1")]), Some((7, Launcher::Mpich)));
        assert_eq!(rank(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "8")]), Some((2, Launcher::Slurm)));
        assert_eq!(rank(&[("PMI_RANK", "2"), ("SLURM_PROCID", "2"), ("SLURM_STEP_ID", "0")]), Some((2, Launcher::Slurm)));
        assert_eq!(rank(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]), None);
        assert_eq!(rank(&[("PMI_RANK", "x")]), None);
        assert_eq!(rank(&[]), None);
    }
}

//! Real launchers: MPI as its own compiler and mpirun know it, and a Slurm of several nodes on this host.

use super::{made, program_file};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Takes the marks of launchers that the tests themselves may run under out of a command's environment.
pub fn without_launchers(command: &mut Command) {
    let prefixes = ["OMPI_", "PMI", "SLURM", "PALS_", "MPI_", "FLUX_"];
    let strangers = std::env::vars().map(|(name, _)| name).filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    strangers.for_each(|name| {
        command.env_remove(name);
    });
}

/// Lets the mpirun of Open MPI 4 and 5 start more ranks than there are processors, also as root; others ignore it.
pub fn let_open_mpi(command: &mut Command) {
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")]);
}

/// A program of tests/programs for `mpi` ("openmpi" or "mpich"), compiled.
pub fn compile_mpi(name: &str, mpi: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let source = program_file(name);
    let target = made("test-programs").join(format!("{}.{mpi}", source.file_stem().expect("a name").display()));
    let modified = |path: &Path| std::fs::metadata(path).and_then(|facts| facts.modified()).ok();
    if modified(&target) > modified(&source).max(modified(&program_file("check.h"))) {
        return target;
    }
    let half_done = target.with_extension(format!("{mpi}.{}.tmp", std::process::id()));
    let mut compiler = Command::new(format!("mpicc.{mpi}"));
    compiler.args(["-O2", "-g", "-Wall", "-o"]).args([&half_done, &source]);
    let output = compiler.output().unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(output.status.success(), "{compiler:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&half_done, &target).expect("compiled program");
    target
}

/// A launcher that is installed here.
#[derive(Clone, Copy, PartialEq)]
pub enum Launcher {
    OpenMpi,
    Mpich,
    /// Two nodes, with the PMI of MPICH.
    Srun,
}

impl Launcher {
    /// Which MPI its programs are made for.
    pub fn mpi(self) -> &'static str {
        if self == Launcher::OpenMpi { "openmpi" } else { "mpich" }
    }

    /// The variable that tells a rank its number.
    pub fn rank(self) -> &'static str {
        match self {
            Launcher::OpenMpi => "OMPI_COMM_WORLD_RANK",
            Launcher::Mpich => "PMI_RANK",
            Launcher::Srun => "SLURM_PROCID",
        }
    }

    /// Starts four ranks.
    pub fn four(self) -> Command {
        let mut command = match self {
            Launcher::Srun => Slurm::get().command("srun"),
            _ => Command::new(format!("mpirun.{}", self.mpi())),
        };
        without_launchers(&mut command);
        match self {
            Launcher::OpenMpi => {
                let_open_mpi(&mut command);
                command.args(["-n", "4"])
            }
            Launcher::Mpich => command.args(["-n", "4"]),
            Launcher::Srun => {
                command.env("SLURM_CONF", Slurm::get().conf()).args(["-Q", "--mpi=pmi2", "-N", "2", "--ntasks-per-node", "2"])
            }
        };
        command
    }

    /// What lets ranks go on when one was killed. (`-disable-auto-cleanup` of MPICH 4.0.2 does not.)
    pub fn go_on(self) -> &'static [&'static str] {
        match self {
            Launcher::OpenMpi => &["--mca", "orte_enable_recovery", "1"],
            Launcher::Mpich => &[],
            Launcher::Srun => &["--mpi=none", "--kill-on-bad-exit=0"],
        }
    }
}

/// A running Slurm; it ends when this process does, in whatever way.
pub struct Slurm {
    dir: PathBuf,
    _script: Child,
    /// Its end is what the script waits for.
    _alive: ChildStdin,
}

impl Slurm {
    /// The one of this test run: nodes n1 and n2.
    pub fn get() -> &'static Self {
        static SLURM: OnceLock<Slurm> = OnceLock::new();
        SLURM.get_or_init(|| Slurm::start(2))
    }

    fn start(nodes: usize) -> Self {
        let dir = std::env::temp_dir().join(format!("nearfar-slurm-{}", std::process::id()));
        let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/start"));
        script.arg(&dir).arg(nodes.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Whoever kills the group of the tests leaves it alive, to clean up.
        script.process_group(0);
        without_launchers(&mut script);
        let mut script = script.spawn().expect("bash");
        let mut word = String::new();
        BufReader::new(script.stdout.take().expect("piped")).read_line(&mut word).expect("a line");
        assert_eq!(word, "ready\n", "Slurm does not start; its log is above");
        let alive = script.stdin.take().expect("piped");
        Self { dir, _script: script, _alive: alive }
    }

    /// srun, salloc or sbatch.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        without_launchers(&mut command);
        command.env("SLURM_CONF", self.conf());
        command
    }

    /// Its slurm.conf.
    pub fn conf(&self) -> PathBuf {
        self.dir.join("slurm.conf")
    }
}

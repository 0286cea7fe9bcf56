//! MPI for `nearfar probe`: a small program of ours, compiled by the user's own compiler wrapper and run by the user's own launcher,
//! so that the figures are those of the MPI that their codes use. Nothing of MPI is linked or shipped.

use crate::files::private_dir::{PrivateDir, remove_stale};
use crate::launch::helper;
use nearfar_core::node::{Figure, Missing, Mpi, Validity};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("../../crates/kernels/reference/mpi_bench.c");
/// Compilers on a slow shared file system take their time.
const COMPILE_LIMIT: Duration = Duration::from_secs(30);
/// Starting ranks takes a second or so, measuring two.
const RUN_LIMIT: Duration = Duration::from_secs(30);
/// Starting the program without ranks takes milliseconds.
const TRIAL_LIMIT: Duration = Duration::from_secs(5);
/// For all of it, whatever hangs: with the quick figures, and with all.
const OVERALL: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(45)];
/// A directory left by a process of another machine or container that shares this one's is not in use any more at this age.
const STALE: Duration = Duration::from_secs(600);
const DIR_PREFIX: &str = "nearfar-mpi-";
const HOW_TO_GET: &str = "on clusters \"module load openmpi\" (or mpich, intel-mpi); Debian: apt install openmpi-bin libopenmpi-dev; \
                          Fedora: dnf install openmpi-devel, then module load mpi; Spack: spack install openmpi, spack load openmpi";

/// A compiler wrapper and the launcher that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    compiler: PathBuf,
    launcher: PathBuf,
}

/// The time by which everything has to end.
#[derive(Clone, Copy)]
struct Deadline {
    overall: Duration,
    end: Instant,
}

impl Deadline {
    fn after(overall: Duration) -> Self {
        Self { overall, end: Instant::now() + overall }
    }

    /// `limit`, or what is left when that is less.
    fn limit(self, limit: Duration) -> Result<Duration, String> {
        let left = self.end.saturating_duration_since(Instant::now());
        // In less nothing can be started.
        if left < Duration::from_secs(1) {
            return Err(format!("not tried: the {} s for MPI were used up", self.overall.as_secs()));
        }
        Ok(left.min(limit))
    }
}

/// Why a launch gave no rows.
struct Failed {
    why: String,
    /// It had no time, or used all that it had: trying it again would take as long.
    timed_out: bool,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self { why, timed_out: false }
    }
}

/// Rows of the first MPI that works, between 2 ranks, and for allreduce on `ranks` of them (cores or CPUs); what could not be measured.
pub fn measure(quick: bool, ranks: usize) -> (Vec<Mpi>, Vec<Missing>) {
    let missing = |why: String| Missing { what: "MPI".into(), why };
    let pairs = find(|name| std::env::var_os(name).and_then(|value| value.into_string().ok()));
    if pairs.is_empty() {
        let why = format!("no mpicc with an mpirun, mpiexec or srun was found in PATH; {HOW_TO_GET}");
        return (Vec::new(), vec![missing(why)]);
    }
    remove_stale(&std::env::temp_dir(), DIR_PREFIX, STALE);
    let deadline = Deadline::after(OVERALL[usize::from(!quick)]);
    let mut problems = Vec::new();
    for pair in &pairs {
        match measure_with(pair, quick, ranks, deadline) {
            Ok((rows, partly)) => return (rows, partly.map(missing).into_iter().collect()),
            Err(why) => problems.push(why),
        }
    }
    problems.dedup();
    (Vec::new(), vec![missing(problems.join("; "))])
}

/// Candidates, best first: what the user names (MPICC, MPIEXEC), then what is found in PATH, launchers beside the compiler first.
fn find(variable: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    let path = variable("PATH").unwrap_or_default();
    let which = |name: &str| -> Option<PathBuf> {
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_file());
        }
        std::env::split_paths(OsStr::new(&path)).map(|dir| dir.join(name)).find(|path| path.is_file())
    };
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut pairs: Vec<Pair> = Vec::new();
    // Debian has several MPIs side by side under names of their own. Cray's compiler wrapper is called cc.
    let cray = variable("CRAYPE_VERSION").map(|_| "cc".to_owned());
    let compilers = [named("MPICC"), cray]
        .into_iter()
        .flatten()
        .chain(["mpicc", "mpiicc", "mpiicx", "mpicc.openmpi", "mpicc.mpich"].map(str::to_owned));
    for compiler in compilers {
        let Some(found) = which(&compiler) else { continue };
        let own = Path::new(&compiler).extension().map(|kind| format!(".{}", kind.display())).unwrap_or_default();
        let beside = |name: &str| Some(found.with_file_name(name)).filter(|path| path.is_file());
        // Names that only this MPI has come first.
        let usual = [kind_of(&found), own].map(|kind| ["mpirun", "mpiexec"].map(|name| format!("{name}{kind}")));
        let first = |names: &[String; 2]| {
            names.iter().find_map(|name| beside(name)).or_else(|| names.iter().find_map(|name| which(name)))
        };
        let launcher = (named("MPIEXEC").and_then(|name| which(&name)))
            .or_else(|| usual.iter().find_map(first))
            // Only inside of a job: outside it would wait for one.
            .or_else(|| variable("SLURM_JOB_ID").and_then(|_| which("srun")));
        pairs.extend(launcher.map(|launcher| Pair { compiler: found, launcher }));
    }
    // mpicc is mostly a link to one of the others.
    let mut seen = BTreeSet::new();
    pairs.retain(|pair| seen.insert((pair.compiler.canonicalize().ok(), pair.launcher.canonicalize().ok())));
    pairs
}

/// The MPI that Debian means by `compiler`, as ".mpich": its mpicc and its mpirun are links that may lead to different ones.
fn kind_of(compiler: &Path) -> String {
    const MOST_LINKS: usize = 8;
    let next = |path: &PathBuf| Some(path.parent()?.join(std::fs::read_link(path).ok()?));
    let names = std::iter::successors(Some(compiler.to_owned()), next).take(MOST_LINKS);
    let mut kinds = names.filter_map(|path| Some(format!(".{}", path.file_name()?.to_str()?.strip_prefix("mpicc.")?)));
    kinds.next().unwrap_or_default()
}

/// Rows, and why some are not there.
fn measure_with(pair: &Pair, quick: bool, ranks: usize, deadline: Deadline) -> Result<(Vec<Mpi>, Option<String>), String> {
    let (compiler, temp) = (pair.compiler.display(), std::env::temp_dir());
    let limit = deadline.limit(COMPILE_LIMIT).map_err(|why| format!("{compiler}: {why}"))?;
    let dir = PrivateDir::new(DIR_PREFIX)
        .map_err(|error| format!("{}: {error}; set TMPDIR to a directory that you may write to", temp.display()))?;
    let (source, program) = (dir.path().join("mpi_bench.c"), dir.path().join("mpi_bench"));
    std::fs::write(&source, SOURCE).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut compile = Command::new(&pair.compiler);
    compile.args(["-O2", "-o"]).args([&program, &source]).current_dir(dir.path());
    let compiled = helper::run(&mut compile, limit).map_err(|error| format!("{compiler}: {error}"))?;
    if compiled.status.is_none() {
        return Err(format!("{compiler}: {}", compiled.problem(limit)));
    }
    if !compiled.is_ok() {
        let problem = compiled.problem(limit);
        return Err(format!("{compiler} cannot compile ({problem}): are its headers or a C compiler missing? {HOW_TO_GET}"));
    }
    // Launchers say many things about a program that the kernel refuses. Without arguments it ends at once, with an error of its own.
    let limit = deadline.limit(TRIAL_LIMIT).map_err(|why| format!("{compiler}: {why}"))?;
    if let Err(error) = helper::run(&mut Command::new(&program), limit)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        let hint = "is it mounted noexec? Set TMPDIR to a directory from which programs can be run";
        return Err(format!("a program in {} cannot be run ({error}): {hint}", temp.display()));
    }
    let first = if ranks > 2 { "pairs" } else { "all" };
    let mut rows = run(pair, &program, first, 2, quick, deadline).map_err(|failed| failed.why)?;
    let mut problem = None;
    if ranks > 2 {
        match run(pair, &program, "allreduce", ranks, quick, deadline) {
            Ok(more) => rows.extend(more),
            Err(Failed { why, .. }) => problem = Some(format!("allreduce among {ranks} ranks: {why}")),
        }
    }
    Ok((rows, problem))
}

/// As the user's launcher does by default; where that fails or gives wrong data, once more without what containers forbid. Not where
/// it takes too long.
fn run(pair: &Pair, program: &Path, what: &str, ranks: usize, quick: bool, deadline: Deadline) -> Result<Vec<Mpi>, Failed> {
    let launch = |careful| {
        let late = |why| Failed { why: format!("{}: {why}", pair.launcher.display()), timed_out: true };
        let limit = deadline.limit(RUN_LIMIT).map_err(late)?;
        launch(pair, program, what, ranks, quick, careful, limit)
    };
    let plain = launch(false);
    match &plain {
        Ok(rows) if rows.iter().all(|row| row.value.is_valid()) => plain,
        Err(failed) if failed.timed_out => plain,
        _ => match launch(true) {
            Ok(rows) if rows.iter().all(|row| row.value.is_valid()) => Ok(rows),
            _ => plain,
        },
    }
}

fn launch(
    pair: &Pair,
    program: &Path,
    what: &str,
    ranks: usize,
    quick: bool,
    careful: bool,
    limit: Duration,
) -> Result<Vec<Mpi>, Failed> {
    let mut command = Command::new(&pair.launcher);
    if pair.launcher.file_name() == Some(OsStr::new("srun")) {
        command.args(["-N", "1", "--overlap"]);
    } else {
        // With these, mpirun would spread ranks over all nodes of a job of Slurm: what is measured are messages on this one.
        let names = std::env::vars_os().map(|(name, _)| name);
        names.filter(|name| name.as_bytes().starts_with(b"SLURM_")).for_each(|name| {
            command.env_remove(name);
        });
    }
    command.args(["-n", &ranks.to_string()]).arg(program).arg(what);
    // Ranks end themselves only where we could not end them: a hang is to be told from a failure.
    command.args(if quick { ["7", "1"] } else { ["20", "5"] }).arg((limit.as_secs() + 1).to_string());
    command.current_dir("/");
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        // Open MPI 4 and 5 refuse root without these.
        for name in [
            "OMPI_ALLOW_RUN_AS_ROOT",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
        ] {
            command.env(name, "1");
        }
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if ranks > cpus || careful {
        // As --oversubscribe, which other launchers do not know.
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    }
    if careful {
        // Binding, and reading another process's memory, are refused in many containers.
        command.env("OMPI_MCA_hwloc_base_binding_policy", "none").env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
        command.env("OMPI_MCA_btl_sm_single_copy_mechanism", "none").env("OMPI_MCA_smsc", "^cma");
    }
    let launcher = pair.launcher.display();
    let finished = helper::run(&mut command, limit).map_err(|error| format!("{launcher}: {error}"))?;
    if !finished.is_ok() {
        let why = format!("{launcher} -n {ranks}: {}", finished.problem(limit));
        return Err(Failed { why, timed_out: finished.status.is_none() });
    }
    let mut rows = rows(&finished.stdout).map_err(|why| format!("{launcher}: {why}"))?;
    if ranks > cpus {
        rows.iter_mut().for_each(|row| doubted(&mut row.value, "more ranks than CPUs: they took turns"));
    }
    Ok(rows)
}

/// Ranks that share a CPU wait for their turn, not for messages, and do so very steadily.
fn doubted(figure: &mut Figure, why: &str) {
    if figure.validity == Validity::Valid {
        (figure.validity, figure.why) = (Validity::Noisy, why.to_owned());
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Row { what: String, bytes: u64, ranks: u32, unit: String, errors: i64, switches: i64, samples: Vec<f64> },
    Library { library: String },
}

/// Rows of what the program printed; launchers may print more.
fn rows(stdout: &str) -> Result<Vec<Mpi>, String> {
    let (mut name, mut rows) = (String::new(), Vec::new());
    for line in stdout.lines().filter(|line| line.trim_start().starts_with('{')) {
        match serde_json::from_str(line.trim()) {
            Ok(Line::Library { library }) => name = short(&library),
            Ok(Line::Row { what, bytes, ranks, unit, errors, switches, samples }) => {
                let mut value = Figure::of(&samples);
                if switches > samples.len() as i64 {
                    doubted(
                        &mut value,
                        &format!("ranks lost their CPU {switches} times: a busy machine, or ranks that share one"),
                    );
                }
                if errors != 0 {
                    value = value.condemned(format!("WRONG DATA: {errors} checks failed"));
                }
                rows.push(Mpi { what, bytes, ranks, library: name.clone(), unit, value });
            }
            Err(error) => return Err(format!("not understood: {line:?}: {error}")),
        }
    }
    if rows.is_empty() { Err("it printed no figures".into()) } else { Ok(rows) }
}

/// "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..." up to the first comma, with single blanks.
fn short(library: &str) -> String {
    library.split(',').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_among_other_words() {
        let text = "some launcher says hello\n{\"library\":\"Open MPI v4.1.4, package: x\",\"ranks\":2}\n\
            {\"what\":\"bandwidth\",\"bytes\":1048576,\"ranks\":2,\"unit\":\"bytes/s\",\"errors\":0,\"switches\":0,\"samples\":[1e9,1.01e9,1.02e9]}\n\
            {\"what\":\"allreduce\",\"bytes\":8,\"ranks\":2,\"unit\":\"ns\",\"errors\":3,\"switches\":0,\"samples\":[5,5,5]}\n";
        let rows = rows(text).expect("rows");
        assert_eq!((rows[0].library.as_str(), rows[0].value.median), ("Open MPI v4.1.4", 1.01e9));
        let shared = text.replace("\"errors\":0,\"switches\":0", "\"errors\":0,\"switches\":9");
        assert_eq!(super::rows(&shared).expect("rows")[0].value.validity, Validity::Noisy);
        assert!(rows[0].value.is_valid() && !rows[1].value.is_valid());
        assert!(super::rows("nothing").is_err() && super::rows("{\"what\":1}").is_err());
        assert_eq!(short("MPICH Version:      4.0.2"), "MPICH Version: 4.0.2");
    }

    /// With an MPI: figures from checked data. Without: the reason, and no panic.
    #[test]
    fn this_machine_s_mpi() {
        let (rows, missing) = measure(true, 2);
        if rows.is_empty() {
            println!("skipped: needs mpicc: {}", missing[0].why);
            return;
        }
        let named: Vec<_> = rows.iter().map(|row| (row.what.as_str(), row.bytes, row.ranks)).collect();
        let pairs = [
            ("ping-pong latency", 0),
            ("ping-pong latency", 8),
            ("bandwidth", 1 << 20),
            ("bandwidth", 4 << 20),
            ("message rate", 8),
        ];
        assert_eq!(named[..5], pairs.map(|(what, bytes)| (what, bytes, 2)));
        assert_eq!(named[5..], [("allreduce", 8, 2)]);
        assert!(rows.iter().all(|row| row.value.is_valid() && !row.library.is_empty()), "{rows:?}");
    }

    #[test]
    fn a_launcher_that_hangs_ends_with_the_time_for_all() {
        let dir = PrivateDir::new(DIR_PREFIX).expect("a directory");
        // It waits for somebody to open the other end.
        let pipe = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let pair = Pair { compiler: "mpicc".into(), launcher: "tail".into() };
        let (start, deadline) = (Instant::now(), Deadline::after(Duration::from_millis(1500)));
        let failed = run(&pair, &pipe, "all", 2, true, deadline).expect_err("a failure");
        assert!(failed.timed_out && failed.why.contains("killed"), "{}", failed.why);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert!(deadline.limit(RUN_LIMIT).is_err_and(|why| why.contains("used up")));
    }

    #[test]
    fn compilers_meet_their_own_launchers() {
        let dir = std::env::temp_dir().join(format!("nearfar-mpi-find-{}", std::process::id()));
        let (one, other) = (dir.join("one"), dir.join("other"));
        for file in [
            one.join("mpirun"),
            other.join("mpicc"),
            other.join("mpiexec"),
            other.join("mpicc.mpich"),
            other.join("mpirun.mpich"),
        ] {
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
            std::fs::write(file, "").expect("written");
        }
        let path = format!("{}:{}", one.display(), other.display());
        let pair = |compiler: &str, launcher: PathBuf| Pair { compiler: other.join(compiler), launcher };
        let found = find(|name| (name == "PATH").then(|| path.clone()));
        assert_eq!(found, [pair("mpicc", other.join("mpiexec")), pair("mpicc.mpich", other.join("mpirun.mpich"))]);
        let named = find(|name| match name {
            "PATH" => Some(path.clone()),
            "MPIEXEC" => Some("mpirun".into()),
            _ => None,
        });
        assert_eq!(named[0], pair("mpicc", one.join("mpirun")));
        assert!(find(|_| None).is_empty());
        // mpicc leads to MPICH, mpirun to Open MPI: MPICH's own launcher.
        std::fs::remove_file(other.join("mpicc")).expect("removed");
        std::os::unix::fs::symlink(other.join("mpicc.mpich"), dir.join("mpi")).expect("a link");
        std::os::unix::fs::symlink("../mpi", one.join("mpicc")).expect("a link");
        let found = find(|name| (name == "PATH").then(|| path.clone()));
        assert_eq!(found, [Pair { compiler: one.join("mpicc"), launcher: other.join("mpirun.mpich") }]);
        std::fs::remove_dir_all(dir).expect("removed");
    }
}

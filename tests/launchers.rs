//! Ranks that real launchers start: mpirun of Open MPI and of MPICH, srun, and mpirun in a job of Slurm on two nodes (tests/slurm/start).
//! What each of them tells its ranks is `ranks`, without them.

use crate::util::{
    Beside, Launcher, MIB, Scratch, Slurm, compile, compile_mpi, descendants, kill_all, let_open_mpi, names_in, nearfar_bin,
    shared_machine, without_launchers,
};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than this is a hang.
const LIMIT: Duration = Duration::from_secs(120);
/// Near of a node, for all its ranks: less than they need.
const NEAR: u64 = 96 * MIB;
/// What each rank sends round, and how often: it holds twice as much.
const RING: [&str; 2] = ["14M", "2"];

struct Job {
    launcher: Launcher,
    scratch: Scratch,
    far: PathBuf,
    _beside: Beside,
}

struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    seconds: f64,
}

impl Job {
    fn new(launcher: Launcher) -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.0.join("ranks")).expect("broker directory");
        Self { launcher, far: scratch.far(), scratch, _beside: shared_machine() }
    }

    fn ring(&self) -> PathBuf {
        compile_mpi("mpi_ring.c", self.launcher.mpi())
    }

    /// `nearfar run ... --` as words.
    fn nearfar(&self, near: u64) -> Vec<PathBuf> {
        let (near, stats) = (near.to_string(), self.scratch.0.join("run.json"));
        let program = nearfar_bin();
        let words = [program.as_path(), Path::new("run"), "--near".as_ref(), near.as_ref(), "--far".as_ref(), &self.far];
        words.into_iter().chain([Path::new("--stats"), &stats, "--".as_ref()]).map(Path::to_owned).collect()
    }

    /// Runs it to its end.
    fn run(&self, mut command: Command) -> Ended {
        let (stdout, stderr) = (self.scratch.0.join("stdout"), self.scratch.0.join("stderr"));
        let file = |path: &Path| std::fs::File::create(path).expect("scratch file");
        command.stdin(Stdio::null()).stdout(file(&stdout)).stderr(file(&stderr)).process_group(0);
        command.env("NEARFAR_RANKS_DIR", self.scratch.0.join("ranks")).current_dir(self.scratch.work());
        let begin = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).expect("output")).into_owned();
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait") {
                break status;
            }
            if begin.elapsed() > LIMIT {
                kill_all(&descendants(child.id()));
                let _ = child.wait();
                panic!("{command:?} hangs:\n{}{}", read(&stdout), read(&stderr));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Ended { status, stdout: read(&stdout), stderr: read(&stderr), seconds: begin.elapsed().as_secs_f64() }
    }

    /// The launcher starts `nearfar run` of a program four times.
    fn ranks<S: AsRef<OsStr>>(&self, near: u64, options: &[&str], program: &[S]) -> Ended {
        let mut command = self.launcher.four();
        command.args(options).args(self.nearfar(near)).args(program);
        self.run(command)
    }

    fn ranks_of_ring(&self) -> Ended {
        let ring = self.ring();
        self.ranks(NEAR, &[], &[ring.as_os_str(), RING[0].as_ref(), RING[1].as_ref()])
    }

    /// What the program prints without nearfar.
    fn plain(&self) -> String {
        let mut command = self.launcher.four();
        command.arg(self.ring()).args(RING);
        self.run(command).ok().stdout
    }

    fn stats(&self, name: &str) -> Value {
        let there = names_in(&self.scratch.0);
        let text =
            std::fs::read_to_string(self.scratch.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}: {there:?}"));
        serde_json::from_str(&text).expect("JSON")
    }

    fn left_nothing(&self) {
        assert_eq!(names_in(&self.scratch.0.join("ranks")), [""; 0]);
        assert_eq!(names_in(&self.far), [""; 0]);
    }
}

impl Ended {
    #[track_caller]
    fn ok(self) -> Self {
        assert!(self.status.success(), "{:?}\n{}{}", self.status, self.stdout, self.stderr);
        self
    }

    fn said(&self, words: &str) -> usize {
        self.stderr.matches(words).count()
    }
}

/// What a run file says of each rank.
fn all(stats: &Value, name: &str) -> Vec<Value> {
    stats["ranks"].as_array().unwrap_or_else(|| panic!("no ranks: {stats}")).iter().map(|rank| rank[name].clone()).collect()
}

/// `ranks` shared the near of their node evenly, stayed within it, and paged.
#[track_caller]
fn shared(stats: &Value, ranks: &[u64]) {
    let share = NEAR / ranks.len() as u64;
    assert_eq!(all(stats, "rank"), ranks);
    assert_eq!((all(stats, "near_bytes"), &stats["near_bytes"]), (vec![share.into(); ranks.len()], &NEAR.into()));
    assert!(all(stats, "near_peak_bytes").iter().all(|peak| peak.as_u64().expect("bytes") <= share), "{stats}");
    assert_eq!((&stats["exit"]["status"], &stats["processes"]), (&0.into(), &ranks.len().into()));
    assert!(stats["counters"]["bytes_out"].as_u64() > Some(0), "nothing was paged: {stats}");
}

/// mpirun nearfar run: even shares, one report, and the same output.
fn on_one_node(launcher: Launcher) {
    let job = Job::new(launcher);
    let plain = job.plain();
    assert_eq!(plain.lines().count(), 4, "{plain}");
    let end = job.ranks_of_ring().ok();
    println!("{:.1} s", end.seconds);
    assert_eq!(end.stdout, plain, "{}", end.stderr);
    shared(&job.stats("run.json"), &[0, 1, 2, 3]);
    assert_eq!(end.said("near 96.0 MiB of this node is shared by 4 ranks: 24.0 MiB each"), 1, "{}", end.stderr);
    assert_eq!((end.said("4 ranks on"), end.said(" at peak of 96.0 MiB")), (1, 1), "{}", end.stderr);
    job.left_nothing();
}

#[test]
fn open_mpi_starts_ranks() {
    needs!("openmpi");
    on_one_node(Launcher::OpenMpi);
}

#[test]
fn mpich_starts_ranks() {
    needs!("mpich");
    on_one_node(Launcher::Mpich);
}

/// nearfar run mpirun: one job, ranks get what they need.
fn around_the_launcher(launcher: Launcher) {
    let job = Job::new(launcher);
    let plain = job.plain();
    let inner = launcher.four();
    let mut command = Command::new(nearfar_bin());
    command.args(job.nearfar(NEAR).into_iter().skip(1)).arg(inner.get_program()).args(inner.get_args());
    command.arg(job.ring()).args(RING);
    inner.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(command.env(name, value)),
        None => drop(command.env_remove(name)),
    });
    let end = job.run(command).ok();
    println!("{:.1} s", end.seconds);
    assert_eq!(end.stdout, plain, "{}", end.stderr);
    let stats = job.stats("run.json");
    assert!(stats["ranks"].is_null() && stats["near_bytes"] == NEAR, "{stats}");
    assert!(stats["processes"].as_u64() > Some(4), "mpirun and four ranks: {stats}");
    assert!(stats["near_peak_bytes"].as_u64() <= Some(NEAR), "{stats}");
    assert!(stats["counters"]["bytes_out"].as_u64() > Some(0), "nothing was paged: {stats}");
    job.left_nothing();
}

#[test]
fn nearfar_starts_open_mpi() {
    needs!("openmpi");
    around_the_launcher(Launcher::OpenMpi);
}

#[test]
fn nearfar_starts_mpich() {
    needs!("mpich");
    around_the_launcher(Launcher::Mpich);
}

/// Ranks of srun are children of slurmd: what they are told, they are told by their environment.
#[test]
fn nearfar_starts_srun() {
    needs!("slurm", "mpich");
    around_the_launcher(Launcher::Srun);
}

/// Nodes of Slurm that are one host divide the near of each, and report each.
#[track_caller]
fn on_two_nodes(job: &Job, end: &Ended) {
    println!("{:.1} s", end.seconds);
    shared(&job.stats("run.n1.json"), &[0, 1]);
    shared(&job.stats("run.n2.json"), &[2, 3]);
    assert_eq!(end.said("near 96.0 MiB of this node is shared by 2 ranks: 48.0 MiB each"), 2, "{}", end.stderr);
    assert_eq!((end.said("2 ranks on n1"), end.said("2 ranks on n2")), (1, 1), "{}", end.stderr);
    assert_eq!(end.said("more than one nearfar"), 0, "{}", end.stderr);
    job.left_nothing();
}

#[test]
fn srun_starts_ranks_on_two_nodes() {
    needs!("slurm", "mpich");
    let job = Job::new(Launcher::Srun);
    let plain = job.plain();
    let ring = job.ring();
    let end = job.ranks(NEAR, &[], &[ring.as_os_str(), "28M".as_ref(), "2".as_ref()]).ok();
    assert_eq!(end.stdout.lines().count(), plain.lines().count(), "{}", end.stderr);
    on_two_nodes(&job, &end);
}

/// As a job script has it: mpirun learns from Slurm where to start ranks, and Hydra hands the first node's environment to all.
fn in_a_batch_job(launcher: Launcher) {
    let job = Job::new(launcher);
    let mpirun = launcher.four();
    let quoted = |word: &OsStr| format!("'{}'", word.display());
    let ring = job.ring();
    let words = [mpirun.get_program()].into_iter().chain(mpirun.get_args()).map(quoted);
    let nearfar = job.nearfar(NEAR);
    let nearfar = nearfar.iter().map(|word| quoted(word.as_os_str()));
    let words = words.chain(nearfar).chain([quoted(ring.as_os_str()), "28M".into(), "2".into()]);
    let ended = job.scratch.0.join("ended");
    let script =
        format!("#!/bin/sh\n{}\necho $? >{1}.new\nmv {1}.new {1}\n", words.collect::<Vec<_>>().join(" "), ended.display());
    std::fs::write(job.scratch.0.join("job"), script).expect("script");
    let (stdout, stderr) = (job.scratch.0.join("job.stdout"), job.scratch.0.join("job.stderr"));
    // `sbatch --wait` looks only every few seconds.
    let wait = "ended=$1; shift; sbatch -Q \"$@\" && until [ -e $ended ]; do sleep 0.05; done; exit $(cat $ended)";
    let mut command = Slurm::get().command("sh");
    command
        .args(["-c", wait, "sh"])
        .arg(&ended)
        .args(["-N", "2", "--ntasks-per-node", "2", "-o"])
        .arg(&stdout)
        .arg("-e")
        .arg(&stderr);
    command.arg(job.scratch.0.join("job"));
    let_open_mpi(&mut command);
    // The shared memory of two nodes that are one host would have the same names.
    command.env("OMPI_MCA_btl", "self,tcp");
    let mut end = job.run(command);
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    (end.stdout, end.stderr) = (read(stdout), end.stderr + &read(stderr));
    let end = end.ok();
    assert_eq!(end.stdout.lines().count(), 4, "{}", end.stderr);
    on_two_nodes(&job, &end);
}

#[test]
fn open_mpi_in_a_job_of_slurm() {
    needs!("slurm", "openmpi");
    in_a_batch_job(Launcher::OpenMpi);
}

#[test]
fn mpich_in_a_job_of_slurm() {
    needs!("slurm", "mpich");
    in_a_batch_job(Launcher::Mpich);
}

/// Rank 1 and its nearfar are killed; the others finish; one that comes later finds the share of the dead beside its own.
fn one_is_killed(launcher: Launcher) {
    let job = Job::new(launcher);
    let nearfar: Vec<String> = job.nearfar(128 * MIB).iter().map(|word| format!("'{}'", word.display())).collect();
    let (head, run) = (nearfar[0].clone() + " run", nearfar[2..].join(" "));
    let touch = compile("touch.c").display().to_string();
    let script = format!(
        "rank=${}; case $rank in
         1) exec {head} {run} sh -c 'echo killed; kill -9 $PPID $$';;
         0) sleep 3; exec {head} --share all {run} {touch} 48M 2;;
         *) exec {head} {run} sh -c '{touch} 48M 2; sleep 4';; esac",
        launcher.rank()
    );
    // On two nodes rank 0 is on the first, together with rank 1.
    let mut command = launcher.four();
    command.args(launcher.go_on()).args(["sh", "-c", &script]);
    let end = job.run(command);
    println!("{:.1} s", end.seconds);
    assert_eq!(
        (end.stdout.matches("killed").count(), end.stdout.matches("OK 50331648").count()),
        (1, 3),
        "{}{}",
        end.stdout,
        end.stderr
    );
    let on_two = launcher == Launcher::Srun;
    let stats = job.stats(if on_two { "run.n1.json" } else { "run.json" });
    let ranks = if on_two { 2 } else { 4 };
    assert_eq!(all(&stats, "rank"), (0..ranks).collect::<Vec<u64>>());
    assert_eq!(all(&stats, "lost"), (0..ranks).map(|rank| rank == 1).collect::<Vec<_>>());
    let even = 128 * MIB / ranks;
    let shares: Vec<u64> = (0..ranks).map(|rank| if rank == 0 { 2 * even } else { even }).collect();
    assert_eq!(all(&stats, "near_bytes"), shares);
    assert!(end.stderr.contains("rank 1: its nearfar") && end.stderr.contains("lost"), "{}", end.stderr);
    job.left_nothing();
}

#[test]
fn a_rank_of_open_mpi_is_killed() {
    needs!("openmpi");
    one_is_killed(Launcher::OpenMpi);
}

/// MPICH kills the others: nothing of them is left, and the next job has all of near.
#[test]
fn a_rank_of_mpich_is_killed_and_all_end() {
    needs!("mpich");
    let job = Job::new(Launcher::Mpich);
    let nearfar: Vec<String> = job.nearfar(128 * MIB).iter().map(|word| format!("'{}'", word.display())).collect();
    let touch = compile("touch.c").display().to_string();
    let script =
        format!("sleep 1; [ $PMI_RANK = 1 ] && exec {0} sh -c 'kill -9 $PPID $$'; exec {0} {touch} 48M ready", nearfar.join(" "));
    let mut command = Launcher::Mpich.four();
    command.args(["sh", "-c", &script]);
    let end = job.run(command);
    println!("{:.1} s", end.seconds);
    assert!(!end.status.success(), "{}{}", end.stdout, end.stderr);
    crate::util::wait_for_space(&job.far);
    assert_eq!(names_in(&job.far), [""; 0]);
    let end = job.ranks(128 * MIB, &[], &["true"]).ok();
    assert_eq!(end.said("near 128.0 MiB of this node is shared by 4 ranks: 32.0 MiB each"), 1, "{}", end.stderr);
    job.left_nothing();
}

#[test]
fn a_rank_of_srun_is_killed() {
    needs!("slurm");
    one_is_killed(Launcher::Srun);
}

/// Shares that are too small are refused, as the launcher's exit status says, and nothing starts.
fn too_little(launcher: Launcher) {
    let job = Job::new(launcher);
    let here = if launcher == Launcher::Srun { 2 } else { 4 };
    let end = job.ranks(10 * here * MIB, &[], &["touch", "started"]);
    println!("{:.1} s", end.seconds);
    assert_eq!(end.status.code(), Some(2), "{}", end.stderr);
    let (whose, hint) = (format!("for all {here} ranks of this node together"), format!("write {}M or more", 16 * here));
    for words in ["which is too little to work with", &whose, &hint] {
        assert!(end.said(words) > 0, "no {words:?} in {}", end.stderr);
    }
    assert!(!job.scratch.work().join("started").exists());
    job.left_nothing();
}

#[test]
fn too_little_for_open_mpi() {
    needs!("openmpi");
    too_little(Launcher::OpenMpi);
}

#[test]
fn too_little_for_mpich() {
    needs!("mpich");
    too_little(Launcher::Mpich);
}

#[test]
fn too_little_for_srun() {
    needs!("slurm", "mpich");
    too_little(Launcher::Srun);
}

/// Ranks fill the far that they have in common: each is refused memory, and what it has is right.
fn far_is_full(launcher: Launcher) {
    let job = Job::new(launcher);
    let inner = launcher.four();
    let program = compile("space_runs_out.c");
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=128M none \"$1\" && shift && exec \"$@\"";
    command.args(["--mount", "sh", "-ec", script, "sh"]).arg(&job.far).arg(inner.get_program()).args(inner.get_args());
    command.args(job.nearfar(64 * MIB)).arg(program).args(["malloc", "4M"]);
    let_open_mpi(&mut command);
    let end = job.run(command).ok();
    println!("{:.1} s", end.seconds);
    assert_eq!(end.stdout.matches("OK").count(), 4, "{}{}", end.stdout, end.stderr);
    let got = end.stderr.lines().filter_map(|line| line.strip_prefix("got ")?.strip_suffix(" MiB")?.parse::<u64>().ok());
    let got: Vec<u64> = got.collect();
    // Most of near and of far; of each rank a step may be missing, and one that another rank had secured and not used.
    assert!(got.len() == 4 && got.iter().sum::<u64>() >= 48 + 96 - 32, "{got:?} {}", end.stderr);
    assert_eq!(end.said("out of memory"), 4, "{}", end.stderr);
    let refused = all(&job.stats("run.json"), "counters");
    assert!(refused.iter().all(|counters| counters["allocations_refused"].as_u64() > Some(0)), "{refused:?}");
}

#[test]
fn far_is_full_for_open_mpi() {
    needs!("openmpi", "mounts");
    far_is_full(Launcher::OpenMpi);
}

#[test]
fn far_is_full_for_mpich() {
    needs!("mpich", "mounts");
    far_is_full(Launcher::Mpich);
}

/// `nearfar probe --only mpi` with this MPI's compiler.
fn probed(mpi: &str, mut command: Command, job: &Job) -> Value {
    let program = nearfar_bin();
    command.arg(program).args(["probe", "--quick", "--only", "mpi"]).env("MPICC", format!("mpicc.{mpi}"));
    let end = job.run(command).ok();
    println!("{:.1} s", end.seconds);
    serde_json::from_str(&std::fs::read_to_string(job.scratch.work().join("node.json")).expect("written")).expect("JSON")
}

/// Latency and bandwidth between ranks, from the MPI that is named.
fn is_probed(launcher: Launcher, library: &str) {
    let job = Job::new(launcher);
    let mut command = Command::new("env");
    without_launchers(&mut command);
    let node = probed(launcher.mpi(), command, &job);
    let rows = node["mpi"].as_array().expect("rows");
    for (what, unit, least, most) in [("ping-pong latency", "ns", 1.0, 1e9), ("bandwidth", "bytes/s", 1e6, 1e12)] {
        let row =
            rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("no {what}: {rows:?} {}", node["missing"]));
        let value = row["value"]["median"].as_f64().expect("a figure");
        assert!(row["library"].as_str().expect("a name").starts_with(library) && row["unit"] == unit, "{row}");
        assert!(value > least && value < most && row["value"]["validity"] != "invalid", "{row}");
    }
}

#[test]
fn messages_of_open_mpi_are_probed() {
    needs!("openmpi");
    is_probed(Launcher::OpenMpi, "Open MPI");
}

#[test]
fn messages_of_mpich_are_probed() {
    needs!("mpich");
    is_probed(Launcher::Mpich, "MPICH");
}

/// In a job on two nodes mpirun would start the second rank on the other one.
#[test]
fn a_probe_within_a_job_of_slurm_stays_on_its_node() {
    needs!("slurm", "openmpi");
    let job = Job::new(Launcher::OpenMpi);
    // Its program says by whom it was started.
    let (compiler, started) = (job.scratch.0.join("compiler"), job.scratch.0.join("started"));
    let text = format!(
        "#!/bin/sh\nprintf '#!/bin/sh\\necho by ${{SLURM_STEP_ID-nobody}} >>{}\\n' >\"$3\"\nchmod +x \"$3\"\n",
        started.display()
    );
    std::fs::write(&compiler, text).expect("written");
    assert!(Command::new("chmod").arg("+x").arg(&compiler).status().expect("chmod").success());
    let mut command = Slurm::get().command("salloc");
    command.args(["-Q", "-N", "2", "-n", "2"]).arg(nearfar_bin()).args(["probe", "--quick", "--only", "mpi"]);
    command.env("MPICC", &compiler).env("MPIEXEC", "mpirun.openmpi");
    job.run(command);
    let said = std::fs::read_to_string(started).expect("it was started");
    assert!(said.matches("by nobody").count() >= 2 && !said.contains("by 0"), "{said}");
}

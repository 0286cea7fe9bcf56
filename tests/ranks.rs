//! Ranks of a job on one node share near and report together. Ranks are simulated by the environment that each launcher gives;
//! one test uses the real `mpirun`.

use crate::util::{
    Beside, Scratch, TestProgram, compile, let_open_mpi, names_in, nearfar_bin, python, send_signal, shared_machine, wait_gone,
    without_launchers,
};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Longer than this is a hang.
const LIMIT: Duration = Duration::from_secs(120);

/// A job of ranks: its launcher's environment, and a broker directory of its own.
struct Ranks {
    scratch: Scratch,
    /// NAME=VALUE with {rank} and {size}.
    environment: &'static str,
    size: usize,
    near: &'static str,
    _beside: Beside,
}

struct Running {
    rank: usize,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// What became of a rank.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

const OPEN_MPI: &str = "OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_LOCAL_RANK={rank} OMPI_COMM_WORLD_SIZE={size} \
                        OMPI_COMM_WORLD_LOCAL_SIZE={size} PMIX_NAMESPACE=77";
const HYDRA: &str = "PMI_RANK={rank} PMI_SIZE={size} MPI_LOCALRANKID={rank} MPI_LOCALNRANKS={size}";
const SLURM: &str = "SLURM_PROCID={rank} SLURM_LOCALID={rank} SLURM_NODEID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=5 SLURM_NTASKS={size} \
                     SLURM_STEP_TASKS_PER_NODE={size}";
const PALS: &str = "PALS_RANKID={rank} PALS_LOCAL_RANKID={rank} PMI_LOCAL_SIZE={size} PMI_SIZE={size} PALS_APID=a-b";

impl Ranks {
    fn new(environment: &'static str, size: usize, near: &'static str) -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.0.join("ranks")).expect("broker directory");
        Self { scratch, environment, size, near, _beside: shared_machine() }
    }

    fn command(&self, rank: usize, options: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(nearfar_bin());
        without_launchers(&mut command);
        for pair in self.environment.split_whitespace() {
            let value = pair.replace("{rank}", &rank.to_string()).replace("{size}", &self.size.to_string());
            let (name, value) = value.split_once('=').expect("NAME=VALUE");
            command.env(name, value);
        }
        command.env("NEARFAR_RANKS_DIR", self.scratch.0.join("ranks"));
        command.args(["run", "--near", self.near, "--far"]).arg(self.scratch.far());
        if !options.contains(&"--stats") {
            command.arg("--stats").arg(self.scratch.0.join("run.json"));
        }
        command.args(options).arg("--").args(program);
        command.current_dir(self.scratch.work()).stdin(Stdio::null());
        command
    }

    fn start(&self, rank: usize, options: &[&str], program: &[&str]) -> Running {
        self.spawn(rank, self.command(rank, options, program))
    }

    fn spawn(&self, rank: usize, mut command: Command) -> Running {
        let file = |kind: &str| self.scratch.0.join(format!("{kind}.{rank}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        command.stdout(File::create(&stdout).expect("file")).stderr(File::create(&stderr).expect("file"));
        Running { rank, child: command.spawn().expect("nearfar runs"), stdout, stderr }
    }

    fn brokers(&self) -> Vec<String> {
        names_in(&self.scratch.0.join("ranks"))
    }

    /// The merged file.
    fn stats(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.scratch.0.join("run.json")).expect("a merged run file");
        serde_json::from_str(&text).expect("JSON")
    }

    /// What the file says of each rank.
    fn all(&self, name: &str) -> Vec<serde_json::Value> {
        self.stats()["ranks"].as_array().expect("ranks").iter().map(|rank| rank[name].clone()).collect()
    }
}

impl Running {
    /// Waits until the program has printed `word`.
    fn wait_for(&self, word: &str) {
        let begin = Instant::now();
        while !std::fs::read_to_string(&self.stdout).unwrap_or_default().contains(word) {
            let said = std::fs::read_to_string(&self.stderr).unwrap_or_default();
            assert!(begin.elapsed() < LIMIT, "rank {} never said {word}: {said}", self.rank);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) -> Ended {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            if begin.elapsed() > LIMIT {
                let _ = self.child.kill();
                panic!("rank {} hangs: {}", self.rank, std::fs::read_to_string(&self.stderr).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let read = |path| std::fs::read_to_string(path).expect("output");
        Ended { status, stdout: read(&self.stdout), stderr: read(&self.stderr) }
    }
}

#[track_caller]
fn all_ok(ranks: Vec<Running>) -> Vec<Ended> {
    let ended: Vec<Ended> = ranks.into_iter().map(Running::end).collect();
    for (rank, end) in ended.iter().enumerate() {
        assert!(end.status.success(), "rank {rank}: {:?}\n{}", end.status, end.stderr);
    }
    ended
}

fn touch() -> String {
    compile("touch.c").to_str().expect("UTF-8").to_owned()
}

#[test]
fn ranks_page_within_their_shares_and_report_together() {
    let job = Ranks::new(OPEN_MPI, 4, "200M");
    let touch = touch();
    let ended = all_ok((0..4).map(|rank| job.start(rank, &[], &[&touch, "100M", "2"])).collect());
    assert!(ended.iter().all(|end| end.stdout == format!("OK {}\n", 100 * MIB)));
    let stats = job.stats();
    assert_eq!((&stats["format"], &stats["near_bytes"]), (&"nearfar-run".into(), &(200 * MIB).into()));
    assert_eq!(job.all("rank"), [0, 1, 2, 3]);
    assert_eq!(job.all("near_bytes"), [50 * MIB; 4]);
    assert!(job.all("near_peak_bytes").iter().all(|peak| peak.as_u64().expect("bytes") <= 50 * MIB));
    for name in ["bytes_in", "bytes_out", "stall_ns"] {
        let sum: u64 = job.all("counters").iter().map(|counters| counters[name].as_u64().expect("a counter")).sum();
        assert!(sum > 0 && stats["counters"][name] == sum, "{name}: {sum} is not {}", stats["counters"][name]);
    }
    assert_eq!((&stats["processes"], &stats["exit"]["status"]), (&4.into(), &0.into()));
    // One says what was chosen, one what came of it.
    let said: String = ended.into_iter().map(|end| end.stderr).collect();
    assert_eq!(said.matches("shared by 4 ranks: 50.0 MiB each").count(), 1, "{said}");
    assert_eq!(said.matches("4 ranks on").count(), 1, "{said}");
    assert_eq!(said.matches(" of the page faults ").count(), 1, "{said}");
    assert_eq!(job.brokers(), [""; 0]);
    assert_eq!(names_in(&job.scratch.far()), [""; 0]);
}

#[test]
fn every_launcher_is_understood() {
    for launcher in [HYDRA, SLURM, PALS] {
        let job = Ranks::new(launcher, 3, "300M");
        all_ok((0..3).map(|rank| job.start(rank, &[], &["true"])).collect());
        assert_eq!(job.all("rank"), [0, 1, 2], "{launcher}");
        assert_eq!(job.all("near_bytes"), [100 * MIB; 3], "{launcher}");
        assert_eq!(job.brokers(), [""; 0], "{launcher}");
    }
}

#[test]
fn shares_that_are_asked_for() {
    let job = Ranks::new(OPEN_MPI, 3, "200M");
    let shares = ["40%", "fair", "fair"];
    all_ok((0..3).map(|rank| job.start(rank, &["--share", shares[rank]], &["true"])).collect());
    assert_eq!(job.all("near_bytes"), [80 * MIB, 60 * MIB, 60 * MIB]);
    let job = Ranks::new(OPEN_MPI, 3, "64M");
    all_ok((0..3).map(|rank| job.start(rank, &["--share", "off"], &["true"])).collect());
    assert_eq!(job.all("near_bytes"), [64 * MIB; 3]);
    for (share, near, hint) in [("5/4", "200M", "write fair"), ("fair", "40M", "48M"), ("1%", "200M", "too little")] {
        let job = Ranks::new(OPEN_MPI, 3, near);
        let end = job.start(0, &["--share", share], &["touch", "started"]).end();
        assert!(end.status.code() == Some(2) && end.stderr.contains(hint), "{share}: {:?} {}", end.status, end.stderr);
        assert!(!job.scratch.work().join("started").exists() && job.brokers().is_empty());
    }
}

#[test]
fn names_of_files_and_exit_statuses_are_each_rank_s() {
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    let file = job.scratch.0.join("own-%r.json");
    let options = ["--stats", file.to_str().expect("UTF-8"), "-q"];
    let own = |rank| job.start(rank, &options, &["sh", "-c", &format!("exit {}", 3 + rank)]);
    let running: Vec<Running> = (0..2).map(own).collect();
    for (rank, end) in running.into_iter().map(Running::end).enumerate() {
        assert_eq!((end.status.code(), end.stderr.as_str()), (Some(3 + rank as i32), ""));
        let text = std::fs::read_to_string(job.scratch.0.join(format!("own-{rank}.json"))).expect("a file of its own");
        let stats: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&stats["exit"]["status"], &stats["ranks"][0]["rank"]), (&(3 + rank).into(), &rank.into()));
    }
    assert!(!job.scratch.0.join("run.json").exists());
}

#[test]
fn a_rank_that_is_killed_holds_nobody_up() {
    let job = Ranks::new(OPEN_MPI, 4, "200M");
    let touch = touch();
    let mut ranks: Vec<Running> =
        (0..4).map(|rank| job.start(rank, &[], &[&touch, "100M", if rank == 2 { "ready" } else { "4" }])).collect();
    let mut killed = ranks.remove(2);
    killed.wait_for("ready");
    let pid = killed.child.id();
    let all = crate::util::descendants(pid);
    let own: Vec<u32> = all.into_iter().filter(|&one| one == pid || parent(one) == Some(pid)).collect();
    own.iter().for_each(|&one| send_signal("KILL", one));
    killed.child.wait().expect("wait");
    wait_gone(&own);
    let ended = all_ok(ranks);
    assert!(ended.iter().all(|end| end.stdout == format!("OK {}\n", 100 * MIB)));
    assert_eq!(job.all("lost"), [false, false, true, false]);
    let said: String = ended.into_iter().map(|end| end.stderr).collect();
    assert!(said.contains("rank 2: its nearfar") && said.contains("lost"), "{said}");
    assert_eq!(job.brokers(), [""; 0]);
}

fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_rank_that_comes_late_finds_its_share() {
    let job = Ranks::new(OPEN_MPI, 3, "150M");
    let early: Vec<Running> = (0..2).map(|rank| job.start(rank, &[], &["sh", "-c", "echo up; sleep 4"])).collect();
    // They have stopped to wait for it.
    early.iter().for_each(|rank| rank.wait_for("up"));
    let late = job.start(2, &["--share", "all"], &["true"]).end();
    assert!(late.status.success(), "{}", late.stderr);
    let ended = all_ok(early);
    assert!(ended[0].stderr.contains("2 have started; the rest is kept"), "{}", ended[0].stderr);
    // It asks for all and gets what was kept: nothing has been given back.
    assert_eq!(job.all("rank"), [0, 1, 2]);
    assert_eq!(job.all("near_bytes"), [50 * MIB; 3]);
    assert_eq!(job.brokers(), [""; 0]);

    // So late that the others have left: it adds its figures to theirs.
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    assert!(job.start(0, &[], &["true"]).end().status.success());
    assert_eq!((job.all("rank").len(), job.brokers().len()), (1, 1));
    assert!(job.start(1, &[], &["true"]).end().status.success());
    assert_eq!(job.all("rank"), [0, 1]);
    assert_eq!(job.brokers(), [""; 0]);
}

/// A rank under a launcher that is killed with it; what it leaves behind.
fn leave_a_stale_file(job: &Ranks) {
    let rank = job.command(0, &[], &["sh", "-c", "echo up; exec sleep 60"]);
    let mut launcher = Command::new("sh");
    // The shell is what started the rank, whose variables it does not have.
    launcher.args(["-c", "echo $$; env \"$@\"; true", "sh"]);
    for (name, value) in rank.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        launcher.arg(format!("{}={}", name.display(), value.display()));
    }
    launcher.arg(rank.get_program()).args(rank.get_args()).stdin(Stdio::null());
    let mut running = job.spawn(0, launcher);
    running.wait_for("up");
    let launcher = running.child.id();
    let ours: Vec<u32> = crate::util::descendants(launcher).into_iter().filter(|&pid| descends(pid, launcher)).collect();
    crate::util::kill_all(&ours);
    running.child.wait().expect("wait");
    wait_gone(&ours);
}

fn descends(pid: u32, from: u32) -> bool {
    std::iter::successors(Some(pid), |&pid| parent(pid).filter(|&parent| parent > 1)).any(|pid| pid == from)
}

#[test]
fn files_of_the_dead_are_replaced_and_removed() {
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    leave_a_stale_file(&job);
    assert_eq!(job.brokers().len(), 1, "nobody was left to remove it");
    // Another job with the same name.
    all_ok((0..2).map(|rank| job.start(rank, &[], &["true"])).collect());
    assert_eq!(job.all("lost"), [false; 2]);
    assert_eq!(job.brokers(), [""; 0]);
    // One with another name.
    leave_a_stale_file(&job);
    let other = Ranks { environment: SLURM, scratch: Scratch::new(), ..job };
    std::fs::create_dir(other.scratch.0.join("ranks")).expect("broker directory");
    let with_dir = |rank| {
        let mut command = other.command(rank, &[], &["true"]);
        command.env("NEARFAR_RANKS_DIR", job.scratch.0.join("ranks"));
        other.spawn(rank, command)
    };
    all_ok((0..2).map(with_dir).collect());
    assert_eq!(names_in(&job.scratch.0.join("ranks")), [""; 0]);
}

/// The file of a job of which one rank has come and left.
fn half_a_job(job: &Ranks) -> PathBuf {
    assert!(job.start(1, &[], &["true"]).end().status.success());
    job.scratch.0.join("ranks").join(&job.brokers()[0])
}

#[test]
fn half_a_line_of_one_that_was_killed_is_cut_off() {
    use std::io::Write;
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    let file = half_a_job(&job);
    std::fs::OpenOptions::new().append(true).open(&file).expect("open").write_all(b"{\"come\":{\"pro").expect("written");
    assert!(job.start(0, &[], &["true"]).end().status.success());
    assert_eq!(job.all("rank"), [0, 1]);
    assert_eq!(job.brokers(), [""; 0]);
}

#[test]
fn files_of_others_are_not_used() {
    needs!("root");
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    let file = half_a_job(&job);
    assert!(Command::new("chown").arg("65534").arg(&file).status().expect("chown").success());
    let before = std::fs::read(&file).expect("read");
    let end = job.start(0, &[], &["echo", "x"]).end();
    assert!(end.status.success() && end.stdout == "x\n");
    assert!(end.stderr.contains("belongs to user 65534") && end.stderr.contains("50.0 MiB"), "{}", end.stderr);
    assert_eq!(std::fs::read(&file).expect("read"), before);
    // Its own file: the other's stays.
    assert_eq!(job.all("rank"), [1]);
    assert!(job.scratch.0.join("run.rank0.json").exists());
    // A link to somewhere, a pipe, rubbish.
    let target = job.scratch.0.join("precious");
    std::fs::write(&target, "data").expect("write");
    for make in ["ln -s \"$1\" \"$2\"", "mkfifo \"$2\"", "echo rubbish >\"$2\"; chmod 600 \"$2\""] {
        std::fs::remove_file(&file).expect("removed");
        assert!(Command::new("sh").args(["-c", make, "sh"]).args([&target, &file]).status().expect("sh").success());
        let end = job.start(0, &[], &["true"]).end();
        assert!(end.status.success() && end.stderr.contains("cannot be coordinated"), "{make}: {}", end.stderr);
    }
    assert_eq!(std::fs::read(&target).expect("still there"), b"data");
}

#[test]
fn a_stopped_rank_holds_the_lock_and_nobody_waits_for_it_for_long() {
    let job = Ranks::new(OPEN_MPI, 2, "100M");
    let file = half_a_job(&job);
    let holder = Command::new("flock").arg(&file).args(["sh", "-c", "echo locked; sleep 60"]).stdout(Stdio::piped()).spawn();
    let Ok(mut holder) = holder else {
        println!("skipped: no flock(1)");
        return;
    };
    let mut word = [0; 6];
    std::io::Read::read_exact(holder.stdout.as_mut().expect("piped"), &mut word).expect("locked");
    let begin = Instant::now();
    let end = job.start(0, &[], &["true"]).end();
    let waited = begin.elapsed();
    let own: Vec<u32> = crate::util::descendants(holder.id()).into_iter().filter(|&pid| descends(pid, holder.id())).collect();
    own.iter().for_each(|&pid| send_signal("KILL", pid));
    holder.wait().expect("wait");
    assert!(end.status.success() && end.stderr.contains("held by another process"), "{}", end.stderr);
    assert!(waited < Duration::from_secs(20), "{waited:?}");
}

#[test]
fn two_jobs_at_a_time_do_not_mix() {
    let first = Ranks::new(SLURM, 2, "100M");
    let second = Ranks { environment: OPEN_MPI, size: 3, near: "300M", scratch: Scratch::new(), _beside: shared_machine() };
    let dir = first.scratch.0.join("ranks");
    let start = |job: &Ranks, rank| {
        let mut command = job.command(rank, &[], &["sleep", "1"]);
        command.env("NEARFAR_RANKS_DIR", &dir);
        job.spawn(rank, command)
    };
    let mut running: Vec<Running> = (0..2).map(|rank| start(&first, rank)).collect();
    running.extend((0..3).map(|rank| start(&second, rank)));
    all_ok(running);
    assert_eq!(first.all("near_bytes"), [50 * MIB; 2]);
    assert_eq!(second.all("near_bytes"), [100 * MIB; 3]);
    assert_eq!(names_in(&dir), [""; 0]);
}

#[test]
fn a_batch_script_is_not_a_rank() {
    let job = Ranks::new("SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=8 SLURM_TASKS_PER_NODE=8 SLURM_JOB_ID=5", 8, "64M");
    assert!(job.start(0, &[], &["true"]).end().status.success());
    assert!(job.stats()["ranks"].is_null() && job.stats()["near_bytes"] == 64 * MIB);
}

/// 230 MB, swept in order: exact sums.
const SUMS: &str = "import numpy as np\na = np.arange(14_000_000)\nb = a * 3 + 1\nprint(int((a ^ b).sum()), int(b[::7].sum()))";

#[test]
fn mpirun_and_numpy() {
    needs!("mpirun", "numpy");
    let job = Ranks::new("", 4, "384M");
    let plain = TestProgram::command([python()]).args(["-c", SUMS]).plain();
    let mut command = Command::new("mpirun");
    command.args(["-n", "4"]).arg(nearfar_bin()).args(["run", "--near", job.near, "--far"]).arg(job.scratch.far());
    command.arg("--stats").arg(job.scratch.0.join("run.json")).arg("--").arg(python()).args(["-c", SUMS]);
    let_open_mpi(&mut command);
    command.env("NEARFAR_RANKS_DIR", job.scratch.0.join("ranks")).current_dir(job.scratch.work()).stdin(Stdio::null());
    let end = job.spawn(0, command).end();
    assert!(end.status.success(), "{:?} {}", end.status, end.stderr);
    let lines = |text: &str, times: usize| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines = lines.iter().flat_map(|line| std::iter::repeat_n(line.clone(), times)).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&end.stdout, 1), lines(&plain.stdout, 4));
    assert_eq!(job.all("rank"), [0, 1, 2, 3]);
    assert_eq!(job.all("near_bytes"), [96 * MIB; 4]);
    assert!(job.all("near_peak_bytes").iter().all(|peak| peak.as_u64().expect("bytes") <= 96 * MIB));
    assert!(job.stats()["counters"]["bytes_out"].as_u64() > Some(0), "nothing was paged");
    assert_eq!(job.brokers(), [""; 0]);
}

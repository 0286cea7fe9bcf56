//! Compiles test programs, runs them plainly and under `nearfar run` with a time limit, and compares.
//!
//! Every run has a directory of its own to work in and a far directory of its own, which must be empty afterwards. Runs whose time
//! is measured, or what depends on it, have the machine to themselves; others run beside each other, as on users' machines.

pub mod clean_root;
mod launchers;
mod others;
mod outcome;
mod processes;

pub use launchers::*;
pub use others::*;
pub use outcome::Outcome;
use outcome::shorten;
pub use processes::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

pub const MIB: u64 = 1 << 20;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A directory under `target/` for what tests make.
fn made(name: &str) -> PathBuf {
    let dir = root().join("target").join(name);
    fs::create_dir_all(&dir).expect("target/ can be written");
    dir
}

/// Where the directories of all runs are.
pub fn scratch_root() -> PathBuf {
    made("test-scratch")
}

/// A directory of its own, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = scratch_root().join(name);
        fs::create_dir_all(dir.join("far")).expect("scratch directory");
        fs::create_dir_all(dir.join("work")).expect("scratch directory");
        Self(dir)
    }

    pub fn far(&self) -> PathBuf {
        self.0.join("far")
    }

    /// Where the program runs.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command under test, built once per test run so that it can never be older than its source.
pub fn nearfar_bin() -> PathBuf {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(|| {
        if let Some(bin) = std::env::var_os("NEARFAR_BIN") {
            return bin.into();
        }
        // All of it, as `make build` does: of one package alone, the features of its dependencies, and so all of them, are others.
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--release", "--quiet", "--workspace"]).current_dir(root());
        assert!(build.status().expect("cargo runs").success(), "the release build failed");
        root().join("target/release/nearfar")
    })
    .clone()
}

/// `lib{name}.so` of the package nearfar-{name}: beside the command.
pub fn release_library(name: &str) -> PathBuf {
    nearfar_bin().with_file_name(format!("lib{name}.so"))
}

/// Where memkind's own headers (`include`) and library are: Debian's packages, extracted or installed.
pub fn memkind_dev() -> Option<PathBuf> {
    let extracted = std::env::var_os("NEARFAR_MEMKIND_DEV").map(|dir| PathBuf::from(dir).join("usr"));
    extracted.into_iter().chain([PathBuf::from("/usr")]).find(|dir| dir.join("include/memkind.h").exists())
}

/// Who runs what: programs that check their own data share the machine, what measures time has it alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// The machine, alone.
pub fn machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A share of the machine.
pub struct Beside(#[expect(dead_code, reason = "held until dropped")] Option<RwLockReadGuard<'static, ()>>);

thread_local! {
    static SHARES: Cell<usize> = const { Cell::new(0) };
}

/// The machine, beside others: at most as many as the test harness has threads. A test may ask again while it has a share: the lock
/// itself would let it wait for whoever waits for the first share.
pub fn shared_machine() -> Beside {
    let held = SHARES.get();
    let guard = (held == 0).then(|| MACHINE.read().unwrap_or_else(std::sync::PoisonError::into_inner));
    SHARES.set(held + 1);
    Beside(guard)
}

impl Drop for Beside {
    fn drop(&mut self) {
        SHARES.set(SHARES.get() - 1);
    }
}

/// Whether the machine has what `name` stands for.
pub fn has(name: &str) -> Result<(), String> {
    let answers = |program: &str, args: &[&str]| match Command::new(program).args(args).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program} fails: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    };
    match name {
        "node" | "mpirun" | "gcc" | "g++" | "gfortran" | "rustc" | "stress-ng" | "sqlite3" | "python3" | "java" | "gdb"
        | "redis-server" | "chromium" | "debootstrap" | "rpm" | "bindfs" | "mkfs.btrfs" => answers(name, &["--version"]),
        "mkfs.xfs" => answers(name, &["-V"]),
        // A wrapper without headers compiles nothing.
        "mpicc" => answers("sh", &["-c", "echo '#include <mpi.h>' | mpicc -x c -c - -o /dev/null && mpirun --version"]),
        // MPIs by the names that Debian gives them, to have several.
        "openmpi" | "mpich" => answers(
            "sh",
            &["-c", &format!("echo '#include <mpi.h>' | mpicc.{name} -x c -c - -o /dev/null && mpirun.{name} --version")],
        ),
        "slurm" => {
            // srun says its version only where it finds a Slurm.
            let all = "PATH=$PATH:/usr/sbin:/sbin; command -v srun && command -v sbatch && slurmctld -V && slurmd -V && munged --version";
            answers("sh", &["-c", all])
        }
        "lmp" => answers("lmp", &["-help"]),
        "go" => answers("go", &["version"]),
        "numpy" => answers("python3", &["-c", "import numpy"]),
        "openmp" => answers("sh", &["-c", "echo 'int main(){return 0;}' | gcc -fopenmp -x c - -o /dev/null"]),
        "libc.a" => answers("sh", &["-c", "echo 'int main(){return 0;}' | gcc -static -x c - -o /dev/null"]),
        // A virtual machine with other NUMA nodes: tests/guests/setup gets what it takes.
        "guest" => {
            let kernel = root().join("tests/guests/vmlinuz");
            if !kernel.exists() {
                return Err("no tests/guests/vmlinuz: run tests/guests/setup (as root, on Debian)".into());
            }
            answers("qemu-system-x86_64", &["--version"])
                .and_then(|()| answers("busybox", &["true"]))
                .and_then(|()| answers("python3", &["--version"]))
        }
        // What packaging/pack takes for all kinds of packages.
        "packing" => answers("python3", &["-c", "import tomllib, pip"])
            .and_then(|()| answers("rpmbuild", &["--version"]))
            .and_then(|()| answers("dpkg-deb", &["--version"])),
        "clean-root" => answers("debootstrap", &["--version"]).and_then(|()| clean_root::made()),
        "libmemkind-dev" => memkind_dev().map(|_| ()).ok_or_else(|| {
            "no memkind.h: install libmemkind-dev, or extract it and name the directory in NEARFAR_MEMKIND_DEV".into()
        }),
        // Mounts that nobody else sees; not in a chroot, for one.
        "mounts" => answers("unshare", &["--mount", "mount", "-t", "tmpfs", "none", "/tmp"]),
        "root" => answers("sh", &["-c", "test $(id -u) = 0 || { echo 'not root' >&2; exit 1; }"]),
        _ => panic!("needs!: unknown name {name}"),
    }
}

/// Whether `NEARFAR_REQUIRE` lists `name`.
pub fn is_required(name: &str) -> bool {
    let list = std::env::var("NEARFAR_REQUIRE").unwrap_or_default();
    list.split(',').map(str::trim).any(|item| item == name || item == "all")
}

/// The file `name` of tests/programs.
pub fn program_file(name: &str) -> PathBuf {
    root().join("tests/programs").join(name)
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).and_then(|facts| facts.modified()).ok()
}

/// Compiles `name` of tests/programs, unless what is there is newer than its source; its "flags:" line says how.
pub fn compile(name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let source = program_file(name);
    let (stem, kind) = name.rsplit_once('.').expect("a program has an extension");
    let target = made("test-programs").join(stem);
    let shared = [
        "tests/programs/check.h",
        "include/nearfar.h",
        "include/nearfar.hpp",
        "fortran/nearfar.F90",
        "fortran/nearfar_array.inc",
        "fortran/nearfar_kinds.inc",
        "fortran/nearfar_ranks.inc",
    ];
    let needed = shared.map(|path| root().join(path)).iter().chain([&source]).filter_map(|path| modified(path)).max();
    if modified(&target) > needed {
        return target;
    }
    let text = fs::read_to_string(&source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    let flags = text.lines().take(3).find_map(|line| line.trim_start_matches(['/', '!', ' ']).strip_prefix("flags: "));
    let half_done = target.with_extension(format!("{}.tmp", std::process::id()));
    let mut compiler = match kind {
        // The one compiler that Rust itself needs, as a linker.
        "c" => Command::new("cc"),
        "cpp" => Command::new("g++"),
        "f90" => Command::new("gfortran"),
        "rs" => Command::new("rustc"),
        "go" => Command::new("go"),
        _ => panic!("{name}: unknown kind of source"),
    };
    if kind == "go" {
        compiler.arg("build");
    } else if kind != "rs" {
        compiler.args(["-O2", "-g", "-Wall", "-pthread"]);
    }
    compiler.args(["-o".as_ref(), half_done.as_os_str(), source.as_os_str()]).args(flags.unwrap_or("").split_whitespace());
    let output = compiler.current_dir(made("test-programs")).output().unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(output.status.success(), "{compiler:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&half_done, &target).expect("compiled program");
    target
}

/// The Python that `python3` stands for: a version manager's wrapper would be paged as well.
pub fn python() -> PathBuf {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
    String::from_utf8_lossy(&output.stdout).trim().into()
}

/// A program and how to run it.
pub struct TestProgram {
    argv: Vec<OsString>,
    near: String,
    far: Option<String>,
    options: Vec<OsString>,
    env: Vec<(String, String)>,
    stdin: Option<PathBuf>,
    limit: Duration,
    watched: bool,
    alone: bool,
}

impl TestProgram {
    /// A program of tests/programs, compiled.
    pub fn source(name: &str) -> Self {
        Self::command([compile(name)])
    }

    /// A command line.
    pub fn command<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
        let limit = Duration::from_secs(120);
        let (near, options, env) = ("64M".into(), Vec::new(), Vec::new());
        Self { argv, near, far: None, options, env, stdin: None, limit, watched: false, alone: false }
    }

    /// A script of tests/programs under Python.
    pub fn python(name: &str) -> Self {
        Self::command([python(), program_file(name)])
    }

    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn near(mut self, near: &str) -> Self {
        self.near = near.into();
        self
    }

    /// A far tier other than a directory of its own.
    pub fn far(mut self, far: &str) -> Self {
        self.far = Some(far.into());
        self
    }

    /// Options of `nearfar run`.
    pub fn options<S: Into<OsString>>(mut self, options: impl IntoIterator<Item = S>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn stdin(mut self, file: PathBuf) -> Self {
        self.stdin = Some(file);
        self
    }

    /// Longer than this is a hang.
    pub fn limit_s(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Samples the memory of all its processes while it runs.
    pub fn watched(mut self) -> Self {
        self.watched = true;
        self
    }

    /// Runs it with the machine to itself: its time, or what it counts, is part of the test.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Runs it without nearfar.
    pub fn plain(&self) -> Outcome {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        self.run(command, &Scratch::new())
    }

    /// The command line that runs it under nearfar with `scratch`.
    pub fn command_under_nearfar(&self, scratch: &Scratch) -> Command {
        let mut command = Command::new(nearfar_bin());
        command.args(["run", "--near", &self.near, "--far"]);
        command.arg(self.far.as_ref().map_or(scratch.far().into(), OsString::from));
        command.arg("--quiet").arg("--stats").arg(scratch.0.join("run.json"));
        command.args(&self.options).arg("--").args(&self.argv);
        command
    }

    /// Runs it under nearfar; nothing may be left in the far directory.
    pub fn nearfar(&self) -> Outcome {
        let _alone = self.alone.then(machine);
        let _beside = _alone.is_none().then(shared_machine);
        let scratch = Scratch::new();
        let command = self.command_under_nearfar(&scratch);
        let outcome = self.outcome(command, &scratch);
        assert_eq!(names_in(&scratch.far()), [""; 0], "left behind in the far directory");
        outcome
    }

    /// Runs `command`, which is `command_under_nearfar` of `scratch` or starts that.
    pub fn outcome(&self, command: Command, scratch: &Scratch) -> Outcome {
        let mut outcome = self.run(command, scratch);
        let text = fs::read_to_string(scratch.0.join("run.json")).ok();
        outcome.stats = text.map(|text| serde_json::from_str(&text).expect("--stats is JSON"));
        outcome
    }

    /// What the environment of a run has besides.
    pub fn environment(&self) -> impl Iterator<Item = (&String, &String)> {
        self.env.iter().map(|(name, value)| (name, value))
    }

    /// What came of it without nearfar, from an earlier test of the same program where there was one: they differ in nearfar's options.
    fn plain_once(&self) -> Arc<Outcome> {
        static KNOWN: Mutex<BTreeMap<String, Arc<Outcome>>> = Mutex::new(BTreeMap::new());
        let known = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let what = format!("{:?} {:?} {:?}", self.argv, self.env, self.stdin);
        if let Some(outcome) = known().get(&what) {
            return Arc::clone(outcome);
        }
        let outcome = Arc::new(self.plain());
        known().insert(what, Arc::clone(&outcome));
        outcome
    }

    /// Runs it both ways; standard output and status must be the same. Returns the outcome under nearfar.
    pub fn same(&self) -> Outcome {
        let plain = self.plain_once();
        let under = self.nearfar();
        assert!(
            plain.stdout == under.stdout && plain.end() == under.end(),
            "not the same under nearfar: {self}\nplain: {:?}\n{}{}nearfar: {:?}\n{}{}",
            plain.status,
            shorten(&plain.stdout),
            shorten(&plain.stderr),
            under.status,
            shorten(&under.stdout),
            shorten(&under.stderr)
        );
        under
    }

    /// Runs a timed program that knows its own right results under nearfar alone: a plain run would only cost its time again.
    pub fn self_checked(&self) -> Outcome {
        let under = self.nearfar().ok();
        assert_eq!(under.stdout, "OK\n");
        under
    }

    fn run(&self, mut command: Command, scratch: &Scratch) -> Outcome {
        let (stdout, stderr) = (scratch.0.join("stdout"), scratch.0.join("stderr"));
        let create = |path: &Path| fs::File::create(path).expect("scratch file");
        command.stdout(create(&stdout)).stderr(create(&stderr)).current_dir(scratch.work()).process_group(0);
        command.stdin(self.stdin.as_ref().map_or(Stdio::null(), |path| fs::File::open(path).expect("input").into()));
        command.envs(self.environment());
        let begin = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (status, peak_resident) = self.wait(&mut child, begin);
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("output")).into_owned();
        let (stdout, stderr) = (read(&stdout), read(&stderr));
        let Some(status) = status else {
            panic!(
                "hung: over {} s: {command:?}\nstdout:\n{}stderr:\n{}",
                self.limit.as_secs(),
                shorten(&stdout),
                shorten(&stderr)
            );
        };
        println!(
            "{:6.2} s {:?} {}{self}",
            begin.elapsed().as_secs_f64(),
            status,
            if command.get_program() == self.argv[0] { "" } else { "nearfar " }
        );
        Outcome { stdout, stderr, status, stats: None, peak_resident }
    }

    fn wait(&self, child: &mut Child, begin: Instant) -> (Option<ExitStatus>, u64) {
        let peak = AtomicU64::new(0);
        loop {
            if let Some(status) = child.try_wait().expect("wait") {
                return (Some(status), peak.into_inner());
            }
            if self.watched {
                peak.fetch_max(descendants(child.id()).into_iter().map(resident_bytes).sum(), Ordering::Relaxed);
            }
            if begin.elapsed() > self.limit {
                let all = descendants(child.id());
                all.iter().for_each(|&pid| println!("{}", describe(pid)));
                kill_all(&all);
                kill_all(&descendants(child.id()));
                let _ = child.wait();
                return (None, peak.into_inner());
            }
            std::thread::sleep(Duration::from_millis(if begin.elapsed() < Duration::from_millis(200) { 2 } else { 10 }));
        }
    }
}

impl std::fmt::Display for TestProgram {
    /// The command line that runs it under nearfar by hand.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={value} ")?;
        }
        write!(f, "run --near {} --far {}", self.near, self.far.as_deref().unwrap_or("/var/tmp"))?;
        self.options.iter().try_for_each(|option| write!(f, " {}", option.to_string_lossy()))?;
        write!(f, " --")?;
        self.argv.iter().try_for_each(|arg| write!(f, " {}", arg.to_string_lossy()))
    }
}

/// Sorted names in a directory.
pub fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut names: Vec<_> = entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

//! Far memory that fails on purpose (NEARFAR_FAULTS), that is full, and that is encrypted: right data, or a clear stop, and no hang.

use crate::util::{MIB, Outcome, Scratch, TestProgram, descendants, kill_all, machine, nearfar_bin, send_signal, shared_machine};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STOPPED: i32 = 86;

fn mix(seed: &str) -> TestProgram {
    TestProgram::source("verify_mix.c").args(["bytes=96M", "threads=3", "seconds=2"]).args([format!("seed={seed}")]).near("32M")
}

/// Every byte that is changed on its way is to be found.
fn with(faults: &str) -> TestProgram {
    mix("11").env("NEARFAR_FAULTS", faults).options(["--check"])
}

/// The data is right, although so many operations at least went wrong.
#[track_caller]
fn mended(faults: &str, least: u64) {
    let under = with(faults).self_checked().paged();
    let retries = under.counter("far_retries");
    assert!(retries >= least, "{faults}: {retries} retries, not {least}");
    assert_eq!(under.stderr.matches("it is tried again").count(), usize::from(retries > 0), "{faults}:\n{}", under.stderr);
}

/// The program is stopped, and told where and why.
#[track_caller]
fn stopped(program: &TestProgram, words: &[&str]) -> Outcome {
    let under = program.nearfar();
    assert_eq!(under.end(), (Some(STOPPED), None), "{program}\n{}{}", under.stdout, under.stderr);
    assert!(!under.stdout.contains("OK") && !under.stdout.contains("WRONG"), "{program}\n{}", under.stdout);
    for word in ["nearfar: stopped process", "/far"].iter().chain(words) {
        assert!(under.stderr.contains(word), "{program}: nothing of \"{word}\"\n{}", under.stderr);
    }
    under
}

#[test]
fn faults_that_are_not_understood_are_refused() {
    for faults in ["read-eio=sometimes", "nonsense", "full-after=much"] {
        let under = TestProgram::command(["true"]).env("NEARFAR_FAULTS", faults).nearfar();
        assert_eq!(under.end(), (Some(2), None), "{}", under.stderr);
        assert!(under.stderr.contains(faults) && under.stderr.contains("once@100"), "{}", under.stderr);
    }
}

/// Reads fail seldom enough that one that is tried four times, with others between, does not fail each time by chance.
#[test]
fn reads_that_fail_once_in_a_while() {
    mended("read-eio=once@100", 1);
    mended("read-eio=every:101", 3);
}

#[test]
fn writes_that_fail_once_in_a_while() {
    mended("write-eio=once@20", 1);
    mended("write-eio=every:7", 10);
}

/// A part of the disk cannot be written: what was to go there goes elsewhere.
#[test]
fn writes_to_a_bad_spot() {
    mended("bad=6M..9M", 4);
    mended("bad=1M..1052672", 4);
}

#[test]
fn short_reads_and_writes_go_on_where_they_ended() {
    mended("short-read,short-write", 0);
    mended("short-read=every:2,short-write=every:3,read-eio=every:101,write-eio=every:13", 10);
}

#[test]
fn bytes_that_change_on_their_way_are_read_again() {
    mended("corrupt=once@50", 1);
    mended("corrupt=every:101", 2);
}

#[test]
fn a_slow_device() {
    mended("slow=5ms", 0);
}

#[test]
fn everything_at_once_without_the_fast_paths() {
    let faults = "read-eio=every:101,write-eio=every:23,short-read=every:3,short-write=every:5,corrupt=every:127,bad=20M..21M";
    for deny in ["io_uring,odirect", "move,io_uring", "odirect,thp"] {
        let under = with(faults).options(["--deny", deny, "--encrypt"]).self_checked().paged();
        assert!(under.counter("far_retries") > 5, "{}", under.counter("far_retries"));
    }
}

#[test]
fn reads_that_always_fail_stop_the_program() {
    stopped(&with("read-eio"), &["a read of", "failed 4 times", "Input/output error", "at offset"]);
    stopped(&with("read-eio=after:200"), &["a read of", "failed 4 times"]);
}

#[test]
fn writes_that_always_fail_stop_the_program() {
    stopped(&with("write-eio"), &["a write of", "at other offsets before", "Input/output error", "at offset"]);
    stopped(&with("write-eio=after:50"), &["a write of", "at other offsets before"]);
    // While they wait to be tried again the books hold.
    stopped(&with("write-eio=after:50").env("NEARFAR_CHECK", "1"), &["a write of", "at other offsets before"]);
}

#[test]
fn a_corrupt_block_stops_the_program() {
    stopped(&with("corrupt"), &["came back different from what was written, 3 times", "checksum", "should be", "at offset"]);
    stopped(&with("corrupt=after:150").options(["--encrypt"]), &["3 times", "checksum", "encrypted"]);
}

/// Without --check short reads are compared whole, and of longer ones a sample: a device that has gone bad is found out.
#[test]
fn a_sample_finds_a_device_that_is_bad() {
    let random = |options: &[&str]| {
        let program = TestProgram::source("rewrite_at_random.c").args(["112M", "30000"]).near("32M").limit_s(240);
        program.options(options.iter().copied()).env("NEARFAR_FAULTS", "corrupt=after:300")
    };
    for options in [&["--grain", "4K"][..], &["--grain", "16K"], &["--grain", "256K"], &[]] {
        stopped(&random(options), &["3 times", "checksum"]);
    }
}

/// Forks: what parent and children share is copied and read by both.
#[test]
fn forks_over_a_device_that_fails() {
    let faults = "read-eio=every:101,write-eio=every:23,short-read=every:3,short-write=every:5,corrupt=every:127";
    for name in ["fork_parent_writes.c", "fork_chain.c"] {
        let program = TestProgram::source(name).env("NEARFAR_FAULTS", faults).options(["--check"]);
        let under = program.same().ok().paged();
        assert!(under.counter("far_retries") > 0, "{name}");
    }
    let program = TestProgram::source("fork_parent_writes.c").options(["--check"]);
    let under = program.env("NEARFAR_FAULTS", "corrupt=after:60").nearfar();
    assert!(!under.status.success() && !under.stdout.contains("WRONG"), "{}{}", under.stdout, under.stderr);
    assert!(under.stderr.contains("3 times") && under.stderr.contains("checksum"), "{}", under.stderr);
}

/// Threads, forks, signals, remapping and all, over a device that fails now and then.
#[test]
fn all_at_once_over_a_device_that_fails() {
    let faults = "read-eio=every:101,write-eio=every:23,corrupt=every:127";
    let modes: &[&[&str]] = if cfg!(target_arch = "x86_64") { &[&[], &["--deny", "kernel-faults"]] } else { &[&[]] };
    for options in modes {
        let program =
            TestProgram::source("torture.c").args(["bytes=64M", "seconds=3", "seed=5"]).near("24M").options(["--check"]);
        let under = program.options(options.iter().copied()).env("NEARFAR_FAULTS", faults).self_checked();
        for counter in ["bytes_out", "forks", "far_retries"] {
            assert!(under.counter(counter) > 0, "{counter}");
        }
    }
}

/// The pager's own messages must not need what is paged (found by soak: bash has its environment so).
#[test]
fn messages_while_the_environment_is_far() {
    for faults in ["write-eio=once@1000", "read-eio=once@1000"] {
        let under =
            TestProgram::source("paged_environment.c").near("32M").env("NEARFAR_FAULTS", faults).limit_s(60).self_checked();
        assert!(under.counter("far_retries") > 0 && under.stderr.contains("Input/output error"), "{}", under.stderr);
    }
}

/// No space: a clear stop, or no memory for the program, which then says so itself.
#[track_caller]
fn no_space(under: &Outcome) {
    let (out, err) = (&under.stdout, &under.stderr);
    let stopped = under.end() == (Some(STOPPED), None) && err.contains("no space") && err.contains("far");
    let refused = under.end() == (Some(1), None) && out.contains("FAILED") && out.contains("Cannot allocate memory");
    assert!(stopped || refused, "{:?}\n{out}{err}", under.status);
}

#[test]
fn far_is_full() {
    for faults in ["full", "full-after=64M"] {
        no_space(&TestProgram::source("touch.c").args(["192M"]).near("32M").env("NEARFAR_FAULTS", faults).nearfar());
    }
    let enough = TestProgram::source("touch.c").args(["64M"]).near("32M").env("NEARFAR_FAULTS", "full-after=128M");
    enough.same().ok().paged();
}

/// `program` under nearfar, with a far directory that is a file system in memory of `size`, which nobody else sees.
fn on_small_file_system(program: &TestProgram, size: &str) -> Outcome {
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let under = program.command_under_nearfar(&scratch);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=$1 far \"$2\" && shift 2 && exec \"$@\"", "sh", size]);
    command.arg(scratch.far()).arg(under.get_program()).args(under.get_args());
    program.outcome(command, &scratch)
}

#[test]
fn a_small_file_system_that_fills_up() {
    needs!("root", "mounts");
    let touch = |bytes: &str| TestProgram::source("touch.c").args([bytes, "2"]).near("32M");
    no_space(&on_small_file_system(&touch("256M"), "128M"));
    let under = on_small_file_system(&touch("96M"), "128M").ok().paged();
    assert!(under.stdout.starts_with("OK"));
    // Too little to begin with.
    let under = on_small_file_system(&touch("96M"), "32M");
    assert_eq!(under.end(), (Some(2), None), "{}", under.stderr);
    assert!(under.stderr.contains("is free there"), "{}", under.stderr);
}

/// File systems in memory: direct I/O is refused by kernels before 6.6.
#[test]
fn file_systems_without_direct_io() {
    needs!("root", "mounts");
    for deny in ["", "odirect", "odirect,io_uring"] {
        let under = on_small_file_system(&mix("12").options(["--deny", deny]), "256M").ok().paged();
        assert_eq!(under.stdout, "OK\n");
    }
}

#[test]
fn io_uring_and_direct_io_refused_together() {
    mix("13").options(["--deny", "io_uring,odirect"]).self_checked().paged();
}

/// A program whose standard error is read while it runs.
struct Running {
    child: Child,
    said: std::sync::mpsc::Receiver<String>,
    all: String,
    _scratch: Scratch,
}

impl Running {
    fn start(program: &TestProgram) -> Self {
        let scratch = Scratch::new();
        let mut command = program.command_under_nearfar(&scratch);
        command.stdout(Stdio::null()).stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        command.envs(program.environment());
        let mut child = command.spawn().expect("nearfar starts");
        let (sender, said) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, said, all: String::new(), _scratch: scratch }
    }

    /// The next line of standard error that holds all of `words`.
    fn line_with(&mut self, words: &[&str]) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.said.recv_timeout(left) else { panic!("no line with {words:?}, but:\n{}", self.all) };
            self.all += &format!("{line}\n");
            if words.iter().all(|word| line.contains(word)) {
                return line;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_all(&descendants(self.child.id()));
        let _ = self.child.wait();
    }
}

#[test]
fn a_device_that_stalls_is_told_of() {
    let _machine = machine();
    let program = TestProgram::source("touch.c").args(["96M", "100"]).near("32M");
    let mut running = Running::start(&program.env("NEARFAR_FAULTS", "stall=after:100,watch=500ms"));
    let what = ["a thread waits for the page", "for "];
    let first = running.line_with(&what);
    assert!(first.contains("at offset") && first.contains("/far") && first.contains("has been under way"), "{first}");
    assert!(first.contains("under way, ") && first.contains("pages are free"), "{first}");
    running.line_with(&what);
    assert!(running.child.try_wait().expect("wait").is_none(), "it goes on waiting");
    // It can be ended while it waits.
    send_signal("TERM", running.child.id());
    assert_eq!(running.child.wait().expect("wait").signal(), Some(15));
}

/// A fork waits until far is at rest, in a thread of the program and under the lock.
#[test]
fn a_stall_during_a_fork_is_told_of() {
    let _machine = machine();
    let program = TestProgram::source("fork_chain.c").near("32M");
    let mut running = Running::start(&program.env("NEARFAR_FAULTS", "stall=once@3,watch=500ms"));
    running.line_with(&["holds nearfar's lock", "The program goes on when that ends"]);
}

#[test]
fn a_device_that_comes_back_is_told_of() {
    let program = TestProgram::source("touch.c").args(["40M", "1"]).near("32M");
    let under = program.env("NEARFAR_FAULTS", "slow=900ms,watch=300ms").limit_s(300).nearfar().ok().paged();
    assert!(under.stdout.starts_with("OK"));
    for words in ["a thread waits for the page", "no thread waits that long any more"] {
        assert!(under.stderr.contains(words), "{}", under.stderr);
    }
}

#[test]
fn encrypted_mix() {
    let under = mix("14").options(["--encrypt"]).self_checked().paged();
    assert_eq!(under.counter("far_retries"), 0);
    mix("15").options(["--encrypt"]).far("emu:bw=2G,lat=20us").self_checked().paged();
    mix("16").options(["--encrypt", "--deny", "io_uring,odirect,move,thp"]).self_checked().paged();
}

#[test]
fn encrypted_far_of_forks() {
    // Each process has buffers of its own, which do not always fit beside the rest (docs/reference/promises-and-limits.md): 20 children are the worst.
    let encrypted = |name: &str| TestProgram::source(name).options(["--encrypt"]);
    let check = |program: TestProgram| {
        let under = program.same().ok();
        assert!(under.counter("bytes_in") > 0 && under.counter("bytes_out") > 0, "{program}: nothing was paged");
        let over = under.counter("over_budget_bytes");
        assert!(over < 21 * 2 * MIB, "{program}: near was exceeded by {over} bytes");
    };
    for name in ["fork_parent_writes.c", "fork_chain.c", "fork_many.c", "fork_threads.c"] {
        check(encrypted(name));
    }
    check(encrypted("fork_chain.c").far("emu:bw=2G,lat=20us"));
}

#[test]
fn encrypted_far_keeps_within_the_budget() {
    let under = mix("17").options(["--encrypt"]).self_checked().paged();
    // Some pages of our own tables may come a moment before others have gone for them (tests/budget.rs).
    assert!(under.counter("near_peak_bytes") <= 32 * MIB + 32 * MIB / 1000, "{}", under.counter("near_peak_bytes"));
}

/// Bytes of the program's sentence, and bytes other than zero, in the spill file of a program that fills its memory with it.
fn in_spill_file(options: &[&str]) -> (u64, u64) {
    let scratch = Scratch::new();
    let program = TestProgram::source("pattern.c").args(["160M"]).near("32M").options(options.iter().copied());
    let mut command = program.command_under_nearfar(&scratch);
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).process_group(0).spawn().expect("nearfar starts");
    let mut line = [0u8; 6];
    child.stdout.take().expect("piped").read_exact(&mut line).expect("a line");
    assert_eq!(&line, b"ready\n");
    let far = scratch.far().canonicalize().expect("far directory");
    let (mut found, mut data) = (0, 0);
    for pid in descendants(child.id()) {
        for link in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            // The directory is open too.
            let is_file = std::fs::metadata(link.path()).is_ok_and(|about| about.is_file());
            if is_file && std::fs::read_link(link.path()).is_ok_and(|target| target.starts_with(&far)) {
                let (more, bytes) = search(&link.path());
                (found, data) = (found + more, data + bytes);
            }
        }
    }
    send_signal("TERM", child.id());
    child.wait().expect("wait");
    (found, data)
}

fn search(path: &Path) -> (u64, u64) {
    let counted = |script: &str| {
        let output = Command::new("bash").args(["-o", "pipefail", "-c", script, "bash"]).arg(path).output().expect("bash runs");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a count")
    };
    // Holes end lines, which grep holds in memory; where it finds nothing its status is 1.
    let part = "{ tr '\\0' '\\n' < \"$1\" | LC_ALL=C grep -aoF 'keeps this sente' || [ $? = 1 ]; } | wc -l";
    (counted(part), counted("tr -d '\\0' < \"$1\" | wc -c"))
}

#[test]
fn plain_text_never_reaches_an_encrypted_far() {
    let _beside = shared_machine();
    let (found, data) = in_spill_file(&[]);
    assert!(found > MIB && data > 64 * MIB, "unencrypted, the sentence must be seen: {found} times in {data} bytes");
    let (found, data) = in_spill_file(&["--encrypt"]);
    assert!(found == 0 && data > 64 * MIB, "encrypted: {found} times in {data} bytes");
}

#[test]
fn injected_faults_are_announced() {
    let output = Command::new(nearfar_bin())
        .args(["run", "--near", "64M", "--", "true"])
        .env("NEARFAR_FAULTS", "slow=1ms")
        .output()
        .expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("far fails on purpose: slow=1000000ns"), "{said}");
    let help = Command::new(nearfar_bin()).args(["run", "--help"]).env("NEARFAR_FAULTS", "full").output().expect("nearfar runs");
    assert!(!String::from_utf8_lossy(&help.stdout).contains("--faults"), "for tests only, so not in the help");
}

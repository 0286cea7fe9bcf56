//! A far file system that is too small: allocations fail first, with all data kept right, and whoever touches more is told.

use crate::util::{MIB, Outcome, Scratch, TestProgram, compile};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own, in the scratch directory; unmounted at the end.
struct SmallDisk {
    scratch: Scratch,
    at: PathBuf,
    free: u64,
}

fn sh(script: &str, args: &[&Path]) -> Result<(), String> {
    let output = Command::new("sh").args(["-ec", script, "sh"]).args(args).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

fn free_bytes(dir: &Path) -> u64 {
    let output = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(dir).output().expect("stat");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().map(|number| number.parse::<u64>().expect("a number")).product()
}

impl SmallDisk {
    /// An ext4 of `mib` MiB on a loop device. `Err` says why this machine cannot have one.
    fn ext4(mib: u64) -> Result<Self, String> {
        let script = "truncate -s $3M $1; mkfs.ext4 -q -m 0 $1; mount -o loop $1 $2";
        Self::mounted(mib, script)
    }

    /// A tmpfs of `mib` MiB.
    fn tmpfs(mib: u64) -> Result<Self, String> {
        Self::mounted(mib, "mount -t tmpfs -o size=$3M nearfar-test $2")
    }

    fn mounted(mib: u64, script: &str) -> Result<Self, String> {
        let scratch = Scratch::new();
        let (image, at) = (scratch.0.join("image"), scratch.0.join("disk"));
        std::fs::create_dir_all(&at).expect("scratch directory");
        sh(script, &[&image, &at, Path::new(&mib.to_string())])?;
        let free = free_bytes(&at);
        Ok(Self { scratch, at, free })
    }

    /// Runs `program` with far here; afterwards the file system must be as empty as before.
    fn run(&self, program: TestProgram) -> Outcome {
        let outcome = program.far(&self.at.display().to_string()).nearfar();
        // The kernel frees the space of a large file a little after the last process that had it open, and an ext4 can use it
        // again only when its journal says so.
        let start = std::time::Instant::now();
        while free_bytes(&self.at) + MIB < self.free && start.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        sh("sync -f $1", &[&self.at]).expect("the file system is written back");
        assert!(free_bytes(&self.at) + MIB >= self.free, "left behind: {} of {} free", free_bytes(&self.at), self.free);
        outcome
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(why) = sh("umount $1", &[&self.at]).or_else(|_| sh("umount -l $1", &[&self.at])) {
            println!("{} stays mounted: {why}", self.scratch.0.display());
        }
    }
}

/// The disk, or the test is skipped.
macro_rules! small_disk {
    ($disk:expr) => {{
        needs!("root");
        match $disk {
            Ok(disk) => disk,
            Err(why) => {
                println!("skipped: needs a file system of its own: {why}");
                return;
            }
        }
    }};
}

/// MiB that the program says it could have.
fn got(outcome: &Outcome) -> u64 {
    let line = outcome.stderr.lines().find_map(|line| line.strip_prefix("got ")).expect("the program says what it got");
    line.trim_end_matches(" MiB").parse().expect("a number")
}

#[track_caller]
fn ran_out(outcome: Outcome, least_mib: u64) {
    let outcome = outcome.ok();
    assert!(outcome.stdout.ends_with("OK\n"), "{}", outcome.stdout);
    assert!(outcome.counter("allocations_refused") > 0, "nothing was refused");
    assert_eq!(outcome.stderr.matches("out of memory").count(), 1, "said once:\n{}", outcome.stderr);
    assert!(got(&outcome) >= least_mib, "only {} MiB were to be had, not {least_mib}", got(&outcome));
}

#[test]
fn allocations_fail_first() {
    let disk = small_disk!(SmallDisk::ext4(160));
    for (how, step, step_mib) in [
        ("malloc", "4M", 4),
        ("malloc", "24M", 24),
        ("mmap", "1M", 1),
        ("mprotect", "3M", 3),
        ("small", "64K", 0),
        ("small", "3000", 0),
    ] {
        let program = TestProgram::source("space_runs_out.c").args([how, step]).near("64M");
        // Near and most of far; what is left may be just too little for another step.
        ran_out(disk.run(program), 64 * 3 / 4 + disk.free / MIB * 3 / 4 - step_mib);
    }
}

#[test]
fn growth_fails_first() {
    let disk = small_disk!(SmallDisk::ext4(160));
    for (how, step) in [("mremap", "4M"), ("realloc", "4M"), ("mremap", "64M")] {
        let program = TestProgram::source("space_runs_out.c").args([how, step]).near("64M");
        ran_out(disk.run(program), 64 + 60);
    }
}

#[test]
fn file_systems_in_memory_run_out_too() {
    let disk = small_disk!(SmallDisk::tmpfs(128));
    ran_out(disk.run(TestProgram::source("space_runs_out.c").args(["malloc", "4M"]).near("64M")), 64 * 3 / 4 + 96);
}

/// `ulimit -f`: the kernel would send SIGXFSZ.
#[test]
fn a_limit_for_files_is_as_a_full_disk() {
    let program = compile("space_runs_out.c");
    let script = "ulimit -f 98304; exec \"$1\" malloc 4M";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), program.as_os_str()];
    let outcome = TestProgram::command(["bash"]).args(arguments).near("64M").nearfar();
    assert!(outcome.stderr.contains("files of 96.0 MiB: raise \"ulimit -f\""), "{}", outcome.stderr);
    ran_out(outcome, 64 * 3 / 4 + 72);
}

#[test]
fn touching_what_is_nowhere_stops_the_program() {
    let disk = small_disk!(SmallDisk::ext4(128));
    let outcome = disk.run(TestProgram::source("reserve_beyond.c").args(["1G"]).near("64M"));
    assert_eq!((outcome.end(), outcome.stdout.as_str()), ((Some(86), None), "reserved\n"), "{}", outcome.stderr);
    let message = &outcome.stderr;
    for part in ["no space in far memory", "--far", "--near", "--commit=strict", "free there", &disk.at.display().to_string()] {
        assert!(message.contains(part), "no {part:?} in: {message}");
    }
}

/// The disk is full before the program starts: what fits in near runs, and what does not is told at once.
#[test]
fn a_full_disk_matters_only_beyond_near() {
    let disk = small_disk!(SmallDisk::ext4(96));
    let (fits, grows) = (compile("touch.c"), compile("space_runs_out.c"));
    let script = "fallocate -l $(($(stat -f -c '%a * %S' \"$1\") - 4194304)) \"$1/filler\"; \"$2\" 40M 2 && \"$3\" malloc 4M; \
                  status=$?; rm \"$1/filler\"; exit $status";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), disk.at.as_os_str(), fits.as_os_str(), grows.as_os_str()];
    ran_out(disk.run(TestProgram::command(["bash"]).args(arguments).near("96M")), 64);
}

#[test]
fn processes_share_a_small_disk() {
    let disk = small_disk!(SmallDisk::ext4(192));
    let program = compile("space_runs_out.c");
    // Together: who comes late finds that the others were promised what was to be had (docs/reference/promises-and-limits.md).
    let script = "for i in 1 2 3; do (read -r _; exec \"$1\" malloc 4M 1G beside) < <(sleep 0.3; echo) & pids+=\" $!\"; done; for pid in $pids; do wait $pid || exit; done";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), program.as_os_str()];
    let outcome = disk.run(TestProgram::command(["bash"]).args(arguments).near("96M")).ok();
    assert_eq!(outcome.stdout, "OK\nOK\nOK\n", "{}", outcome.stderr);
}

/// Six that begin at once, each with more than will be its share: who can go no further waits for what others give back when they end.
#[test]
fn processes_wait_for_each_others_far() {
    let program = compile("space_runs_out.c");
    let script =
        "for i in 1 2 3 4 5 6; do \"$1\" malloc 4M 1G beside & pids+=\" $!\"; done; for pid in $pids; do wait $pid || exit; done";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), program.as_os_str()];
    for far in ["96M", "160M"].repeat(3) {
        let outcome = TestProgram::command(["bash"]).args(arguments).near("96M").options(["--far-max", far]).nearfar().ok();
        assert_eq!(outcome.stdout, "OK\n".repeat(6), "{}", outcome.stderr);
    }
}

/// One holds most of near and never paged; another one has all of far, and touches more than there is. The first one cannot make room,
/// and what it has is not taken by the other one while it tries. When it has ended nobody has anything to give any more.
#[test]
fn near_that_cannot_be_given_up_is_kept() {
    let (holds, beyond) = (compile("holds_far.c"), compile("reserve_beyond.c"));
    let script = "mkfifo go; \"$1\" 72M < go > first & exec 3> go; until grep -q got first; do sleep 0.05; done
        (\"$2\" 1G; echo $? > second) 3>&- & sleep 4; [ ! -e second ] && echo waits; exec 3>&-; wait; cat first second";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), holds.as_os_str(), beyond.as_os_str()];
    let run = TestProgram::command(["bash"]).args(arguments).near("96M").options(["--far-max", "96M", "--heap", "large"]);
    let outcome = run.nearfar().ok();
    assert_eq!(outcome.stdout, "reserved\nwaits\ngot 72\nOK\n86\n", "{}", outcome.stderr);
    let peak = outcome.run_file()["derived"]["near_peak_bytes"].as_u64().expect("bytes");
    // Tables may grow (`budget::within`).
    assert!(peak <= 96 * MIB + 96 * MIB / 1000, "{peak} bytes of near");
}

#[test]
fn strict_promises_are_kept() {
    let disk = small_disk!(SmallDisk::ext4(256));
    for (fits, fork) in [("160M", "nofork"), ("48M", "fork"), ("24M", "fork")] {
        let program = TestProgram::source("commit_strict.c").args([fits, "600M", fork]).near("64M").options(["--commit=strict"]);
        let outcome = disk.run(program).ok();
        assert_eq!(outcome.stdout, "OK\n");
        assert!(outcome.counter("allocations_refused") >= 3);
    }
}

#[test]
fn strict_allocations_can_all_be_touched() {
    let disk = small_disk!(SmallDisk::ext4(160));
    for (how, step) in [("malloc", "24M"), ("small", "64K")] {
        let program = TestProgram::source("space_runs_out.c").args([how, step]).near("64M").options(["--commit=strict"]);
        ran_out(disk.run(program), disk.free / MIB / 2);
    }
    let outcome = disk.run(TestProgram::source("reserve_beyond.c").args(["1G"]).near("64M").options(["--commit=strict"]));
    assert_eq!(outcome.end(), (Some(1), None), "the reservation is refused: {}", outcome.stdout);
}

#[test]
fn numpy_raises_a_memory_error() {
    needs!("numpy");
    let disk = small_disk!(SmallDisk::ext4(128));
    let outcome = disk.run(TestProgram::python("numpy_memory_error.py").env("OPENBLAS_NUM_THREADS", "1").near("64M")).ok();
    assert_eq!(outcome.stdout, "MemoryError\nOK\n");
}

/// The log of small pieces would grow to several times the data.
#[test]
fn outdated_data_makes_room_in_a_small_far() {
    let disk = small_disk!(SmallDisk::ext4(160));
    let program = TestProgram::source("rewrite_at_random.c").args(["112M", "30000"]).near("32M").limit_s(240);
    let outcome = disk.run(program).ok().paged();
    assert_eq!(outcome.stdout, "OK\n");
    assert!(outcome.counter("far_cleaned_bytes") > 0, "the cleaner had nothing to do");
}

/// What the pager's tables take, in both states of the data: whole blocks in their places, and small pieces in the log.
#[test]
fn tables_are_small() {
    let bytes = 384 * MIB;
    let share = |outcome: &Outcome| 100.0 * outcome.counter("metadata_peak_bytes") as f64 / bytes as f64;
    let streams = TestProgram::source("touch.c").args(["384M", "3"]).near("64M").nearfar().ok().paged();
    let pieces =
        TestProgram::source("rewrite_at_random.c").args(["384M", "60000"]).near("64M").limit_s(240).nearfar().ok().paged();
    println!(
        "tables: {:.3} % of the data when it lies in whole blocks, {:.3} % when much is in the log",
        share(&streams),
        share(&pieces)
    );
    // A hash of 64 bits for each page is 0.195 %, the number of its slot in the log 0.122 %.
    assert!(share(&streams) < 0.40, "{}", share(&streams));
    assert!(share(&pieces) < 0.60, "{}", share(&pieces));
}

/// `--far-max`: what `ran_out` says, and no more than near and that.
#[test]
fn a_bound_of_far_is_as_a_full_disk() {
    for options in [["--far-max", "128M"].as_slice(), &["--far-max", "128M", "--encrypt"]] {
        let program = TestProgram::source("space_runs_out.c").args(["malloc", "4M"]).near("64M").options(options);
        let outcome = program.nearfar();
        let got = got(&outcome);
        assert!(outcome.stderr.contains("--far-max"), "{}", outcome.stderr);
        ran_out(outcome, 64 * 3 / 4 + 128 * 3 / 4 - 4);
        assert!(got <= 64 + 128, "{got} MiB");
    }
    let outcome = TestProgram::source("reserve_beyond.c").args(["1G"]).near("64M").options(["--far-max", "128M"]).nearfar();
    assert_eq!(outcome.end(), (Some(86), None), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("raise --far-max") && outcome.stderr.contains("128"), "{}", outcome.stderr);
}

#[test]
fn a_bound_of_far_holds_for_strict_promises() {
    let program = TestProgram::source("commit_strict.c").args(["48M", "600M", "fork"]).near("64M");
    let outcome = program.options(["--commit=strict", "--far-max", "256M"]).nearfar().ok();
    assert!(outcome.counter("allocations_refused") > 0, "nothing was refused");
}

/// One holds most of far; meanwhile another one gets little. (The shell's own heap stays out of it.) It has all when the first one is gone, however it went: ended, killed, or
/// as a forked child that outlived its parent and had its far memory.
#[test]
fn processes_share_a_bound_of_far() {
    let program = compile("holds_far.c");
    let script = "mkfifo go; \"$1\" 160M $3 < go > first & exec 3> go; until grep -q got first; do sleep 0.05; done; sleep 0.3
        \"$1\" $4 < /dev/null; [ $2 != kill ] || kill -9 $!; exec 3>&-; wait; until [ $2 = kill ] || grep -q OK first; do sleep 0.05; done
        sleep 0.3; \"$1\" 1G < /dev/null";
    // Of a child, what is in near has no space of its own in far yet: if another took all, the child would be stopped (--commit=strict
    // keeps it). So there far has room for its 64 MiB, too, beside the 176 of its parent, and the other asks for less than all.
    for (how, fork, most, far) in [("end", "", "1G", 192), ("kill", "", "1G", 192), ("end", "fork", "16M", 272)] {
        let arguments = ["-c", script, "bash"].map(AsRef::as_ref).into_iter().chain([program.as_os_str()]);
        let arguments = arguments.chain([how, fork, most].map(AsRef::as_ref));
        let bound = format!("{far}M");
        let run = TestProgram::command(["bash"]).args(arguments).near("64M").options(["--far-max", &bound, "--heap", "large"]);
        let outcome = run.nearfar().ok();
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let ["OK", "OK"] = [lines[1], lines[3]] else { panic!("{lines:?}") };
        let [beside, alone] = [0, 2].map(|line| lines[line].trim_start_matches("got ").parse::<u64>().expect("MiB"));
        println!("{how} {fork}: {beside} MiB beside, {alone} alone");
        assert!(beside <= 64 + far - 160, "{how} {fork}: {beside} MiB beside 160");
        assert!(alone >= far - 32, "{how} {fork}: {alone} MiB alone, {beside} beside");
    }
}

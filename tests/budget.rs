//! Memory in use against `--near`, as the kernel counts it and as the run file says.

use crate::util::{MIB, Outcome, TestProgram, compile, nearfar_bin, shared_machine};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// What a process may take beside near: its program and libraries, the pager's threads, buffers and small tables.
const ALLOWANCE: u64 = 64 * MIB;

#[track_caller]
fn within(under: &Outcome, near: u64, processes: u64) {
    let said = under.counter("near_peak_bytes");
    println!("near {near}, said {said}, resident {}", under.peak_resident);
    // The pager's tables can grow by a few pages at a moment when no frame is free; a thousandth of near is the allowance.
    assert!(said <= near + near / 1000, "near_peak_bytes {said} is over near {near}");
    assert!(under.peak_resident > 0, "resident memory was sampled");
    let limit = near + ALLOWANCE * processes;
    assert!(under.peak_resident <= limit, "{} MiB were resident with near {} MiB", under.peak_resident / MIB, near / MIB);
    assert_eq!(under.counter("over_budget_bytes"), 0);
}

#[test]
fn sweeps_stay_within_near() {
    for near in [32, 64, 128] {
        let under = TestProgram::source("touch.c").args(["384M", "3"]).near(&format!("{near}M")).watched().nearfar().ok().paged();
        within(&under, near * MIB, 1);
    }
}

#[test]
fn mix_stays_within_near() {
    let arguments = ["bytes=256M", "threads=4", "seconds=3", "seed=11"];
    let under = TestProgram::source("verify_mix.c").args(arguments).near("64M").watched().nearfar().ok().paged();
    within(&under, 64 * MIB, 1);
}

#[test]
fn small_blocks_stay_within_near() {
    needs!("g++");
    let under = TestProgram::source("containers.cpp").near("64M").limit_s(240).watched().nearfar().ok().paged();
    within(&under, 64 * MIB, 1);
}

#[test]
fn two_processes_share_near() {
    let touch = compile("touch.c");
    let script = "\"$1\" 160M 6 & first=$!; \"$1\" 160M 6 & second=$!; wait $first && wait $second";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), touch.as_os_str()];
    let under = TestProgram::command(["bash"]).args(arguments).near("96M").watched().nearfar().ok().paged();
    within(&under, 96 * MIB, 2);
}

/// A process that filled near by itself makes room when a second one comes.
#[test]
fn late_process_gets_its_share() {
    let touch = compile("touch.c");
    let script = "\"$1\" 160M 12 & sleep 1; \"$1\" 160M 2; echo second; wait; echo first";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), touch.as_os_str()];
    let under = TestProgram::command(["bash"]).args(arguments).near("64M").watched().nearfar().ok().paged();
    within(&under, 64 * MIB, 2);
    assert!(under.stdout.ends_with("first\n"), "{}", under.stdout);
}

/// A process that waits gives near to one that works: else the working one evicts its own pages for ever, since it always can. Also one
/// that was alone and fitted, was never paged, and learns nothing of its child.
#[test]
fn an_idle_process_makes_room() {
    let touch = compile("touch.c");
    for (how, bytes, read) in [("fork", "120000000", 500), ("vfork", "58000000", 250)] {
        // Half of near is each one's due; 24 MiB fit in it.
        let arguments = [how.as_ref(), bytes.as_ref(), touch.as_os_str(), "24M".as_ref(), "100".as_ref()];
        let under = TestProgram::source("idle_holder.c").args(arguments).near("64M").watched().alone().nearfar().ok().paged();
        within(&under, 64 * MIB, 2);
        let came = under.counter("bytes_in") / MIB;
        assert!(came < read, "{how}: {came} MiB came in for {bytes} bytes that are read once and 24 MiB that stay");
    }
}

#[test]
fn untouched_memory_costs_nothing() {
    let under = TestProgram::source("sparse_giant.c").near("64M").watched().nearfar().ok().paged();
    within(&under, 64 * MIB, 1);
    assert!(
        under.counter("far_peak_used_bytes") < 1024 * MIB,
        "far holds {} bytes for 100 MiB touched",
        under.counter("far_peak_used_bytes")
    );
}

#[test]
fn freed_memory_leaves_far() {
    let under = TestProgram::source("unmap_middle.c").nearfar().ok().paged();
    assert!(
        under.counter("far_peak_used_bytes") < 400 * MIB,
        "far held {} bytes for about 260 MiB live",
        under.counter("far_peak_used_bytes")
    );
}

/// `ulimit -v` that cannot be raised: there is no address space for frames. It is said, and the last line does not say that all was well.
#[test]
fn near_that_could_not_be_held_is_told() {
    let script = "ulimit -v 2000000; test $(id -u) != 0 || drop='setpriv --bounding-set -sys_resource'; exec $drop \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(nearfar_bin()).args(["run", "--near", "64M", "--"]);
    let output = command.arg(compile("touch.c")).args(["192M", "2"]).output().expect("bash");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("setpriv") || said.contains("runs unmanaged") {
        println!("skipped: needs setpriv that may drop a capability, and userfaultfd: {said}");
        return;
    }
    assert!(output.status.success() && output.stdout.starts_with(b"OK"), "{said}");
    for part in
        ["is `ulimit -v` or `ulimit -d` set?", "nothing was paged, and near was not held: 192.0 MiB were used of 64.0 MiB"]
    {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
}

/// Near is not all of a program's memory: in a group with no more than that, the kernel kills it, and only nearfar can say what to do.
#[test]
fn a_kill_for_want_of_memory_is_explained() {
    needs!("root");
    let _beside = shared_machine();
    let (nearfar, touch) = (nearfar_bin(), compile("touch.c"));
    let unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let (above, limit, swap) = match unified {
        true => ("/sys/fs/cgroup", ("memory.max", "209715200"), ("memory.swap.max", "0")),
        false => ("/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "209715200"), ("memory.swappiness", "0")),
    };
    // In a container the path in /proc/PID/cgroup may be that of the host: then nobody finds the group.
    let own = fs::read_to_string("/proc/self/cgroup").expect("cgroups");
    let mut groups = own.lines().filter(|line| line.starts_with("0::") || line.contains(":memory:"));
    if !groups.all(|line| Path::new(above).join(line.rsplit(':').next().unwrap_or("").trim_start_matches('/')).exists()) {
        return println!("skipped: cgroups of a container");
    }
    let group = Path::new(above).join(format!("nearfar-test-{}", std::process::id()));
    let write = |(name, value): (&str, &str)| fs::write(group.join(name), value);
    if let Err(error) = fs::create_dir(&group).and_then(|()| write(limit)) {
        let _ = fs::remove_dir(&group);
        return println!("skipped: no memory can be limited in {}: {error}", group.display());
    }
    let _ = write(swap);
    // Near, and files in memory that stay open.
    let (enter, beside) =
        ("echo $$ > \"$0\" || exit 3; exec \"$@\"", "exec 3<>\"$0\"; rm \"$0\"; head -c 48M /dev/zero >&3 && exec \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", enter])
        .arg(group.join("cgroup.procs"))
        .arg(nearfar)
        .args(["run", "--near", "200M", "--", "bash", "-c", beside]);
    let output = command.arg(format!("/dev/shm/nearfar-test-{}", std::process::id())).arg(touch).args(["400M", "2"]).output();
    // The kernel takes a moment to empty a group.
    let removed = (0..100).any(|_| {
        sleep(Duration::from_millis(20));
        fs::remove_dir(&group).is_ok()
    });
    let output = output.expect("bash");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        return println!("skipped: the group cannot be entered: {said}");
    }
    assert!(removed && output.status.signal() == Some(9), "{removed} {:?} {said}", output.status);
    let words =
        "the kernel killed 1 process for want of memory in this cgroup, whose limit is 200.0 MiB. Near may take 200.0 MiB of it";
    assert!(said.contains(words), "{said}");
}

//! Traps that others fell into: docs/explanation/traps.md lists them all, with the tests that were there already.

use crate::util::{MIB, Scratch, TestProgram, descendants, machine, send_signal, status_bytes};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A request that another one has answered wakes its thread as well, whatever brought the page.
#[test]
fn threads_ask_for_the_same_page_at_once() {
    TestProgram::source("same_page.c").same().ok().paged();
}

#[test]
fn threads_ask_for_the_same_page_at_once_without_moves() {
    TestProgram::source("same_page.c").options(["--deny", "move"]).same().ok().paged();
}

/// Pages that the kernel holds for long cannot move; everything around them does.
#[test]
fn pages_pinned_by_registered_buffers() {
    let program = TestProgram::source("pinned_buffers.c");
    if program.plain().end() == (Some(77), None) {
        println!("skipped: needs io_uring with registered buffers");
        return;
    }
    program.same().ok();
}

/// The same with as little locked memory as an ordinary user may have: nearfar itself must not need any.
#[test]
fn no_memory_may_be_locked() {
    let touch = crate::util::compile("touch.c");
    let limited = ["setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock", "prlimit", "--memlock=0"];
    if !Command::new(limited[0]).args(&limited[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: needs setpriv and prlimit of util-linux");
        return;
    }
    let program = TestProgram::command(limited).args([touch.as_os_str(), "160M".as_ref(), "3".as_ref()]);
    program.same().ok().paged();
}

/// Without the userfaultfd absent pages would read as zeros.
#[track_caller]
fn stopped_when_closed(arguments: &[&str], options: &[&str]) {
    let under = TestProgram::source("raw_close.c").args(arguments).options(options).nearfar();
    assert!(!under.stdout.contains("WRONG"), "{}", under.stdout);
    assert_eq!(under.end(), (Some(86), None), "{}{}", under.stdout, under.stderr);
    assert!(under.stderr.contains("closed behind nearfar's back"), "{}", under.stderr);
}

#[test]
fn descriptors_closed_by_raw_calls() {
    stopped_when_closed(&[], &[]);
    stopped_when_closed(&["range"], &[]);
    stopped_when_closed(&["range"], &["--deny", "io_uring"]);
}

#[test]
fn own_memory_through_its_file() {
    TestProgram::source("own_memory_file.c").same().ok().paged();
}

/// Starts `program` under nearfar and waits until it says that it is ready; then `look` gets its process id.
fn while_ready(program: &TestProgram, look: impl FnOnce(u32, &Scratch)) {
    let _machine = machine();
    let scratch = Scratch::new();
    let mut command = program.command_under_nearfar(&scratch);
    let mut nearfar = command.stdout(Stdio::piped()).stdin(Stdio::null()).process_group(0).spawn().expect("nearfar starts");
    let mut line = String::new();
    BufReader::new(nearfar.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let all = descendants(nearfar.id());
    let big = |&&pid: &&u32| status_bytes(pid, "status", &["VmRSS"]) > 32 * MIB && pid != nearfar.id();
    let found = all.iter().find(big).copied();
    let looked = found.map(|pid| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(pid, &scratch))));
    send_signal("TERM", nearfar.id());
    nearfar.wait().expect("wait");
    assert_eq!(line, "ready\n");
    if let Err(panic) = looked.expect("the program") {
        std::panic::resume_unwind(panic);
    }
}

/// Fork, remap, remove and unmap events would make every such call of the program wait for the pager, and every answer of the
/// pager fail while one of them is under way.
#[test]
fn no_events_are_asked_for() {
    const EVENTS: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;
    while_ready(&TestProgram::source("touch.c").args(["192M", "ready"]), |pid, _| {
        let mut seen = 0;
        for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("fdinfo").flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let Some(api) = text.lines().find_map(|line| line.strip_prefix("API:")) else { continue };
            let features = api.trim().split(':').nth(1).and_then(|text| u64::from_str_radix(text, 16).ok()).expect("features");
            assert_eq!(features & EVENTS, 0, "{text}");
            seen += 1;
        }
        assert!(seen > 0, "no userfaultfd is open");
    });
}

fn gdb(arguments: &[&str]) -> String {
    // Its start-up files would only cost time.
    let output = Command::new("timeout").args(["60", "gdb", "-nx", "-batch"]).args(arguments).stdin(Stdio::null()).output();
    let output = output.expect("timeout");
    assert_ne!(output.status.code(), Some(124), "gdb hangs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const QUESTIONS: [&str; 10] =
    ["-ex", "bt", "-ex", "p/x witness", "-ex", "p/x near_data[7]", "-ex", "p/x near_data[8]", "-ex", "p/x far_data[0]"];

/// What a debugger says of crash.c: where it is, and the data that is in near.
#[track_caller]
fn is_readable(said: &str, innermost: &str) {
    for wanted in [innermost, "middle", "main", "0x1234567890abcdef", "0x7777777777777777"] {
        assert!(said.contains(wanted), "no {wanted} in\n{said}");
    }
}

/// A program that nearfar has to stop leaves a core file as well, when that was asked for.
#[test]
fn stopped_programs_can_leave_a_core() {
    let under = TestProgram::source("raw_close.c").env("NEARFAR_CORE", "1").nearfar();
    assert_eq!(under.end(), (None, Some(6)), "{}{}", under.stdout, under.stderr);
    assert!(under.stderr.contains("closed behind nearfar's back"), "{}", under.stderr);
}

/// A core file has the stacks, the variables and what was in near. It is not larger than near and some.
#[test]
fn core_file_of_a_crashed_program() {
    needs!("gdb");
    if std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default().trim() != "core" {
        println!("skipped: core files do not go to the working directory here (kernel.core_pattern)");
        return;
    }
    let crash = crate::util::compile("crash.c");
    for how in ["segv", "abort"] {
        let script = "ulimit -c unlimited; \"$1\" $2; echo $?; mv core* \"$3\"";
        let core = std::env::temp_dir().join(format!("nearfar-core-{}-{how}", std::process::id()));
        let arguments = ["-c", script, "sh"].map(std::ffi::OsString::from);
        let program = TestProgram::command(["sh"]).args(arguments).args([crash.as_os_str(), how.as_ref(), core.as_os_str()]);
        let under = program.nearfar();
        let status = if how == "segv" { "139\n" } else { "134\n" };
        assert_eq!(under.stdout, status, "{}", under.stderr);
        let size = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&core).expect("a core file")) * 512;
        let said = gdb(&[&QUESTIONS[..], &[crash.to_str().expect("UTF-8"), core.to_str().expect("UTF-8")]].concat());
        std::fs::remove_file(&core).expect("it was there");
        println!("{said}\ncore of {} MiB", size / MIB);
        is_readable(&said, "innermost");
        assert!(size < 96 * MIB, "a core of {size} bytes for 64 MiB of near");
    }
}

/// UCX, which MPICH and Open MPI use, does so; the pager's threads must not come by its locks.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_library_puts_its_own_code_into_mmap() {
    TestProgram::source("mmap_hooked.c").near("64M").same();
}

/// A debugger that stops all threads, the pager's too, must not wait for one of them: what is in far cannot be had, and it says so.
#[test]
fn debugger_looks_at_a_running_program() {
    needs!("gdb");
    while_ready(&TestProgram::source("crash.c").args(["wait"]), |pid, _| {
        let said = gdb(&[&["-p", &pid.to_string()][..], &QUESTIONS[..]].concat());
        println!("{said}");
        if said.contains("ptrace: Operation not permitted") {
            println!("skipped: may not trace");
            return;
        }
        is_readable(&said, "innermost");
        assert!(said.contains("Cannot access memory") || !said.lines().any(|line| line == "$4 = 0x0"), "zeros were shown");
    });
}

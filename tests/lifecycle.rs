//! How processes and threads start and end, and that nothing is left behind.

use crate::util::{
    MIB, Scratch, TestProgram, compile, descendants, held_files, machine, names_in, send_signal, status_bytes, wait_for_space,
    wait_gone,
};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn touch(arguments: &[&str]) -> TestProgram {
    TestProgram::source("touch.c").args(arguments)
}

#[test]
fn exit_codes_and_signals_are_passed_on() {
    assert_eq!(touch(&["96M", "exit3"]).same().end(), (Some(3), None));
    assert_eq!(touch(&["96M", "quick"]).same().end(), (Some(5), None));
    assert_eq!(touch(&["96M", "abort"]).same().end(), (None, Some(6)));
    assert_eq!(touch(&["96M", "kill"]).same().end(), (None, Some(9)));
    assert_eq!(touch(&["96M", "segv"]).same().end(), (None, Some(11)));
    assert_eq!(TestProgram::command(["sh", "-c", "exit 3"]).same().end(), (Some(3), None));
    assert_eq!(TestProgram::command(["sh", "-c", "kill -USR1 $$"]).same().end(), (None, Some(10)));
    assert_eq!(TestProgram::command(["true"]).same().end(), (Some(0), None));
}

programs! {
    exits_amid_busy_threads: TestProgram::source("lifecycle_exits.c").same().ok();
    clones_of_every_kind: TestProgram::source("lifecycle_clone.c").same().ok();
    all_descriptors_closed: TestProgram::source("lifecycle_closed_descriptors.c").same().ok();
    threads_come_and_go_during_paging: TestProgram::source("thread_turnover.c").near("48M").same().ok().paged();
}

/// Starts `touch 256M ready` under nearfar and waits until its data is there.
fn start(scratch: &Scratch) -> Child {
    let mut command = touch(&["256M", "ready"]).command_under_nearfar(scratch);
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).process_group(0).spawn().expect("nearfar starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    child
}

/// Sends `signal` to the program or to nearfar, and sees that both end and that nothing is left. A program whose nearfar was killed
/// goes on (docs/reference/promises-and-limits.md) until it is ended itself.
fn nothing_is_left_after(signal: &str, kill_program: bool) {
    let _machine = machine();
    let scratch = Scratch::new();
    let shared_before = names_in(Path::new("/dev/shm"));
    let mut nearfar = start(&scratch);
    let all = descendants(nearfar.id());
    let program = *all
        .iter()
        .find(|&&pid| status_bytes(pid, "status", &["VmSize"]) > 256 * MIB && pid != nearfar.id())
        .expect("the program");
    assert_eq!(names_in(&scratch.far()), [""; 0], "the spill file has a name");
    assert!(!held_files(&scratch.far()).is_empty(), "nobody holds a spill file");
    send_signal(signal, if kill_program { program } else { nearfar.id() });
    let status = nearfar.wait().expect("wait");
    if signal == "KILL" && !kill_program {
        std::thread::sleep(Duration::from_secs(1));
        assert!(status_bytes(program, "status", &["VmSize"]) > 0, "the program found wrong data or died when nearfar was killed");
        send_signal("TERM", program);
    }
    wait_gone(&all);
    let expected = if signal == "TERM" { 15 } else { 9 };
    assert_eq!(status.signal(), Some(expected));
    assert_eq!(names_in(&scratch.far()), [""; 0]);
    assert_eq!(names_in(Path::new("/dev/shm")), shared_before);
    wait_for_space(&scratch.far());
}

programs! {
    program_killed: nothing_is_left_after("KILL", true);
    nearfar_killed: nothing_is_left_after("KILL", false);
    nearfar_terminated: nothing_is_left_after("TERM", false);
    program_terminated: nothing_is_left_after("TERM", true);
}

/// While data is in far, its file is private and has no name, and the far directory looks empty.
#[test]
fn spill_file_is_private_and_nameless() {
    let _machine = machine();
    let scratch = Scratch::new();
    let mut nearfar = start(&scratch);
    let far = scratch.far().canonicalize().expect("far directory");
    let mut seen = 0;
    for pid in descendants(nearfar.id()) {
        for link in std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let target = std::fs::read_link(link.path()).unwrap_or_default();
            // The directory is open too.
            if target.starts_with(&far) && target != far {
                let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(link.path()).expect("open file"));
                assert_eq!(mode & 0o777, 0o600, "{}", target.display());
                assert!(target.to_string_lossy().ends_with("(deleted)"), "{}", target.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no spill file is open, though 256 MiB are held with 64 MiB near");
    // With the program: nearfar passes this on, but not its own death.
    send_signal("TERM", nearfar.id());
    nearfar.wait().expect("wait");
}

/// A child that outlives its parent keeps its data.
#[test]
fn daemon_outlives_the_program() {
    let mix = compile("touch.c");
    let script = "\"$1\" 96M 8 > out.txt & exit 0";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), mix.as_os_str()];
    let _machine = machine();
    let scratch = Scratch::new();
    let mut command = TestProgram::command(["bash"]).args(arguments).command_under_nearfar(&scratch);
    let mut child = command.current_dir(scratch.work()).process_group(0).spawn().expect("nearfar starts");
    let group = child.id();
    assert!(child.wait().expect("wait").success());
    let begin = Instant::now();
    while !descendants(group).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the background child hangs");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(std::fs::read_to_string(scratch.work().join("out.txt")).expect("its output"), "OK 100663296\n");
}

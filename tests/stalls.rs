//! A pager that takes no turns (NEARFAR_FAULTS deaf=...): it is told of with thread and address, ended if asked to, and never left behind.

use crate::util::{Scratch, TestProgram, nearfar_bin};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn stuck() -> TestProgram {
    TestProgram::source("blocked_signals.c").near("32M").env("NEARFAR_FAULTS", "deaf=after:5,watch=1s").limit_s(60)
}

#[test]
fn stops_when_asked_to() {
    let under = stuck().options(["--on-stall", "stop"]).nearfar();
    assert_eq!(under.end(), (Some(86), None), "{}", under.stderr);
    for words in
        ["is stuck: thread ", "waits for the page at 0x", "the pager (thread ", "state S", "has taken no turn for", "it is ended"]
    {
        assert!(under.stderr.contains(words), "nothing of \"{words}\"\n{}", under.stderr);
    }
}

/// Starts a program that blocks all signals and becomes stuck.
fn start(scratch: &Scratch) -> Child {
    let mut command = Command::new(nearfar_bin());
    command
        .args(["run", "--quiet", "--near", "32M", "--far"])
        .arg(scratch.far())
        .arg("--")
        .arg(crate::util::compile("blocked_signals.c"));
    command.env("NEARFAR_FAULTS", "deaf=after:5,watch=1s").stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("starts")
}

/// The program: all that the command has started.
fn programs_of(command: u32) -> Vec<u32> {
    crate::util::descendants(command).into_iter().filter(|&pid| pid != command).collect()
}

fn is_gone(pids: &[u32], within: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < within {
        let lives = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
        };
        if !pids.iter().any(lives) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

#[test]
fn a_program_that_blocks_signals_ends_with_sigterm() {
    let scratch = Scratch::new();
    let mut child = start(&scratch);
    std::thread::sleep(Duration::from_secs(1));
    let programs = programs_of(child.id());
    assert!(!programs.is_empty());
    crate::util::send_signal("TERM", child.id());
    assert!(is_gone(&programs, Duration::from_secs(30)), "left behind");
    assert_eq!(child.wait().expect("ends").code(), Some(86));
}

#[test]
fn a_program_without_its_command_is_ended_by_its_guardian() {
    let scratch = Scratch::new();
    let mut child = start(&scratch);
    std::thread::sleep(Duration::from_secs(1));
    let programs = programs_of(child.id());
    assert!(!programs.is_empty());
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("ends").signal(), Some(9));
    assert!(is_gone(&programs, Duration::from_secs(30)), "left behind");
}

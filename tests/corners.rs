//! Calls of the C library that reach every thread, or pages behind the caller's back: found by reading, not by a user.

use crate::util::{TestProgram, compile, program_file};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// As root's userfaultfd has it, and as that of ordinary users.
#[track_caller]
fn both(name: &str) {
    both_of(&compile(name));
}

#[track_caller]
fn both_of(program: &Path) {
    let program = || TestProgram::command([program]).near("32M").env("NEARFAR_TEST_SECONDS", "3").limit_s(60);
    program().same().ok().paged();
    program().options(["--deny", "kernel-faults"]).same().ok();
}

#[test]
fn change_of_user_and_group() {
    both("ids_change.c");
}

#[test]
fn pages_given_to_a_pipe() {
    both("spliced_pages.c");
}

#[test]
fn pages_sent_without_a_copy() {
    both("zero_copy_send.c");
}

#[test]
fn stacks_of_threads_in_blocks() {
    both("stacks_in_blocks.c");
}

#[test]
fn calls_denied_by_a_later_filter() {
    TestProgram::source("filtered_later.c").near("32M").same().ok().paged();
}

#[test]
fn fork_handlers_older_than_ours() {
    // Beside the other programs, where the loader finds the library again.
    let dir = compile("fork_chain.c").parent().expect("a directory").to_owned();
    let (library, program) = (dir.join("libearly_atfork.so"), dir.join("early_atfork"));
    let source = program_file("early_atfork.c");
    let cc = |arguments: &[&OsStr]| {
        let status = Command::new("cc").args(["-O2", "-pthread"]).arg(&source).args(arguments).status();
        assert!(status.expect("cc runs").success());
    };
    cc(&["-DLIBRARY".as_ref(), "-shared".as_ref(), "-fPIC".as_ref(), "-o".as_ref(), library.as_ref()]);
    let mut path = std::ffi::OsString::from("-Wl,-rpath,");
    path.push(&dir);
    cc(&[library.as_ref(), &path, "-o".as_ref(), program.as_ref()]);
    both_of(&program);
}

#[test]
fn discards_by_other_calls() {
    both("other_discards.c");
}

#[test]
fn threads_that_are_cancelled() {
    both("cancelled_thread.c");
}

#[test]
fn asynchronous_read_of_a_pipe() {
    both("async_pipe.c");
}

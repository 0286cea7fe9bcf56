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

programs! {
    change_of_user_and_group: both("ids_change.c");
    pages_given_to_a_pipe: both("spliced_pages.c");
    pages_sent_without_a_copy: both("zero_copy_send.c");
    stacks_of_threads_in_blocks: both("stacks_in_blocks.c");
    calls_denied_by_a_later_filter: TestProgram::source("filtered_later.c").near("32M").same().ok().paged();
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

/// Issue 19: malloc ended the program by SIGABRT.
#[test]
fn limits_that_are_lowered_while_paging() {
    for args in [&[][..], &["data"]] {
        TestProgram::source("limits_lowered.c").args(args.iter().copied()).near("48M").same().ok().paged();
        // Before paging begins.
        TestProgram::source("limits_lowered.c").args(args.iter().copied()).near("448M").same().ok();
    }
}

programs! {
    /// Issue 19: the child was stopped.
    forks_without_a_free_descriptor: TestProgram::source("fork_without_descriptors.c").near("48M").same().ok().paged();
    /// Issue 19: the child was stopped, since the far directory has no name there.
    forks_in_another_root (needs "root"): both("fork_in_another_root.c");
    /// Issue 19: the child was stopped.
    forks_without_room_for_mappings: both("fork_without_room.c");
    /// Issue 19: EFAULT for ordinary users.
    own_memory_read_by_the_kernel: both("own_memory_read.c");
}

/// Issue 19: one that a process leaves behind that shares its memory waited for its pages for ever.
#[test]
fn a_child_that_shares_memory_and_outlives_its_parent() {
    TestProgram::source("shared_memory_left.c").near("48M").limit_s(30).self_checked().paged();
    TestProgram::source("shared_memory_left.c").near("48M").options(["--deny", "kernel-faults"]).limit_s(30).self_checked();
}

/// Found by stress-ng (vm-rw): everybody waited for a lock that a killed process had.
#[test]
fn processes_that_share_memory_are_killed() {
    for deny in ["thp", "kernel-faults"] {
        let under = TestProgram::source("shared_memory_killed.c").near("32M").options(["--deny", deny]).limit_s(60).nearfar();
        let stopped =
            under.end() == (Some(86), None) && under.stderr.contains("which shared its memory (clone with CLONE_VM), was ended");
        assert!(stopped || under.stdout == "OK\n", "{:?}{}{}", under.status, under.stdout, under.stderr);
    }
}

/// Found by glibc's tests: as an ordinary user a thread that was cancelled while its call was caught kept a lock of ours.
#[test]
fn threads_are_cancelled_in_calls() {
    both("cancelled_calls.c");
}

/// Found by stress-ng (sigpipe): a thread of ours ended inside our heap with each of them.
#[test]
fn processes_that_share_memory_come_and_go() {
    both("shared_memory_often.c");
}

/// Issue 19: tables of 7 KiB for each page, beyond near, and a minute.
#[test]
fn pages_far_from_each_other() {
    let under = TestProgram::source("sparse_pages.c").near("64M").limit_s(60).self_checked().paged();
    assert_eq!(under.counter("over_budget_bytes"), 0);
    // 20,000 blocks of 2 MiB are in use: a thousandth of that.
    assert!(under.counter("metadata_peak_bytes") < 20_000 * 2048, "{}", under.counter("metadata_peak_bytes"));
}

/// Issue 19: ENOMEM, and SEGV_ACCERR for holes.
#[test]
fn holes_and_fixed_addresses() {
    both("fixed_addresses.c");
    TestProgram::source("fixed_addresses.c").args(["reserved"]).near("32M").options(["--deny", "uffd"]).same().ok();
}

/// Issue 19: stopped, or hung.
#[test]
fn clones_that_share_half() {
    both("cloned_tables.c");
    TestProgram::source("cloned_tables.c").args(["begin"]).near("64M").same().ok();
}

/// Issue 19: EBUSY.
#[test]
fn a_userfaultfd_of_the_programs_own() {
    for args in [&[][..], &["paging"]] {
        let under = TestProgram::source("own_userfaultfd.c").args(args.iter().copied()).near("48M").same().ok().paged();
        assert_eq!(under.counter("released_bytes"), 4 << 20);
    }
}

/// Issue 19: hung for ever where system calls are caught.
#[test]
fn sizes_that_are_not_meant() {
    both("sizes_not_meant.c");
}

/// Issue 19: the books said otherwise than the kernel.
#[test]
fn protection_that_stops_at_a_hole() {
    both("mprotect_half_done.c");
}

/// Issue 19: advice about memory that is gone was kept, and came true for what was there later.
#[test]
fn advice_ends_with_the_memory() {
    both("advice_of_the_past.c");
}

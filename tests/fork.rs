//! A copied process sees right data, or is stopped; it never sees zeros or wrong bytes.

use crate::util::TestProgram;

fn paged(name: &str) {
    TestProgram::source(name).same().ok().paged();
}

programs! {
    child_reads_while_the_parent_writes_and_the_other_way_round: paged("fork_parent_writes.c");
    grandchild_whose_parent_is_gone: paged("fork_chain.c");
    fork_in_a_program_with_threads: paged("fork_threads.c");
    twenty_children_at_once: paged("fork_many.c");
}

#[test]
fn raw_system_calls_never_show_wrong_bytes() {
    let under = TestProgram::source("fork_raw.c").same().ok().paged();
    print!("{}", under.stderr);
}

#[test]
fn fork_vfork_spawn_and_exec() {
    let under = TestProgram::source("fork_then_exec.c").same().paged();
    assert_eq!(under.end(), (Some(6), None), "{}{}", under.stdout, under.stderr);
}

#[test]
fn vfork_children() {
    TestProgram::source("lifecycle_vfork.c").same().ok();
}

#[test]
fn state_of_the_library_after_fork() {
    TestProgram::source("lifecycle_fork_library_state.c").same().ok();
}

#[test]
fn environments_of_executed_children() {
    TestProgram::source("exec_environment.c").same().ok();
}

/// The near budget holds for parent and children together; all of them fit many times into what the machine has, so it is measured.
#[test]
fn children_share_the_budget_of_their_parent() {
    let under = TestProgram::source("fork_many.c").args(["60M"]).near("48M").same().ok().paged();
    assert!(under.counter("near_peak_bytes") <= 48 << 20);
}

//! The malloc and mmap families as a program sees them; each program checks its own content and ends with OK.

use crate::util::{TestProgram, compile};

fn paged(name: &str) {
    TestProgram::source(name).same().ok().paged();
}

/// How long the timed programs run; CI sets more.
fn seconds() -> u64 {
    std::env::var("NEARFAR_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

programs! {
    malloc_family_keeps_its_contract: TestProgram::source("malloc_api.c").same().ok();
    malloc_family_with_the_large_heap_only: TestProgram::source("malloc_api.c").options(["--heap=large"]).same().ok();
    malloc_at_odd_times: TestProgram::source("malloc_at_odd_times.c").same().ok();
    realloc_grows_beyond_near: paged("realloc_growth.c");
    threads_allocate_and_free_at_once:
        TestProgram::source("allocating_threads.c").limit_s(120 + 2 * seconds()).self_checked().paged();
}

#[test]
fn threads_allocate_and_free_with_the_large_heap_only() {
    let program = TestProgram::source("allocating_threads.c").options(["--heap=large"]).env("NEARFAR_TEST_SECONDS", "5");
    program.self_checked().paged();
}

programs! {
    blocks_are_freed_in_another_thread: paged("freeing_elsewhere.c");
    dlopen_of_a_library_with_a_static_array:
        TestProgram::source("dlopen_static.c").args([compile("dlopen_library.c")]).same().ok().paged();
    longjmp_out_of_paged_code: paged("longjmp_out.c");
    mremap_moves_and_resizes: paged("mremap_moves.c");
    mprotect_read_only_and_none: paged("mprotect_read_only.c");
    madvise_discards: paged("discards.c");
    madvise_discards_by_raw_calls: TestProgram::source("discards.c").args(["raw"]).same().ok().paged();
    madvise_of_every_other_kind: paged("advice.c");
    mlockall_does_not_hang: TestProgram::source("lock_everything.c").same().ok();
    reservations_are_committed_in_parts: paged("reservation.c");
    munmap_of_the_middle: paged("unmap_middle.c");
    unmapped_memory_is_gone: TestProgram::source("unmapped_is_gone.c").same().ok();
    own_mappings_in_a_reservation_are_no_gaps: TestProgram::source("own_mappings_in_a_reservation.c").near("32M").same().ok();
    far_more_virtual_than_touched: paged("sparse_giant.c");
}

#[test]
fn mlock_keeps_a_range_resident() {
    let under = TestProgram::source("locked_range.c").same().ok();
    assert!(under.counter("bytes_in") > 0);
}

#[test]
fn raw_calls_break_nothing() {
    paged("raw_calls.c");
}

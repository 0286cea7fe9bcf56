//! The page table is checked against itself and the kernel, every so many rounds of the pager, while a program runs.

use crate::util::{Outcome, TestProgram};
use std::fs;

#[track_caller]
fn checked(program: TestProgram, rounds: u32) -> Outcome {
    let under = program.env("NEARFAR_CHECK", &rounds.to_string()).limit_s(240).nearfar().ok();
    // Some say what they counted behind it.
    let well = under.stdout.lines().last().is_some_and(|line| line == "OK" || line.starts_with("OK "));
    assert!(well, "{}{}", under.stdout, under.stderr);
    let checks = under.counter("page_table_checks");
    println!("{checks} checks");
    assert!(checks > 0, "nothing was checked");
    under.paged()
}

#[track_caller]
fn mix_without(denied: &str) {
    let arguments = ["bytes=128M", "threads=4", "seconds=2", "seed=21"];
    let program = TestProgram::source("verify_mix.c").args(arguments).near("48M");
    checked(if denied.is_empty() { program } else { program.options(["--deny", denied]) }, 10);
}

programs! {
    under_a_mix: mix_without("");
    without_moves: mix_without("move");
    without_huge_pages: mix_without("thp");
    without_io_uring_and_direct_io: mix_without("io_uring,odirect");
    without_anything: mix_without("io_uring,odirect,move,thp");
}

/// The kernel's khugepaged, made hasty, finds huge pages of which parts have left: it must not fill them up again.
#[test]
fn while_the_kernel_collapses_pages() {
    needs!("root");
    let file = |name: &str| format!("/sys/kernel/mm/transparent_hugepage/khugepaged/{name}");
    let scans = || fs::read_to_string(file("full_scans")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let (Ok(pace), Some(before)) = (fs::read_to_string(file("scan_sleep_millisecs")), scans()) else {
        return println!("skipped: this kernel has no khugepaged");
    };
    fs::write(file("scan_sleep_millisecs"), "10").expect("root may set it");
    let runs = std::panic::catch_unwind(|| ["", "io_uring,odirect"].map(mix_without));
    fs::write(file("scan_sleep_millisecs"), pace.trim()).expect("root may set it");
    if let Err(failure) = runs {
        std::panic::resume_unwind(failure);
    }
    // With huge pages off there is nothing that it could do.
    let is_off = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|text| text.contains("[never]"));
    assert!(is_off || scans() > Some(before), "khugepaged went nowhere");
}

#[test]
fn under_what_programs_do_to_their_memory() {
    for name in ["mremap_moves.c", "reservation.c", "unmap_middle.c", "static_arrays.c", "locked_range.c"] {
        checked(TestProgram::source(name).near("80M"), 20);
    }
}

#[test]
fn of_forked_processes() {
    for name in ["fork_parent_writes.c", "fork_chain.c", "fork_threads.c"] {
        checked(TestProgram::source(name), 50);
    }
}

//! The page table is checked against itself and the kernel, every so many rounds of the pager, while a program runs.

use crate::util::{Outcome, TestProgram, shared_machine};
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
    let number = |name: &str| fs::read_to_string(file(name)).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let set = |name: &str, value: u64| fs::write(file(name), value.to_string()).expect("root may set it");
    // The waits in milliseconds, and so many pages at a time that all programs are gone through every 40 ms or so.
    let haste = [("scan_sleep_millisecs", 10), ("alloc_sleep_millisecs", 10), ("pages_to_scan", 1 << 20)];
    let paces = haste.map(|(name, _)| number(name));
    let (Some(before), [Some(_), Some(_), Some(_)]) = (number("full_scans"), paces) else {
        return println!("skipped: this kernel has no khugepaged");
    };
    // Not beside what is measured.
    let _beside = shared_machine();
    let runs = std::panic::catch_unwind(|| {
        haste.into_iter().for_each(|(name, value)| set(name, value));
        ["", "io_uring,odirect"].map(mix_without)
    });
    haste.iter().zip(paces).for_each(|((name, _), pace)| set(name, pace.expect("all were read")));
    if let Err(failure) = runs {
        std::panic::resume_unwind(failure);
    }
    let scans = number("full_scans").expect("was read before") - before;
    println!("{scans} passes of khugepaged");
    // With huge pages off there is nothing that it could do.
    let is_off = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|text| text.contains("[never]"));
    assert!(is_off || scans >= 10, "khugepaged went nowhere");
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

//! The workloads of `nearfar bench` under nearfar, and the table that it prints. Sizes are too small for figures: only right or wrong.

use crate::util::{Scratch, TestProgram, nearfar_bin};
use std::process::{Command, Stdio};

fn kernel(arguments: &[&str]) -> TestProgram {
    let program = nearfar_bin().with_file_name("nearfar-kernel");
    TestProgram::command([program]).args(arguments).args(["--sweeps", "2", "--threads", "2", "--json"])
}

fn report(stdout: &str) -> serde_json::Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// The workload verifies its data, and they are the same as without nearfar.
fn right_data(arguments: &[&str]) {
    let program = kernel(arguments).near("22M");
    let (plain, under) = (report(&program.plain().ok().stdout), program.nearfar().ok().paged());
    let under = report(&under.stdout);
    for report in [&plain, &under] {
        assert_eq!(report["verified"], "right", "{arguments:?}: {report}");
        let repetitions = report["repetitions"].as_array().expect("repetitions");
        assert!(repetitions.len() == 2 && repetitions.iter().all(|one| one["complete"] == true), "{arguments:?}: {report}");
    }
    assert_eq!(plain["checksum"], under["checksum"], "{arguments:?}");
}

#[test]
fn sweeps_in_every_order_are_right() {
    right_data(&["strided", "--bytes", "66M", "--stride", "6K"]);
    right_data(&["reverse", "--bytes", "66M"]);
    right_data(&["reverse", "--bytes", "66M", "--update"]);
    right_data(&["streams", "--bytes", "66M", "--update"]);
    // Less data: its walk is all small reads, and slow on a busy disk.
    right_data(&["columns", "--bytes", "40M"]);
}

#[test]
fn objects_blocks_and_touches_are_right() {
    right_data(&["objects", "--bytes", "66M", "--ops", "8000"]);
    right_data(&["churn", "--bytes", "66M", "--ops", "4000"]);
    right_data(&["latency", "--bytes", "256M", "--working", "66M", "--stride", "16K", "--ops", "1000"]);
}

#[test]
fn transforms_factors_and_tables_are_right() {
    right_data(&["fft", "--bytes", "64M"]);
    right_data(&["lu", "--bytes", "40M"]);
    right_data(&["trisolve", "--bytes", "66M"]);
    right_data(&["sort", "--bytes", "66M"]);
    right_data(&["join", "--bytes", "66M"]);
    right_data(&["btree", "--bytes", "66M", "--ops", "8000"]);
}

#[test]
fn bench_prints_a_verdict_for_every_goal() {
    let _machine = crate::util::machine();
    let scratch = Scratch::new();
    let saved = scratch.0.join("bench.json");
    let suites = ["sweeps", "latency", "metadata", "startup"];
    let mut command = Command::new(nearfar_bin());
    command.arg("bench").args(suites).args(["--smoke", "--data", "48M", "--threads", "2"]);
    command.arg("--far").arg(scratch.far()).arg("--json").arg(&saved).stdin(Stdio::null());
    let output = command.output().expect("nearfar runs");
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{printed}\n{said}", output.status);
    let rows = [
        "strided: a line of every 8 KiB read",
        "reverse: all read, last to first",
        "streams: 8 streams by 1 thread",
        "streams: 8 streams by 2 threads",
        "columns: transposing copy",
        "fault without I/O (limbo rescue), p50",
        "demand fault from disk less the device, p50",
        "metadata",
        "cost of a demand fault in 768.0 MiB, p50",
        "start-up added to a short program",
    ];
    let table = printed.rsplit_once("speed: ").expect("the table of speed").1;
    for row in rows {
        let line = table.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("no row {row:?} in\n{table}"));
        assert!(["met", "MISSED", "skipped: "].iter().any(|outcome| line.contains(outcome)), "no verdict in {line:?}");
    }
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(&saved).expect("saved")).expect("JSON");
    let verdicts = results["verdicts"].as_array().expect("verdicts");
    assert_eq!((results["version"].as_u64(), verdicts.len()), (Some(2), rows.len()), "{verdicts:?}");
    // The faults were there to be timed, and the device was measured. Sweeps may be stopped by their limit on a busy machine.
    assert!(verdicts[6]["figure"]["median"].is_f64(), "{}", verdicts[6]);
    assert!(results["cases"][0]["device"]["read"][0].is_f64(), "{}", results["cases"][0]["device"]);
    assert_eq!(crate::util::names_in(&scratch.far()), [""; 0], "left behind");
}

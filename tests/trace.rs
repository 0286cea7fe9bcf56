//! `run --trace`: the file holds what the program visited, whatever becomes of the program, and changes nothing of its results.

use crate::util::{Outcome, Scratch, TestProgram, nearfar_bin};
use nearfar_core::trace::{Batch, Grain, Reader, Record, accesses};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Runs a program with a trace in `scratch`; what was recorded.
fn record(program: TestProgram, scratch: &Scratch) -> (Outcome, Vec<u8>) {
    let file = scratch.0.join("visits.nft");
    let under = program.options(["--trace".as_ref(), file.as_os_str()]).nearfar();
    (under, std::fs::read(file).expect("the trace"))
}

fn batches(bytes: &[u8]) -> Vec<Batch> {
    let mut reader = Reader::new(bytes).expect("a trace");
    let list: Vec<Batch> = reader.by_ref().collect();
    assert_eq!(reader.damaged_bytes(), 0);
    assert!(list.iter().all(|batch| batch.dropped == 0), "records were dropped");
    list
}

const CHUNKS: u64 = 512;

/// Chunks of the mapping that process number `number` visited, in order, each with what its first access was.
fn visits(batches: &[Batch], number: usize, base: u64) -> Vec<(u64, bool)> {
    let mut processes: Vec<_> = batches.iter().map(|batch| batch.process).collect();
    processes.sort_by_key(|process| process.since_ns);
    processes.dedup();
    let own = batches.iter().filter(|batch| batch.process == processes[number]).flat_map(|batch| &batch.records);
    let inside = |record: &Record| match *record {
        Record::Visit { page, write, .. } if (base..base + CHUNKS * 16).contains(&page) => Some(((page - base) / 16, write)),
        _ => None,
    };
    let mut list: Vec<_> = own.filter_map(inside).collect();
    // A thread asks again where a page was on its way.
    list.dedup();
    list
}

fn round(step: u64, store: bool) -> impl Iterator<Item = (u64, bool)> {
    (0..CHUNKS).map(move |i| (i * step % CHUNKS, store))
}

fn base_of(under: &Outcome) -> u64 {
    u64::from_str_radix(under.stdout.trim(), 16).expect("the address of the mapping") / 4096
}

/// With near for everything, and with near for half. The window is so small that no round begins with what the last one left in view.
#[test]
fn known_visits_are_recorded() {
    for near in ["96M", "16M"] {
        let scratch = Scratch::new();
        let (under, bytes) = record(TestProgram::source("known_visits.c").near(near).options(["--trace-window", "1M"]), &scratch);
        let under = under.ok();
        let batches = batches(&bytes);
        let base = base_of(&under);
        let expected: Vec<_> = round(1, true).chain(round(3, false)).chain(round(5, true)).collect();
        assert_eq!(visits(&batches, 0, base), expected, "near {near}");
        let gone = batches
            .iter()
            .flat_map(|batch| &batch.records)
            .any(|record| matches!(*record, Record::Gone { page, pages } if page <= base && base + CHUNKS * 16 <= page + pages));
        assert!(gone, "the end of the mapping is not in the trace");
        // What was stored is known to be changed although the second round only read.
        let changed = |changed: bool| {
            let is = |record: &&Record| matches!(**record, Record::Out { page, changed: c } if c == changed && (base..base + CHUNKS * 16).contains(&page));
            batches.iter().flat_map(|batch| &batch.records).filter(is).count() as u64
        };
        // Of the last round, what was still in view at the end did not leave view.
        assert!(
            changed(false) == CHUNKS && changed(true) > CHUNKS && changed(true) <= 2 * CHUNKS,
            "{} {}",
            changed(true),
            changed(false)
        );
    }
}

/// One file for all processes, each with batches of its own.
#[test]
fn a_forked_child_records_to_the_same_file() {
    let scratch = Scratch::new();
    let (under, bytes) = record(TestProgram::source("known_visits.c").args(["fork"]), &scratch);
    let under = under.ok();
    let batches = batches(&bytes);
    let base = base_of(&under);
    let parent = visits(&batches, 0, base);
    let first: Vec<_> = round(1, true).chain(round(3, false)).collect();
    assert_eq!(parent[..first.len()], first);
    let child = visits(&batches, 1, base);
    let mut visited: Vec<u64> = child.iter().map(|&(chunk, _)| chunk).collect();
    // What was in view at the fork is in the child's view too, until it leaves.
    assert!(visited.len() as u64 >= CHUNKS - 2 * 128, "{} visits of the child", visited.len());
    visited.sort_unstable();
    visited.dedup();
    assert!(visited.len() as u64 >= CHUNKS - 2 * 128);
    let (_, summary) = accesses(&bytes, Grain::Chunk).expect("a trace");
    assert_eq!(summary.processes, 2);
}

fn replays(file: &Path) -> String {
    let output = Command::new(nearfar_bin()).args(["bench", "policies", "--trace"]).arg(file).output().expect("nearfar runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What a killed program had visited, but for the last moment, can be replayed.
#[test]
fn a_trace_survives_sigkill() {
    let scratch = Scratch::new();
    let (under, bytes) = record(TestProgram::source("touch.c").args(["96M", "kill"]), &scratch);
    assert_eq!(under.end(), (None, Some(9)));
    let (list, summary) = accesses(&bytes, Grain::Chunk).expect("a trace");
    assert!(summary.visits > 100 && list.len() as u64 >= summary.visits, "{summary:?}");
    let text = replays(&scratch.0.join("visits.nft"));
    assert!(text.contains("hits %") && text.contains("MIN"), "{text}");
    // Cut within a batch, as when the kill comes in the middle of a write.
    let cut = scratch.0.join("cut.nft");
    std::fs::write(&cut, &bytes[..bytes.len() - 5]).expect("written");
    assert!(replays(&cut).contains("skipped"));
}

#[test]
fn results_are_the_same_while_visits_are_recorded() {
    let scratch = Scratch::new();
    let file = scratch.0.join("visits.nft");
    let options = [OsStr::new("--trace"), file.as_os_str()];
    // Few and small: each visit is a fault, and programs that churn take a minute and more.
    TestProgram::source("mremap_moves.c").options(options).same().ok();
}

/// Threads that visit at random, with a small window and more data than near, and the page table checked all the while.
#[test]
fn threads_that_visit_at_random_get_on() {
    let scratch = Scratch::new();
    let mix = TestProgram::source("verify_mix.c").args(["bytes=48M", "threads=3", "seconds=2", "seed=31"]).near("32M");
    let (under, bytes) = record(mix.options(["--trace-window", "2M"]).env("NEARFAR_CHECK", "20"), &scratch);
    let under = under.ok().paged();
    assert_eq!(under.stdout, "OK\n");
    assert!(under.counter("page_table_checks") > 0, "nothing was checked");
    let (_, summary) = accesses(&bytes, Grain::Chunk).expect("a trace");
    // The first and the last pass visit each chunk, and 2 MiB of 48 are in view.
    assert!(summary.visits > 2 * 700, "{summary:?}");
}

/// Where the trace cannot be written any more, the program goes on.
#[test]
fn a_full_disk_ends_the_trace_and_not_the_program() {
    needs!("root");
    let scratch = Scratch::new();
    let file = scratch.0.join("visits.nft");
    // A limit on file size is as good as a full disk: the signal is blocked in the thread that writes.
    let script = "ulimit -f 8; exec \"$1\" 64M 1";
    let touch = crate::util::compile("touch.c");
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), touch.as_os_str()];
    let program = TestProgram::command(["bash"]).args(arguments).far("emu:bw=8G,lat=1us");
    let under = program.options(["--trace".as_ref(), file.as_os_str()]).nearfar().ok();
    assert!(under.stderr.contains("the trace can no longer be written"), "{}", under.stderr);
    assert!(accesses(&std::fs::read(&file).expect("the trace"), Grain::Chunk).is_some());
}

/// Pages are seen one by one, and a replay with times tells what each grain would have read.
#[test]
fn visits_to_pages_are_replayed_with_times() {
    let scratch = Scratch::new();
    let program = TestProgram::source("known_visits.c").near("96M").options(["--trace-window", "1M", "--grain", "4K"]);
    let (under, bytes) = record(program, &scratch);
    under.ok();
    let path = scratch.0.join("pages.nft");
    std::fs::write(&path, bytes).expect("write");
    let path = path.to_str().expect("UTF-8");
    let nearfar = |args: [&str; 7]| Command::new(nearfar_bin()).args(args).output().expect("nearfar runs");
    let output = nearfar(["bench", "replay", path, "--near", "50%", "--plain", "0.5"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for rule in [" 4K ", " 64K ", " 2M ", " auto "] {
        assert!(text.lines().any(|line| line.contains(rule)), "{rule}: {text}");
    }
    let again = nearfar(["bench", "replay", path, "--near", "50%", "--plain", "0.5"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), text, "replay is exact");
    for (bad, value) in [("--latency", "-1us"), ("--near", "0"), ("--evict", "best")] {
        let output = nearfar(["bench", "replay", path, "--plain", "1", bad, value]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(bad), "{bad}: {said}");
    }
}

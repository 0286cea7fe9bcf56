//! Flat and hybrid mode: objects of every kind lie where the policy says, every page of them; near is full; data stay right. In virtual
//! machines with real nodes, and on this machine over paged far memory.

use crate::boots;
use crate::guest::Ran;
use crate::util::{Scratch, TestProgram, compile, nearfar_bin, shared_machine};
use std::process::{Command, Stdio};

pub const PLAN: &str = r#"
nearfar_plan = 1
[[place]]
tier = "near"
least = "1M"
[[place.frame]]
function = "allocate_wave"
[[place]]
tier = "near"
least = "1M"
[[place.frame]]
function = "allocate_shared"
[[place.frame]]
function = "caller_near"
[[place]]
kind = "map"
tier = "near"
least = "1M"
[[place.frame]]
function = "map_wave"
[[place]]
kind = "static"
tier = "near"
symbol = "planned_array"
"#;

pub const KNL_SIZES: &str = "nearfar run --near node:1 --far node:0 --place size:1M..5M -- placed_kinds 1 0";
pub const DUAL_SIZES: &str = "nearfar run --near node:0 --far node:1 --place size:1M..5M -- placed_kinds 0 1";
pub const KNL_PLAN: &str = "nearfar run --near node:1 --far node:0 --place plan:/plan.toml -- placed_sites 1 0";
pub const KNL_FULL: &str = "run='nearfar run --near node:1 --far node:0 --place size:1M..'
    $run -- placed_full spill 1 0 256M && $run --full fail -- placed_full fail 1 0 256M && $run --full wait -- placed_full wait 1 0 256M &&
    nearfar run --near node:1:64M --far node:0 --place size:1M.. -- placed_full limit 1 0 64M &&
    nearfar run --near node:1 --far node:0 --place all --full fail -- placed_full fail 1 0 256M";

/// The programs of a script found everything in its place.
#[track_caller]
fn content(ran: &Ran, wanted: usize) {
    let good = ran.stdout.lines().filter(|line| *line == "OK").count();
    assert_eq!((good, ran.status), (wanted, Some(0)), "{}\n{}", ran.stdout, ran.stderr);
}

programs! {
    exactly_the_objects_of_these_sizes_are_near (needs "guest"): content(&boots::KNL_FLAT.script("placing sizes"), 1);
    other_layouts_too (needs "guest"): content(&boots::DUAL_SOCKET.script("placing sizes"), 1);
    a_plan_tells_call_sites_apart (needs "guest"): content(&boots::KNL_FLAT.script("placing plan"), 1);
    near_is_full (needs "guest"): content(&boots::KNL_FLAT.script("placing full"), 5);
}

/// A run over a spill file; near is 96 MiB.
fn paged(mode: &str, full: &str, room: &str) -> TestProgram {
    TestProgram::source("placed_paged.c")
        .near("96M")
        .options(["--mode", mode, "--place", "size:1M..5M", "--full", full])
        .args([full, room])
}

#[test]
fn placed_objects_are_never_paged() {
    let under = paged("flat", "spill", "64M").self_checked();
    // A static array, a mapping, three times half of the room in blocks, and of twice the room as much as there is room for.
    let placed = under.counter("placed_objects");
    assert!(placed >= 2 + 3 * 16 + 16, "{placed}");
    assert!(under.counter("spilled_objects") > 0 && under.counter("bytes_out") > 0);
    // What parent and child of a fork share counts twice, and what the child copies by writing cannot be refused: near_peak_bytes of
    // the whole job says nothing here (docs/reference/promises-and-limits.md).
    assert!(under.counter("placed_peak_bytes") <= 80 << 20, "{}", under.counter("placed_peak_bytes"));
}

#[test]
fn hybrid_keeps_its_share_for_paging() {
    let under = paged("hybrid=0.5", "fail", "48M").self_checked();
    assert!(under.counter("near_refused") > 0 && under.counter("placed_peak_bytes") <= 48 << 20);
}

#[test]
fn a_plan_that_matches_nothing_is_told_of() {
    let scratch = Scratch::new();
    let plan = scratch.work().join("plan.toml");
    std::fs::write(&plan, "nearfar_plan = 1\n[[place]]\ntier = \"near\"\n[[place.frame]]\nfunction = \"nowhere_to_be_found\"\n")
        .expect("scratch can be written");
    let mut command = Command::new(nearfar_bin());
    command.args(["run", "--near", "64M", "--far"]).arg(scratch.far()).args(["--mode", "flat", "--place"]);
    command.arg(format!("plan:{}", plan.display())).args(["--force", "--"]).arg(compile("touch.c")).args(["4M"]);
    let _beside = shared_machine();
    let output = command.current_dir(scratch.work()).stdin(Stdio::null()).output().expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the plan matched none of"), "{said}");
}

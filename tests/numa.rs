//! NUMA nodes as tiers: what `nearfar run` chooses and refuses, and where the pages of programs then lie, on this machine and in guests.

use crate::boots;
use crate::guest::Ran;
use crate::util::{Scratch, nearfar_bin, shared_machine};
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

/// Pages by node of each line that `placed` prints.
fn lines(text: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let nodes = all.entry(name.to_owned()).or_default();
        for (node, pages) in words.filter_map(|word| word.split_once(':')) {
            *nodes.entry(node.to_owned()).or_default() += pages.parse::<u64>().expect("pages");
        }
    }
    all
}

const KINDS: [&str; 7] = ["heap", "small", "map", "bss", "data", "main-stack", "thread-stack"];

/// Every page of every kind of memory lies on one of `nodes`.
#[track_caller]
fn all_on(text: &str, nodes: &[&str]) {
    let lines = lines(text);
    for kind in KINDS {
        let found = lines.get(kind).unwrap_or_else(|| panic!("no {kind} in\n{text}"));
        assert!(
            !found.is_empty() && found.keys().all(|node| nodes.contains(&node.as_str())),
            "{kind} on {found:?}, not {nodes:?}"
        );
    }
}

fn nearfar(options: &[&str], program: &[&str]) -> Output {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let mut command = Command::new(nearfar_bin());
    command.arg("run").args(options).arg("--").args(program).current_dir(scratch.work()).stdin(Stdio::null());
    command.output().expect("nearfar runs")
}

#[track_caller]
fn refused(options: &[&str], hint: &str) {
    let output = nearfar(options, &["touch", "started"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
    assert!(said.contains(hint) && output.stdout.is_empty(), "{options:?}: no \"{hint}\" in {said}");
}

#[test]
fn refusals_on_any_machine() {
    for (options, hint) in [
        (&["--near", "node:0", "--far", "node:0"][..], "node 0 cannot be near and far"),
        (&["--near", "node:1000", "--far", "node:0"], "there is no node 1000"),
        (&["--near", "800M", "--far", "node:0"], "a budget of ordinary memory cannot spill to a node"),
        (&["--near", "node:x"], "nodes are numbers"),
        (&["--near", "node:0", "--far", "emu:bw=4G", "--mode", "cache", "--place", "calls"], "--mode hybrid"),
        (&["--place", "size:5M..1M"], "from small to large"),
        (&["--place", "some"], "size:1M..5M"),
        (&["--place", "plan:/nowhere/plan.toml"], "No such file"),
        (&["--full", "fail"], "--full is for flat"),
        (&["--mode", "flat", "--near", "20M"], "write more --near"),
        (&["--interleave", "near"], "--near node:0,1"),
        (&["--cpus", "4000"], "may not be used"),
        (&["--cpus", "node:77"], "no node 77"),
        (&["--cpus", ""], "no CPU is named"),
        (&["--full", "sometimes"], "spill"),
        (&["--weighted"], "--interleave"),
        (&["--deny", "bogus"], "not a facility"),
        (&["--near", "node:0", "--far", "node:1", "--deny", "bogus"], "not a facility"),
        (&["--migrate-rate", "nonsense"], "--migrate-rate"),
        (&["--migrate-cpu", "1000"], "--migrate-cpu 1000"),
        (&["--migrate", "force"], "cache mode between nodes"),
        (&["--machine", "/nowhere"], "--machine is for"),
    ] {
        refused(options, hint);
    }
}

#[test]
fn a_plan_that_cannot_be_used_is_refused_with_its_line() {
    let scratch = Scratch::new();
    let plan = scratch.work().join("plan.toml");
    std::fs::write(&plan, "nearfar_plan = 1\n[[place]]\ntier = \"middle\"\n").expect("written");
    refused(&["--place", &format!("plan:{}", plan.display())], "line 3");
}

#[test]
fn cpus_are_those_that_were_named() {
    let output = nearfar(&["--cpus", "0", "--quiet"], &["sh", "-c", "grep Cpus_allowed_list /proc/self/status"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Cpus_allowed_list:\t0\n", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Near is on a node that the user named, and what does not fit is paged.
#[test]
fn the_pager_takes_near_from_named_nodes() {
    let scratch = Scratch::new();
    let far = scratch.far();
    let options = ["--near", "node:0:64M", "--far", far.to_str().expect("UTF-8"), "--min-size", "1M"];
    let program = crate::util::compile("placed.c");
    let output = nearfar(&options, &[program.to_str().expect("UTF-8"), "8", "4"]);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("cannot be taken from the nodes") {
        return println!("skipped: {said}");
    }
    assert!(output.status.success() && said.contains("of 64.0 MiB"), "{said}");
}

pub const KNL_CHOICE: &str = "echo == plain; placed
         echo == chosen; nearfar run --stats /tmp/run.json -- placed 64 16 10000
         echo == stats; cat /tmp/run.json
         echo == named; nearfar run --near node:1 --far node:0 --quiet -- placed
         echo == child; nearfar run --quiet -- sh -c 'placed; true'
         echo == other; nearfar run --near node:0 --quiet -- placed
         echo == cpus; nearfar run --cpus 2 --quiet -- placed 1 1
         echo == doctor; nearfar doctor --quick
         echo == end";
pub const KNL_FULL: &str = "echo == spill; nearfar run -- placed 320 1; echo status $?
         echo == fail; nearfar run --full fail -- placed 320 1; echo status $?
         echo == static; nearfar run -- static-placed 32 8
         echo == static-wait; nearfar run --full wait -- static-placed 32 8; echo status $?
         echo == static-size; nearfar run --place size:1M.. -- static-placed 32 8; echo status $?
         echo == asked; nearfar run --near node:1:1G --far node:0 -- placed; echo status $?
         echo == end";
pub const DUAL: &str = "echo == near; nearfar run --cpus node:0 --near node:0 --far node:1 -- placed
         echo == far; nearfar run --cpus node:0 --near node:1 --far node:0 -- placed
         echo == turns; nearfar run --cpus node:1 --near node:0,1 --interleave near --quiet -- placed
         echo == end";
pub const SNC4: &str = "echo == third; nearfar run --cpus node:2 --near node:4-7 -- placed 16 8
         echo == open; nearfar run --near node:4 --interleave far --weighted -- true
         echo == end";

#[track_caller]
fn ok(ran: &Ran) {
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

#[test]
fn knl_flat_chooses_its_fast_memory() {
    needs!("guest");
    let ran = boots::KNL_FLAT.script("numa choice");
    ok(&ran);
    all_on(ran.part("plain"), &["0"]);
    for part in ["chosen", "named", "child"] {
        all_on(ran.part(part), &["1"]);
    }
    all_on(ran.part("other"), &["0"]);
    assert!(ran.part("cpus").contains("cpus 2\n"));
    assert!(
        ran.stderr.contains("near is HBM on node 1, far is DRAM on node 0: HBM (node 1) has more bandwidth"),
        "{}",
        ran.stderr
    );
    let stats: serde_json::Value = serde_json::from_str(ran.part("stats")).expect("JSON");
    assert_eq!((&stats["mode"], &stats["near"], &stats["place"]), (&"flat".into(), &"node:1".into(), &"all".into()));
    let (near, far) = (stats["nodes"]["peak"]["near_bytes"].as_u64(), stats["nodes"]["peak"]["far_bytes"].as_u64());
    assert!(near > Some(90 << 20) && far < Some(8 << 20), "{}", stats["nodes"]);
    let doctor = ran.part("doctor");
    for said in ["near: HBM on node 1", "(mbind)", "high-bandwidth memory is HBM"] {
        assert!(doctor.contains(said), "no {said} in\n{doctor}");
    }
}

/// `--full` with more than the node has: 256 MiB of HBM, 320 MiB wanted.
#[test]
fn knl_flat_when_near_is_full() {
    needs!("guest");
    let ran = boots::KNL_FLAT.script("numa full");
    ok(&ran);
    let spilled = lines(ran.part("spill"));
    assert!(spilled["heap"].get("0") > Some(&(64 << 8)) && ran.part("spill").contains("status 0"), "{spilled:?}");
    // The library refuses the block where it can; the kernel ends the program where it cannot.
    let failed = ran.part("fail");
    assert!(failed.contains("heap refused\nstatus 3") || failed.contains("status 137"), "{failed}");
    all_on(ran.part("static"), &["1"]);
    assert!(ran.stderr.contains("is statically linked: nothing can be preloaded, and the kernel alone"), "{}", ran.stderr);
    for part in ["static-wait", "static-size", "asked"] {
        assert!(ran.part(part).starts_with("status 2"), "{part}: {}", ran.part(part));
    }
    assert!(ran.stderr.contains("were asked for, but node 1 has"), "{}", ran.stderr);
}

/// The program, linked statically.
pub fn static_placed() -> std::path::PathBuf {
    let target = crate::util::compile("placed.c").with_file_name("static-placed");
    let source = crate::util::program_file("placed.c");
    let made = Command::new("cc").args(["-O2", "-static", "-pthread", "-o"]).arg(&target).arg(source).status();
    assert!(made.expect("cc").success());
    target
}

/// The founding papers' stand-in for HBM on two sockets: the own socket is near, the other one far.
#[test]
fn two_sockets_stand_for_two_kinds_of_memory() {
    needs!("guest");
    let ran = boots::DUAL_SOCKET.script("numa");
    ok(&ran);
    all_on(ran.part("near"), &["0"]);
    assert!(ran.part("near").contains("cpus 0 1\n"));
    all_on(ran.part("far"), &["1"]);
    let turns = lines(ran.part("turns"));
    let (zero, one) = (turns["heap"]["0"], turns["heap"]["1"]);
    // Huge pages go to nodes in turns too.
    assert!(zero.abs_diff(one) <= 2 * 512, "{turns:?}");
    assert!(ran.part("turns").contains("cpus 2 3\n"));
}

/// Four quadrants, each with HBM of its own, and no word of the firmware: nodes are named, and the nearest of them is taken.
#[test]
fn quadrants_use_their_own_fast_memory() {
    needs!("guest");
    let ran = boots::KNL_SNC4.script("numa");
    ok(&ran);
    all_on(ran.part("third"), &["6"]);
    assert!(ran.stderr.contains("near is") && ran.stderr.contains("on nodes 4-7"), "{}", ran.stderr);
    assert!(ran.stderr.contains("bandwidths of nodes") && ran.stderr.contains("are not known"), "{}", ran.stderr);
}

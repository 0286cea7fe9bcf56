//! Cache mode between NUMA nodes: hot pages come to near, cold ones do not, and the mover stops when it does not pay. Guests have real
//! nodes and emulated time, so that what counts is where pages lie in the end; they are given more CPU time for looking than the 1 % of
//! real machines, because everything takes so long there.

use crate::boots;
use crate::guest::{Guest, Ran};
use crate::util::nearfar_bin;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// DDR is near, CXL is far.
fn guest() -> Guest {
    Guest::new("cxl").memory("ddr=768M,cxl=512M").program("hot_quarter.c").limit_s(u64::from(WAIT_S) + 250)
}

/// Where moving a page takes a hundred times longer than it should, so does a visit to far: figures in the guest's own time.
macro_rules! machine {
    () => {
        r#"{"format": 1, "latency": [
 {"cpu_node": 0, "memory": {"node": 0}, "chase": "random", "pages": "small", "bytes": 1, "time": {"median": 1000}},
 {"cpu_node": 0, "memory": {"node": 1}, "chase": "random", "pages": "small", "bytes": 1, "time": {"median": 20000}}]}"#
    };
}

/// A script of a run in cache mode, and what comes behind it.
macro_rules! const_run {
    ($options:literal, $program:literal, $behind:literal) => {
        concat!(
            "echo '",
            machine!(),
            "' > /machine.json; nearfar run --mode cache --far node:1 --migrate-cpu 20 --machine /machine.json ",
            $options,
            " -- ",
            $program,
            $behind
        )
    };
}

fn run(options: &str, program: &str) -> String {
    const_run!("OPTIONS", "PROGRAM", "").replace("OPTIONS", options).replace("PROGRAM", program)
}

/// Pages by node of the lines that begin with `what`, all together.
fn pages(text: &str, what: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for counts in text.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix(" N")) {
        for (node, count) in counts.split(" N").filter_map(|word| word.split_once('=')) {
            *sums.entry(node.to_owned()).or_default() += count.trim().parse::<u64>().expect("pages");
        }
    }
    sums
}

fn share(text: &str, what: &str, node: &str) -> f64 {
    let pages = pages(text, what);
    let all: u64 = pages.values().sum();
    assert!(all > 0, "no \"{what}\" in {text}");
    pages.get(node).copied().unwrap_or(0) as f64 / all as f64
}

/// The program's data were as written, and the mover told what it did.
#[track_caller]
fn right(ran: Ran, programs: usize) -> Ran {
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.stdout.lines().filter(|line| *line == "OK").count(), programs, "{}", ran.stdout);
    assert!(ran.stderr.contains("visits are seen by DAMON") && ran.stderr.contains("mover: looked"), "{}", ran.stderr);
    ran
}

#[track_caller]
fn came_to_near(ran: &Ran) {
    assert!(share(&ran.stdout, "hot at first", "1") > 0.99, "{}", ran.stdout);
    assert!(share(&ran.stdout, "hot", "0") > 0.9 && share(&ran.stdout, "cold", "1") > 0.9, "{}", ran.stdout);
}

/// How far off a guest's end may be: the mover has its share of a CPU, and takes as long as it needs on a busy machine.
const WAIT_S: u32 = 350;

/// What is read comes from far to a near that is too small for all, and DAMON is given back.
pub const HOT: &str =
    const_run!("--near node:0:48M", "hot_quarter 1 64 hot 350", "; cat /sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds >&2");
/// Last in its boot: it changes how the guest's kernel treats memory.
pub const KERNEL: &str = concat!(
    "echo 2 > /proc/sys/kernel/numa_balancing; echo 1 > /sys/kernel/mm/numa/demotion_enabled\n",
    "echo == left\n",
    const_run!("--near node:0", "hot_quarter 1 16 hot 1", "; nearfar doctor --quick\n"),
    "echo == forced; echo == forced >&2\n",
    const_run!("--near node:0 --migrate force", "hot_quarter 1 16 hot 3", ""),
);

#[test]
fn hot_pages_come_to_near_and_cold_ones_stay() {
    needs!("guest");
    let ran = right(boots::CXL.script("mover hot"), 1);
    came_to_near(&ran);
    assert_eq!(ran.stderr.lines().last(), Some("0"), "DAMON was not given back: {}", ran.stderr);
}

#[test]
fn the_kernel_s_own_tiering_is_left_alone() {
    needs!("guest");
    let ran = boots::CXL.script("mover kernel");
    let (left, forced) = ran.stderr.split_once("== forced\n").expect("both runs");
    assert!(left.contains("nearfar leaves it to the kernel") && !left.contains("mover:"), "{left}");
    let doctor = ran.part("left");
    assert!(doctor.contains("OK") && doctor.contains("kernel's tiering is on"), "{doctor}");
    assert!(forced.contains("may undo moves") && forced.contains("mover: looked"), "{forced}");
    assert!(ran.part("forced").contains("OK") && ran.status == Some(0), "{:?}", ran.status);
}

#[test]
#[ignore = "minutes; make soak runs them"]
fn huge_pages_come_to_near() {
    needs!("guest");
    came_to_near(&right(guest().run(&run("--near node:0:96M", &format!("hot_quarter 1 160 huge {WAIT_S}"))), 1));
}

#[test]
#[ignore = "minutes; make soak runs them"]
fn cold_pages_leave_a_full_near_for_hot_ones() {
    needs!("guest");
    // What was touched first has filled near.
    let ran = right(guest().run(&run("--near node:0:96M", &format!("hot_quarter 1 160 late {WAIT_S}"))), 1);
    assert!(share(&ran.stdout, "hot", "0") > 0.9, "{}", ran.stdout);
    assert!(share(&ran.stdout, "cold", "1") > 0.3, "{}", ran.stdout);
}

#[test]
#[ignore = "minutes; make soak runs them"]
fn children_are_served() {
    needs!("guest");
    let one = format!("hot_quarter 1 96 hot {WAIT_S}");
    let ran = right(guest().run(&run("--near node:0:96M", &format!("sh -c '{one} & {one}; wait'"))), 2);
    came_to_near(&ran);
}

#[test]
#[ignore = "minutes; make soak runs them"]
fn pages_that_are_all_alike_are_left_alone_in_the_end() {
    needs!("guest");
    let script = run("--near node:0:48M --stats /s.json", "hot_quarter 1 96 all 90") + "; cat /s.json >&2";
    let ran = right(guest().run(&script), 1);
    assert!(ran.stderr.contains("mover: off at the end, because"), "{}", ran.stderr);
    // What near had room for, and no exchanges to speak of.
    let near = share(&ran.stdout, "hot", "0");
    assert!(near < 0.55, "{near} of the pages are in near, whose limit is half of them");
    let number = |name: &str| {
        let line = ran.stderr.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name}"));
        line.trim().trim_end_matches(',').rsplit(' ').next().expect("a number").parse::<f64>().expect("a number")
    };
    let moved = number("\"promoted_bytes\"") + number("\"demoted_bytes\"");
    assert!(moved <= f64::from(80 << 20), "{moved} bytes were moved");
}

#[test]
fn a_machine_with_one_node_is_refused_with_advice() {
    let count = |name: &String| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
    let nodes = std::path::Path::new("/sys/devices/system/node");
    if nodes.is_dir() && crate::util::names_in(nodes).iter().filter(|name| count(name)).count() > 1 {
        return println!("skipped: this machine has several nodes");
    }
    let options = ["run", "--near", "node:0", "--far", "node:1", "--mode", "cache", "--", "true"];
    let output = Command::new(nearfar_bin()).args(options).stdin(Stdio::null()).output().expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("node 1"), "{said}");
}

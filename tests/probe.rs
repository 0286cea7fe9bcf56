//! `nearfar probe` as a user meets it: what is printed and written, what is refused, and machines that are captured or booted.
//! Whether figures are near those of a plain C program is `tests/probe_against_c.sh`: it needs a quiet machine.

use crate::util::{Scratch, machine, nearfar_bin};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn probe(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = Command::new(nearfar_bin());
    command.arg("probe").args(arguments).current_dir(scratch.work()).stdin(Stdio::null());
    command.output().expect("nearfar runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("written")).expect("JSON")
}

/// A probe that went well: noise is allowed, invalid figures are not.
#[track_caller]
fn measured(scratch: &Scratch, arguments: &[&str]) -> (Value, String) {
    let output = probe(scratch, arguments);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", output.status);
    (read(&scratch.work().join("node.json")), said)
}

fn rows<'a>(node: &'a Value, table: &str) -> &'a Vec<Value> {
    node[table].as_array().unwrap_or_else(|| panic!("{table}"))
}

#[test]
fn quick_probe_measures_every_part() {
    let _machine = machine();
    let scratch = Scratch::new();
    let far = scratch.far();
    let begin = std::time::Instant::now();
    let (node, said) = measured(&scratch, &["--quick", "--far", far.to_str().expect("UTF-8"), "--compare", "knl-flat"]);
    println!("{:.0} s\n{said}", begin.elapsed().as_secs_f64());
    for table in ["bandwidth", "latency", "compute", "threading", "far"] {
        assert!(!rows(&node, table).is_empty(), "no {table}: {}", node["missing"]);
    }
    let triad = rows(&node, "bandwidth").iter().find(|row| row["operation"] == "triad" && row["stores"] == "ordinary");
    let triad = triad.expect("a triad");
    assert_eq!((triad["counted_bytes"].as_u64(), triad["moved_bytes"].as_u64()), (Some(24), Some(32)));
    assert!(triad["rate"]["median"].as_f64().expect("a rate") > 1e8, "{triad}");
    let llc = node["topology"]["llc"]["bytes"].as_u64().unwrap_or(0);
    assert!(triad["array_bytes"].as_u64().expect("bytes") >= 12 * llc, "{triad}");
    for part in ["Bandwidth, GB/s", "triad", "random within 64 pages", "GFLOP/s", "Far tier", "node.json"] {
        assert!(said.contains(part), "no {part} in\n{said}");
    }
    assert_eq!(crate::util::names_in(&far), [""; 0], "far keeps nothing");
    // A second probe may write over the first one's file, but not with less.
    let output = probe(&scratch, &["--quick", "--no-far", "--only", "threading"]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("(bandwidth, latency, compute, far"), "{said}");
    assert_eq!(read(&scratch.work().join("node.json")), node);
    let part = ["--quick", "--no-far", "--only", "threading", "-o", "part.json"];
    assert!(probe(&scratch, &part).status.success() && probe(&scratch, &part).status.success());
}

#[test]
fn ordinary_users_measure_too() {
    needs!("root");
    let scratch = Scratch::new();
    let work = scratch.work();
    for dir in [work.as_path(), scratch.0.as_path()] {
        std::os::unix::fs::chown(dir, Some(65534), Some(65534)).expect("root");
    }
    let _machine = machine();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(nearfar_bin());
    command.args(["probe", "--quick", "--no-far", "--only", "bandwidth,latency"]).current_dir(&work);
    let output = command.output().expect("setpriv");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", output.status);
    assert!(!rows(&read(&work.join("node.json")), "latency").is_empty());
}

#[test]
fn what_cannot_be_measured_is_said_and_the_rest_goes_on() {
    let scratch = Scratch::new();
    let (node, said) = measured(
        &scratch,
        &["--quick", "--only", "far", "--far", "/nowhere/at/all", "--far", "emu:bw=4G,lat=10us", "--far", "node:1"],
    );
    assert_eq!(rows(&node, "far").len(), 1, "{said}");
    let missing: Vec<&str> = rows(&node, "missing").iter().filter_map(|row| row["what"].as_str()).collect();
    assert_eq!(missing, ["far tier /nowhere/at/all", "far tier node:1"]);
    assert!(said.contains("/nowhere/at/all: No such file"), "{said}");
}

#[test]
fn less_memory_than_the_arrays_need() {
    let scratch = Scratch::new();
    let _machine = machine();
    // Address space stands for any limit: the probe must not be killed, but say what is missing.
    let script = "ulimit -v 300000; exec \"$0\" probe --quick --no-far --only bandwidth,latency";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(nearfar_bin()).current_dir(scratch.work());
    let output = command.output().expect("bash");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}\n{said}", output.status);
    let node = read(&scratch.work().join("node.json"));
    assert!(!rows(&node, "missing").is_empty(), "{said}");
}

#[test]
fn refusals() {
    let scratch = Scratch::new();
    std::fs::write(scratch.work().join("precious.json"), "{}").expect("written");
    for (arguments, hint) in [
        (&["-o", "/nowhere/node.json"][..], "cannot be written"),
        (&["-o", "precious.json"], "not overwritten"),
        (&["--compare", "knl-flatt"], "knl-flat"),
        (&["--from", "/nowhere"], "No such file"),
        (&["--from", "precious.json"], "not a capture"),
        (&["--only", "speed"], "bandwidth"),
        (&["diff", "/nowhere.json", "precious.json"], "nowhere"),
    ] {
        let output = probe(&scratch, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(hint), "{arguments:?}: no \"{hint}\" in {said}");
    }
    assert_eq!(std::fs::read_to_string(scratch.work().join("precious.json")).expect("kept"), "{}");
    assert_eq!(crate::util::names_in(&scratch.work()), ["precious.json"]);
}

#[test]
fn a_machine_can_be_captured_and_described_elsewhere() {
    let scratch = Scratch::new();
    measured(&scratch, &["--quick", "--no-far", "--only", "threading", "--capture", "this.capture"]);
    let here = read(&scratch.work().join("node.json"));
    let (there, said) = measured(&scratch, &["--from", "this.capture"]);
    for field in ["cpu_model", "packages", "cores", "online", "caches", "distances"] {
        assert_eq!(here["topology"][field], there["topology"][field], "{field}");
    }
    assert!(rows(&there, "bandwidth").is_empty() && said.contains("another machine"), "{said}");
}

#[test]
fn captured_machines_are_described() {
    let scratch = Scratch::new();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let mut seen = 0;
    for name in crate::util::names_in(&machines).iter().filter(|name| name.ends_with(".capture")) {
        let path = machines.join(name);
        let (node, said) = measured(&scratch, &["--from", path.to_str().expect("UTF-8")]);
        assert!(!rows(&node, "findings").is_empty() && said.contains("Memory mode"), "{name}: {said}");
        seen += 1;
    }
    assert!(seen >= 8, "{seen} captured machines");
}

#[test]
fn a_report_is_one_page() {
    let scratch = Scratch::new();
    measured(&scratch, &["--quick", "--only", "bandwidth,compute,far", "--far", "emu:bw=4G,lat=10us"]);
    let output = Command::new(nearfar_bin())
        .args(["report", "node.json", "-o", "node.html"])
        .current_dir(scratch.work())
        .output()
        .expect("nearfar runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(scratch.work().join("node.html")).expect("written");
    assert!(page.contains("<svg") && page.contains("</html>"), "{} bytes", page.len());
    // Its only http-equiv forbids the browser to fetch anything.
    let forbidden = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'";
    assert!(page.contains(forbidden), "the page forbids loading");
    assert_eq!(page.matches("http-equiv").count(), 1);
    for outside in ["<script src", "<link ", "src=\"http"] {
        assert!(!page.contains(outside), "the page needs nothing else: {outside}");
    }
}

/// A KNL in flat mode, booted: the node without CPUs is near, and has a measured row.
#[test]
fn a_guest_with_memory_that_has_no_cpus() {
    needs!("guest");
    let scratch = Scratch::new();
    let _machine = machine();
    let numavm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/numavm");
    let script = "/bin/nearfar probe --quick --no-far --only bandwidth -o - ";
    let output = Command::new(numavm)
        .args(["knl-flat", "--mem", "ddr=2G,hbm=1G", "--file"])
        .arg(format!("{}:/bin/nearfar", nearfar_bin().display()))
        .args(["--append", "no_timer_check", "--timeout", "280", "--", "sh", "-c", script])
        .current_dir(scratch.work())
        .output()
        .expect("numavm");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let node: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {:?}\n{out}\n{err}", output.status));
    let nodes = node["topology"]["nodes"].as_array().expect("nodes");
    assert_eq!((nodes.len(), nodes[1]["cpus"].as_str()), (2, Some("")));
    let tiers = rows(&node, "findings").iter().find(|finding| finding["subject"] == "tiers").expect("tiers");
    assert!(tiers["value"].as_str().is_some_and(|value| value.contains("near") && value.contains('1')), "{tiers}");
    let row = rows(&node, "bandwidth").iter().find(|row| row["memory"]["node"] == 1 && row["operation"] == "triad");
    let row = row.unwrap_or_else(|| panic!("no row of node 1: {} {}", node["bandwidth"], node["missing"]));
    assert_ne!(row["rate"]["validity"], "invalid", "{row}");
}

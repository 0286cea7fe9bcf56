//! `nearfar bench suite`: what it saves, that it goes on after an interruption, and what it refuses. Sizes are too small for figures.

use crate::util::{Scratch, nearfar_bin, send_signal};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn suite(scratch: &Scratch, arguments: &[&str]) -> Command {
    let mut command = Command::new(nearfar_bin());
    command.args(["bench", "suite", "--far"]).arg(scratch.far()).args(arguments).current_dir(&scratch.0).stdin(Stdio::null());
    command
}

fn ended(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("nearfar runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output, text)
}

fn saved(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("results");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Wall seconds of all runs of all points, in order.
fn walls(file: &Value) -> Vec<Vec<f64>> {
    let points = file["works"][0]["points"].as_array().expect("points");
    let runs = points.iter().map(|point| point["runs"].as_array().expect("runs"));
    runs.map(|runs| runs.iter().map(|run| run["wall_s"].as_f64().expect("a number")).collect()).collect()
}

#[test]
fn an_interrupted_suite_goes_on_where_it_was() {
    let _beside = crate::util::shared_machine();
    let scratch = Scratch::new();
    let path = scratch.0.join("suite.json");
    let options = ["--only", "triad", "--ratios", "2,1", "--systems", "disk,emulated", "--threads", "2", "--runs", "2"];
    let sizes = ["--data", "48M", "--seconds", "2", "--json", "suite.json"];
    let mut child = suite(&scratch, &[&options[..], &sizes].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("nearfar starts");
    // Each line tells of a run that is saved right after; the second shows that the first is.
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let second = lines.map_while(Result::ok).filter(|line| line.starts_with('[')).nth(1).expect("two runs");
    assert!(second.contains("triad, nearfar, disk, data 2 x near, 2 threads"), "{second}");
    send_signal("INT", child.id());
    assert!(!child.wait().expect("it ends").success());
    let before = walls(&saved(&path));
    assert!(!before[0].is_empty(), "what was measured is kept");

    let (output, text) = ended(&mut suite(&scratch, &["--resume", "suite.json"]));
    assert!(output.status.success(), "{text}");
    let file = saved(&path);
    let after = walls(&file);
    assert!(after.len() == 5 && after.iter().all(|runs| runs.len() == 2), "all points, each twice: {after:?}");
    for (then, now) in before.iter().zip(&after) {
        assert!(now.starts_with(then), "measured again: {then:?}, {now:?}");
    }
    for field in ["nearfar", "machine", "settings"] {
        assert!(!file[field].is_null(), "{field}");
    }
    let work = &file["works"][0];
    let intensity = work["intensity"].as_f64().expect("a number");
    assert!((intensity - 2.0 / 24.0).abs() < 1e-9, "{intensity}");
    for point in work["points"].as_array().expect("points") {
        let run = &point["runs"][0];
        assert!(run["failed"].is_null() && run["rate"].as_f64() > Some(0.0), "{point}");
        let same = run["checksum"] == work["points"][0]["runs"][0]["checksum"];
        assert!(same || run["stopped"] == true, "the same data everywhere: {point}");
        assert!(
            point["system"] == "dram" || point["bound"]["efficiency"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0),
            "{point}"
        );
        assert!(point["command"].as_str().is_some_and(|command| command.contains("nearfar-kernel triad")), "{point}");
    }
    // Nothing is left to do: at once, and the same.
    let (output, text) = ended(&mut suite(&scratch, &["--resume", "suite.json"]));
    assert!(output.status.success() && text.contains("STREAM triad"), "{text}");
    assert_eq!(walls(&saved(&path)), after);
    let page = std::fs::read_to_string(scratch.0.join("suite.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));

    let (output, text) = ended(&mut suite(&scratch, &["--compare", "suite.json", "suite.json"]));
    assert!(output.status.success() && text.contains("worse: none") && text.contains("4 of 4 points"), "{text}");
}

#[test]
fn without_a_name_results_and_page_get_a_directory() {
    let _beside = crate::util::shared_machine();
    let scratch = Scratch::new();
    let options = ["--only", "copy", "--ratios", "2", "--systems", "disk", "--threads", "2", "--runs", "1"];
    let (output, text) = ended(&mut suite(&scratch, &[&options[..], &["--data", "48M", "--seconds", "1"]].concat()));
    assert!(output.status.success(), "{text}");
    let names = crate::util::names_in(&scratch.0.join("bench-results"));
    let kinds: Vec<&str> = names.iter().filter_map(|name| name.rsplit_once('.')).map(|(_, kind)| kind).collect();
    assert_eq!((kinds.len(), kinds.contains(&"html"), kinds.contains(&"json")), (2, true, true), "{names:?}");
    assert!(!text.contains("FAULT"), "{text}");
}

#[test]
fn modes_stand_beside_all_near() {
    // A busy machine may leave a profile, and so a plan, without anything.
    let _machine = crate::util::machine();
    let scratch = Scratch::new();
    let mut command = Command::new(nearfar_bin());
    command.args(["bench", "modes", "--only", "md", "--data", "72M", "--runs", "1", "--seconds", "1", "--json", "modes.json"]);
    let (output, text) = ended(command.current_dir(&scratch.0).stdin(Stdio::null()));
    assert!(output.status.success() && text.contains("speed as a share of that with all data near"), "{text}");
    let file = saved(&scratch.0.join("modes.json"));
    let points = file["works"][0]["points"].as_array().expect("points");
    let systems: Vec<&str> = points.iter().filter_map(|point| point["system"].as_str()).collect();
    let modes = ["dram", "all_far", "cache", "flat_in_order", "flat_by_plan", "hybrid25", "hybrid50", "hybrid75"];
    assert_eq!(systems, modes, "{text}");
    for point in points {
        let run = &point["runs"][0];
        let reasons = ["no object worth its place near", "more --data is needed"];
        if point["obstacle"].as_str().is_some_and(|why| reasons.iter().any(|reason| why.contains(reason))) {
            assert!(point["system"].as_str().is_some_and(|system| system.starts_with("hybrid")), "{point}");
            continue;
        }
        assert!(point["obstacle"].is_null() && run["failed"].is_null() && run["seconds"].as_f64() > Some(0.0), "{point}");
        let checksum = &run["checksum"];
        assert!(run["stopped"] == true || *checksum == points[0]["runs"][0]["checksum"], "the same data in each mode: {point}");
    }
    // What was planned by can be looked at.
    let plans = crate::util::names_in(&scratch.0).into_iter().find(|name| name.starts_with("modes.plans-")).expect("a directory");
    let kept = crate::util::names_in(&scratch.0.join(plans));
    assert!(kept.iter().any(|name| name.ends_with(".nfprof")), "{kept:?}");
    let page = std::fs::read_to_string(scratch.0.join("modes.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_left() {
    let scratch = Scratch::new();
    let path = scratch.0.join("other.json");
    let machine = r#"{"cpu":"another","cpus":1,"ram":1,"kernel":"1","huge_pages":"never","far":"/far"}"#;
    let settings = r#"{"data_bytes":1,"ratios":[2],"threads":[1],"systems":["disk"],"runs":1,"seconds":1}"#;
    let other = format!(
        r#"{{"format":"nearfar-suite","version":1,"nearfar":"0","started_unix_s":0,"machine":{machine},"settings":{settings},"dram_triad":0,"works":[]}}"#
    );
    std::fs::write(&path, other).expect("written");
    std::fs::write(scratch.0.join("node.json"), r#"{"format": 1, "name": "x"}"#).expect("written");
    for (arguments, told) in [
        (&["--only", "tirad"][..], "there is no such work; there are: "),
        (&["--ratios", "0"], "from 0.1 to 100"),
        (&["--threads", "0"], "--threads"),
        (&["--seconds", "-1"], "--seconds"),
        (&["--data", "100000G"], "does not fit"),
        (&["--data", "1M"], "too little"),
        (&["--systems", "dram"], "dram"),
        (&["--runs", "1000000"], "--runs"),
        (&["--json", "results.html"], "the page about the results gets this name"),
        (&["--json", "/nonexistent/suite.json"], "/nonexistent"),
        (&["--far", "/nonexistent"], "no such directory"),
        (&["--resume", "missing.json"], "missing.json cannot be read"),
        (&["--resume", "node.json"], "is no suite"),
        (&["--resume", "other.json"], "figures of both cannot be compared"),
        (&["--compare", "other.json", "node.json"], "is no suite"),
    ] {
        let mut command = Command::new(nearfar_bin());
        command.args(["bench", "suite"]).args(arguments).current_dir(&scratch.0).stdin(Stdio::null());
        let (output, text) = ended(&mut command);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(told), "{arguments:?}: {text}");
    }
    for (arguments, told) in [
        (&["--near-node", "node:0"][..], "--far-node"),
        (&["--near-node", "node:0", "--far-node", "node:0"], "name two memories"),
        (&["--near-node", "node:0", "--far-node", "node:63"], "--far-node"),
        (&["--near-node", "400M", "--far-node", "node:0"], "--near-node"),
    ] {
        let mut command = Command::new(nearfar_bin());
        command.args(["bench", "modes"]).args(arguments).current_dir(&scratch.0).stdin(Stdio::null());
        let (output, text) = ended(&mut command);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(told), "{arguments:?}: {text}");
    }
    let mut left: Vec<_> =
        std::fs::read_dir(&scratch.0).expect("list").map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    left.retain(|name| *name != "far" && *name != "work");
    assert_eq!(left, ["node.json", "other.json"]);
}

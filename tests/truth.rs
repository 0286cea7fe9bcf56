//! Profiles of programs whose traffic is known: shares of objects must come out, with wide tolerance, since runs are short here and
//! the machine is busy. `make truth` has more programs, takes longer and says how close it is.

use crate::util::{Scratch, machine, nearfar_bin};
use std::process::Command;

/// Points that a share may be off here.
const TOLERANCE: f64 = 25.0;
/// What an object that the cache holds may have, in per cent.
const NOTHING: f64 = 10.0;

/// The rows of one program: name, truth, measured.
fn rows(program: &str) -> Vec<(String, f64, f64)> {
    let scratch = Scratch::new();
    let json = scratch.work().join("truth.json");
    let mut command = Command::new(nearfar_bin());
    command.args(["bench", "profile", "--seconds", "6", "--only", program, "--json"]).arg(&json);
    let output = command.output().expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program}: {said}{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).expect("figures")).expect("JSON");
    let rows = found[0]["rows"].as_array().unwrap_or_else(|| panic!("{program}: {found}"));
    let number = |row: &serde_json::Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
    println!("{said}");
    let row = |row| (row, number(row, "truth"), number(row, "measured"));
    rows.iter()
        .map(row)
        .map(|(row, truth, measured)| (row["object"].as_str().unwrap_or("").to_owned(), truth, measured))
        .collect()
}

#[test]
fn shares_of_traffic_come_out_and_the_cache_has_none() {
    // Four arrays of 96 MiB: a cache of half of that holds what the profile is to see.
    let cache = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").unwrap_or_default();
    if cache.trim().strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok()).is_some_and(|kib| kib > 192 << 10) {
        return println!("skipped: the last-level cache has {}, half of the data of these programs or more", cache.trim());
    }
    needs!("gcc");
    let _alone = machine();
    for program in ["sweeps-2", "hot", "stencil-2"] {
        // Estimates are random; twice in a row they are not so far off by chance.
        let first = worst(&rows(program));
        let said = if first.is_some() { worst(&rows(program)) } else { None };
        assert!(said.is_none(), "{program}: {first:?}, then {said:?}");
    }
}

/// What is too far off.
fn worst(rows: &[(String, f64, f64)]) -> Option<String> {
    if rows.len() < 2 {
        return Some(format!("too few objects: {rows:?}"));
    }
    let is_off = |(_, truth, measured): &&(String, f64, f64)| {
        (measured - truth).abs() > TOLERANCE || (*truth <= 0.5 && *measured >= NOTHING) || !measured.is_finite()
    };
    let tell = |(object, truth, measured): &(String, f64, f64)| {
        format!("{object} has {truth:.1} % of the traffic, and the profile says {measured:.1} %")
    };
    rows.iter().find(is_off).map(tell)
}

/// Points that a miss-ratio curve may be off here, as a mean over sizes from 5 to 95 % of the program: one that says that all
/// misses is off by 67, one that says that nothing does by 33.
const CURVE: f64 = 15.0;

#[test]
fn miss_ratio_curves_come_out_as_a_replay_of_all_visits_says() {
    needs!("gcc");
    let _alone = machine();
    // Estimates are random; twice in a row they are not so far off by chance.
    let first = curve_error();
    let error = if first > CURVE { curve_error() } else { first };
    assert!(error <= CURVE, "the curve is off by {first:.1}, then by {error:.1} points");
}

/// How far the curve of `hot` is off, as a mean. An array that is one third of it is swept again and again, the rest is not
/// visited.
fn curve_error() -> f64 {
    let scratch = Scratch::new();
    let json = scratch.work().join("misses.json");
    let mut command = Command::new(nearfar_bin());
    command.args(["bench", "profile", "misses", "--seconds", "3", "--size", "64", "--only", "hot", "--json"]).arg(&json);
    let output = command.output().expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).expect("figures")).expect("JSON");
    let all = &found[0]["rows"][0];
    let points = all["points"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert!(all["object"] == "all" && points.len() > 10, "{found}");
    let number = |point: &serde_json::Value, name: &str| point[name].as_f64().unwrap_or(f64::NAN);
    for point in points {
        let truth = if number(point, "near") < 33.3 { 100.0 } else { 0.0 };
        assert!((number(point, "truth") - truth).abs() < 1.0, "a sweep misses all or nothing: {point}");
    }
    points.iter().map(|point| (number(point, "profiled") - number(point, "truth")).abs()).sum::<f64>() / points.len() as f64
}

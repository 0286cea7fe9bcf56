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

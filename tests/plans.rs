//! Profile, plan, run: what a plan of a real profile names is found again, whoever handed the memory on between malloc and the
//! function that asked.

use crate::util::{Scratch, compile, nearfar_bin, program_file, python, shared_machine};
use std::ffi::OsString;
use std::process::{Command, Output};

const HOT: f64 = 192.0;

fn nearfar(scratch: &Scratch, args: &[&str], program: &[OsString]) -> Output {
    // What hangs is ended.
    let mut command = Command::new("timeout");
    let output =
        command.args(["-k", "5", "120"]).arg(nearfar_bin()).args(args).args(program).current_dir(scratch.work()).output();
    let output = output.expect("nearfar runs");
    println!("{args:?}\n{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    output
}

/// MiB that were placed near, as `run` says.
fn placed_mib(output: &Output) -> f64 {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("placed near:")).unwrap_or_else(|| panic!("nothing was placed:\n{text}"));
    let size = line.split(" of ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a size");
    assert!(line.contains(" MiB in total"), "{line}");
    size.parse().expect("a number")
}

/// Profiles a program with an array of 192 MiB that is hot and one as large that is not, and runs it by the plan for 226 MiB, 32 of which
/// stay a cache: all of it would not be enough for the hot one. It runs with room for both.
fn the_hot_array_is_found_again(program: &[OsString]) {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    nearfar(&scratch, &["profile", "-q", "--budget", "10%", "-o", "app.nfprof", "--"], program);
    nearfar(&scratch, &["advise", "app.nfprof", "--near", "226M", "--far", "emu:bw=4G,lat=10us", "-o", "plan.toml"], &[]);
    // None is written where nothing is worth a rule.
    let plan = std::fs::read_to_string(scratch.work().join("plan.toml")).unwrap_or_default();
    if !plan.contains("make_hot") && program.len() > 1 {
        // An interpreter has much besides, which may take the little that is left.
        return println!("skipped: the plan leaves the array to the cache");
    }
    let args = ["run", "--mode", "flat", "--near", "640M", "--far", "emu:bw=8G,lat=10us", "--place", "plan:plan.toml", "--"];
    let output = nearfar(&scratch, &args, program);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("OK\n"));
    let placed = placed_mib(&output);
    assert!((HOT..1.5 * HOT).contains(&placed), "{placed} MiB near, of an array of {HOT}:\n{plan}");
}

programs! {
    through_a_function_of_the_program: the_hot_array_is_found_again(&[compile("plan_xmalloc.c").into()]);
    through_containers_that_nobody_inlined (needs "g++"): the_hot_array_is_found_again(&[compile("plan_vectors.cpp").into()]);
    through_the_library_of_rust (needs "rustc"): the_hot_array_is_found_again(&[compile("plan_slices.rs").into()]);
    through_numpy (needs "numpy"): the_hot_array_is_found_again(&[python().into(), program_file("plan_arrays.py").into()]);
}

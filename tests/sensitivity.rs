//! `nearfar sensitivity` as a user sees it. `--smoke` keeps it short; its figures mean nothing, so none is looked at.

use crate::util::{Scratch, machine, nearfar_bin};
use std::process::{Command, Output, Stdio};

fn sensitivity(arguments: &[&str], scratch: &Scratch) -> Output {
    let mut command = Command::new(nearfar_bin());
    command.arg("sensitivity").args(arguments).current_dir(scratch.work()).stdin(Stdio::null());
    command.output().expect("nearfar runs")
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_runs_under_every_condition_and_its_first_output_is_passed_on() {
    let (_machine, scratch) = (machine(), Scratch::new());
    let output = sensitivity(&["--smoke", "--json", "s.json", "--", "sh", "-c", "echo hello; echo x >> runs"], &scratch);
    let (stdout, stderr) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stdout.matches("hello").count(), 1, "{stdout}");
    assert!(stdout.contains("confidence: low") && stdout.contains("beside a bandwidth"), "{stdout}");
    let text = std::fs::read_to_string(scratch.work().join("s.json")).expect("saved");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let conditions = json["runs"].as_array().expect("runs").len();
    let runs = std::fs::read_to_string(scratch.work().join("runs")).expect("written by the program");
    // The first run is not counted.
    assert_eq!(runs.lines().count(), conditions + 1);
    assert!(json["verdict"].is_string() && json["trials"]["hog"].is_object(), "{text}");
}

#[test]
fn mute_drops_the_first_output_as_well() {
    let (_machine, scratch) = (machine(), Scratch::new());
    let output = sensitivity(&["--smoke", "--mute", "--", "echo", "hello"], &scratch);
    assert!(output.status.success() && !said(&output.stdout).contains("hello"), "{}", said(&output.stdout));
}

#[test]
fn a_program_that_fails_ends_it() {
    let (_machine, scratch) = (machine(), Scratch::new());
    let first = sensitivity(&["--smoke", "--", "sh", "-c", "exit 7"], &scratch);
    assert_eq!(first.status.code(), Some(1));
    assert!(said(&first.stderr).contains("status 7") && first.stdout.is_empty(), "{}", said(&first.stderr));
    // Only the third run fails.
    let later = sensitivity(&["--smoke", "--", "sh", "-c", "echo x >> n; test $(wc -l < n) -lt 3"], &scratch);
    assert_eq!(later.status.code(), Some(1));
    assert!(said(&later.stderr).contains("output was dropped"), "{}", said(&later.stderr));
    let killed = sensitivity(&["--smoke", "--", "sh", "-c", "kill -SEGV $$"], &scratch);
    assert!(killed.status.code() == Some(1) && said(&killed.stderr).contains("SIGSEGV"), "{}", said(&killed.stderr));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let scratch = Scratch::new();
    for (arguments, hint) in [
        (&["--", "no-such-program"][..], "no-such-program"),
        (&["--runs", "2", "--", "true"], "--runs"),
        (&["--json", "/no/such/dir/x", "--", "true"], "--json"),
        (&[], "PROGRAM"),
    ] {
        let output = sensitivity(arguments, &scratch);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output.stderr).contains(hint) && output.stdout.is_empty(), "{arguments:?}: {}", said(&output.stderr));
    }
}

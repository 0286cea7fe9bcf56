//! `nearfar map`: what it shows of programs whose threads and pages are known, and that it leaves a program its streams, signals and end.

use crate::util::{Scratch, compile, nearfar_bin, send_signal};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// `nearfar map` with `options`.
fn map(options: &[&str]) -> Command {
    let mut command = Command::new(nearfar_bin());
    command.arg("map").args(options).stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> (Output, String) {
    let output = command.output().expect("nearfar runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// Runs `program` under `nearfar map --json` and returns how it ended and the report.
fn json(program: &Path, args: &[&str], env: &[(&str, &str)]) -> (Output, Value) {
    let scratch = Scratch::new();
    let file = scratch.0.join("map.json");
    let mut command = map(&["--json", "-o"]);
    command.arg(&file).arg("--").arg(program).args(args);
    // What the test's own environment says must not decide.
    for name in ["OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_NESTED", "OMP_MAX_ACTIVE_LEVELS"] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied());
    let (output, said) = output(command);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(said, "", "nothing on standard error with -o");
    (output, serde_json::from_str(&text).expect("JSON"))
}

fn kinds(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().expect("warnings").iter().filter_map(|warning| warning["kind"].as_str()).collect()
}

fn threads(process: &Value) -> &Vec<Value> {
    process["threads"].as_array().expect("threads")
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn every_openmp_thread_is_listed_and_too_many_are_warned_of() {
    needs!("openmp");
    let _machine = crate::util::machine();
    let wanted = cpus() + 2;
    let (output, report) = json(&compile("openmp_busy.c"), &["1.5"], &[("OMP_NUM_THREADS", &wanted.to_string())]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"OK\n"[..]));
    let process = &report["processes"][0];
    let numbers: Vec<u64> = threads(process).iter().filter_map(|thread| thread["openmp"].as_u64()).collect();
    assert_eq!(numbers, (0..wanted as u64).collect::<Vec<_>>(), "{report:#}");
    assert!(threads(process).iter().all(|thread| !thread["allowed"].as_str().unwrap_or("").is_empty() && thread["cpu"].is_u64()));
    assert!(threads(process).iter().filter(|thread| thread["cpu_s"].as_f64() > Some(0.05)).count() >= wanted / 2, "{report:#}");
    assert_eq!(process["settings"]["OMP_NUM_THREADS"], wanted.to_string());
    assert!(process["openmp"][0].as_str().is_some_and(|name| name.starts_with("libgomp")), "{process:#}");
    let warning = report["warnings"].as_array().expect("a list").iter().find(|warning| warning["kind"] == "oversubscribed");
    let advice = warning.unwrap_or_else(|| panic!("no warning: {report:#}"))["advice"].as_str().expect("advice");
    assert!(advice.contains(&format!("OMP_NUM_THREADS={}", cpus())), "{advice}");
    // Where the pages lie: the heap and the static table were written.
    let objects = process["memory"]["objects"].as_array().expect("objects");
    let bytes = |kind: &str| {
        objects.iter().find(|object| object["object"] == kind).map_or(0, |object| object["bytes"].as_u64().unwrap_or(0))
    };
    assert!(bytes("anonymous") + bytes("heap") >= 32 << 20, "{process:#}");
    assert!(bytes("program-data") >= 2 << 20, "{process:#}");
}

#[test]
fn nested_teams_are_told() {
    needs!("openmp");
    let _machine = crate::util::machine();
    let (output, report) = json(&compile("openmp_busy.c"), &["1.0", "nested"], &[("OMP_NUM_THREADS", "2")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(threads(&report["processes"][0]).len() >= 4, "{report:#}");
    assert!(kinds(&report).contains(&"nested"), "{report:#}");
    assert!(report["warnings"].to_string().contains("OMP_MAX_ACTIVE_LEVELS=1"), "{report:#}");
}

#[test]
fn sleeping_threads_are_listed_and_leave_nothing_to_say() {
    // Threads that have to wait for a CPU before they may sleep do crowd.
    let _machine = crate::util::machine();
    let (output, report) = json(&compile("sleeping_threads.c"), &["0.6"], &[("OMPI_COMM_WORLD_RANK", "3")]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"OK\n"[..]), "the program's own status");
    let process = &report["processes"][0];
    assert_eq!(
        (threads(process).len(), process["rank"]["number"].as_u64(), process["ended"].as_bool()),
        (6, Some(3), Some(true))
    );
    assert!(threads(process).iter().all(|thread| thread["openmp"].is_null()), "{process:#}");
    // What the control group says depends on the machine.
    let of_group = ["memory-limit-near", "quota-below-threads"];
    assert!(kinds(&report).iter().all(|kind| of_group.contains(kind)), "{report:#}");
    let objects = process["memory"]["objects"].to_string();
    assert!(objects.contains("thread-stacks") && objects.contains("main-stack"), "{objects}");
}

#[test]
fn a_thread_bound_elsewhere_shows_its_own_affinity() {
    let scratch = Scratch::new();
    let file = scratch.0.join("map.json");
    let first = {
        let status = std::fs::read_to_string("/proc/self/status").expect("status");
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim().to_owned();
        list.split([',', '-']).next().expect("a number").to_owned()
    };
    let mut command = map(&["--json", "-o"]);
    command.arg(&file).args(["--", "taskset", "-c", &first, "sleep", "0.3"]);
    let (output, said) = output(command);
    if output.status.code() == Some(2) {
        println!("skipped: needs taskset: {said}");
        return;
    }
    let report: Value = serde_json::from_slice(&std::fs::read(&file).expect("a report")).expect("JSON");
    let process = &report["processes"][0];
    assert_eq!((&process["name"], &process["threads"][0]["allowed"]), (&"sleep".into(), &first.as_str().into()), "{report:#}");
    assert_eq!((&process["allowed"], &process["command"]), (&first.as_str().into(), &"sleep 0.3".into()));
}

#[test]
fn children_are_followed_and_the_report_is_on_standard_error() {
    let mut command = map(&["--", "sh", "-c", "sleep 0.4; cat; exit 3"]);
    command.stdin(Stdio::null());
    let (output, said) = output(command);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    assert!(said.contains(": sleep 0.4") && said.contains("processes") && said.contains("may use"), "{said}");
}

#[test]
fn the_shortest_program_is_seen() {
    let (output, said) = output(map(&["--", "true"]));
    assert!(output.status.success() && said.contains("1 process, 1 thread in"), "{said}");
}

#[test]
fn xthi_lines() {
    let mut command = map(&["--xthi", "--"]);
    command.arg(compile("sleeping_threads.c")).arg("0.3").env("PMI_RANK", "12");
    let (output, said) = output(command);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(said.lines().count(), 6, "{said}");
    for line in said.lines() {
        let wanted = ["Host=", "  MPI Rank=12  CPU=", "  NUMA Node=", "  CPU Affinity="];
        assert!(wanted.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[test]
fn signals_and_deaths_are_passed_through() {
    let (output, said) = output(map(&["--", "sh", "-c", "kill -SEGV $$"]));
    assert_eq!(output.status.signal(), Some(11), "{said}");
    let scratch = Scratch::new();
    let mut command = map(&["-o"]);
    command.arg(scratch.0.join("map.txt")).args([
        "--",
        "sh",
        "-c",
        "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("nearfar runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    send_signal("TERM", child.id());
    assert_eq!(lines.next().expect("a line").expect("text"), "caught");
    assert_eq!(child.wait().expect("wait").code(), Some(5));
    assert!(std::fs::read_to_string(scratch.0.join("map.txt")).expect("a report").contains("trap"));
}

/// A program that sleeps, killed at the end.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut child = Command::new(compile("sleeping_threads.c")).arg("60").stdout(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        Self(child)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_runs_already() {
    let mut sleeper = Sleeper::start();
    let (output, said) = output(map(&["--after", "0.2", &sleeper.0.id().to_string()]));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert!(printed.contains(&format!("process {}: ", sleeper.0.id())) && printed.contains("6 threads"), "{printed}");
    assert!(printed.contains("main stack") && !printed.contains("oversubscription"), "{printed}");
    assert!(sleeper.0.try_wait().expect("wait").is_none(), "it goes on");
}

#[test]
fn a_report_before_the_end() {
    let (output, said) = output(map(&["--after", "0.2", "--", "sh", "-c", "sleep 0.6; echo late >&2; exit 4"]));
    assert_eq!(output.status.code(), Some(4));
    let (report, late) = (said.find("sleep 0.6").expect("a report"), said.find("late\n").expect("its own words"));
    assert!(report < late && said.matches("nearfar map:").count() == 1, "{said}");
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    for (options, hint) in [
        (&["4194304999"][..], "no process 4194304999"),
        (&["0"], "no process 0"),
        (&["--", "no-such-program-anywhere"], "PATH"),
        (&["--after", "soon", "1"], "--after: soon"),
        (&["--after", "-1", "1"], "--after: -1"),
        (&["1", "--after", "2"], "before the number"),
        (&["-o", "/nonexistent/map.txt", "--", "true"], "/nonexistent/map.txt"),
    ] {
        let (output, said) = output(map(options));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options:?}: {said}");
        assert!(said.contains(hint) && said.trim_end().lines().count() == 1, "{options:?}: {said}");
    }
    assert_eq!(output(map(&["--json", "--xthi", "--", "true"])).0.status.code(), Some(2));
}

#[test]
fn another_user_s_process() {
    needs!("root");
    // Where an ordinary user may reach it: the tree may be closed to others.
    let program = std::env::temp_dir().join(format!("nearfar-map-{}", std::process::id()));
    std::fs::copy(nearfar_bin(), &program).expect("copied");
    let sleeper = Sleeper::start();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.args(["map", "--after", "0.1", &sleeper.0.id().to_string()]).current_dir("/");
    let result = command.output();
    let _ = std::fs::remove_file(&program);
    let output = match result {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: needs setpriv: {error}");
            return;
        }
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    // Mounted with hidepid, /proc does not even show that there is such a process.
    assert!(output.status.success() || said.contains("no process"), "{printed}{said}");
    if output.status.success() {
        let denied = printed.lines().filter(|line| line.contains("permission denied")).count();
        assert!(denied == 1 && printed.contains("6 threads"), "{printed}");
    }
}

//! `nearfar top`: what it shows of jobs that run, and that it leaves the terminal as it was.

use crate::util::{Scratch, compile, nearfar_bin, program_file, python, send_signal};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn top(options: &[&str]) -> Output {
    Command::new(nearfar_bin()).arg("top").args(options).stdin(Stdio::null()).output().expect("nearfar runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A job, ended at the end.
struct Job {
    child: Child,
    _scratch: Scratch,
}

const NEAR: u64 = 64 << 20;

impl Job {
    /// Touches three times its near memory at random for a minute.
    fn start() -> Self {
        let random = ["random", "--bytes", "192M", "--threads", "2", "--ops", "1000000000", "--sweeps", "1", "--seconds", "60"];
        Self::of(&nearfar_bin().with_file_name("nearfar-kernel"), &random)
    }

    fn of(program: &Path, args: &[&str]) -> Self {
        let scratch = Scratch::new();
        let mut command = Command::new(nearfar_bin());
        command.args(["run", "--near", "64M", "--quiet", "--far"]).arg(scratch.far()).arg("--").arg(program).args(args);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().expect("nearfar runs");
        Self { child, _scratch: scratch }
    }

    /// What top says of it once it is paged.
    fn paged(&self) -> Value {
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(50), "the job is not seen to be paged");
            let output = top(&["--once", "--json", "--interval", "0.5", "--pid", &self.child.id().to_string()]);
            // Right after the start there is no job yet.
            let Ok(value) = serde_json::from_slice::<Value>(&output.stdout) else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let job = &value["jobs"][0];
            if job["rates"]["misses_per_s"].as_f64().is_some_and(|misses| misses > 0.0) && job["rates"]["hit_share"].is_f64() {
                return value;
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        send_signal("TERM", self.child.id());
        let _ = self.child.wait();
    }
}

#[test]
fn a_job_that_runs() {
    let _machine = crate::util::shared_machine();
    let job = Job::start();
    let value = job.paged();
    assert_eq!((&value["format"], &value["version"]), (&"nearfar-top".into(), &1.into()));
    let jobs = value["jobs"].as_array().expect("a list");
    let [seen] = jobs.as_slice() else { panic!("{value:#}") };
    assert!(seen["program"].as_str().is_some_and(|program| program.ends_with("nearfar-kernel")), "{seen:#}");
    assert_eq!((&seen["args"][0], &seen["command_pid"]), (&"random".into(), &job.child.id().into()));
    assert_eq!((&seen["near_bytes"], &seen["ended"], &seen["paging"]), (&NEAR.into(), &false.into(), &"pager".into()));
    let used = seen["near_used_bytes"].as_u64().expect("a number");
    assert!(used > NEAR / 2 && used <= NEAR + NEAR / 1000, "{used}");
    let rate = |name: &str| seen["rates"][name].as_f64().unwrap_or_else(|| panic!("{name}: {seen:#}"));
    assert!(rate("in_bytes_per_s") > 0.0 && rate("wait_share") >= 0.0 && rate("far_busy_share") >= 0.0, "{seen:#}");
    assert!((0.0..=1.0).contains(&rate("hit_share")) && seen["counters"]["bytes_in"].as_u64() > Some(0), "{seen:#}");
    let pid = seen["processes"][0]["pid"].as_u64().expect("a process").to_string();
    let of_program = top(&["--once", "--interval", "0.1", "--pid", &pid]);
    let table = text(&of_program.stdout);
    assert!(table.lines().count() == 2 && table.contains("PROGRAM") && table.contains("nearfar-kernel"), "{table}");
    assert!(table.contains(&pid) && table.contains("/64.0M") && of_program.stderr.is_empty(), "{table}");
    let all = text(&top(&["--once", "--interval", "0.1"]).stdout);
    assert!(all.lines().any(|line| line.split_whitespace().next() == Some(&pid)), "{all}");
}

#[test]
fn the_object_that_is_waited_for_is_named() {
    let _machine = crate::util::shared_machine();
    let job = Job::of(&compile("swept_and_left.c"), &[]);
    let find = |value: &Value, function: &str| {
        let objects = value["jobs"][0]["objects"].as_array().expect("a list");
        objects.iter().find(|object| object["name"].as_str().is_some_and(|name| name.starts_with(function))).cloned()
    };
    let begin = Instant::now();
    let (value, swept, left) = loop {
        let value = job.paged();
        // It may be seen while it still makes the first.
        if let (Some(swept), Some(left)) = (find(&value, "make_swept"), find(&value, "make_left")) {
            break (value, swept, left);
        }
        assert!(begin.elapsed() < Duration::from_secs(50), "{value:#}");
    };
    assert!(swept["name"].as_str().is_some_and(|name| name.contains("swept_and_left.c:")), "{swept:#}");
    let number = |object: &Value, field: &str| object[field].as_f64().unwrap_or_else(|| panic!("{field}: {object:#}"));
    let bytes = |object: &Value| number(object, "bytes") / f64::from(1 << 20);
    assert!((160.0..161.0).contains(&bytes(&swept)) && (8.0..9.0).contains(&bytes(&left)), "{value:#}");
    let all = number(&value["jobs"][0]["rates"], "misses_per_s");
    assert!(number(&swept, "misses_per_s") > 0.9 * all && number(&swept, "wait_share") > 0.0, "{value:#}");
    assert_eq!((number(&left, "misses_per_s"), number(&left, "wait_share")), (0.0, 0.0), "{value:#}");
    // A look at its pages takes a moment, in which what is near changes.
    assert!((0.01..0.6).contains(&number(&swept, "near_share")), "{value:#}");
    assert_eq!(value["jobs"][0]["objects"][0], swept, "what is waited for comes first");
}

/// Others' tests may run jobs: what there is then is no concern of this one.
#[test]
fn without_a_job_the_document_is_whole() {
    let output = top(&["--once", "--json", "--interval", "0.1"]);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(output.status.success() && value["jobs"].is_array() && value["unreadable"].is_array(), "{value:#}");
    let table = text(&top(&["--once", "--interval", "0.1"]).stdout);
    assert!(
        table.contains("PROGRAM") || (table.starts_with("No job of nearfar runs") && table.contains("nearfar run --near")),
        "{table}"
    );
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    let own = std::process::id().to_string();
    for (options, hint) in [
        (&[][..], "--once"),
        (&["--once", "--pid", "4194304999"], "--pid"),
        (&["--once", "--pid", "4194303"], "process 4194303"),
        (&["--once", "--pid", &own], "belongs to no job"),
        (&["--once", "--interval", "0"], "--interval: 0"),
        (&["--once", "--interval", "-1"], "--interval: -1"),
    ] {
        let output = top(options);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{options:?}: {said}");
        assert!(said.contains(hint) && said.trim_end().lines().count() == 1, "{options:?}: {said}");
    }
    assert_eq!(top(&["--json"]).status.code(), Some(2));
}

#[test]
fn the_screen_comes_and_goes() {
    needs!("python3");
    let _machine = crate::util::shared_machine();
    let job = Job::start();
    job.paged();
    let mut command = Command::new(python());
    let output = command.arg(program_file("top_screen.py")).arg(nearfar_bin()).output().expect("python3 runs");
    assert_eq!(text(&output.stdout), "OK\n", "{}", text(&output.stderr));
}

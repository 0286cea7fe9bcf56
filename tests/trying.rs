//! `nearfar try` as a newcomer meets it: five lines and a page, the program's own output once, nothing left behind.

use crate::util::{Scratch, compile, descendants, names_in, nearfar_bin, send_signal, shared_machine, wait_gone};
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// In a directory of its own, with temporary files in another.
fn command(scratch: &Scratch, options: &[&str], program: &Path, arguments: &[&str]) -> Command {
    std::fs::create_dir_all(scratch.0.join("tmp")).expect("a directory");
    // A job in the background of a shell ignores SIGINT, tests and all.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(nearfar_bin());
    command.arg("try").args(["--far".as_ref(), scratch.far().as_os_str()]).args(options).arg("--").arg(program).args(arguments);
    command.current_dir(scratch.work()).env("TMPDIR", scratch.0.join("tmp")).stdin(Stdio::null());
    command
}

fn tried(scratch: &Scratch, options: &[&str], arguments: &[&str]) -> Output {
    let _beside = shared_machine();
    command(scratch, options, &compile("tried.c"), arguments).output().expect("nearfar runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn leaves_nothing(scratch: &Scratch) {
    assert_eq!((names_in(&scratch.0.join("tmp")), names_in(&scratch.far())), (vec![], vec![]));
}

#[test]
fn five_lines_and_a_page() {
    let scratch = Scratch::new();
    let output = tried(&scratch, &[], &["160"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    // What the program printed, once, and nothing else: it may go to a file.
    assert!(stdout.lines().count() == 1 && stdout.trim().bytes().all(|byte| byte.is_ascii_digit()), "{stdout}");
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("nearfar: ")).collect();
    assert_eq!(lines.len(), 5, "{stderr}");
    assert!(lines[0].starts_with("all ") && lines[0].contains("16"), "{stderr}");
    assert!(lines[1].starts_with("half") && lines[1].ends_with("same output"), "{stderr}");
    assert!(lines[2].starts_with("a third") && lines[2].ends_with("same output"), "{stderr}");
    assert!(lines[3].starts_with("why ") && lines[3].contains("read from far"), "{stderr}");
    assert!(lines[4].starts_with("next ") && lines[4].contains("nearfar "), "{stderr}");
    let page = std::fs::read_to_string(scratch.work().join("nearfar-try.html")).expect("the page");
    assert!(page.matches("tried").count() >= 2, "a page about both runs");
    assert_eq!(names_in(&scratch.work()), ["nearfar-try.html"]);
    leaves_nothing(&scratch);
}

#[test]
fn the_command_that_it_advises_can_be_typed() {
    let scratch = Scratch::new();
    let output = tried(&scratch, &["--limit", "1000"], &["160"]);
    let stderr = text(&output.stderr);
    let line = stderr.lines().find_map(|line| line.strip_prefix("next")).expect("a line").trim();
    let typed = line.split("which data deserve near: ").last().and_then(|line| line.split("; then").next()).expect("a command");
    let _beside = shared_machine();
    let mut shell = Command::new("sh");
    let bin = nearfar_bin().parent().expect("a directory").to_owned();
    shell.args(["-c", typed]).current_dir(scratch.work()).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let again = shell.output().expect("sh");
    assert!(again.status.success(), "{typed}: {}", text(&again.stderr));
}

#[test]
fn other_output_is_told() {
    let scratch = Scratch::new();
    let output = tried(&scratch, &[], &["128", "pid"]);
    assert_eq!(text(&output.stderr).matches("other output").count(), 2, "{}", text(&output.stderr));
}

#[test]
fn small_programs_and_failures_end_it() {
    let scratch = Scratch::new();
    let small = tried(&scratch, &[], &["8"]);
    assert_eq!((small.status.code(), text(&small.stdout).lines().count()), (Some(0), 1), "{}", text(&small.stderr));
    assert!(text(&small.stderr).contains("nothing to gain"), "{}", text(&small.stderr));
    let plainly = tried(&scratch, &[], &["128", "input"]);
    assert_eq!(plainly.status.code(), Some(8), "{}", text(&plainly.stderr));
    let managed = tried(&scratch, &[], &["128", "fails"]);
    assert_eq!(managed.status.code(), Some(1));
    assert!(text(&managed.stderr).contains("no luck today"), "{}", text(&managed.stderr));
    assert!(text(&managed.stderr).contains("failed: exit status 7"), "{}", text(&managed.stderr));
    assert_eq!(names_in(&scratch.work()), Vec::<String>::new(), "no page about nothing");
    leaves_nothing(&scratch);
}

#[test]
fn a_file_is_read_by_every_run_from_where_it_stood() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("input"), "99 12345\n").expect("input");
    let second_word = || {
        let mut file = std::fs::File::open(scratch.0.join("input")).expect("input");
        file.seek(SeekFrom::Start(3)).expect("there");
        file
    };
    let program = compile("tried.c");
    let mut command = command(&scratch, &[], &program, &["128", "input"]);
    let _beside = shared_machine();
    let output = command.stdin(second_word()).output().expect("nearfar runs");
    assert_eq!(text(&output.stderr).matches("same output").count(), 2, "{}", text(&output.stderr));
    let plain = Command::new(program).args(["128", "input"]).stdin(second_word()).output().expect("it runs");
    assert!(text(&output.stdout).starts_with(&text(&plain.stdout)), "{} {}", text(&output.stdout), text(&plain.stdout));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let scratch = Scratch::new();
    let program = compile("tried.c");
    for (options, hint) in [
        (&["--far", "/no/such/dir"][..], "mkdir -p"),
        (&["--limit", "0"], "--limit"),
        (&["-o", "/no/such/dir/page.html"], "-o"),
        (&["--profile", "/no/such.nfprof"], "/no/such.nfprof"),
    ] {
        let mut command = Command::new(nearfar_bin());
        let output = command.arg("try").args(options).arg("--").arg(&program).current_dir(scratch.work()).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint) && output.stdout.is_empty(), "{options:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_run_that_takes_too_long_is_stopped_and_the_next_spared() {
    let scratch = Scratch::new();
    let start = Instant::now();
    let output = tried(&scratch, &["--limit", "2"], &["128", "hangs"]);
    let said = text(&output.stderr);
    assert!(output.status.success() && start.elapsed() < Duration::from_secs(60), "{said}");
    assert!(said.contains("stopped after 10 s") && said.contains("not run"), "{said}");
    leaves_nothing(&scratch);
}

/// While it runs plainly, and while it runs under nearfar: the second is known by the name of the directory for its figures.
#[test]
fn interrupted_at_any_time_it_leaves_nothing() {
    for under_nearfar in [false, true] {
        let scratch = Scratch::new();
        let _beside = shared_machine();
        let arguments: &[&str] = if under_nearfar { &["600"] } else { &["128", "wait"] };
        let mut command = command(&scratch, &[], &compile("tried.c"), arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nearfar runs");
        let start = Instant::now();
        let is_due = || match under_nearfar {
            true => !names_in(&scratch.0.join("tmp")).is_empty(),
            false => !descendants(child.id()).is_empty(),
        };
        while !is_due() && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let family = descendants(child.id());
        assert!(!family.is_empty(), "something runs");
        send_signal("INT", child.id());
        let status = child.wait().expect("it ends");
        assert!(!status.success() && start.elapsed() < Duration::from_secs(90), "{status:?}");
        wait_gone(&family);
        leaves_nothing(&scratch);
    }
}

//! Options, messages and exit codes. A refused request has status 2, says what to do, and starts nothing.

use crate::util::{Scratch, TestProgram, compile, names_in, nearfar_bin};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

fn nearfar<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(nearfar_bin()).args(arguments).stdin(Stdio::null()).output().expect("nearfar runs")
}

/// The request is refused: status 2, nothing on standard output, every hint on standard error, and the program has not run.
#[track_caller]
fn refused(options: &[&str], program: &[&OsStr], hints: &[&str]) {
    let scratch = Scratch::new();
    let far = scratch.far();
    let far_given = options.contains(&"--far");
    let mut arguments: Vec<&OsStr> = vec!["run".as_ref()];
    if !far_given {
        arguments.extend(["--far".as_ref(), far.as_os_str()]);
    }
    arguments.extend(options.iter().map(OsStr::new));
    arguments.push("--".as_ref());
    arguments.extend(program);
    let mark = scratch.work().join("started");
    let output =
        Command::new(nearfar_bin()).args(&arguments).current_dir(scratch.work()).stdin(Stdio::null()).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {:?}\n{said}", output.status);
    assert!(output.stdout.is_empty(), "{arguments:?} printed {:?}", String::from_utf8_lossy(&output.stdout));
    for hint in hints {
        assert!(said.to_lowercase().contains(&hint.to_lowercase()), "{arguments:?}: no \"{hint}\" in\n{said}");
    }
    assert!(!mark.exists(), "{arguments:?}: the program was started");
    assert_eq!(names_in(&far), [""; 0], "{arguments:?}: left behind");
}

fn starter() -> [&'static OsStr; 2] {
    ["touch".as_ref(), "started".as_ref()]
}

#[test]
fn bad_near_budgets() {
    for (near, hints) in [
        ("0", &["--near", "16"][..]),
        ("10T", &["--near", "more than"]),
        ("abc", &["--near"]),
        ("-5", &["--near", "negative"]),
        ("12Q", &["--near"]),
        ("", &["--near"]),
        ("101%", &["--near", "100"]),
        ("1M", &["--near", "16"]),
        ("99999999999999999999G", &["--near"]),
    ] {
        refused(&["--near", near], &starter(), hints);
        refused(&[&format!("--near={near}")], &starter(), hints);
    }
}

#[test]
fn bad_traces() {
    refused(&["--near", "64M", "--trace", "/tmp"], &starter(), &["--trace", "directory"]);
    refused(&["--near", "64M", "--trace", "/dev/null"], &starter(), &["--trace", "ordinary file"]);
    refused(&["--near", "64M", "--trace", "/nonexistent/x.nft"], &starter(), &["--trace", "/nonexistent/x.nft", "No such"]);
    for window in ["33M", "64K", "many"] {
        refused(&["--near", "64M", "--trace", "x.nft", "--trace-window", window], &starter(), &["--trace-window", window]);
    }
    // The kernel pages: no visit would be seen.
    refused(&["--near", "64M", "--deny", "uffd", "--trace", "x.nft"], &starter(), &["could not be recorded"]);
    let output = nearfar(["bench", "policies", "--trace", "/proc/self/status"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a trace"));
}

#[test]
fn bad_grains() {
    for grain in ["3K", "4M", "some", "-4K", ""] {
        refused(&["--near", "64M", "--grain", grain], &starter(), &["--grain", "auto"]);
    }
    refused(&["--near", "64M", "--grain", "128K", "--trace", "x.nft"], &starter(), &["--grain", "64K"]);
    refused(&["--near", "64M", "--grain", "64K", "--deny", "uffd"], &starter(), &["leave --grain out"]);
}

#[test]
fn bad_programs() {
    refused(&["--near", "64M"], &["/nonexistent/program".as_ref()], &["/nonexistent/program", "No such file"]);
    refused(&["--near", "64M"], &["no-such-program-anywhere".as_ref()], &["no-such-program-anywhere", "PATH"]);
    refused(&["--near", "64M"], &["/tmp".as_ref()], &["/tmp", "directory"]);
    refused(&["--near", "64M"], &["".as_ref()], &["empty"]);
    let scratch = Scratch::new();
    let text = scratch.0.join("notes.txt");
    std::fs::write(&text, "not a program").expect("write");
    refused(&["--near", "64M"], &[text.as_os_str()], &["notes.txt", "chmod +x"]);
    std::fs::set_permissions(&text, PermissionsExt::from_mode(0o755)).expect("chmod");
    refused(&["--near", "64M"], &[text.as_os_str()], &["notes.txt", "neither"]);
    refused(&["--near", "64M"], &[], &["PROGRAM"]);
    let output = nearfar(["run"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn bad_far_directories() {
    let scratch = Scratch::new();
    let missing = scratch.0.join("missing");
    refused(&["--near", "64M", "--far", missing.to_str().expect("UTF-8")], &starter(), &["missing", "mkdir"]);
    refused(&["--near", "64M", "--far", "/proc"], &starter(), &["/proc"]);
    refused(&["--near", "64M", "--far", "/sys"], &starter(), &["/sys"]);
    refused(&["--near", "64M", "--far", "/dev/null"], &starter(), &["/dev/null"]);
    refused(&["--near", "64M", "--far", "emu:bw=0"], &starter(), &["--far"]);
    refused(&["--near", "64M", "--far", "emu:speed=3"], &starter(), &["--far"]);
    let precious = scratch.0.join("precious.dat");
    std::fs::write(&precious, "data").expect("write");
    refused(&["--near", "64M", "--far", precious.to_str().expect("UTF-8")], &starter(), &["precious.dat", "overwrite"]);
    assert_eq!(std::fs::read(&precious).expect("still there"), b"data");
}

#[test]
fn read_only_far_directory() {
    needs!("root", "mounts");
    // As root a mode does not protect a directory, a read-only mount does.
    let scratch = Scratch::new();
    let script = "mount -t tmpfs -o ro,size=100m none \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(scratch.far()).arg(nearfar_bin());
    command.args(["run", "--near", "64M", "--far"]).arg(scratch.far()).args(["--", "touch", "started"]);
    let output = command.current_dir(scratch.work()).output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(!scratch.work().join("started").exists());
}

#[test]
fn static_program() {
    needs!("libc.a");
    let scratch = Scratch::new();
    let program = scratch.0.join("static-program");
    let script = "echo '#include <fcntl.h>\nint main(void){return creat(\"started\", 0600) < 0;}' | cc -static -x c - -o \"$1\"";
    assert!(Command::new("sh").args(["-c", script, "sh"]).arg(&program).status().expect("cc").success());
    refused(&["--near", "64M"], &[program.as_os_str()], &["static-program", "static"]);
}

#[test]
fn setuid_program() {
    needs!("root");
    let scratch = Scratch::new();
    let program = scratch.0.join("setuid-program");
    std::fs::copy(compile("touch.c"), &program).expect("copy");
    // A loader ignores preloads when the owner is another user: that of root's own file would not change anything.
    assert!(Command::new("chown").arg("65534").arg(&program).status().expect("chown").success());
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("chmod");
    refused(&["--near", "64M"], &[program.as_os_str()], &["setuid"]);
}

#[test]
fn bad_options() {
    refused(&["--near", "64M", "--mode", "cash"], &starter(), &["--mode"]);
    refused(&["--near", "64M", "--deny", "everything"], &starter(), &["io_uring"]);
    refused(&["--near", "64M", "--far-max", "1M"], &starter(), &["--far-max", "64"]);
    refused(&["--near", "64M", "--far-max", "1G", "--deny", "uffd"], &starter(), &["--far-max", "kernel"]);
    refused(&["--near", "64M", "--min-size", "zero"], &starter(), &["--min-size"]);
    refused(&["--near", "64M", "--no-such-option"], &starter(), &["--no-such-option"]);
    refused(&["--near", "64M", "--stats", "/nonexistent/run.json"], &starter(), &["--stats"]);
    assert_eq!(nearfar(["no-such-command"]).status.code(), Some(2));
}

#[test]
fn standard_output_is_the_programs_own() {
    let output = nearfar(["run", "--near", "64M", "--", "printf", "a\\0b%s", "c"]);
    assert_eq!(output.stdout, b"a\0bc");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("nearfar"), "a summary goes to standard error: {said:?}");
    let quiet = nearfar(["run", "-q", "--near", "64M", "--", "echo", "x"]);
    assert_eq!((quiet.stdout.as_slice(), String::from_utf8_lossy(&quiet.stderr).as_ref()), (&b"x\n"[..], ""));
}

#[test]
fn arguments_and_input_reach_the_program_untouched() {
    let odd = OsStr::from_bytes(b"a b\xff'\"$x\n--near");
    let output = nearfar([
        "run".as_ref(),
        "-q".as_ref(),
        "--near".as_ref(),
        "64M".as_ref(),
        "--".as_ref(),
        "printf".as_ref(),
        "%s".as_ref(),
        odd,
    ]);
    assert_eq!(output.stdout, odd.as_bytes());
    let mut child = Command::new(nearfar_bin());
    let child = child.args(["run", "-q", "--near", "64M", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("nearfar runs");
    let text: Vec<u8> = (0..1_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let mut input = child.stdin.take().expect("piped");
    let sent = text.clone();
    let sender = std::thread::spawn(move || input.write_all(&sent).expect("cat reads"));
    let output = child.wait_with_output().expect("wait");
    sender.join().expect("sender");
    assert!(output.stdout == text && output.status.success());
}

#[test]
fn environment_reaches_the_program_and_foreign_preloads_stay() {
    let script = "echo \"$FRUIT\"; case \"$LD_PRELOAD\" in *libnearfar.so*) echo preloaded;; esac";
    let program = TestProgram::command(["sh", "-c", script]).env("FRUIT", "apple pear");
    let under = program.nearfar().ok();
    assert_eq!(under.stdout, "apple pear\npreloaded\n");
}

#[test]
fn run_file_has_what_the_document_says() {
    let under = TestProgram::source("touch.c").args(["128M", "2"]).near("48M").nearfar().ok().paged();
    for name in
        ["faults", "faults_zero", "faults_demand", "bytes_in", "bytes_out", "prefetch_bytes", "stall_ns", "near_peak_bytes"]
    {
        under.counter(name);
    }
    assert!(under.counter("faults") > 0 && under.counter("stall_ns") > 0);
}

/// What paging costs, and whether near is held. Other tests run beside it: the figure itself is not judged.
#[test]
fn doctor_measures_what_paging_costs_here() {
    for deny in ["", "uffd,io_uring"] {
        let doctor = nearfar(["doctor", "--deny", deny]);
        assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stderr));
        // The table breaks its lines.
        let text = String::from_utf8_lossy(&doctor.stdout).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((_, why)) = text.split_once("could not be measured: it did not end within") {
            println!("skipped: this disk is too slow: {why}");
            return;
        }
        let after = text.split("passes over the data take ").nth(1);
        let ratio = after.and_then(|after| after.split(' ').next()?.parse::<f64>().ok());
        assert!(ratio.is_some_and(|ratio| ratio > 0.5), "--deny {deny}: {text}");
        assert!(text.contains("near is held") || !deny.is_empty() && text.contains("near is not held"), "--deny {deny}: {text}");
    }
}

#[test]
fn doctor_and_help_answer() {
    let doctor = nearfar(["doctor", "--quick"]);
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stderr));
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("userfaultfd") && !text.contains("times as long"), "{text}");
    let help = nearfar(["run", "--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--near"));
}

/// Found by trying it: nothing was managed, or nearfar died of SIGXFSZ, without a word that helps.
#[test]
fn surroundings_in_which_nothing_works_are_refused() {
    let bash = |script: &str| {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", script, "bash"]).arg(nearfar_bin()).output().expect("bash")
    };
    let refused = |output: std::process::Output, part: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(part), "{:?}: {said}", output.status);
    };
    refused(bash("ulimit -f 1000; exec \"$1\" run --near 64M -- true"), "ulimit -f unlimited");
    needs!("root", "mounts");
    refused(bash("exec unshare --pid --fork \"$1\" run --near 64M -- true"), "another PID namespace");
    refused(
        bash("exec unshare --mount sh -c 'mount -t tmpfs none /proc && exec \"$0\" run --near 64M -- true' \"$1\""),
        "no /proc here",
    );
    let doctor = bash("exec unshare --pid --fork \"$1\" doctor");
    assert!(doctor.status.code() == Some(1) && String::from_utf8_lossy(&doctor.stdout).contains("--mount-proc"));
}

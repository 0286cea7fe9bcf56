//! What SECURITY.md says of other users: their programs, their files, and what they can reach of a job.

use crate::util::{ForOthers, NOBODY, Scratch, TestProgram, compile, descendants, kill_all, names_in, wait_for_space, wait_gone};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The loader ignores LD_PRELOAD where the program runs with other rights than who starts it, and nowhere else.
#[test]
fn programs_that_run_with_other_rights_are_refused() {
    needs!("root");
    let place = ForOthers::new("setuid");
    let program = place.copy(&compile("touch.c"));
    let set = |owner: &str, mode: u32| {
        assert!(Command::new("chown").arg(owner).arg(&program).status().expect("chown").success());
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).expect("chmod");
    };
    let outcome = |as_nobody: bool| -> Output {
        let mut command = place.run(as_nobody);
        command.arg("--").arg(&program).args(["40M", "1"]).stdin(Stdio::null()).output().expect("nearfar runs")
    };
    for (owner, mode, as_nobody, refused) in [
        ("0:0", 0o755, false, false),
        ("0:0", 0o4755, false, false),
        ("0:0", 0o6755, false, false),
        ("65534:0", 0o4755, false, true),
        ("0:65534", 0o2755, false, true),
        ("0:65534", 0o2745, false, false),
        ("0:0", 0o4755, true, true),
        // Not even readable, as sudo is.
        ("0:0", 0o4711, true, true),
        ("0:0", 0o2711, true, true),
        ("0:0", 0o711, true, false),
        ("65534:65534", 0o6755, true, false),
    ] {
        set(owner, mode);
        let output = outcome(as_nobody);
        let said = text(&output.stderr);
        let status = if refused { Some(2) } else { Some(0) };
        assert_eq!(output.status.code(), status, "{owner} {mode:o}, as nobody: {as_nobody}\n{said}");
        assert!(!refused || said.contains("setuid") && said.contains("LD_PRELOAD"), "{said}");
        assert!(refused || said.contains("peak 4"), "it was not managed: {said}");
    }
    set("0:0", 0o755);
    let setcap = "PATH=$PATH:/usr/sbin:/sbin; setcap cap_net_raw+ep \"$1\"";
    if Command::new("sh").args(["-c", setcap, "sh"]).arg(&program).status().is_ok_and(|end| end.success()) {
        assert_eq!(outcome(true).status.code(), Some(2), "capabilities for others");
        assert_eq!(outcome(false).status.code(), Some(0), "root has them anyway");
    } else {
        println!("skipped in part: no setcap here");
    }
}

/// A program that holds 128 MiB over near of 32 until it is killed.
struct Holding {
    nearfar: Child,
    program: u32,
}

impl Holding {
    fn start(scratch: &Scratch) -> Self {
        let said = scratch.work().join("said");
        let mut command = TestProgram::source("holds_far.c").args(["128M"]).near("32M").command_under_nearfar(scratch);
        command.stdin(Stdio::piped()).stdout(std::fs::File::create(&said).expect("a file")).process_group(0);
        let nearfar = command.current_dir(scratch.work()).spawn().expect("nearfar starts");
        let begin = Instant::now();
        while !std::fs::read_to_string(&said).is_ok_and(|text| text.contains("got 128\n")) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the program does not get its memory");
            std::thread::sleep(Duration::from_millis(20));
        }
        let program = descendants(nearfar.id()).into_iter().find(|&pid| pid != nearfar.id()).expect("the program");
        Self { nearfar, program }
    }

    /// What descriptors of process `pid` are, by the path that opens them.
    fn files(pid: u32) -> Vec<(PathBuf, String)> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its descriptors");
        let link = |path: PathBuf| Some((path.clone(), std::fs::read_link(path).ok()?.to_string_lossy().into_owned()));
        entries.filter_map(|entry| link(entry.expect("an entry").path())).collect()
    }

    fn kill(mut self) {
        let all = descendants(self.nearfar.id());
        kill_all(&all);
        let _ = self.nearfar.wait();
        wait_gone(&all);
    }
}

/// Another user opens `path` for reading.
fn opened_by_nobody(path: &Path) -> bool {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "head", "-c", "8"]).arg(path);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("setpriv").success()
}

#[test]
fn spill_files_are_private_and_gone_after_sigkill() {
    let scratch = Scratch::new();
    let holding = Holding::start(&scratch);
    let far = scratch.far().canonicalize().expect("the directory");
    let in_far = |(_, target): &(PathBuf, String)| target.starts_with(&*far.to_string_lossy()) && target.ends_with("(deleted)");
    let files: Vec<_> = Holding::files(holding.program).into_iter().filter(in_far).collect();
    assert!(!files.is_empty(), "no spill file");
    for (path, target) in files {
        let facts = std::fs::metadata(&path).expect("its facts");
        assert_eq!((facts.mode(), facts.nlink()), (0o100600, 0), "{target}");
        assert!(facts.blocks() * 512 > 64 << 20, "{target}: little is in it");
    }
    assert_eq!(names_in(&far), [""; 0]);
    holding.kill();
    assert_eq!(names_in(&far), [""; 0]);
    wait_for_space(&far);
}

#[test]
fn other_users_cannot_open_the_job_or_the_spill_file() {
    needs!("root");
    let scratch = Scratch::new();
    let holding = Holding::start(&scratch);
    let environment = std::fs::read(format!("/proc/{}/environ", holding.program)).expect("its environment");
    let job = environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(b"NEARFAR_JOB=")).expect("a job");
    let job = PathBuf::from(text(job).into_owned());
    assert!(std::fs::File::open(&job).is_ok(), "its own user opens it");
    assert!(!opened_by_nobody(&job), "{} is open to others", job.display());
    let spilled: Vec<_> = Holding::files(holding.program).into_iter().filter(|(_, target)| target.contains("/far/")).collect();
    assert!(!spilled.is_empty(), "no spill file");
    for (path, target) in spilled {
        assert!(!opened_by_nobody(&path), "{target} is open to others");
    }
    assert!(opened_by_nobody(Path::new("/proc/self/status")), "nothing could be opened");

    // With the job's environment, as after sudo -E: another user's program runs as if there were no job.
    let place = ForOthers::new("foreign");
    let program = place.copy(&compile("touch.c"));
    let mut command = Command::new("timeout");
    command.args(["60", "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(&program).args(["64M", "2"]);
    command.env("LD_PRELOAD", place.0.join("libnearfar.so")).env("NEARFAR_JOB", &job).stdin(Stdio::null());
    let output = command.output().expect("setpriv");
    assert!(output.status.success(), "{:?}: {}", output.status, text(&output.stderr));
    println!("it said: {}", text(&output.stderr));
    holding.kill();
}

/// Whoever may write to far plants links to what only the user of nearfar may write.
#[test]
fn links_in_far_are_not_followed() {
    let scratch = Scratch::new();
    let (far, precious, fresh) = (scratch.far(), scratch.0.join("precious"), scratch.0.join("fresh"));
    std::fs::write(&precious, "data").expect("written");
    for (index, name) in ["nearfar", ".nearfar", "spill", "spill.bin", "nearfar-job", "run.json"].into_iter().enumerate() {
        let target = if index % 2 == 0 { &precious } else { &fresh };
        symlink(target, far.join(name)).expect("a link");
    }
    let planted = names_in(&far);
    let run = |far: &Path| {
        let program = TestProgram::source("touch.c").args(["96M", "2"]).near("32M").far(&far.display().to_string());
        let scratch = Scratch::new();
        let command = program.command_under_nearfar(&scratch);
        program.outcome(command, &scratch)
    };
    let _ = run(&far).ok().paged();
    // As if they were the spill file: one to be made goes beside the link, and one that holds something is refused.
    let _ = run(&far.join("spill.bin")).ok().paged();
    assert_eq!(run(&far.join("spill")).end(), (Some(2), None));
    assert_eq!(names_in(&far), planted);
    assert_eq!(std::fs::read(&precious).expect("still there"), b"data");
    assert!(!fresh.exists(), "a link was followed");
}

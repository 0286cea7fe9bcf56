//! Processes as /proc shows them: who descends from whom, what they hold, and their end.

use super::names_in;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes that live, with their parents and process groups.
fn processes() -> Vec<(u32, u32, u32)> {
    let numbers = names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse().ok());
    let facts = numbers.filter_map(|pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let (_state, parent, group) = (fields.next()?, fields.next()?, fields.next()?);
        Some((pid, parent.parse().ok()?, group.parse().ok()?))
    });
    facts.collect()
}

/// `leader`, its process group and everything that descends from them.
pub fn descendants(leader: u32) -> Vec<u32> {
    let all = processes();
    let mut found: Vec<u32> =
        all.iter().filter(|&&(pid, _, group)| pid == leader || group == leader).map(|&(pid, ..)| pid).collect();
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(all.iter().filter(|&&(pid, of, _)| of == parent && pid != parent).map(|&(pid, ..)| pid));
        at += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

pub fn kill_all(pids: &[u32]) {
    if !pids.is_empty() {
        let _ = kill("KILL", pids).stderr(Stdio::null()).status();
    }
}

/// Sends `signal` (such as "TERM") to a process.
pub fn send_signal(signal: &str, pid: u32) {
    assert!(kill(signal, &[pid]).status().expect("sh").success());
}

/// The shell's own kill: not all machines have the program.
fn kill(signal: &str, pids: &[u32]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "signal=$1; shift; kill -\"$signal\" \"$@\"", "sh", signal]).args(pids.iter().map(u32::to_string));
    command
}

/// The value of a "Name:  123 kB" line, in bytes.
pub fn status_bytes(pid: u32, file: &str, names: &[&str]) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        names.contains(&name).then(|| value.split_whitespace().next()?.parse::<u64>().ok())?
    });
    values.sum::<u64>() * 1024
}

/// Memory of a process that is its own or shared memory; pages of files do not count.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "status", &["RssAnon", "RssShmem"])
}

/// What a process is doing, for the report of a hang.
pub fn describe(pid: u32) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let mut text = format!("process {pid}: {}\n", read(format!("/proc/{pid}/cmdline")).replace('\0', " "));
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        let of = |name: &str| read(task.join(name).display().to_string());
        let status = of("status");
        let state = status.lines().find(|line| line.starts_with("State")).unwrap_or_default().to_owned();
        let signals: Vec<_> = status.lines().filter(|line| line.starts_with("Sig") || line.starts_with("ShdPnd")).collect();
        text += &format!(
            "  task {} {} {state} wchan {} syscall {}",
            task.file_name().unwrap_or_default().display(),
            of("comm").trim(),
            of("wchan"),
            of("syscall")
        );
        text += &format!("    {}\n    {}\n", signals.join(" "), of("stack").lines().take(8).collect::<Vec<_>>().join(" < "));
    }
    text
}

/// Nameless files below `dir` that a process still holds: as long as one does, their space is not given back. (Free space of the disk
/// would tell of what others write as well.)
pub fn held_files(dir: &Path) -> Vec<PathBuf> {
    let dir = dir.canonicalize().expect("the directory");
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = names_in(Path::new("/proc")).into_iter().filter(is_number);
    let descriptors = processes.filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok()).flatten().flatten();
    let files = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    files.filter(|file| file.starts_with(&dir) && file.to_string_lossy().ends_with(" (deleted)")).collect()
}

/// Waits until no process holds a nameless file below `dir`.
#[track_caller]
pub fn wait_for_space(dir: &Path) {
    let begin = Instant::now();
    while let held = held_files(dir)
        && !held.is_empty()
    {
        assert!(begin.elapsed() < Duration::from_secs(20), "disk space did not come back: {held:?} are held");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until none of `pids` lives.
pub fn wait_gone(pids: &[u32]) {
    let begin = Instant::now();
    let lives = |pid: &&u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    while let Some(pid) = pids.iter().find(lives) {
        assert!(begin.elapsed() < Duration::from_secs(20), "process {pid} still lives");
        std::thread::sleep(Duration::from_millis(20));
    }
}

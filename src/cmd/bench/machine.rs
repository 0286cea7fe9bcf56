//! The machine that figures are of: what is printed above every table and saved in every file of results.
//!
//! Reads /proc and /sys; does not measure.

use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// What a reader needs to know to compare figures.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Name of the CPU and number of CPUs that this process may use.
    pub cpu: String,
    /// Number of CPUs that this process may use.
    pub cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of memory that programs could get now.
    pub memory_available_bytes: u64,
    /// Transparent huge pages: the mode in force.
    pub huge_pages: String,
    /// Where far is: directory, file system, device.
    pub far: String,
    /// Bytes free for this user in the far directory.
    pub far_available_bytes: u64,
    /// Whether swapped pages are compressed in memory first.
    pub zswap: bool,
}

impl Machine {
    /// Describes this machine with `far` as the directory of the far tier. What cannot be read is called unknown, or 0.
    pub fn describe(far: &Path) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map(|rest| rest.trim_start_matches([' ', '\t', ':']));
        Self {
            cpu: model.unwrap_or("unknown CPU").to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: meminfo("MemTotal:"),
            memory_available_bytes: meminfo("MemAvailable:"),
            huge_pages: bracketed(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
            far: format!("{} ({})", far.display(), mount_of(far)),
            far_available_bytes: free_space(far),
            zswap: read("/sys/module/zswap/parameters/enabled").starts_with('Y'),
        }
    }
}

/// True when this process acts as root.
pub fn is_root() -> bool {
    let status = read("/proc/self/status");
    status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// The content of a file, empty where it cannot be read.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn meminfo(field: &str) -> u64 {
    let text = read("/proc/meminfo");
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// The chosen word of a sysfs choice: `madvise` of `always [madvise] never`.
fn bracketed(choice: &str) -> String {
    choice.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned()
}

/// File system and source of the mount that holds `path`: the longest mount point that is a prefix of it.
fn mount_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mounts = read("/proc/self/mountinfo");
    let best = mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split_whitespace().nth(4)?;
        let mut right = right.split_whitespace();
        let (kind, source) = (right.next()?, right.next()?);
        path.starts_with(point).then_some((point.len(), format!("{kind} on {source}")))
    });
    // `max_by_key` takes the last of equals: the mount on top.
    best.max_by_key(|(length, _)| *length).map_or_else(|| "unknown file system".to_owned(), |(_, name)| name)
}

/// Free bytes by df(1): the standard library has no statvfs, and this crate no unsafe code.
fn free_space(path: &Path) -> u64 {
    let output = Command::new("df").arg("-Pk").arg(path).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let available = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)).and_then(|kib| kib.parse::<u64>().ok());
    available.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_memory() {
        let machine = Machine::describe(&std::env::temp_dir());
        assert!(machine.memory_bytes > machine.memory_available_bytes && machine.memory_available_bytes > 0);
        assert!(!machine.kernel.is_empty() && machine.cpus > 0 && machine.far_available_bytes > 0);
        assert_eq!(bracketed("always [madvise] never"), "madvise");
    }
}

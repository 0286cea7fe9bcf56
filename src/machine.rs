//! This machine in a few facts: processor, kernel, memory. Reads files of /proc and /sys; measures nothing.

use nearfar_sys::proc_cgroup::limits;
use nearfar_sys::root::Root;
use serde::Serialize;
use std::path::Path;

/// What a run file says about where it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Processors that the command may use.
    pub cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// Bytes of memory (MemTotal).
    pub ram: u64,
}

impl Machine {
    /// The machine that the command runs on.
    pub fn this() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            cpu: cpu_model(&cpuinfo).unwrap_or(std::env::consts::ARCH).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: nearfar_sys::kernel::release(),
            ram: nearfar_sys::process::memory_total(),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim())
}

/// Memory that this process can have at the most, and what sets that limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// A memory cgroup (container, batch job) allows less than the machine has.
    pub by_cgroup: bool,
}

/// The machine's memory, or less where a memory cgroup (of either version) says so.
pub fn memory_limit() -> MemoryLimit {
    let ram = nearfar_sys::process::memory_total();
    let smallest = limits(&Root::this(), std::process::id()).memory_bytes;
    match smallest {
        Some(bytes) if bytes < ram => MemoryLimit { bytes, by_cgroup: true },
        _ => MemoryLimit { bytes: ram, by_cgroup: false },
    }
}

/// True when this process acts as root.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// File system and source of the mount that holds `path`: the longest mount point that is a prefix of it.
pub fn mount_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9R14\n"), Some("AMD EPYC 9R14"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}

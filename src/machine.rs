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
        let model = nearfar_sys::machine::nodes(&Root::this()).cpu_model;
        Self {
            cpu: if model.is_empty() { std::env::consts::ARCH.to_owned() } else { model },
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: nearfar_sys::kernel::release(),
            ram: nearfar_sys::process::memory_total(),
        }
    }
}

/// The text of a file without blanks around it; empty where it cannot be read.
pub fn read(path: &str) -> String {
    Root::this().text(path).unwrap_or_default()
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
    nearfar_sys::private_file::user() == 0
}

/// File system and source of the mount that holds `path`: the longest mount point that is a prefix of it.
pub fn mount_of(path: &Path) -> String {
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

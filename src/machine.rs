//! This machine in a few facts: processor, kernel, memory. Reads files of /proc and /sys; measures nothing.

use serde::Serialize;
use std::path::{Path, PathBuf};

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
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let smallest = limit_files(&own, Path::new("/sys/fs/cgroup"))
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
        .min();
    match smallest {
        Some(bytes) if bytes < ram => MemoryLimit { bytes, by_cgroup: true },
        _ => MemoryLimit { bytes: ram, by_cgroup: false },
    }
}

/// Files that may limit a process's memory, from its group up to the root, given the text of /proc/PID/cgroup.
fn limit_files(own: &str, root: &Path) -> impl Iterator<Item = PathBuf> {
    own.lines().flat_map(move |line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ => (root.join("memory"), "memory.limit_in_bytes"),
        };
        let ours = controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        let leaf = root.join(group.trim_start_matches('/'));
        let upward: Vec<_> = leaf.ancestors().take_while(|dir| dir.starts_with(&root)).map(|dir| dir.join(file)).collect();
        upward.into_iter().filter(move |_| ours)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9R14\n"), Some("AMD EPYC 9R14"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }

    #[test]
    fn limits_from_leaf_to_root() {
        let files = |own| limit_files(own, Path::new("/c")).map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(files("0::/user.slice/job\n"), ["/c/user.slice/job/memory.max", "/c/user.slice/memory.max", "/c/memory.max"]);
        let v1 = "5:cpu,cpuacct:/x\n4:memory:/job\n";
        assert_eq!(files(v1), ["/c/memory/job/memory.limit_in_bytes", "/c/memory/memory.limit_in_bytes"]);
        assert!(files("").is_empty());
    }
}

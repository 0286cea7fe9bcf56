//! This machine in a few facts: processor, kernel, memory. Reads files of /proc and /sys; measures nothing.

use nearfar_sys::proc_cgroup::limits;
use nearfar_sys::root::Root;
use serde::Serialize;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: AMD EPYC 9R14\n"), Some("AMD EPYC 9R14"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}

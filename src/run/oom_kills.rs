//! Whether the kernel killed for want of memory while the program ran: nothing else tells the user why it was ended by SIGKILL.

use crate::machine::MemoryLimit;
use nearfar_core::units::Bytes;
use nearfar_sys::root::Root;
use nearfar_sys::{cgroup, proc_cgroup};

/// The kernel's count of this command's cgroup, which the program inherits; other programs there count, too.
pub struct OomKills {
    /// The group's directory, and how many there were.
    before: Option<(String, u64)>,
}

impl OomKills {
    /// Counts from now on.
    pub fn begin() -> Self {
        Self { before: proc_cgroup::oom_kills(&Root::this(), std::process::id()) }
    }

    /// How many came since; 0 where the kernel does not tell.
    pub fn came(&self) -> u64 {
        let Some((dir, before)) = &self.before else { return 0 };
        let root = Root::this();
        cgroup::oom_kills(dir, |path| root.text(path)).unwrap_or(0).saturating_sub(*before)
    }
}

/// What to say about `kills`, at least one, while a program ran that failed. `near`: what could be near, where far is outside memory.
pub fn words(kills: u64, near: Option<u64>, limit: MemoryLimit) -> String {
    let whose = if limit.by_cgroup { "this cgroup, whose limit is" } else { "this machine, which has" };
    let process = if kills == 1 { "process" } else { "processes" };
    let words = format!("the kernel killed {kills} {process} for want of memory in {whose} {}", Bytes(limit.bytes));
    match near {
        Some(near) => format!(
            "{words}. Near may take {} of it; files in memory, shared memory and tables come on top: write a smaller --near",
            Bytes(near)
        ),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_and_near_are_named() {
        let limit = MemoryLimit { bytes: 2 << 30, by_cgroup: true };
        let text = words(1, Some(1 << 30), limit);
        let begin =
            "the kernel killed 1 process for want of memory in this cgroup, whose limit is 2.0 GiB. Near may take 1.0 GiB of it;";
        assert!(text.starts_with(begin) && text.ends_with("smaller --near"), "{text}");
        let text = words(2, None, MemoryLimit { by_cgroup: false, ..limit });
        assert_eq!(text, "the kernel killed 2 processes for want of memory in this machine, which has 2.0 GiB");
    }
}

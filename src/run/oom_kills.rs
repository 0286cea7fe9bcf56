//! Whether the kernel killed for want of memory while the program ran: nothing else tells the user why it was ended by SIGKILL.

use crate::machine::MemoryLimit;
use nearfar_core::units::Bytes;
use nearfar_sys::proc_cgroup;
use nearfar_sys::root::Root;

/// The kernel's count, of this command's cgroup, which the program inherits.
pub struct OomKills {
    before: Option<u64>,
}

impl OomKills {
    /// Counts from now on.
    pub fn begin() -> Self {
        Self { before: now() }
    }

    /// How many came since; 0 where the kernel does not tell.
    pub fn came(&self) -> u64 {
        self.before.zip(now()).map_or(0, |(before, now)| now.saturating_sub(before))
    }
}

fn now() -> Option<u64> {
    proc_cgroup::oom_kills(&Root::this(), std::process::id())
}

/// What to say about `kills` of them, at least one, where `near` bytes may be near and far is outside memory (or, `None`, there is no
/// such budget) and `limit` is all the memory that there is.
pub fn words(kills: u64, near: Option<u64>, limit: MemoryLimit) -> String {
    let (process, whose) =
        (if kills == 1 { "process" } else { "processes" }, if limit.by_cgroup { "this cgroup" } else { "this machine" });
    let beside = near.map_or(String::new(), |near| {
        format!(
            ", and near may take {} of it: files in memory, shared memory and tables come on top. Write a smaller --near",
            Bytes(near)
        )
    });
    format!("the kernel killed {kills} {process} for want of memory; {whose} may have {}{beside}", Bytes(limit.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_and_near_are_named() {
        let limit = MemoryLimit { bytes: 2 << 30, by_cgroup: true };
        let text = words(1, Some(1 << 30), limit);
        assert!(
            text.starts_with("the kernel killed 1 process for want of memory; this cgroup may have 2.0 GiB, and near"),
            "{text}"
        );
        assert!(text.contains("1.0 GiB of it") && text.ends_with("smaller --near"), "{text}");
        let text = words(2, None, MemoryLimit { by_cgroup: false, ..limit });
        assert_eq!(text, "the kernel killed 2 processes for want of memory; this machine may have 2.0 GiB");
    }
}

//! The control group that another process is in, of both versions: CPU quota and memory, the lowest limits up to the root, and who counts
//! kills for want of memory.

use crate::cgroup;
use crate::root::Root;

/// What a process's group may have and what it uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupLimits {
    /// CPUs' worth of time, quota / period; `None` without a limit.
    pub quota_cpus: Option<f64>,
    /// How often the group with that quota was stopped since it was made.
    pub throttled: Option<u64>,
    /// Bytes of memory; `None` without a limit.
    pub memory_bytes: Option<u64>,
    /// Bytes that the group with that limit uses, caches of files not counted.
    pub memory_used_bytes: Option<u64>,
}

/// Reads the limits of the group of `pid`; all `None` where there are none or they cannot be read.
pub fn limits(root: &Root, pid: u32) -> GroupLimits {
    let own = root.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let text = |path: &str| root.text(path);
    let stat = |path: String, name: &str| cgroup::field(&root.text(&path)?, name);
    let mut found = GroupLimits::default();
    if let Some((quota, dir)) = cgroup::lowest_cpu_quota(&own, text) {
        (found.quota_cpus, found.throttled) = (Some(quota), stat(format!("{dir}/cpu.stat"), "nr_throttled"));
    }
    if let Some((limit, dir)) = cgroup::lowest_memory_limit(&own, text) {
        let number = |name: &str| root.number(&format!("{dir}/{name}"));
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
        // What the group has of the page cache can be taken back.
        let cached = |name: &str| stat(format!("{dir}/memory.stat"), name);
        let cache = cached("file").or_else(|| cached("total_cache")).unwrap_or(0);
        (found.memory_bytes, found.memory_used_bytes) = (Some(limit), used.map(|used| used.saturating_sub(cache)));
    }
    found
}

/// How many processes the kernel has killed for want of memory in the group of `pid`, or in the lowest group above it that is to be seen
/// and tells, and the directory of that group: [`cgroup::oom_kills`] tells later what came. Not the program's alone.
pub fn oom_kills(root: &Root, pid: u32) -> Option<(String, u64)> {
    let own = root.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    cgroup::directories(&own, "memory").into_iter().find_map(|dir| {
        let kills = cgroup::oom_kills(&dir, |path| root.text(path))?;
        Some((dir, kills))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limits_and_what_is_used() {
        let root = Root::captured(
            "=== /proc/5/cgroup\n 0::/user.slice/job\n=== /sys/fs/cgroup/user.slice/job/cpu.max\n max 100000\n\
             === /sys/fs/cgroup/user.slice/cpu.max\n 250000 100000\n=== /sys/fs/cgroup/user.slice/cpu.stat\n usage_usec 5\n nr_throttled 12\n\
             === /sys/fs/cgroup/user.slice/job/memory.max\n 1000000\n=== /sys/fs/cgroup/user.slice/memory.max\n 2000000\n\
             === /sys/fs/cgroup/user.slice/job/memory.current\n 900000\n=== /sys/fs/cgroup/user.slice/job/memory.stat\n anon 1\n file 300000\n",
        )
        .expect("a capture");
        let expected = GroupLimits {
            quota_cpus: Some(2.5),
            throttled: Some(12),
            memory_bytes: Some(1_000_000),
            memory_used_bytes: Some(600_000),
        };
        assert_eq!(limits(&root, 5), expected);
        assert_eq!(limits(&root, 6), GroupLimits::default());
    }

    #[test]
    fn kills_of_the_lowest_group_that_tells() {
        let files = "=== /sys/fs/cgroup/job/memory.events\n oom 9\n oom_kill 1\n=== /sys/fs/cgroup/memory.events\n oom_kill 4\n\
                     === /sys/fs/cgroup/memory/memory.oom_control\n under_oom 0\n oom_kill 2\n";
        let of = |group: &str| {
            let root = Root::captured(&format!("=== /proc/5/cgroup\n {group}\n{files}")).expect("a capture");
            oom_kills(&root, 5)
        };
        assert_eq!(of("0::/job/step"), Some(("/sys/fs/cgroup/job".to_owned(), 1)));
        assert_eq!(of("4:memory:/docker/5"), Some(("/sys/fs/cgroup/memory".to_owned(), 2)));
        assert_eq!(oom_kills(&Root::captured("=== /proc/5/cgroup\n 0::/\n").expect("a capture"), 5), None);
    }
}

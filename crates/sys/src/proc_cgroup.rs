//! Limits of the control group that another process is in, of both versions: CPU quota and memory, the lowest up to the root.

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

/// Version 1 shows "no limit" as the largest number of whole pages.
const NO_LIMIT: u64 = 1 << 60;

/// Reads the limits of the group of `pid`; all `None` where there are none or they cannot be read.
pub fn limits(root: &Root, pid: u32) -> GroupLimits {
    let own = root.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut found = GroupLimits::default();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        for (name, version_2) in [("", true), ("cpu", false), ("memory", false)] {
            if controllers.split(',').any(|controller| controller == name) {
                let mounts = if version_2 { vec!["/sys/fs/cgroup".into()] } else { mounts(controllers, name) };
                mounts.iter().flat_map(|mount: &String| upward(mount, group)).for_each(|dir| look(root, &dir, &mut found));
            }
        }
    }
    found
}

/// Where a controller of version 1 is mounted: under its own name or that of all in the hierarchy.
fn mounts(controllers: &str, name: &str) -> Vec<String> {
    let mut mounts = vec![format!("/sys/fs/cgroup/{name}")];
    if controllers != name {
        mounts.push(format!("/sys/fs/cgroup/{controllers}"));
    }
    mounts
}

/// Directories of a group and those above it, down to the mount. A container may see only the top, or a group's path without its top.
fn upward(mount: &str, group: &str) -> Vec<String> {
    let mut path = format!("{mount}/{}", group.trim_matches('/'));
    let mut dirs = Vec::new();
    while path.len() > mount.len() {
        dirs.push(path.trim_end_matches('/').to_owned());
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    dirs.push(mount.to_owned());
    dirs.dedup();
    dirs
}

fn look(root: &Root, dir: &str, found: &mut GroupLimits) {
    let number = |name: &str| root.number(&format!("{dir}/{name}"));
    let stat = |file: &str, name: &str| {
        let text = root.text(&format!("{dir}/{file}"))?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let quota = match root.text(&format!("{dir}/cpu.max")) {
        Some(text) => {
            let mut words = text.split_ascii_whitespace().map(str::parse::<f64>);
            match (words.next(), words.next()) {
                (Some(Ok(quota)), Some(Ok(period))) => Some(quota / period),
                _ => None,
            }
        }
        None => number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")).map(|(quota, period)| quota as f64 / period as f64),
    };
    if let Some(quota) = quota.filter(|quota| quota.is_finite() && *quota > 0.0)
        && found.quota_cpus.is_none_or(|before| quota < before)
    {
        (found.quota_cpus, found.throttled) = (Some(quota), stat("cpu.stat", "nr_throttled"));
    }
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes")).filter(|&limit| limit < NO_LIMIT);
    if let Some(limit) = limit
        && found.memory_bytes.is_none_or(|before| limit < before)
    {
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
        // What the group has of the page cache can be taken back.
        let cache = stat("memory.stat", "file").or_else(|| stat("memory.stat", "total_cache")).unwrap_or(0);
        (found.memory_bytes, found.memory_used_bytes) = (Some(limit), used.map(|used| used.saturating_sub(cache)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_takes_the_lowest() {
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
    fn version_1() {
        let root = Root::captured(
            "=== /proc/5/cgroup\n 4:memory:/job\n 2:cpu,cpuacct:/job\n=== /sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us\n 50000\n\
             === /sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us\n 100000\n=== /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us\n -1\n\
             === /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us\n 100000\n=== /sys/fs/cgroup/memory/job/memory.limit_in_bytes\n 9223372036854771712\n\
             === /sys/fs/cgroup/memory/memory.limit_in_bytes\n 4096\n",
        )
        .expect("a capture");
        let found = limits(&root, 5);
        assert_eq!((found.quota_cpus, found.memory_bytes, found.memory_used_bytes), (Some(0.5), Some(4096), None));
    }

    #[test]
    fn groups_upward() {
        assert_eq!(upward("/c", "/a/b"), ["/c/a/b", "/c/a", "/c"]);
        assert_eq!(upward("/c", "/"), ["/c"]);
    }
}

//! Limits of the control group that this process is in, version 1 or 2: the lowest on the way from its own group up to the root.
//!
//! In a container the group that /proc/self/cgroup names often is not there, because the container's own group is mounted as the root:
//! directories that are missing are passed over.

use super::reader::Reader;
use nearfar_core::node::Cgroup;

const MOUNTS: &str = "/sys/fs/cgroup";

/// Version 1 writes "no limit" as a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// Deeper groups than this are a broken file.
const DEEPEST: usize = 64;

pub(super) fn read(reader: &Reader) -> Cgroup {
    let mut cgroup = Cgroup::default();
    let own = reader.text("/proc/self/cgroup").unwrap_or_default();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let is_v2 = controllers.is_empty();
        let holds = |name: &str| is_v2 || controllers.split(',').any(|controller| controller == name);
        for dir in directories(controllers, group) {
            if holds("memory") {
                let file = if is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
                let limit = reader.number(&format!("{dir}/{file}")).filter(|bytes| *bytes < NO_LIMIT);
                cgroup.memory_bytes = cgroup.memory_bytes.into_iter().chain(limit).min();
            }
            if holds("cpu") {
                let limit = if is_v2 { cpu_v2(reader, &dir) } else { cpu_v1(reader, &dir) };
                cgroup.cpus = cgroup.cpus.into_iter().chain(limit).min_by(f64::total_cmp);
            }
        }
    }
    cgroup
}

/// The group's directory and those above it, in every place where its hierarchy may be mounted.
fn directories(controllers: &str, group: &str) -> Vec<String> {
    let mut mounts = Vec::new();
    if controllers.is_empty() {
        mounts.extend([MOUNTS.to_owned(), format!("{MOUNTS}/unified")]);
    } else {
        mounts.extend(controllers.split(',').map(|controller| format!("{MOUNTS}/{controller}")));
        if controllers.contains(',') {
            mounts.push(format!("{MOUNTS}/{controllers}"));
        }
    }
    // A group outside the container's own view is written with ".."; only the root is to be seen then.
    let parts: Vec<&str> = group.split('/').filter(|part| !part.is_empty()).take(DEEPEST).collect();
    let depth = if parts.contains(&"..") { 0 } else { parts.len() };
    let under = |mount: &String| {
        let mount = mount.clone();
        let up = (0..=depth).rev().map(|depth| [&[mount.as_str()], &parts[..depth]].concat().join("/"));
        up.collect::<Vec<_>>()
    };
    mounts.iter().flat_map(under).collect()
}

fn cpu_v2(reader: &Reader, dir: &str) -> Option<f64> {
    let text = reader.text(&format!("{dir}/cpu.max"))?;
    let mut words = text.split_ascii_whitespace();
    ratio(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn cpu_v1(reader: &Reader, dir: &str) -> Option<f64> {
    ratio(reader.signed(&format!("{dir}/cpu.cfs_quota_us"))?, reader.signed(&format!("{dir}/cpu.cfs_period_us"))?)
}

fn ratio(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn cgroup(files: &[(&str, &str)]) -> Cgroup {
        let text: String = files.iter().map(|(path, line)| format!("=== {path}\n {line}\n")).collect();
        read(&Reader::new(&Root::captured(&text).expect("a capture")))
    }

    #[test]
    fn the_lowest_limit_on_the_way_up() {
        let v2 = cgroup(&[
            ("/proc/self/cgroup", "0::/user.slice/job"),
            ("/sys/fs/cgroup/user.slice/job/memory.max", "max"),
            ("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000"),
            ("/sys/fs/cgroup/user.slice/memory.max", "4096"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000"),
            ("/sys/fs/cgroup/memory.max", "8192"),
        ]);
        assert_eq!(v2, Cgroup { memory_bytes: Some(4096), cpus: Some(1.5) });
        let v1 = cgroup(&[
            ("/proc/self/cgroup", "3:cpu,cpuacct:/docker/abc\n 4:memory:/docker/abc"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "65536"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(v1, Cgroup { memory_bytes: Some(65536), cpus: Some(2.0) });
    }

    #[test]
    fn no_limit() {
        let hybrid = cgroup(&[
            ("/proc/self/cgroup", "4:memory:/\n 1:cpu:/\n 0::/../other"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(hybrid, Cgroup::default());
        let container = cgroup(&[("/proc/self/cgroup", "0::/"), ("/sys/fs/cgroup/unified/memory.max", "77")]);
        assert_eq!(container.memory_bytes, Some(77));
        assert_eq!(cgroup(&[]), Cgroup::default());
    }
}

//! Limits of the control group that this process is in: the lowest on the way from its own group up to the root.

use super::reader::Reader;
use crate::cgroup;
use nearfar_core::node::Cgroup;

pub(super) fn read(reader: &Reader) -> Cgroup {
    let own = reader.text("/proc/self/cgroup").unwrap_or_default();
    let text = |path: &str| reader.text(path);
    let memory = cgroup::directories(&own, "memory");
    let cpu = cgroup::directories(&own, "cpu");
    Cgroup {
        memory_bytes: memory.iter().filter_map(|dir| cgroup::memory_limit(dir, text)).min(),
        cpus: cpu.iter().filter_map(|dir| cgroup::cpu_quota(dir, text)).min_by(f64::total_cmp),
    }
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

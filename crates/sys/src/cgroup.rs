//! Control groups, version 1 and 2: where the files of a process's groups are, the two limits that matter here, and kills for want of memory.
//!
//! A limit holds for all below it, so the lowest on the way from a process's own group up to the root counts. In a container the group
//! that /proc/PID/cgroup names often is not there, because the container's own group is mounted as the root: callers pass over
//! directories that are missing. Reads through a function, so that captured machines and other processes are read alike.

const MOUNTS: &str = "/sys/fs/cgroup";

/// Version 1 writes "no limit" as the largest number of whole pages below 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// Deeper groups than this are a broken file.
const DEEPEST: usize = 64;

/// Directories of the groups of `controller` ("memory", "cpu") that a process is in, upward from its own, in every place where their
/// hierarchy may be mounted. `own`: text of /proc/PID/cgroup.
pub fn directories(own: &str, controller: &str) -> Vec<String> {
    let mut dirs = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            upward(MOUNTS, group, &mut dirs);
            upward(&format!("{MOUNTS}/unified"), group, &mut dirs);
        } else if controllers.split(',').any(|name| name == controller) {
            upward(&format!("{MOUNTS}/{controller}"), group, &mut dirs);
            if controllers != controller {
                upward(&format!("{MOUNTS}/{controllers}"), group, &mut dirs);
            }
        }
    }
    // In containers there may be no line of version 2, and yet limits at the mount.
    if !dirs.iter().any(|dir| dir == MOUNTS) {
        dirs.push(MOUNTS.to_owned());
    }
    dirs
}

/// Adds the directory of `group` and those above it, down to the mount.
fn upward(mount: &str, group: &str, dirs: &mut Vec<String>) {
    // A group outside the container's own view is written with ".."; only the root is to be seen then.
    let parts: Vec<&str> = group.split('/').filter(|part| !part.is_empty()).take(DEEPEST).collect();
    let depth = if parts.contains(&"..") { 0 } else { parts.len() };
    dirs.extend((0..=depth).rev().map(|depth| [&[mount], &parts[..depth]].concat().join("/")));
}

/// The lowest limit of memory on the way up, in bytes, and the directory of the group that has it. `own` as above; `text` reads a file.
pub fn lowest_memory_limit(own: &str, text: impl Fn(&str) -> Option<String>) -> Option<(u64, String)> {
    directories(own, "memory").into_iter().filter_map(|dir| Some((memory_limit(&dir, &text)?, dir))).min()
}

/// The lowest share of processor time on the way up, in CPUs; as for `lowest_memory_limit`.
pub fn lowest_cpu_quota(own: &str, text: impl Fn(&str) -> Option<String>) -> Option<(f64, String)> {
    let quotas = directories(own, "cpu").into_iter().filter_map(|dir| Some((cpu_quota(&dir, &text)?, dir)));
    quotas.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// How many processes of the group in `dir` the kernel has killed for want of memory since the group was made; `None` where it does not
/// tell. `text` reads a file.
pub fn oom_kills(dir: &str, text: impl Fn(&str) -> Option<String>) -> Option<u64> {
    ["memory.events", "memory.oom_control"].iter().find_map(|name| field(&text(&format!("{dir}/{name}"))?, "oom_kill"))
}

/// The number behind `name` in a file of names and numbers.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The limit of memory of the group in `dir`, in bytes; `None` without one. `text` reads a file.
fn memory_limit(dir: &str, text: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name: &str| text(&format!("{dir}/{name}"))?.trim().parse::<u64>().ok();
    number("memory.max").or_else(|| number("memory.limit_in_bytes")).filter(|&bytes| bytes < NO_LIMIT)
}

/// The share of processor time of the group in `dir`, in CPUs; `None` without a limit. `text` reads a file.
fn cpu_quota(dir: &str, text: impl Fn(&str) -> Option<String>) -> Option<f64> {
    let number = |name: &str| text(&format!("{dir}/{name}"))?.trim().parse::<f64>().ok();
    let (quota, period) = match text(&format!("{dir}/cpu.max")) {
        Some(line) => {
            let mut words = line.split_ascii_whitespace().map(str::parse::<f64>);
            (words.next()?.ok()?, words.next()?.ok()?)
        }
        None => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period).filter(|cpus| cpus.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_upward_to_their_mounts() {
        let unified = |names: &[&str]| names.iter().map(|name| format!("{MOUNTS}{name}")).collect::<Vec<_>>();
        assert_eq!(directories("0::/a/b\n", "memory"), unified(&["/a/b", "/a", "", "/unified/a/b", "/unified/a", "/unified"]));
        let v1 = "4:memory:/job\n2:cpu,cpuacct:/other\n";
        assert_eq!(directories(v1, "memory"), unified(&["/memory/job", "/memory", ""]));
        assert_eq!(directories(v1, "cpu"), unified(&["/cpu/other", "/cpu", "/cpu,cpuacct/other", "/cpu,cpuacct", ""]));
        assert_eq!(directories("0::/../other\n", "cpu"), unified(&["", "/unified"]));
        assert_eq!(directories("", "cpu"), unified(&[""]));
        assert_eq!(directories("rubbish", "memory"), unified(&[""]));
    }

    #[test]
    fn kills_for_want_of_memory() {
        let of = |name: &'static str, text: &'static str| oom_kills("/g", move |path| (path == name).then(|| text.to_owned()));
        assert_eq!(of("/g/memory.events", "low 0\noom 5\noom_kill 2\noom_group_kill 1\n"), Some(2));
        assert_eq!(of("/g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
        assert_eq!((of("/g/memory.oom_control", "oom_kill_disable 0\n"), of("/g/x", "oom_kill 1")), (None, None));
    }

    #[test]
    fn limits() {
        let one = |name: &'static str, value: &'static str| move |path: &str| (path == name).then(|| value.to_owned());
        assert_eq!(memory_limit("/g", one("/g/memory.max", "4096\n")), Some(4096));
        assert_eq!(memory_limit("/g", one("/g/memory.max", "max")), None);
        assert_eq!(memory_limit("/g", one("/g/memory.limit_in_bytes", "9223372036854771712")), None);
        assert_eq!(cpu_quota("/g", one("/g/cpu.max", "150000 100000")), Some(1.5));
        for nothing in ["max 100000", "0 100000", "5", "x y", "-1 100000", "1 0"] {
            assert_eq!(cpu_quota("/g", one("/g/cpu.max", nothing)), None, "{nothing}");
        }
        let v1 = |path: &str| {
            Some(if path.ends_with("quota_us") { "50000" } else { "100000" }.to_owned()).filter(|_| path != "/g/cpu.max")
        };
        assert_eq!(cpu_quota("/g", v1), Some(0.5));
    }

    /// Lowest memory and CPUs of a process in groups `own`, among files below the mount.
    fn lowest(own: &str, files: &[(&str, &str)]) -> (Option<u64>, Option<f64>) {
        let text = |path: &str| {
            let name = path.strip_prefix(MOUNTS)?.strip_prefix('/')?;
            files.iter().find(|(file, _)| *file == name).map(|(_, line)| format!("{line}\n"))
        };
        (lowest_memory_limit(own, text).map(|(bytes, _)| bytes), lowest_cpu_quota(own, text).map(|(cpus, _)| cpus))
    }

    #[test]
    fn the_lowest_limit_on_the_way_up() {
        let v2 = [
            ("user.slice/job/memory.max", "max"),
            ("user.slice/job/cpu.max", "max 100000"),
            ("user.slice/memory.max", "4096"),
            ("user.slice/cpu.max", "150000 100000"),
            ("memory.max", "8192"),
        ];
        assert_eq!(lowest("0::/user.slice/job", &v2), (Some(4096), Some(1.5)));
        let v1 = [
            ("memory/job/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.limit_in_bytes", "65536"),
            ("cpu,cpuacct/job/cpu.cfs_quota_us", "50000"),
            ("cpu,cpuacct/job/cpu.cfs_period_us", "100000"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1"),
            ("cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ];
        assert_eq!(lowest("3:cpu,cpuacct:/job\n 4:memory:/job", &v1), (Some(65536), Some(0.5)));
        assert_eq!(lowest("0::/", &[("unified/memory.max", "77")]), (Some(77), None), "in a container");
    }

    #[test]
    fn no_limit() {
        let hybrid = [
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("cpu/cpu.cfs_quota_us", "-1"),
            ("cpu/cpu.cfs_period_us", "100000"),
        ];
        assert_eq!(lowest("4:memory:/\n 1:cpu:/\n 0::/../other", &hybrid), (None, None));
        assert_eq!(lowest("", &[]), (None, None));
    }
}

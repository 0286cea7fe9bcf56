//! The jobs that run on this machine, found from outside: every `nearfar run` holds the segment of its job open, and /proc shows what a
//! process holds to its owner and to root. Found this way, a job needs no register that could be stale or lie about it.

use nearfar_sys::root::Root;
use std::path::PathBuf;

/// What the kernel calls the segment among a process's descriptors (`Job::create`).
const SEGMENT: &str = "/memfd:nearfar-job (deleted)";

/// A process that holds a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process: the command.
    pub pid: u32,
    /// Where the segment can be opened while it lives.
    pub path: PathBuf,
}

/// Every process that holds a segment, as far as the caller may see, ascending.
pub fn holders(root: &Root) -> Vec<Holder> {
    let of = |pid: u32| {
        let dir = format!("/proc/{pid}/fd");
        let is_segment = |path: &String| root.link(path).is_some_and(|target| target == SEGMENT);
        let path = root.names(&dir).into_iter().map(|name| format!("{dir}/{name}")).find(is_segment)?;
        Some(Holder { pid, path: path.into() })
    };
    root.numbered("/proc", "").into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_tiers::job::{Job, Settings};
    use std::os::fd::AsRawFd;

    #[test]
    fn who_holds_a_segment() {
        let text = "--- /proc/7/fd/0 /dev/null\n--- /proc/7/fd/3 /memfd:nearfar-job (deleted)\n\
                    --- /proc/9/fd/3 /memfd:other (deleted)\n=== /proc/uptime\n 1\n";
        let root = Root::captured(text).expect("a capture");
        assert_eq!(holders(&root), [Holder { pid: 7, path: "/proc/7/fd/3".into() }]);
        let (_job, fd) = Job::create(Settings::new(4096, "/").expect("short path")).expect("memfd");
        let own = Holder { pid: std::process::id(), path: format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()).into() };
        assert!(holders(&Root::this()).contains(&own));
    }
}

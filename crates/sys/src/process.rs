//! Facts about processes and the machine: who lives, how much memory there is, and ending a program with a message.

use crate::cgroup;
use crate::errno::{Errno, call};
use crate::line::Line;
use crate::small_file;
use std::ffi::CStr;

/// Process id of the caller, from the kernel (libc may cache it across raw clones).
pub fn pid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// Kernel thread id of the caller.
pub fn tid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// What /proc/PID/stat says of a process.
struct Stat {
    state: char,
    parent: u32,
    threads: u64,
    start: u64,
}

/// `None` when there is no such process, or when one cannot tell (no descriptor left, no /proc). Allocates nothing: it is asked
/// whether somebody was killed with the heap's lock.
fn stat(pid: u32) -> Option<Stat> {
    let path = Line::of(format_args!("/proc/{pid}/stat\0"));
    // The command name, at most 64 bytes of any kind, and some 50 numbers.
    let mut room = [0u8; 2048];
    let text = small_file::read(CStr::from_bytes_with_nul(path.as_str().as_bytes()).ok()?, &mut room)?;
    // What is behind the name is ASCII.
    let from = text.iter().rposition(|&byte| byte == b')')?;
    parse_stat(std::str::from_utf8(&text[from..]).ok()?)
}

/// True when the kernel says that there is no such process.
fn is_gone(pid: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody.
    let result = unsafe { call(libc::SYS_kill, [pid as usize, 0, 0, 0, 0, 0]) };
    pid == 0 || result == Err(Errno(libc::ESRCH))
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The command name may hold spaces and parentheses: fields start after the last ')', with the third.
    let rest = &text[text.rfind(')')? + 1..];
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads = fields.nth(15)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, parent, threads, start })
}

impl Stat {
    /// A zombie's memory is gone; but a process whose main thread alone has ended looks like one as well, and lives as long
    /// as it has other threads.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

/// The user and the group that started this process.
pub fn real_ids() -> (u32, u32) {
    // SAFETY: no arguments, and they cannot fail.
    unsafe { (libc::getuid(), libc::getgid()) }
}

/// When process `pid` started, in ticks since the machine did; 0 when that is not to be known.
pub fn start_of(pid: u32) -> u64 {
    stat(pid).map_or(0, |stat| stat.start)
}

/// The process that `pid` was started by, or that has adopted it; `None` when that is not to be known.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent).filter(|&parent| parent != 0)
}

/// True when `pid` runs and started at `start` (so a recycled number does not count; 0 is not compared). Zombies count as
/// gone. Where one cannot tell, a process lives.
pub fn is_alive(pid: u32, start: u64) -> bool {
    match stat(pid) {
        Some(stat) => (start == 0 || stat.start == start) && stat.is_alive(),
        None => !is_gone(pid),
    }
}

/// True when the first thread of this process has ended, and others have not.
pub fn has_lost_first_thread() -> bool {
    stat(pid()).is_some_and(|stat| stat.state == 'Z')
}

/// True when some process runs that has number `pid`.
pub fn exists(pid: u32) -> bool {
    is_alive(pid, 0)
}

/// A number that nobody can know beforehand; 0 where the kernel has none.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: writes at most 8 bytes into a local array.
    let _ = unsafe { call(libc::SYS_getrandom, [bytes.as_mut_ptr().addr(), 8, 0, 0, 0, 0]) };
    u64::from_ne_bytes(bytes)
}

/// Ends this process by SIGKILL.
pub fn kill_now() -> ! {
    // SAFETY: integers only.
    let _ = unsafe { call(libc::SYS_kill, [pid() as usize, libc::SIGKILL as usize, 0, 0, 0, 0]) };
    exit_now(128 + libc::SIGKILL)
}

/// Sends SIGKILL to process `pid`.
pub fn kill(pid: u32) {
    // SAFETY: integers only.
    let _ = unsafe { call(libc::SYS_kill, [pid as usize, libc::SIGKILL as usize, 0, 0, 0, 0]) };
}

/// True when `fd` is a descriptor (or one of the special numbers) of this process, as pidfd_open(2) makes them.
pub fn is_own_pidfd(fd: i32) -> bool {
    const PIDFD_SELF: std::ops::RangeInclusive<i32> = -10001..=-10000;
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else { return PIDFD_SELF.contains(&fd) };
    let of = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    of.and_then(|number| number.trim().parse().ok()) == Some(pid())
}

/// Bytes of memory of this machine (MemTotal).
pub fn memory_total() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap_or("");
    line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Bytes of memory that the caller could still get: of the machine (MemAvailable), or less where a memory cgroup says so.
pub fn memory_available() -> u64 {
    let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
    let machine =
        read("/proc/meminfo".as_ref()).and_then(|text| field(&text, "MemAvailable:")).map_or(u64::MAX, |kib| kib * 1024);
    let own = read("/proc/self/cgroup".as_ref()).unwrap_or_default();
    let left = |group: String| left_in_group(|name| read(format!("{group}/{name}").as_ref()));
    cgroup::directories(&own, "memory").into_iter().filter_map(left).fold(machine, u64::min)
}

/// The number after `name` in a file of one name and one number per line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Bytes that a memory cgroup still allows; `None` when it has no limit. `read` gives the text of one of its files.
fn left_in_group(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let stat = read("memory.stat").unwrap_or_default();
    let of = |name: &str| field(&stat, name).unwrap_or(0);
    // What the group has of the page cache can be taken back, but not shared memory, which version 2 counts as such.
    let (limit, used, cache) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current"), of("file ").saturating_sub(of("shmem "))),
        None => {
            let cache = of("total_inactive_file ").saturating_add(of("total_active_file "));
            (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes"), cache)
        }
    };
    Some(limit.saturating_sub(used.unwrap_or(0).saturating_sub(cache)))
}

/// Writes `text` to standard error in one call, without buffers, locks or allocation.
pub fn write_stderr(text: &[u8]) {
    // SAFETY: the slice is valid for its length; a failed write has nowhere to be reported.
    let _ = unsafe { call(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// Ends the whole process by SIGABRT, whatever the program has done to that signal, so that it leaves a core file where it may.
pub fn abort_now() -> ! {
    // The kernel's own layout: handler (0: default), flags, restorer, mask.
    let default = [0u64; 4];
    let abort = 1u64 << (libc::SIGABRT - 1);
    // SAFETY: reads local arrays; the signal ends the process.
    unsafe {
        let _ = call(libc::SYS_rt_sigaction, [libc::SIGABRT as usize, default.as_ptr() as usize, 0, 8, 0, 0]);
        let _ = call(libc::SYS_rt_sigprocmask, [libc::SIG_UNBLOCK as usize, &raw const abort as usize, 0, 8, 0, 0]);
        let _ = call(libc::SYS_tgkill, [pid() as usize, tid() as usize, libc::SIGABRT as usize, 0, 0, 0]);
    }
    exit_now(128 + libc::SIGABRT)
}

/// Ends the whole process at once with `status`, running nothing of the program.
pub fn exit_now(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_with_threads_lives() {
        let stat = |state: char, threads: u64| {
            let text = format!("7 (a) b) {state} 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 {threads} 0 12345 1 1");
            parse_stat(&text).expect("all fields")
        };
        assert_eq!((stat('S', 1).threads, stat('S', 3).threads, stat('S', 1).start), (1, 3, 12345));
        assert!(stat('R', 1).is_alive() && stat('Z', 2).is_alive());
        assert!(!stat('Z', 1).is_alive() && !stat('X', 1).is_alive());
    }

    #[test]
    fn what_a_group_still_allows() {
        let left = |files: &[(&str, &str)]| {
            left_in_group(|name| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned()))
        };
        let stat = ("memory.stat", "anon 100\nfile 300\nshmem 120\nshmem_thp 7\n");
        assert_eq!(left(&[("memory.max", "1000\n"), ("memory.current", "600\n"), stat]), Some(580));
        assert_eq!(left(&[("memory.max", "max\n"), ("memory.current", "600\n"), stat]), None);
        let stat = ("memory.stat", "cache 300\ninactive_file 1\ntotal_cache 300\ntotal_inactive_file 50\ntotal_active_file 30\n");
        let v1 = [("memory.limit_in_bytes", "1000\n"), ("memory.usage_in_bytes", "600\n"), stat];
        assert_eq!((left(&v1), left(&v1[..2]), left(&v1[..1])), (Some(480), Some(400), Some(1000)));
        assert_eq!(left(&[]), None);
    }

    #[test]
    fn this_process_lives_as_the_one_that_started_then() {
        let (pid, start) = (pid(), start_of(pid()));
        assert!(is_alive(pid, start) && exists(pid) && start > 0);
        assert_eq!(parent_of(pid), Some(std::os::unix::process::parent_id()));
        assert!(!is_alive(pid, start + 1) && !exists(0));
    }
}

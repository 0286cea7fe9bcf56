//! Threads of other processes, from /proc/PID/task: names, states, CPU time, where they ran and may run.
//!
//! Everything is read through a [`Root`]. A thread may end between two reads: what is gone is `None`, never an error.

use crate::root::Root;
use nearfar_core::node::CpuList;
use std::collections::{BTreeSet, HashSet};

/// What stat says of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Its name.
    pub name: String,
    /// The kernel's letter of its state.
    pub state: char,
    /// Its parent process.
    pub parent: u32,
    /// CPU time in user mode and in the kernel, in ticks.
    pub cpu_ticks: u64,
    /// When it was created, in ticks since the machine started.
    pub start_ticks: u64,
    /// CPU that it is on or was on last.
    pub cpu: Option<u32>,
}

/// What schedstat says of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Nanoseconds on a CPU.
    pub run_ns: u64,
    /// Nanoseconds that it could run and waited for a CPU.
    pub wait_ns: u64,
}

/// What status says of where a thread may run and have memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// CPUs (affinity and cpuset).
    pub cpus: CpuList,
    /// NUMA nodes (cpuset).
    pub nodes: CpuList,
}

/// Ticks per second of times in stat; the kernel shows all architectures of Linux that we know the same.
pub fn ticks_per_second() -> u64 {
    // SAFETY: an integer in, an integer out.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0).unwrap_or(100)
}

/// Bytes of a small page.
pub fn page_bytes() -> u64 {
    // SAFETY: an integer in, an integer out.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

/// Parses stat of a process or thread.
pub fn parse_stat(text: &str) -> Option<Stat> {
    // The name may hold spaces and parentheses: it ends at the last ')'.
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of proc_pid_stat(5) is the first here.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        parent: field(4)? as u32,
        cpu_ticks: field(14)? + field(15)?,
        start_ticks: field(22)?,
        cpu: field(39).map(|cpu| cpu as u32),
    })
}

/// Parses schedstat. All zeros means that the kernel does not count.
pub fn parse_scheduled(text: &str) -> Option<Scheduled> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let (run_ns, wait_ns) = (fields.next()?.ok()?, fields.next()?.ok()?);
    (run_ns > 0).then_some(Scheduled { run_ns, wait_ns })
}

/// Parses status.
pub fn parse_allowed(text: &str) -> Allowed {
    let list = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|list| list.parse().ok()).unwrap_or_default()
    };
    Allowed { cpus: list("Cpus_allowed_list"), nodes: list("Mems_allowed_list") }
}

/// Where a thread is, as /proc/PID/task/TID/syscall has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It has a CPU or waits for one, in user mode or in the kernel.
    Running,
    /// It sleeps in the kernel, in no system call: in a page fault at this instruction, or stopped there.
    Fault(u64),
    /// It sleeps in this system call.
    Call(usize, [usize; 6]),
    /// It ends, or has ended.
    Gone,
}

/// The number of a word such as 0x7f00aa.
fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// The stack pointer in what /proc/PID/task/TID/syscall says: that of a thread that waits.
fn parse_stack_pointer(text: &str) -> Option<u64> {
    let pointer = text.split_ascii_whitespace().rev().nth(1)?;
    hexadecimal(pointer).filter(|&pointer| pointer != 0)
}

/// Parses /proc/PID/task/TID/syscall.
pub fn parse_thread_state(text: &str) -> Option<ThreadState> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(ThreadState::Running);
    }
    if let Ok(number) = usize::try_from(first.parse::<i64>().ok()?) {
        let mut args = [0; 6];
        for (arg, word) in args.iter_mut().zip(words) {
            *arg = hexadecimal(word).unwrap_or(0) as usize;
        }
        return Some(ThreadState::Call(number, args));
    }
    let counter = hexadecimal(words.nth(1)?)?;
    // A thread that has given up its stack has neither pointer.
    Some(if counter == 0 { ThreadState::Gone } else { ThreadState::Fault(counter) })
}

fn task_text(root: &Root, pid: u32, tid: u32, file: &str) -> Option<String> {
    root.text(&format!("/proc/{pid}/task/{tid}/{file}"))
}

/// Threads of `pid`, ascending; none when it is gone.
pub fn tasks(root: &Root, pid: u32) -> Vec<u32> {
    root.numbered(&format!("/proc/{pid}/task"), "")
}

/// Stat of a thread.
pub fn stat(root: &Root, pid: u32, tid: u32) -> Option<Stat> {
    parse_stat(&task_text(root, pid, tid, "stat")?)
}

/// Schedstat of a thread.
pub fn scheduled(root: &Root, pid: u32, tid: u32) -> Option<Scheduled> {
    parse_scheduled(&task_text(root, pid, tid, "schedstat")?)
}

/// Where a thread may run.
pub fn allowed(root: &Root, pid: u32, tid: u32) -> Option<Allowed> {
    Some(parse_allowed(&task_text(root, pid, tid, "status")?))
}

/// The stack pointer of a thread that waits; needs the rights of a debugger.
pub fn stack_pointer(root: &Root, pid: u32, tid: u32) -> Option<u64> {
    parse_stack_pointer(&task_text(root, pid, tid, "syscall")?)
}

/// Where a thread is; needs the rights of a debugger.
///
/// # Errors
/// `PermissionDenied`: without those rights; others: it has ended, or the kernel does not tell.
pub fn thread_state(root: &Root, pid: u32, tid: u32) -> std::io::Result<ThreadState> {
    const MOST: u64 = 256;
    let text = root.read(&format!("/proc/{pid}/task/{tid}/syscall"), MOST)?;
    parse_thread_state(&String::from_utf8_lossy(&text)).ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

/// Processes that thread `tid` started and that live; `None` on kernels that keep no such list (CONFIG_PROC_CHILDREN).
pub fn children(root: &Root, pid: u32, tid: u32) -> Option<Vec<u32>> {
    let text = task_text(root, pid, tid, "children")?;
    Some(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Every process and its parent: what to do where there are no lists of children. Reads all of /proc.
pub fn all_parents(root: &Root) -> Vec<(u32, u32)> {
    let pids = root.numbered("/proc", "");
    let parent = |pid: u32| Some((pid, parse_stat(&root.text(&format!("/proc/{pid}/stat"))?)?.parent));
    pids.into_iter().filter_map(parent).collect()
}

/// Processes that descend from those that are `known` and are not among them, parents first, at most `most`. One whose parent had ended
/// before it was looked at is missed. Where there are no lists of children, `may_scan` is asked once whether all of /proc may be read.
pub fn descendants(root: &Root, known: impl IntoIterator<Item = u32>, most: usize, may_scan: impl FnOnce() -> bool) -> Vec<u32> {
    let mut parents: Vec<u32> = known.into_iter().collect();
    let mut seen: HashSet<u32> = parents.iter().copied().collect();
    let (mut may_scan, mut all) = (Some(may_scan), Vec::new());
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        let mut below = BTreeSet::new();
        for tid in tasks(root, parent) {
            match children(root, parent, tid) {
                Some(listed) => below.extend(listed),
                None if may_scan.take().is_some_and(|ask| ask()) => all = all_parents(root),
                None => {}
            }
        }
        below.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        for child in below {
            if found.len() < most && seen.insert(child) {
                found.push(child);
                parents.push(child);
            }
        }
    }
    found
}

/// Seconds since the machine started.
pub fn uptime(root: &Root) -> Option<f64> {
    root.text("/proc/uptime")?.split_ascii_whitespace().next()?.parse().ok()
}

/// The process that thread or process `id` belongs to; `None` when there is none.
pub fn process_of(root: &Root, id: u32) -> Option<u32> {
    let status = root.text(&format!("/proc/{id}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// The environment of a process as it was given to it: pairs of name and value. What it changed itself since is not seen.
///
/// # Errors
/// Those of reading it: `PermissionDenied` for other users' processes.
pub fn environment(root: &Root, pid: u32) -> std::io::Result<Vec<(String, String)>> {
    // Environments may be long: up to a quarter of the limit of the stack.
    const MOST: u64 = 8 << 20;
    let bytes = root.read(&format!("/proc/{pid}/environ"), MOST)?;
    let text = String::from_utf8_lossy(&bytes);
    let pair = |entry: &str| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(text.split('\0').filter_map(pair).collect())
}

/// Nanoseconds of CPU time of the calling process's first thread; `None` where the kernel does not count them.
pub fn own_cpu_ns(root: &Root) -> Option<u64> {
    Some(parse_scheduled(&root.text("/proc/self/schedstat")?)?.run_ns)
}

/// The same for the calling thread.
pub fn own_thread_cpu_ns(root: &Root) -> Option<u64> {
    Some(parse_scheduled(&root.text("/proc/thread-self/schedstat")?)?.run_ns)
}

/// The command line of a process, its arguments separated by spaces; empty for threads of the kernel.
pub fn command(root: &Root, pid: u32) -> String {
    let bytes = root.bytes(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.trim_end_matches('\0').replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "41 (a) (b c) R 7 41 41 0 -1 4194304 100 0 0 0 12 3 0 0 20 0 3 0 4893240 3133440 381 18446744073709551615 1 2 3 0 0 \
                        0 0 0 0 0 0 0 17 5 0 0 0 0 0 1 2 3 4 5 6 7 0";

    #[test]
    fn files_of_a_thread() {
        let stat = parse_stat(STAT).expect("stat");
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a) (b c", 'R', 7));
        assert_eq!((stat.cpu_ticks, stat.start_ticks, stat.cpu), (15, 4_893_240, Some(5)));
        assert_eq!(parse_stat("41 (a) R 7"), None);
        assert_eq!(parse_scheduled("520585 309986 3\n"), Some(Scheduled { run_ns: 520_585, wait_ns: 309_986 }));
        assert_eq!((parse_scheduled("0 0 0"), parse_scheduled("")), (None, None));
        let allowed = parse_allowed("Cpus_allowed:\t3\nCpus_allowed_list:\t0-1,64-255\nMems_allowed_list:\t0,8\n");
        assert_eq!((allowed.cpus.to_string().as_str(), allowed.nodes.to_string().as_str()), ("0-1,64-255", "0,8"));
    }

    #[test]
    fn stack_pointers() {
        assert_eq!(parse_stack_pointer("202 0x1 0x80 0x0 0x0 0x0 0x0 0x7f00aa00 0x7f00bb"), Some(0x7f00_aa00));
        assert_eq!(parse_stack_pointer("-1 0x7ffc0 0x7f00"), Some(0x7ffc0));
        assert_eq!((parse_stack_pointer("running"), parse_stack_pointer("")), (None, None));
    }

    #[test]
    fn where_threads_are() {
        assert_eq!(parse_thread_state("running\n"), Some(ThreadState::Running));
        assert_eq!(parse_thread_state("-1 0x7ffc0 0x7f00aa\n"), Some(ThreadState::Fault(0x7f_00aa)));
        assert_eq!(
            parse_thread_state("202 0x1 0x80 0x0 0x0 0x0 0x0 0x7f00aa00 0x7f00bb"),
            Some(ThreadState::Call(202, [1, 0x80, 0, 0, 0, 0]))
        );
        let read = [3, 0x3000_0000_1000, 0x10, 0, 0, 0];
        let text = "0 0x3 0x300000001000 0x10 0x0 0x0 0x0 0x7ffc 0x7f00\n";
        assert_eq!(parse_thread_state(text), Some(ThreadState::Call(0, read)));
        assert_eq!(parse_thread_state("-1 0x0 0x0"), Some(ThreadState::Gone));
        assert_eq!((parse_thread_state(""), parse_thread_state("-1")), (None, None));
        let (root, pid, tid) = (Root::this(), crate::process::pid(), crate::process::tid());
        assert!(matches!(thread_state(&root, pid, tid), Ok(ThreadState::Call(..))), "it reads");
    }

    #[test]
    fn a_captured_process() {
        let text = format!(
            "=== /proc/41/task/41/stat\n {STAT}\n=== /proc/41/task/43/children\n 50 51\n=== /proc/41/stat\n {STAT}\n=x= /proc/41/cmdline\n 61006200\n"
        );
        let root = Root::captured(&text).expect("a capture");
        assert_eq!(tasks(&root, 41), [41, 43]);
        assert_eq!(stat(&root, 41, 41).map(|stat| stat.cpu), Some(Some(5)));
        assert_eq!((children(&root, 41, 43), children(&root, 41, 41)), (Some(vec![50, 51]), None));
        assert_eq!((all_parents(&root), command(&root, 41).as_str()), (vec![(41, 7)], "a b"));
        assert!(tasks(&root, 42).is_empty() && stat(&root, 42, 42).is_none());
    }

    #[test]
    fn all_that_descend_are_found() {
        let stat = |pid: u32, parent: u32| format!("=== /proc/{pid}/stat\n {pid} (a) S {parent}{}\n", " 0".repeat(40));
        let listed = "=== /proc/5/task/5/children\n 9 7\n=== /proc/5/task/6/children\n 8\n=== /proc/8/task/8/children\n 20\n\
                      === /proc/7/task/7/children\n\n=== /proc/9/task/9/children\n\n=== /proc/20/task/20/children\n\n";
        let root = Root::captured(listed).expect("a capture");
        let below = |known: &[u32], most| descendants(&root, known.iter().copied(), most, || panic!("there are lists"));
        assert_eq!((below(&[5], 9), below(&[5, 8], 9), below(&[5], 2)), (vec![7, 8, 9, 20], vec![20, 7, 9], vec![7, 8]));
        let task = |pid: u32| format!("=== /proc/{pid}/task/{pid}/comm\n a\n");
        let unlisted: String = [(5, 1), (7, 5), (8, 7), (9, 1)].map(|(pid, parent)| stat(pid, parent) + &task(pid)).concat();
        let root = Root::captured(&unlisted).expect("a capture");
        assert_eq!((descendants(&root, [5], 9, || true), descendants(&root, [5], 9, || false)), (vec![7, 8], vec![]));
    }

    #[test]
    fn this_process_is_there() {
        let (root, pid) = (Root::this(), crate::process::pid());
        let stat = stat(&root, pid, pid).expect("own stat");
        assert!(stat.start_ticks > 0 && ticks_per_second() > 0 && uptime(&root).expect("uptime") > 0.0);
        assert!(!allowed(&root, pid, pid).expect("own status").cpus.is_empty());
        assert!(environment(&root, pid).is_ok_and(|pairs| !pairs.is_empty()) && !command(&root, pid).is_empty());
        assert_eq!((process_of(&root, crate::process::tid()), process_of(&root, u32::MAX)), (Some(pid), None));
    }
}

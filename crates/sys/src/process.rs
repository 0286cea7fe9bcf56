//! Facts about processes and the machine: who lives, how much memory there is, and ending a program with a message.

use crate::errno::call;

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

/// The state letter and start time of process `pid` (fields 3 and 22 of /proc/PID/stat); `None` when it is gone.
pub fn state_and_start(pid: u32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold spaces and parentheses: fields start after the last ')'.
    let rest = &text[text.rfind(')')? + 1..];
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some((state, start))
}

/// True when `pid` runs and started at `start` (so a recycled number does not count). Zombies count as gone: their memory is.
pub fn is_alive(pid: u32, start: u64) -> bool {
    state_and_start(pid).is_some_and(|(state, since)| since == start && !matches!(state, 'Z' | 'X'))
}

/// Bytes of memory of this machine (MemTotal).
pub fn memory_total() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap_or("");
    line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Writes `text` to standard error in one call, without buffers, locks or allocation.
pub fn write_stderr(text: &[u8]) {
    // SAFETY: the slice is valid for its length; a failed write has nowhere to be reported.
    let _ = unsafe { call(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// Ends the whole process at once with `status`, running nothing of the program.
pub fn exit_now(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

//! What the other threads of this process are doing in the kernel, from /proc/self/task.

use crate::errno::call;
use crate::proc_tasks::{ThreadState, parse_thread_state};
use crate::process;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The threads of this process but the caller. Read past the C library, which would allocate, in a heap of its own for our threads.
pub fn others() -> Vec<u32> {
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let path = c"/proc/self/task".as_ptr().addr();
    // SAFETY: a C string constant.
    let Ok(fd) = (unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]) }) else { return Vec::new() };
    // SAFETY: a fresh descriptor, ours alone.
    let tasks = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    let own = process::tid();
    let mut found = Vec::new();
    let mut entries = [0u8; 4096];
    loop {
        let args = [tasks.as_raw_fd() as usize, entries.as_mut_ptr().addr(), entries.len(), 0, 0, 0];
        // SAFETY: writes at most its length into a local buffer.
        let Ok(got @ 1..) = (unsafe { call(libc::SYS_getdents64, args) }) else { return found };
        let mut rest = &entries[..got];
        // linux_dirent64: inode, offset, length of the entry, type, name.
        while rest.len() > 19 {
            let len = usize::from(u16::from_ne_bytes([rest[16], rest[17]])).clamp(19, rest.len());
            let digits = rest[19..len].iter().take_while(|byte| byte.is_ascii_digit());
            let tid = digits.fold(0u32, |tid, byte| tid.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')));
            if tid > 0 && tid != own {
                found.push(tid);
            }
            rest = &rest[len..];
        }
    }
}

/// The name of a thread.
pub fn name(tid: u32) -> String {
    std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Where thread `tid` of this process is. `None` where the kernel does not say.
pub fn state(tid: u32) -> Option<ThreadState> {
    match std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")) {
        Ok(text) => parse_thread_state(&text),
        // Reading fails as well when the thread ends meanwhile.
        Err(_) if !lives(tid) => Some(ThreadState::Gone),
        Err(_) => None,
    }
}

/// True when this process has a thread `tid`.
pub fn lives(tid: u32) -> bool {
    // SAFETY: integers only; signal 0 is never sent.
    let result = unsafe { crate::errno::call(libc::SYS_tgkill, [process::pid() as usize, tid as usize, 0, 0, 0, 0]) };
    result.is_ok()
}

static ANSWERS: AtomicU32 = AtomicU32::new(0);
/// What a signal of `ask` carries, so that the handler knows it.
pub const ASKED: usize = 0x6e66_6173_6b65_6421;

/// How many threads have answered so far.
pub fn answers() -> u32 {
    ANSWERS.load(Ordering::Acquire)
}

/// For the signal handler: this thread is in user mode now, so whatever system call it was in is over.
pub fn answer() {
    ANSWERS.fetch_add(1, Ordering::AcqRel);
}

/// Sends SIGSYS to thread `tid`, whose handler is to `answer`.
pub fn ask(tid: u32) {
    let mut info = [0usize; 16];
    let head = info.as_mut_ptr().cast::<i32>();
    // SAFETY: the fields of siginfo_t for queued signals: number, 0, code; sender and its user; the value.
    unsafe {
        head.write(libc::SIGSYS);
        head.add(2).write(libc::SI_QUEUE);
        head.add(4).write(process::pid() as i32);
    }
    info[3] = ASKED;
    let args = [process::pid() as usize, tid as usize, libc::SIGSYS as usize, info.as_ptr() as usize, 0, 0];
    // SAFETY: reads the local above.
    let _ = unsafe { crate::errno::call(libc::SYS_rt_tgsigqueueinfo, args) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_was() {
        assert_eq!(state(1 << 30), Some(ThreadState::Gone));
    }

    #[test]
    fn a_sleeping_thread_is_seen() {
        let (reader, mut writer) = std::io::pipe().expect("pipe");
        let thread = std::thread::spawn(move || std::io::Read::read(&mut { reader }, &mut [0; 9]));
        let is_reading =
            |tid: &u32| matches!(state(*tid), Some(ThreadState::Call(nr, args)) if nr == libc::SYS_read as usize && args[2] == 9);
        while !others().iter().any(is_reading) {
            std::thread::yield_now();
        }
        std::io::Write::write(&mut writer, b"x").expect("written");
        thread.join().expect("ended").expect("read");
    }
}

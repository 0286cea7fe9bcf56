//! Where a thread is that waits in the kernel: /proc/self/task/TID/syscall, kept open per thread and read without allocating.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const FILES: usize = 64;

/// The files of threads that were asked for before.
pub struct BlockedThreads {
    files: [Option<(u32, Kept)>; FILES],
}

impl BlockedThreads {
    /// None yet.
    pub const fn new() -> Self {
        Self { files: [const { None }; FILES] }
    }

    /// The instruction at which thread `tid` waits in a page fault; for a system call that touches memory, the one after the call.
    pub fn instruction(&mut self, tid: u32) -> Option<usize> {
        let place = self.files.get_mut(tid as usize % FILES)?;
        if let Some((of, file)) = place
            && *of == tid
            && let Ok(found) = read(file)
        {
            return found;
        }
        *place = None;
        let file = open(tid).ok()?;
        let found = read(&file).ok().flatten();
        *place = Some((tid, file));
        found
    }

    /// Closes one file, to have a free descriptor. False: there is none.
    pub fn close_one(&mut self) -> bool {
        self.files.iter_mut().any(|file| file.take().is_some())
    }
}

impl Default for BlockedThreads {
    fn default() -> Self {
        Self::new()
    }
}

fn open(tid: u32) -> Result<Kept, Errno> {
    let mut path = [0u8; 48];
    let mut digits = [0u8; 10];
    let mut first = digits.len();
    let mut rest = tid;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let text = b"/proc/self/task/".iter().chain(&digits[first..]).chain(b"/syscall");
    path.iter_mut().zip(text).for_each(|(byte, &wanted)| *byte = wanted);
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: a path that ends with a zero.
    let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0])? };
    // SAFETY: a fresh descriptor, ours alone.
    Ok(Kept::new(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

/// `Err` when the thread has ended.
fn read(file: &Kept) -> Result<Option<usize>, Errno> {
    let mut text = [0u8; 256];
    // SAFETY: writes at most its length into a local buffer.
    let got = unsafe { call(libc::SYS_pread64, [file.as_raw_fd() as usize, text.as_mut_ptr() as usize, text.len(), 0, 0, 0])? };
    Ok(parse(&text[..got]))
}

/// "-1 sp pc", or "number six arguments sp pc"; "running" when it does not wait.
fn parse(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    let (_, last) = text.rsplit_once(' ')?;
    usize::from_str_radix(last.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(parse(b"running\n"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"-1 0x7ffc 0x55aa\n"), Some(0x55aa));
        assert_eq!(parse(b"0 0x3 0x30 0x10 0x0 0x0 0x0 0x7ffc 0x7f00\n"), Some(0x7f00));
    }

    #[test]
    fn a_thread_that_waits_and_one_that_ended() {
        let (reader, mut writer) = std::io::pipe().expect("pipe");
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(crate::process::tid()).expect("told");
            std::io::Read::read(&mut { reader }, &mut [0; 1]).expect("read")
        });
        let tid = told.recv().expect("tid");
        let mut threads = BlockedThreads::new();
        while threads.instruction(tid).is_none() {
            std::thread::yield_now();
        }
        std::io::Write::write(&mut writer, b"x").expect("written");
        thread.join().expect("ended");
        while crate::task::lives(tid) {
            std::thread::yield_now();
        }
        assert_eq!(threads.instruction(tid), None);
        assert!(threads.instruction(1 << 30).is_none());
    }
}

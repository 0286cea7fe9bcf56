//! Descriptors of ours, out of the program's way: shells assign low numbers themselves (`exec 3<file` is a dup2 onto 3), and
//! programs expect the lowest free number from open.
//!
//! Those that a process keeps are [`Kept`], which are known by their numbers: a program that closes everything must not close them,
//! and where it has done so behind our back, we must not close what is the program's now.

use crate::errno::{Errno, call};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// First number tried: just below the common limit of 1024. Higher ones would make the kernel's table of the process grow.
const FIRST: usize = 960;
/// Tried when the limit is lower; below it programs assign numbers themselves (shells from 10 and 255 down).
const FIRST_OF_FEW: usize = 200;
/// Numbers that can be known as ours: only a program with as many descriptors of its own sees us get higher ones.
const NUMBERS: usize = 1 << 16;

/// A bit for each number that is kept by this process. A child of fork has a copy, as it has of the descriptors.
static KEPT: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];

/// Another descriptor of the same file, close-on-exec, with a high number if there is one.
pub fn duplicate(fd: RawFd) -> Option<OwnedFd> {
    [FIRST, FIRST_OF_FEW, 0].into_iter().find_map(|first| {
        // SAFETY: integers only.
        let new = unsafe { call(libc::SYS_fcntl, [fd as usize, libc::F_DUPFD_CLOEXEC as usize, first, 0, 0, 0]) }.ok()?;
        // SAFETY: a fresh descriptor, ours alone.
        Some(unsafe { OwnedFd::from_raw_fd(new as RawFd) })
    })
}

/// The same descriptor, with a high number if there is one.
pub fn put(fd: OwnedFd) -> OwnedFd {
    duplicate(fd.as_raw_fd()).unwrap_or(fd)
}

/// True of a number that is one of [`Kept`] in this process.
pub fn is_kept(fd: RawFd) -> bool {
    bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
}

fn bit(fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(fd).ok()?;
    Some((KEPT.get(number / 64)?, 1 << (number % 64)))
}

/// Device and number of a file: of what has no file they are one for each kind.
fn identity(fd: RawFd) -> Result<(u64, u64), Errno> {
    // SAFETY: plain integers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local, which is laid out as the kernel has it on 64-bit machines.
    unsafe { call(libc::SYS_fstat, [fd as usize, (&raw mut stat).addr(), 0, 0, 0, 0]) }?;
    Ok((stat.st_dev, stat.st_ino))
}

/// A descriptor that is ours for as long as this lives, and known as such.
#[derive(Debug)]
pub struct Kept {
    fd: ManuallyDrop<OwnedFd>,
    identity: Result<(u64, u64), Errno>,
}

impl Kept {
    /// Moves `fd` out of the way and keeps it.
    pub fn new(fd: OwnedFd) -> Self {
        Self::in_place(put(fd))
    }

    /// Keeps `fd` with the number that it has.
    pub fn in_place(fd: OwnedFd) -> Self {
        if let Some((word, bit)) = bit(fd.as_raw_fd()) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
        Self { identity: identity(fd.as_raw_fd()), fd: ManuallyDrop::new(fd) }
    }

    /// The number of a descriptor that stays open, and is looked after by the caller from now on.
    pub fn into_raw(mut self) -> RawFd {
        self.forget();
        // SAFETY: taken once: the drop below does not run.
        let fd = unsafe { ManuallyDrop::take(&mut self.fd) };
        std::mem::forget(self);
        fd.into_raw_fd()
    }

    /// Still what it was when it was opened: false when the program has closed it, or has another file there. Of two that have no
    /// file (userfaultfd, eventfd) it cannot be told.
    pub fn is_ours(&self) -> bool {
        match (identity(self.fd.as_raw_fd()), self.identity) {
            (Err(Errno(libc::EBADF)), _) => false,
            (Ok(now), Ok(then)) => now == then,
            // The program may not ask (seccomp).
            _ => true,
        }
    }

    fn forget(&self) {
        if let Some((word, bit)) = bit(self.fd.as_raw_fd()) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

impl AsRawFd for Kept {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // First, since the number may be another thread's as soon as it is closed.
        self.forget();
        if self.is_ours() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// Descriptors held for later: a program that has filled its table can fork all the same.
#[derive(Default)]
pub struct Spare {
    held: Vec<Kept>,
}

impl Spare {
    /// Holds `count`, or as many as can be had. Returns how many there are now.
    pub fn hold(&mut self, count: usize) -> usize {
        let path = c"/dev/null".as_ptr().addr();
        while self.held.len() < count {
            // SAFETY: a C string constant.
            let opened = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, libc::O_CLOEXEC as usize, 0, 0, 0]) };
            // In another root there may be none.
            // SAFETY: integers only.
            let opened = opened.or_else(|_| unsafe { call(libc::SYS_eventfd2, [0, libc::EFD_CLOEXEC as usize, 0, 0, 0, 0]) });
            let Ok(fd) = opened else { break };
            // SAFETY: a fresh descriptor, ours alone.
            self.held.push(Kept::new(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }));
        }
        self.held.len()
    }

    /// Lets `count` of them go.
    pub fn release(&mut self, count: usize) {
        self.held.truncate(self.held.len().saturating_sub(count));
    }

    /// Their numbers.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.held.iter().map(Kept::as_raw_fd)
    }
}

/// Runs `act`, which opens descriptors, with the limit of their number as high as it may be set. They stay when it is lowered again.
pub fn with_room<R>(act: impl FnOnce() -> R) -> R {
    let prlimit = |new: Option<&libc::rlimit64>| {
        let mut old = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        let new = new.map_or(0, |new| std::ptr::from_ref(new).addr());
        // SAFETY: reads and writes locals of the size that the kernel has.
        unsafe { call(libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, new, (&raw mut old).addr(), 0, 0]) }.map(|_| old)
    };
    let Ok(before) = prlimit(None) else { return act() };
    let raised = before.rlim_cur < before.rlim_max
        && prlimit(Some(&libc::rlimit64 { rlim_cur: before.rlim_max, rlim_max: before.rlim_max })).is_ok();
    let result = act();
    if raised {
        let _ = prlimit(Some(&before));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_the_programs_now_is_not_closed() {
        let kept = Kept::new(File::open("/proc/self/statm").expect("open").into());
        let number = kept.as_raw_fd();
        assert!(is_kept(number) && kept.is_ours() && !is_kept(-1) && !is_kept(RawFd::MAX));
        // As a program does that closes all and opens something of its own.
        let theirs = File::open("/proc/self/cmdline").expect("open");
        // SAFETY: the number under test.
        assert_eq!(unsafe { libc::dup3(theirs.as_raw_fd(), number, libc::O_CLOEXEC) }, number);
        assert!(!kept.is_ours());
        drop(kept);
        assert!(!is_kept(number) && identity(number) == identity(theirs.as_raw_fd()), "closed");
        // SAFETY: the duplicate from above, which nobody else has.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
        let again = Kept::new(theirs.into());
        let number = again.as_raw_fd();
        drop(again);
        assert_eq!(identity(number), Err(Errno(libc::EBADF)), "ours is closed");
    }
}

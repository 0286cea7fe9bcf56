//! A timer that can be polled: becomes readable at a moment of the monotonic clock.

use crate::errno::{Errno, call};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// One timerfd.
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not set, close-on-exec and non-blocking.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: integers only.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: a fresh descriptor, ours alone.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Becomes readable at `at_ns` (`event::now_ns` time), at once when that has passed.
    pub fn set(&self, at_ns: u64) {
        let at = at_ns.max(1);
        let value = libc::timespec { tv_sec: (at / 1_000_000_000) as _, tv_nsec: (at % 1_000_000_000) as _ };
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: reads a local; the old value is not asked for.
        unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &spec, std::ptr::null_mut()) };
    }

    /// No longer readable, until set again.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: reads at most 8 bytes into a local; EAGAIN means that it had not fired. Raw: errno stays as it is.
        let _ = unsafe { call(libc::SYS_read, [self.fd.as_raw_fd() as usize, count.as_mut_ptr() as usize, 8, 0, 0, 0]) };
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

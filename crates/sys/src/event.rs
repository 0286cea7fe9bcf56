//! Waiting: eventfd, poll with a time limit, and the monotonic clock.

use crate::errno::Errno;
use crate::high_descriptors::Kept;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An eventfd: any thread signals it, one thread polls and clears it.
pub struct Event {
    fd: Kept,
}

impl Event {
    /// A new event, not signalled, close-on-exec and non-blocking.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: eventfd has no memory arguments.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the kernel just gave us this descriptor and nobody else has it.
        Ok(Self { fd: Kept::new(unsafe { OwnedFd::from_raw_fd(fd) }) })
    }

    /// Signals; never blocks.
    pub fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes 8 bytes from a local array; a full counter (EAGAIN) still counts as signalled.
        unsafe { libc::write(self.fd.as_raw_fd(), one.as_ptr().cast(), 8) };
    }

    /// Clears the signal.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: reads at most 8 bytes into a local array; EAGAIN means that it was clear.
        unsafe { libc::read(self.fd.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
}

impl AsRawFd for Event {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Waits until one of `fds` is readable (or broken) or `timeout_ms` passed (-1: no limit). `ready` tells which, by position.
pub fn wait_readable(fds: &[RawFd], timeout_ms: i32, ready: &mut [bool]) {
    ready.fill(false);
    let mut polls = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 8];
    let count = fds.len().min(polls.len());
    for (poll, &fd) in polls.iter_mut().zip(fds) {
        *poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    }
    // SAFETY: `polls` holds at least `count` entries and lives through the call.
    unsafe { libc::poll(polls.as_mut_ptr(), count as libc::nfds_t, timeout_ms) };
    for (flag, poll) in ready.iter_mut().zip(&polls[..count]) {
        *flag = poll.revents != 0;
    }
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into a local; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ready_before_is_not_ready_now() {
        let event = Event::new().expect("an event");
        event.signal();
        let mut ready = [false; 4];
        wait_readable(&[event.as_raw_fd()], 0, &mut ready);
        assert_eq!(ready, [true, false, false, false]);
        wait_readable(&[], 0, &mut ready);
        assert_eq!(ready, [false; 4], "also beyond those that were asked for");
    }
}

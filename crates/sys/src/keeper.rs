//! Keeps a file open however many descriptors the program closes: a thread with a descriptor table of its own has it as well.
//!
//! A userfaultfd that is closed takes absent pages with it: they would read as zeros, silently. The hooks refuse to close
//! ours, but raw system calls pass them. With a keeper, threads that touch an absent page wait instead, until the pager has
//! found out that its descriptor is gone.

use crate::errno::{Errno, call};
use crate::{credentials, process, thread};
use std::os::fd::RawFd;

const CLOSE_RANGE_UNSHARE: usize = 1 << 1;

/// Starts a thread that keeps `fd` open as long as this process lives. On kernels before 5.9 it ends again at once.
pub fn keep(fd: RawFd) -> Result<(), Errno> {
    thread::spawn("nearfar-keeper", move || {
        if hold(fd).is_ok() {
            loop {
                credentials::wait();
            }
        }
    })
}

/// Leaves the program's descriptor table for an empty one, and fetches `fd` from there. Nothing is duplicated or closed on the
/// way that could be felt: locks, pipes, files that act when they are closed.
fn hold(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: integers only; nothing that runs in this thread needs a descriptor.
    unsafe {
        call(libc::SYS_close_range, [0, u32::MAX as usize, CLOSE_RANGE_UNSHARE, 0, 0, 0])?;
        let own = call(libc::SYS_pidfd_open, [process::pid() as usize, 0, 0, 0, 0, 0])?;
        call(libc::SYS_pidfd_getfd, [own, fd as usize, 0, 0, 0, 0])?;
        call(libc::SYS_close, [own, 0, 0, 0, 0, 0]).map(|_| ())
    }
}

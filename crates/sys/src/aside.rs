//! Descriptors of ours, out of the program's way: shells assign low numbers themselves (`exec 3<file` is a dup2 onto 3), and
//! programs expect the lowest free number from open.

use crate::errno::call;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// First number tried: just below the common limit of 1024. Higher ones would make the kernel's table of the process grow.
const FIRST: usize = 960;
/// Tried when the limit is lower; below it programs assign numbers themselves (shells from 10 and 255 down).
const FIRST_OF_FEW: usize = 200;

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

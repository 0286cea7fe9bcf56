//! /proc/self/pagemap: whether a page exists, be it in memory or swapped out by the kernel. mincore(2) does not know the latter.

use crate::errno::{Errno, call};
use nearfar_core::addr::{Extent, PAGE};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;

/// Sets `out[i]` to whether page `i` of `range` exists. Fails where /proc is not mounted.
pub fn existing(range: Extent, out: &mut [bool]) -> Result<(), Errno> {
    let path = c"/proc/self/pagemap".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: a C string constant. Opened each time: this is asked rarely, and a kept descriptor would tell of another
    // process after a fork.
    let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])? };
    // SAFETY: a fresh descriptor, ours alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let mut entries = [0u64; 512];
    let mut page = range.start / PAGE;
    for chunk in out.chunks_mut(entries.len()) {
        let want = chunk.len() * 8;
        let args = [fd.as_raw_fd() as usize, entries.as_mut_ptr() as usize, want, page * 8, 0, 0];
        // SAFETY: writes at most `want` bytes into a local array of that size.
        if unsafe { call(libc::SYS_pread64, args)? } != want {
            return Err(Errno(libc::EIO));
        }
        for (exists, entry) in chunk.iter_mut().zip(&entries) {
            *exists = entry & PRESENT_OR_SWAPPED != 0;
        }
        page += chunk.len();
    }
    Ok(())
}

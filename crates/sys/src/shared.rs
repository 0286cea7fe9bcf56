//! A segment of memory that several processes map: a memfd, reached by others through its path in /proc.

use crate::errno::{Errno, call};
use crate::map::{self, RW};
use nearfar_core::addr::Extent;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A shared mapping that stays for the life of the process (readers may hold references for ever).
#[derive(Clone, Copy)]
pub struct Shared {
    range: Extent,
}

impl Shared {
    /// Creates a segment of `len` bytes of zeros; the descriptor keeps it reachable for other processes.
    pub fn create(name: &CStr, len: usize) -> Result<(Self, OwnedFd), Errno> {
        // SAFETY: `name` is a C string; the call takes no other memory.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain integers.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), len as libc::off_t) } != 0 {
            return Err(Errno::last());
        }
        Ok((Self::map(&fd, len)?, fd))
    }

    /// Maps the segment behind `path` (such as `/proc/4711/fd/3`), which must hold at least `len` bytes.
    pub fn open(path: &CStr, len: usize) -> Result<Self, Errno> {
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: `path` is a C string; raw, because `open` may be interposed by others.
        let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // SAFETY: all zeros is a valid stat buffer.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: writes into a local.
        if unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } != 0 {
            return Err(Errno::last());
        }
        if (stat.st_size as usize) < len {
            return Err(Errno::EINVAL);
        }
        Self::map(&fd, len)
    }

    fn map(fd: &OwnedFd, len: usize) -> Result<Self, Errno> {
        // SAFETY: not fixed: the kernel picks free space.
        let start = unsafe { map::mmap(0, len, RW, libc::MAP_SHARED, fd.as_raw_fd(), 0)? };
        Ok(Self { range: Extent::new(start, len) })
    }

    /// The mapped bytes, page aligned, mapped until the process ends.
    pub fn range(&self) -> Extent {
        self.range
    }
}

//! A file that several processes append to, each piece in one write.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// A file open for appending; the kernel keeps the pieces of different processes apart.
pub struct AppendFile {
    fd: Kept,
}

impl AppendFile {
    /// Opens the file at `path`, which exists. Close-on-exec.
    pub fn open(path: &OsStr) -> Result<Self, Errno> {
        let path = CString::new(path.as_bytes()).map_err(|_| Errno::EINVAL)?;
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOCTTY;
        // SAFETY: a C string; raw because `open` may be interposed by others.
        let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        Ok(Self { fd: Kept::new(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }) })
    }

    /// Appends `bytes`. What is short (disk full, a size limit) is tried on, so that the reason comes out.
    pub fn append(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let args = [self.fd.as_raw_fd() as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
            // SAFETY: the slice is valid for its length.
            match unsafe { call(libc::SYS_write, args) } {
                Ok(0) => return Err(Errno(libc::EIO)),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

impl AsRawFd for AppendFile {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

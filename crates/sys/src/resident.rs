//! How much memory of files the process has in view: one number, cheap enough to be asked every few milliseconds.

use crate::errno::{Errno, call};
use crate::high_descriptors;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// /proc/self/statm, kept open. After a fork a copy still tells of the parent.
pub struct Resident {
    fd: OwnedFd,
}

impl Resident {
    /// Opens it. Fails where /proc is not mounted.
    pub fn open() -> Result<Self, Errno> {
        let path = c"/proc/self/statm".as_ptr() as usize;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        // SAFETY: a C string constant.
        let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        Ok(Self { fd: high_descriptors::put(unsafe { OwnedFd::from_raw_fd(fd as i32) }) })
    }

    /// Pages of files, and of shared memory, that the process has in view. The kernel counts per CPU, so it may be some tens
    /// of pages per CPU behind.
    pub fn file_pages(&self) -> Result<u64, Errno> {
        let mut text = [0u8; 128];
        let args = [self.fd.as_raw_fd() as usize, text.as_mut_ptr() as usize, text.len(), 0, 0, 0];
        // SAFETY: writes at most so many bytes into a local array.
        let len = unsafe { call(libc::SYS_pread64, args)? };
        let third = text[..len].split(|&byte| byte == b' ').nth(2).and_then(|word| std::str::from_utf8(word).ok());
        third.and_then(|word| word.parse().ok()).ok_or(Errno(libc::EIO))
    }
}

impl AsRawFd for Resident {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_program_has_its_own_file_in_view() {
        let pages = Resident::open().and_then(|resident| resident.file_pages()).expect("a number");
        assert!((1..1 << 24).contains(&pages), "{pages}");
    }
}

//! One shared mapping of a private, unlinked file: the placement that "mmap a file" means to a program.
//!
//! Owns the mapping and the file's space: both end with the value. Does not write the data back: nobody will read it.
//! The C library's mmap is called, not the raw one of `nearfar_sys`: a preloaded pager is to see what it would see of any program.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;

/// How memory will be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// From one end to the other.
    Sequential,
    /// Anywhere.
    Random,
}

/// `len` bytes of zeros in a file, mapped with MAP_SHARED.
#[derive(Debug)]
pub struct MappedFile {
    start: NonNull<u8>,
    len: usize,
    // Held so that the file lives as long as the mapping, though MAP_SHARED alone would do; it makes /proc/PID/fd show the space.
    _file: File,
}

// SAFETY: the mapping belongs to this value alone (the file is unlinked before anyone else could map it), so moving the value to
// another thread moves the only access path.
unsafe impl Send for MappedFile {}
// SAFETY: shared references give only `&[u8]`; nothing behind `&self` writes.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Creates a file at `path` (which must not exist), mode 0600, unlinks it, sizes it to `len` bytes and maps it.
    pub fn create(path: &Path, len: usize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        std::fs::remove_file(path)?;
        file.set_len(len as u64)?;
        // mmap refuses length 0; an empty buffer still needs a valid address.
        let map_len = len.max(1);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory; length is not 0 and the fd is open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), map_len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, len, _file: file })
    }

    /// Tells the kernel how the bytes will be accessed.
    pub fn advise(&self, pattern: Pattern) {
        let advice = match pattern {
            Pattern::Sequential => libc::MADV_SEQUENTIAL,
            Pattern::Random => libc::MADV_RANDOM,
        };
        // SAFETY: start and length are those of the mapping made in `create`; the two pieces of advice steer readahead and eviction
        // only. A refusal changes speed, not data.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len.max(1), advice) };
    }

    /// First byte; page-aligned.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// First byte, to write through; page-aligned.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: start and length are those of the mapping made in `create`; no reference outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len.max(1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_no_name_behind() {
        let path = std::env::temp_dir().join(format!("nearfar-mapped-{}", std::process::id()));
        let mapped = MappedFile::create(&path, 8192).expect("mapped file in the temporary directory");
        assert!(!path.exists());
        assert_eq!(mapped.len(), 8192);
        let again = MappedFile::create(&path, 0).expect("the name is free again");
        assert!(again.is_empty());
    }
}

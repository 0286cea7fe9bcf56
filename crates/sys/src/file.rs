//! The spill file: private (0600), without a name, read and written directly where the file system can.

use crate::errno::{Errno, call};
use crate::high_descriptors;
use crate::rlimit::{Limit, limit};
use crate::spill_dir::SpillDir;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// An open spill file. The kernel frees its space when the last process that holds it is gone, however it goes.
pub struct SpillFile {
    fd: OwnedFd,
    direct: bool,
}

impl SpillFile {
    /// Creates a nameless file in `dir`. With `direct`, tries O_DIRECT first.
    pub fn create(dir: &SpillDir, direct: bool) -> Result<Self, Errno> {
        let base = libc::O_TMPFILE | libc::O_RDWR | libc::O_EXCL;
        if direct && let Ok(fd) = dir.open_at("".as_ref(), base | libc::O_DIRECT) {
            return Ok(Self { fd, direct: true });
        }
        if let Ok(fd) = dir.open_at("".as_ref(), base) {
            return Ok(Self { fd, direct: false });
        }
        // File systems without O_TMPFILE: a name for a moment. O_EXCL never touches what exists.
        let name = format!(".nearfar-{}-{:x}", crate::process::pid(), crate::event::now_ns());
        let name = OsStr::new(&name);
        let base = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        let (fd, direct) = match dir.open_at(name, base | if direct { libc::O_DIRECT } else { 0 }) {
            Ok(fd) => (fd, direct),
            Err(Errno::EINVAL) if direct => {
                // O_DIRECT refused: the kernel may have created the name all the same.
                dir.remove(name);
                (dir.open_at(name, base)?, false)
            }
            Err(errno) => return Err(errno),
        };
        dir.remove(name);
        Ok(Self { fd, direct })
    }

    /// True when reads and writes bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Makes sure that bytes `offset..offset + len` have space on the device.
    pub fn secure(&self, offset: u64, len: u64) -> Result<(), Errno> {
        // Asked first: the kernel would send SIGXFSZ to the thread, which may be one of the program's.
        if limit(Limit::FileSize).is_some_and(|most| offset + len > most) {
            return Err(Errno(libc::EFBIG));
        }
        if offset + len > self.taken().saturating_add(self.free()) {
            return Err(Errno(libc::ENOSPC));
        }
        // SAFETY: integers only.
        match unsafe { call(libc::SYS_fallocate, [self.raw(), 0, offset as usize, len as usize, 0, 0]) } {
            Ok(_) => Ok(()),
            Err(errno @ Errno(libc::ENOSPC | libc::EDQUOT)) => {
                // File systems keep what they had found till then, and others have nothing.
                let _ = self.extend(offset);
                Err(errno)
            }
            // No such facility here: grow the file sparsely. Space is then found at write time; it was there just now, for all of
            // the file that has none yet.
            Err(Errno(libc::EOPNOTSUPP)) => self.extend(offset + len),
            Err(errno) => Err(errno),
        }
    }

    /// Bytes of the file that have space on the device.
    fn taken(&self) -> u64 {
        // SAFETY: all zeros is a valid value of this structure of integers.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: writes into the local.
        let result = unsafe { libc::fstat(self.fd.as_raw_fd(), &mut stat) };
        if result == 0 { stat.st_blocks as u64 * 512 } else { 0 }
    }

    /// Bytes that the caller may still use of the file system, or of its limit for files.
    pub fn free(&self) -> u64 {
        // SAFETY: all zeros is a valid value of this structure of integers.
        let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: writes into the local.
        let result = unsafe { libc::fstatfs(self.fd.as_raw_fd(), &mut stat) };
        let free = if result == 0 { (stat.f_bavail as u64).saturating_mul(stat.f_bsize as u64) } else { 0 };
        match limit(Limit::FileSize) {
            Some(most) => free.min(most.saturating_sub(self.taken())),
            None => free,
        }
    }

    /// Makes the file `len` bytes long, without space for what is new.
    pub fn extend(&self, len: u64) -> Result<(), Errno> {
        // SAFETY: integers only.
        unsafe { call(libc::SYS_ftruncate, [self.raw(), len as usize, 0, 0, 0, 0]) }.map(|_| ())
    }

    /// Gives the space of the bytes back; errors are of no consequence.
    pub fn punch(&self, offset: u64, len: u64) {
        let _ = self.make_hole(offset, len);
    }

    /// Makes the bytes read as zeros, in mappings too, and gives their space back.
    pub fn make_hole(&self, offset: u64, len: u64) -> Result<(), Errno> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        loop {
            // SAFETY: integers only.
            match unsafe { call(libc::SYS_fallocate, [self.raw(), mode as usize, offset as usize, len as usize, 0, 0]) } {
                Err(Errno::EINTR) => {}
                result => return result.map(|_| ()),
            }
        }
    }

    /// The first range of bytes from `offset` on that may hold data; `None` behind the last. Fails where the file system
    /// cannot tell.
    pub fn data_from(&self, offset: u64) -> Result<Option<(u64, u64)>, Errno> {
        // SAFETY: integers only.
        let seek =
            |from: u64, whence: i32| unsafe { call(libc::SYS_lseek, [self.raw(), from as usize, whence as usize, 0, 0, 0]) };
        match seek(offset, libc::SEEK_DATA) {
            Ok(start) => Ok(Some((start as u64, seek(start as u64, libc::SEEK_HOLE)? as u64))),
            Err(Errno(libc::ENXIO)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Another descriptor of the same open file.
    pub fn duplicate(&self) -> Result<Self, Errno> {
        let fd = high_descriptors::duplicate(self.fd.as_raw_fd()).ok_or(Errno(libc::EMFILE))?;
        Ok(Self { fd, direct: self.direct })
    }

    fn raw(&self) -> usize {
        self.fd.as_raw_fd() as usize
    }
}

impl AsRawFd for SpillFile {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

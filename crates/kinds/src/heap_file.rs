//! The file behind a heap: one without a name, and a copy of it for the child of a fork, which would otherwise write into its parent's.

use nearfar_core::addr::Extent;
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file without a name, and the directory that it is in.
pub struct HeapFile {
    file: File,
    dir: OwnedFd,
}

impl HeapFile {
    /// A new file in `dir`.
    ///
    /// # Errors
    /// What the system says: no directory, or none that can be written to.
    pub fn create(dir: &CStr) -> io::Result<Self> {
        // SAFETY: a C string.
        let dir = checked(unsafe { libc::open(dir.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) })?;
        // SAFETY: a fresh descriptor, ours alone.
        let dir = unsafe { OwnedFd::from_raw_fd(dir) };
        Ok(Self { file: unnamed(&dir)?, dir })
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Another file in the same directory that begins with the same bytes, which are mapped at `taken`. Nobody writes to them meanwhile.
    ///
    /// # Errors
    /// What the system says, a full file system above all.
    pub fn copied(&self, taken: Extent) -> io::Result<Self> {
        // SAFETY: a descriptor of ours.
        let dir = unsafe { OwnedFd::from_raw_fd(checked(libc::fcntl(self.dir.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0))?) };
        let file = unnamed(&dir)?;
        // Some file systems share the blocks until one is written to.
        // SAFETY: two files of ours.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::FICLONE, self.fd()) } != 0 {
            file.set_len(taken.len() as u64)?;
            let mut at = 0;
            while let Some((start, end)) = self.data(at, taken.len())? {
                // SAFETY: mapped memory of the heap, which nobody writes to now.
                let bytes = unsafe { std::slice::from_raw_parts((taken.start + start) as *const u8, end - start) };
                file.write_all_at(bytes, start as u64)?;
                at = end;
            }
        }
        Ok(Self { file, dir })
    }

    /// The first piece from `at` on that is not a hole; `None` when there is none before `len`.
    fn data(&self, at: usize, len: usize) -> io::Result<Option<(usize, usize)>> {
        if at >= len {
            return Ok(None);
        }
        // SAFETY: a file of ours, whose offset nobody uses.
        let seek = |at: usize, what| unsafe { libc::lseek(self.fd(), at as i64, what) };
        match usize::try_from(seek(at, libc::SEEK_DATA)) {
            Ok(start) if start >= len => Ok(None),
            Ok(start) => {
                let end = usize::try_from(seek(start, libc::SEEK_HOLE)).unwrap_or(len).min(len);
                Ok(Some((start, end.max(start + 1))))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
                error => Err(error),
            },
        }
    }
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A file without a name in `dir`.
fn unnamed(dir: &OwnedFd) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_EXCL | libc::O_TMPFILE;
    // SAFETY: a C string.
    let fd = unsafe { libc::openat(dir.as_raw_fd(), c".".as_ptr(), flags, 0o600) };
    let fd = if fd >= 0 { fd } else { named_and_removed(dir)? };
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The same on file systems without O_TMPFILE.
fn named_and_removed(dir: &OwnedFd) -> io::Result<c_int> {
    let dir = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
    let path = Path::new(&dir).join("nearfar-kind-XXXXXX");
    let mut path = CString::new(path.as_os_str().as_bytes())?.into_bytes_with_nul();
    // SAFETY: a C string that may be changed, ended by 0.
    let fd = checked(unsafe { libc::mkostemp(path.as_mut_ptr().cast(), libc::O_CLOEXEC) })?;
    // SAFETY: the path that was made above.
    unsafe { libc::unlink(path.as_ptr().cast()) };
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::addr::PAGE;
    use nearfar_sys::map;

    #[test]
    fn a_copy_is_the_same_and_apart() {
        let file = HeapFile::create(c"/tmp").unwrap();
        let len = 64 * PAGE;
        file.file.set_len(len as u64).unwrap();
        file.file.write_all_at(b"first", 3).unwrap();
        file.file.write_all_at(b"last", (len - 4) as u64).unwrap();
        // SAFETY: a fresh mapping.
        let start = unsafe { map::mmap(0, len, map::RW, libc::MAP_SHARED, file.fd(), 0) }.unwrap();
        let copy = file.copied(Extent::new(start, len)).unwrap();
        file.file.write_all_at(b"other", 3).unwrap();
        let (mut from, mut to) = (vec![0; len], vec![0; len]);
        file.file.read_exact_at(&mut from, 0).unwrap();
        copy.file.read_exact_at(&mut to, 0).unwrap();
        assert_eq!(&to[..8], b"\0\0\0first");
        assert_eq!(&from[..8], b"\0\0\0other");
        assert_eq!(from[8..], to[8..]);
        // SAFETY: the mapping from above.
        unsafe { map::munmap(Extent::new(start, len)) }.unwrap();
    }

    #[test]
    fn what_is_no_directory_is_said() {
        assert!(HeapFile::create(c"/dev/null").is_err() && HeapFile::create(c"/nowhere/at/all").is_err());
    }
}

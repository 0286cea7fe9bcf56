//! The directory of spill files, kept open: a program may change its root, and a child of it needs a file of its own.

use crate::errno::{Errno, call};
use crate::high_descriptors::{self, Kept};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory, by a descriptor where it can be had, else by its path.
pub struct SpillDir {
    path: PathBuf,
    fd: Option<Kept>,
}

impl SpillDir {
    /// By its path only, for what is done at once.
    pub fn named(path: &Path) -> Self {
        Self { path: path.to_owned(), fd: None }
    }

    /// To be used later, also when the path leads there no more.
    pub fn open(path: &Path) -> Self {
        let mut dir = Self::named(path);
        dir.fd = dir.open_at("".as_ref(), libc::O_PATH | libc::O_DIRECTORY).ok().map(Kept::in_place);
        dir
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor, which the program must not close. `None` where it has all the same.
    pub fn fd(&self) -> Option<RawFd> {
        self.fd.as_ref().filter(|fd| fd.is_ours()).map(|fd| fd.as_raw_fd())
    }

    /// Opens `name` in it, or itself where that is empty; close-on-exec, aside of the descriptors that programs get.
    pub fn open_at(&self, name: &OsStr, flags: i32) -> Result<OwnedFd, Errno> {
        let flags = flags | libc::O_CLOEXEC;
        let open = |dir, path: CString| {
            // SAFETY: a C string; raw because `open` may be interposed by others.
            let fd = unsafe { call(libc::SYS_openat, [dir, path.as_ptr() as usize, flags as usize, 0o600, 0, 0])? };
            // SAFETY: a fresh descriptor, ours alone.
            Ok(high_descriptors::put(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
        };
        if let Some(fd) = self.fd() {
            match open(fd as usize, c_path(if name.is_empty() { ".".as_ref() } else { name })?) {
                // It was removed, and may have been made again.
                Err(Errno(libc::ENOENT)) => {}
                result => return result,
            }
        }
        let whole = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        open(libc::AT_FDCWD as usize, c_path(whole.as_os_str())?)
    }

    /// Takes `name` away.
    pub fn remove(&self, name: &OsStr) {
        let remove = |dir: usize, path: &OsStr| {
            let path = c_path(path)?;
            // SAFETY: a C string.
            unsafe { call(libc::SYS_unlinkat, [dir, path.as_ptr() as usize, 0, 0, 0, 0]) }
        };
        if self.fd().is_none_or(|fd| remove(fd as usize, name).is_err()) {
            let _ = remove(libc::AT_FDCWD as usize, self.path.join(name).as_os_str());
        }
    }
}

fn c_path(path: &OsStr) -> Result<CString, Errno> {
    CString::new(path.as_bytes()).map_err(|_| Errno::EINVAL)
}

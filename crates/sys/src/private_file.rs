//! Files that processes of one user share and others must not touch: opened without following links, with the owner, the kind and
//! the rights checked, and locked without waiting.

use crate::errno::Errno;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The kernel says no.
    #[error("{0}")]
    Errno(#[from] Errno),
    /// It belongs to somebody else.
    #[error("it belongs to user {0}")]
    Owner(u32),
    /// Others may write to it or read it.
    #[error("others have rights to it (mode {0:o})")]
    Mode(u32),
    /// A directory, device, pipe or the like.
    #[error("it is not an ordinary file")]
    Kind,
}

/// The user that the caller acts as.
pub fn user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Opens the caller's own file at `path` for reading and writing; with `create`, makes it (0600) when there is none. Links are not
/// followed, and what belongs to others is refused.
pub fn open(path: &Path, create: bool) -> Result<File, Refusal> {
    let c_path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    // Not blocking: a pipe put there would hold us until somebody opened its other end.
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let open = |flags: i32| {
        // SAFETY: a C string and plain integers.
        match unsafe { libc::open(c_path.as_ptr(), flags, 0o600) } {
            // SAFETY: a fresh descriptor, ours alone.
            fd if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
            _ => Err(Errno::last()),
        }
    };
    // Existing first: in directories that all may write to, O_CREAT on a file of somebody else fails without saying why.
    let file = loop {
        match open(flags) {
            Err(Errno(libc::ENOENT)) if create => match open(flags | libc::O_CREAT | libc::O_EXCL) {
                Err(Errno(libc::EEXIST)) => {}
                result => break result?,
            },
            result => break result?,
        }
    };
    let facts = file.metadata().map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
    if !facts.is_file() {
        return Err(Refusal::Kind);
    }
    if facts.uid() != user() {
        return Err(Refusal::Owner(facts.uid()));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(Refusal::Mode(facts.mode() & 0o7777));
    }
    Ok(file)
}

/// True when `file` is what `path` names now: it was neither removed nor replaced.
pub fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|open| std::fs::symlink_metadata(path).is_ok_and(|named| same(open, named)))
}

/// Locks `file` for this opening of it alone; false when another has it. A lock ends with the process that holds it.
pub fn try_lock(file: &File) -> Result<bool, Errno> {
    // SAFETY: plain integers.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(true),
        _ => match Errno::last() {
            Errno(libc::EWOULDBLOCK | libc::EINTR) => Ok(false),
            errno => Err(errno),
        },
    }
}

/// Unlocks `file`.
pub fn unlock(file: &File) {
    // SAFETY: plain integers; unlocking what is not locked does nothing.
    let _ = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_own_ordinary_files() {
        let dir = std::env::temp_dir().join(format!("nearfar-private-{}", crate::process::pid()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let path = dir.join("file");
        assert!(matches!(open(&path, false), Err(Refusal::Errno(Errno(libc::ENOENT)))));
        let first = open(&path, true).expect("created");
        let second = open(&path, true).expect("opened");
        assert_eq!(first.metadata().expect("facts").mode() & 0o777, 0o600);
        assert!(try_lock(&first).expect("lock") && !try_lock(&second).expect("try"));
        unlock(&first);
        assert!(try_lock(&second).expect("lock") && is_at(&second, &path));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).expect("chmod");
        assert!(matches!(open(&path, true), Err(Refusal::Mode(0o620))));
        symlink(&path, dir.join("link")).expect("link");
        assert!(matches!(open(&dir.join("link"), true), Err(Refusal::Errno(Errno(libc::ELOOP)))));
        assert!(open(&dir, true).is_err());
        std::fs::remove_file(&path).expect("removed");
        assert!(!is_at(&second, &path));
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}

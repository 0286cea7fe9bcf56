//! Facts about a path that std does not tell: may it be executed, does it carry capabilities, what file system is under it.

use crate::errno::Errno;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn c_path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}

/// Whether the caller (by its effective ids) may execute `path`.
pub fn may_execute(path: &Path) -> Result<(), Errno> {
    may(path, libc::X_OK)
}

/// Whether the caller (by its effective ids) may write to `path`.
pub fn may_write(path: &Path) -> Result<(), Errno> {
    may(path, libc::W_OK)
}

fn may(path: &Path, access: i32) -> Result<(), Errno> {
    let path = c_path(path)?;
    // SAFETY: a C string.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), access, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// True when the file grants capabilities to who executes it: the loader then ignores LD_PRELOAD, as for setuid programs.
pub fn grants_capabilities(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    // SAFETY: C strings; with size 0 nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// The file system under a path.
#[derive(Clone, Copy, Debug)]
pub struct FileSystem {
    /// Bytes that the caller may still use.
    pub free: u64,
    /// It keeps its files in memory (tmpfs, ramfs).
    pub in_memory: bool,
}

/// The file system that holds `path`.
pub fn file_system(path: &Path) -> Result<FileSystem, Errno> {
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    let path = c_path(path)?;
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string; writes into the local.
    if unsafe { libc::statfs(path.as_ptr(), &mut stat) } != 0 {
        return Err(Errno::last());
    }
    let in_memory = [libc::TMPFS_MAGIC, RAMFS_MAGIC].contains(&stat.f_type);
    Ok(FileSystem { free: (stat.f_bavail as u64).saturating_mul(stat.f_bsize as u64), in_memory })
}

//! Files of /proc of a few lines, read without a heap.

use crate::errno::call;
use std::ffi::CStr;

/// What the file at `path` holds, as far as `room` goes.
pub fn read<'a>(path: &CStr, room: &'a mut [u8]) -> Option<&'a [u8]> {
    let args = [libc::AT_FDCWD as usize, path.as_ptr().addr(), libc::O_CLOEXEC as usize, 0, 0, 0];
    // SAFETY: a C string.
    let fd = unsafe { call(libc::SYS_openat, args) }.ok()?;
    // SAFETY: writes at most the bytes of `room`.
    let len = unsafe { call(libc::SYS_read, [fd, room.as_mut_ptr().addr(), room.len(), 0, 0, 0]) };
    // SAFETY: opened above, and nobody else's.
    let _ = unsafe { call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]) };
    room.get(..len.ok()?)
}

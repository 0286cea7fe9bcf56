//! Programs that bring a userfaultfd of their own: what they register with it is theirs.

use crate::errno;
use crate::lifecycle::managed;
use nearfar_core::addr::Extent;
use nearfar_sys::errno::{Errno, call};
use std::ffi::{c_int, c_ulong, c_void};

/// `UFFDIO_REGISTER`, whose argument begins with a range: start and length.
const REGISTER: c_ulong = 0xc020_aa00;

/// ioctl(2).
///
/// # Safety
/// As for the system call. What is not given of the last argument may be anything.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    // SAFETY: passed on to the caller.
    let kernel = || unsafe { call(libc::SYS_ioctl, [fd as usize, request as usize, arg.addr(), 0, 0, 0]) };
    let mut result = kernel();
    // Refused while we have it registered; when paging begins later, we must not.
    if request == REGISTER
        && matches!(result, Ok(_) | Err(Errno::EBUSY))
        && !arg.is_null()
        && let Some(managed) = managed()
    {
        // SAFETY: the program says that the kernel may read there.
        let [start, len] = unsafe { arg.cast::<[u64; 2]>().read_unaligned() }.map(|word| word as usize);
        managed.with(|memory| memory.release(Extent { start, end: start.saturating_add(len) }));
        if result.is_err() {
            result = kernel();
        }
    }
    result.map_or_else(|errno| errno::failed(errno.0), |value| value as c_int)
}

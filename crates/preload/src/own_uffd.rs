//! Programs that bring a userfaultfd of their own: what they register with it is theirs.

use crate::errno;
use crate::function::Function;
use crate::lifecycle::managed;
use crate::user_mode;
use nearfar_core::addr::Extent;
use std::ffi::{c_int, c_ulong, c_void};

/// The C library's, where calls are caught for ordinary users (`user_mode`).
static IOCTL: Function<unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int> = Function::next(c"ioctl");

/// `UFFDIO_COPY`, whose argument begins with where to, where from, and how much.
const COPY: c_ulong = 0xc028_aa03;
/// `UFFDIO_REGISTER`, whose argument begins with a range: start and length.
const REGISTER: c_ulong = 0xc020_aa00;

/// ioctl(2).
///
/// # Safety
/// As for the system call. What is not given of the last argument may be anything.
pub unsafe fn ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    let Some(next) = IOCTL.get() else { return errno::failed(libc::ENOSYS) };
    // SAFETY: passed on to the caller.
    let kernel = || unsafe { next(fd, request, arg) };
    if request == COPY && !arg.is_null() && user_mode::is_active() {
        // SAFETY: the kernel is about to read there.
        let [_, from, len] = unsafe { arg.cast::<[u64; 3]>().read_unaligned() }.map(|word| word as usize);
        return user_mode::with_lent(managed(), &[Extent { start: from, end: from.saturating_add(len) }], kernel);
    }
    let result = kernel();
    // Refused while we have it registered; when paging begins later, we must not.
    if request == REGISTER
        && (result == 0 || errno::get() == libc::EBUSY)
        && !arg.is_null()
        && let Some(managed) = managed()
    {
        // SAFETY: the kernel has read there.
        let [start, len] = unsafe { arg.cast::<[u64; 2]>().read_unaligned() }.map(|word| word as usize);
        managed.with(|memory| memory.release(Extent { start, end: start.saturating_add(len) }));
        return if result == 0 { 0 } else { kernel() };
    }
    result
}

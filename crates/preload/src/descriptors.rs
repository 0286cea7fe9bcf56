//! Closing and replacing file descriptors: ours must outlive what the program does to all descriptors at once.
//!
//! A daemon closes everything from 3 upwards. If the pager's userfaultfd went with it, paged memory would read as zeros. To
//! the program our descriptors do not exist: closing one fails with EBADF, closing a range leaves them out. A child of vfork
//! has descriptors of its own, and closes what it likes.

use crate::errno;
use crate::function::Function;
use crate::lifecycle::{is_this_process, managed};
use nearfar_profile::recorder;
use std::ffi::{c_int, c_uint};

static CLOSE: Function<unsafe extern "C" fn(c_int) -> c_int> = Function::next(c"close");
static CLOSE_RANGE: Function<unsafe extern "C" fn(c_uint, c_uint, c_int) -> c_int> = Function::next(c"close_range");
static DUP2: Function<unsafe extern "C" fn(c_int, c_int) -> c_int> = Function::next(c"dup2");
static DUP3: Function<unsafe extern "C" fn(c_int, c_int, c_int) -> c_int> = Function::next(c"dup3");

fn is_guarded(fd: c_int) -> bool {
    recorder::owns(fd) || (managed().is_some_and(|managed| managed.is_own_fd(fd)) && is_this_process())
}

fn missing() -> c_int {
    errno::failed(libc::ENOSYS)
}

/// close(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn close(fd: c_int) -> c_int {
    if is_guarded(fd) {
        return errno::failed(libc::EBADF);
    }
    // SAFETY: passed on to the caller.
    CLOSE.get().map_or_else(missing, |next| unsafe { next(fd) })
}

/// close_range(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let Some(next) = CLOSE_RANGE.get() else { return missing() };
    let (mut from, mut flags) = (first, flags);
    // Ours are closed on exec already; and the kernel is to judge nonsense.
    if first <= last && flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 && (managed().is_some() || recorder::is_started()) {
        for fd in (first..=last.min(HIGHEST)).filter(|&fd| is_guarded(fd as c_int)) {
            if from < fd {
                // SAFETY: passed on to the caller.
                let result = unsafe { next(from, fd - 1, flags) };
                if result != 0 {
                    return result;
                }
                // A table of our own was asked for once.
                flags &= !(libc::CLOSE_RANGE_UNSHARE as c_int);
            }
            from = fd + 1;
        }
        if from > last {
            return 0;
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { next(from, last, flags) }
}

/// Ours are below, unless the program had as many open when they were opened.
const HIGHEST: c_uint = 1 << 16;

/// closefrom(3).
///
/// # Safety
/// As for the function.
pub unsafe fn closefrom(first: c_int) {
    // SAFETY: passed on to the caller.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// dup2(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn dup2(old: c_int, new: c_int) -> c_int {
    if is_guarded(new) {
        return errno::failed(libc::EBUSY);
    }
    // SAFETY: passed on to the caller.
    DUP2.get().map_or_else(missing, |next| unsafe { next(old, new) })
}

/// dup3(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if is_guarded(new) {
        return errno::failed(libc::EBUSY);
    }
    // SAFETY: passed on to the caller.
    DUP3.get().map_or_else(missing, |next| unsafe { next(old, new, flags) })
}

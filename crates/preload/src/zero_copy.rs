//! Calls with which the kernel goes on using pages after the call, without pinning them: vmsplice(2) and MSG_ZEROCOPY.
//!
//! The pager cannot tell such a page from any other: it would move it out of view and give its frame to other data, which a
//! pipe or a network card would then send. So the bytes are copied at once, as write(2) does, and zero copy is refused, for
//! which every user of it has to be prepared.

use crate::errno;
use crate::function::Function;
use crate::lifecycle::managed;
use nearfar_core::addr::PAGE;
use nearfar_sys::errno::call;
use std::ffi::{c_int, c_uint, c_void};

type SetOption = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, libc::socklen_t) -> c_int;

static SETSOCKOPT: Function<SetOption> = Function::next(c"setsockopt");

/// vmsplice(2).
///
/// # Safety
/// As for the system call; likewise below.
pub unsafe fn vmsplice(fd: c_int, vectors: *const libc::iovec, count: usize, flags: c_uint) -> isize {
    let list = if vectors.is_null() || count > libc::UIO_MAXIOV as usize {
        &[]
    } else {
        // SAFETY: the program's list, which the kernel would read as well.
        unsafe { std::slice::from_raw_parts(vectors, count) }
    };
    let ours = managed().is_some_and(|managed| list.iter().any(|one| managed.is_paged(one.iov_base.addr())));
    if !ours {
        // SAFETY: passed on to the caller.
        let result = unsafe { call(libc::SYS_vmsplice, [fd as usize, vectors.addr(), count, flags as usize, 0, 0]) };
        return result.map_or_else(|errno| errno::failed(errno.0) as isize, |bytes| bytes as isize);
    }
    // SAFETY: an integer.
    let reads = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_ACCMODE == libc::O_RDONLY;
    let (mut list, mut first) = (list, [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }]);
    if flags & libc::SPLICE_F_NONBLOCK != 0 {
        let mut ready = libc::pollfd { fd, events: if reads { libc::POLLIN } else { libc::POLLOUT }, revents: 0 };
        // SAFETY: one local entry.
        if unsafe { libc::poll(&mut ready, 1, 0) } == 0 {
            return errno::failed(libc::EAGAIN) as isize;
        }
        // So much a pipe with room takes without waiting.
        if let Some(one) = list.iter().find(|one| one.iov_len > 0) {
            first[0] = libc::iovec { iov_base: one.iov_base, iov_len: one.iov_len.min(PAGE) };
            list = &first;
        }
    }
    let count = list.len().min(c_int::MAX as usize) as c_int;
    // SAFETY: the program's buffers, or the beginning of one.
    unsafe { if reads { libc::readv(fd, list.as_ptr(), count) } else { libc::writev(fd, list.as_ptr(), count) } }
}

/// setsockopt(2).
///
/// # Safety
/// As for the function.
pub unsafe fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: libc::socklen_t) -> c_int {
    if level == libc::SOL_SOCKET && name == libc::SO_ZEROCOPY && managed().is_some() {
        return errno::failed(libc::EOPNOTSUPP);
    }
    match SETSOCKOPT.get() {
        // SAFETY: passed on to the caller.
        Some(next) => unsafe { next(fd, level, name, value, len) },
        None => errno::failed(libc::ENOSYS),
    }
}

//! POSIX AIO on paged buffers, where system calls are caught (`user_mode`): the C library's helper threads block all signals, so
//! a call of theirs could not be caught. The calling thread does the work instead, before it returns: to the program such an
//! operation has ended early. In all other cases these functions pass on.

use crate::errno;
use crate::function::Function;
use crate::user_mode::is_active;
use nearfar_sys::call_memory::is_watched;
use std::ffi::{c_int, c_void};

type Void = *mut c_void;
type One = unsafe extern "C" fn(Void) -> c_int;

static READ: Function<One> = Function::next(c"aio_read");
static WRITE: Function<One> = Function::next(c"aio_write");
static LIST: Function<unsafe extern "C" fn(c_int, *const Void, c_int, Void) -> c_int> = Function::next(c"lio_listio");

/// `struct aiocb` of glibc on 64-bit machines.
#[repr(C)]
struct Block {
    fd: c_int,
    operation: c_int,
    priority: c_int,
    buffer: usize,
    len: usize,
    event: libc::sigevent,
    next: usize,
    order: [c_int; 2],
    error: c_int,
    result: isize,
    offset: i64,
}

/// # Safety
/// `block` is a control block of the program.
unsafe fn is_ours(block: Void) -> bool {
    // SAFETY: the caller's promise.
    is_active() && unsafe { is_watched((*block.cast::<Block>()).buffer) }
}

/// Does at once what `block` asks for, and tells the program.
///
/// # Safety
/// `block` is a control block of the program.
unsafe fn at_once(block: Void, write: bool) -> c_int {
    // SAFETY: the caller's promise; nobody else uses the block before the operation has ended.
    let block = unsafe { &mut *block.cast::<Block>() };
    if !matches!(block.event.sigev_notify, libc::SIGEV_NONE | libc::SIGEV_SIGNAL) {
        return errno::failed(libc::ENOSYS);
    }
    let kept = errno::Kept::now();
    let (buffer, len) = (block.buffer as Void, block.len);
    // SAFETY: the program's buffer, for the operation that it asks for.
    let result = unsafe {
        if write {
            libc::pwrite64(block.fd, buffer, len, block.offset)
        } else {
            libc::pread64(block.fd, buffer, len, block.offset)
        }
    };
    if result < 0 && errno::get() == libc::ESPIPE {
        // A pipe or a socket: the caller may be the one who writes what it would read here.
        drop(kept);
        return errno::failed(libc::ENOSYS);
    }
    block.error = if result < 0 { errno::get() } else { 0 };
    block.result = result;
    drop(kept);
    if block.event.sigev_notify == libc::SIGEV_SIGNAL {
        // SAFETY: integers only.
        unsafe { libc::sigqueue(libc::getpid(), block.event.sigev_signo, block.event.sigev_value) };
    }
    0
}

/// aio_read(3).
///
/// # Safety
/// As for the function; likewise below.
pub unsafe fn read(block: Void) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        if is_ours(block) {
            return at_once(block, false);
        }
        READ.get().map_or_else(|| errno::failed(libc::ENOSYS), |next| next(block))
    }
}

/// aio_write(3).
///
/// # Safety
/// As for the function.
pub unsafe fn write(block: Void) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        if is_ours(block) {
            return at_once(block, true);
        }
        WRITE.get().map_or_else(|| errno::failed(libc::ENOSYS), |next| next(block))
    }
}

/// lio_listio(3): refused where one of the buffers is paged.
///
/// # Safety
/// As for the function.
pub unsafe fn list(mode: c_int, list: *const Void, count: c_int, event: Void) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        let any = (0..count.max(0) as usize).any(|index| {
            let block = *list.add(index);
            !block.is_null() && is_ours(block)
        });
        if any {
            return errno::failed(libc::ENOSYS);
        }
        LIST.get().map_or_else(|| errno::failed(libc::ENOSYS), |next| next(mode, list, count, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_c_library() {
        assert_eq!(std::mem::offset_of!(Block, offset), std::mem::offset_of!(libc::aiocb, aio_offset));
        assert_eq!(std::mem::offset_of!(Block, buffer), std::mem::offset_of!(libc::aiocb, aio_buf));
        assert_eq!(std::mem::offset_of!(Block, event), std::mem::offset_of!(libc::aiocb, aio_sigevent));
    }
}

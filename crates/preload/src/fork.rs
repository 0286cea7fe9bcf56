//! The ways to fork that skip the C library's fork handlers: `_Fork`, and `clone` without shared memory.
//!
//! fork(3) itself and all that is made of it (daemon, forkpty) run the handlers that `lifecycle` registers. vfork and
//! posix_spawn share the parent's memory until exec, and need nothing.

use crate::errno;
use crate::lifecycle::{fork_child, fork_parent, fork_prepare};
use crate::next::Next;
use nearfar_sys::errno::Errno;
use std::ffi::{c_int, c_void};

static FORK: Next<unsafe extern "C" fn() -> libc::pid_t> = Next::new(c"_Fork");
static CLONE: Next<Clone> = Next::new(c"clone");

/// What a cloned process runs first.
pub type Entry = extern "C" fn(*mut c_void) -> c_int;
type Clone = unsafe extern "C" fn(Entry, *mut c_void, c_int, *mut c_void, *mut c_int, *mut c_void, *mut c_int) -> c_int;

fn missing() -> c_int {
    errno::set(Errno(libc::ENOSYS));
    -1
}

/// _Fork(3).
///
/// # Safety
/// As for the function.
pub unsafe fn raw_fork() -> libc::pid_t {
    let Some(next) = FORK.get() else { return missing() };
    fork_prepare();
    // SAFETY: passed on to the caller.
    let pid = unsafe { next() };
    let _kept = errno::Kept::now();
    if pid == 0 {
        fork_child()
    } else {
        fork_parent()
    }
    pid
}

struct Start {
    entry: Entry,
    arg: *mut c_void,
}

extern "C" fn start_child(start: *mut c_void) -> c_int {
    fork_child();
    // SAFETY: `raw_clone` passed its local; the child has a copy of that stack, as of all memory.
    let start = unsafe { &*start.cast::<Start>() };
    (start.entry)(start.arg)
}

/// clone(2), the C library's wrapper.
///
/// # Safety
/// As for the function. The last three arguments may be whatever lies in their places: the kernel reads those that `flags`
/// asks for.
pub unsafe fn raw_clone(
    entry: Entry,
    stack: *mut c_void,
    flags: c_int,
    arg: *mut c_void,
    rest: (*mut c_int, *mut c_void, *mut c_int),
) -> c_int {
    let Some(next) = CLONE.get() else { return missing() };
    if flags & libc::CLONE_VM != 0 {
        // SAFETY: passed on to the caller.
        return unsafe { next(entry, stack, flags, arg, rest.0, rest.1, rest.2) };
    }
    let mut start = Start { entry, arg };
    fork_prepare();
    // SAFETY: passed on to the caller; `start` lives in this frame, of which the child gets a copy.
    let pid = unsafe { next(start_child, stack, flags, (&raw mut start).cast(), rest.0, rest.1, rest.2) };
    let _kept = errno::Kept::now();
    fork_parent();
    pid
}

//! fork, and the ways to fork that skip the C library's fork handlers: `_Fork`, and `clone` without shared memory.
//!
//! fork(3), and all that the C library makes of it (daemon, forkpty), runs the handlers that `lifecycle` registers, those of `at_fork` among them; here it is
//! only moved off a paged stack, which nobody serves between our last handler before the fork and our first one after it.
//! vfork and posix_spawn share the parent's memory until exec, and need nothing.

use crate::function::Function;
use crate::lifecycle::{fork_child, fork_parent, fork_prepare, managed_even_inside, may_fork};
pub use crate::vm_sharers::Entry;
use crate::{at_fork, errno, stack, user_mode, vm_sharers};
use nearfar_profile::recorder;
use nearfar_sys::errno::call;
use nearfar_tiers::memory::Memory;
use std::ffi::{c_int, c_void};

static FORK: Function<unsafe extern "C" fn() -> libc::pid_t> = Function::next(c"fork");
static RAW_FORK: Function<unsafe extern "C" fn() -> libc::pid_t> = Function::next(c"_Fork");
static CLONE: Function<Clone> = Function::next(c"clone");

type Clone = unsafe extern "C" fn(Entry, *mut c_void, c_int, *mut c_void, *mut c_int, *mut c_void, *mut c_int) -> c_int;

fn missing() -> c_int {
    errno::failed(libc::ENOSYS)
}

/// Runs `act` on a stack that stays readable while memory is at rest.
fn off_paged_stack<R>(act: impl FnOnce() -> R) -> R {
    match managed_even_inside() {
        Some(managed) if managed.is_paged(stack::here()) => stack::call_on_own(act),
        _ => act(),
    }
}

/// fork(3).
///
/// # Safety
/// As for the function.
pub unsafe fn fork() -> libc::pid_t {
    let Some(next) = FORK.get() else { return missing() };
    if let Err(errno) = may_fork() {
        return errno::failed(errno.0);
    }
    // SAFETY: passed on to the caller. The child returns on its copy of the stack.
    off_paged_stack(|| unsafe { next() })
}

/// _Fork(3).
///
/// # Safety
/// As for the function.
pub unsafe fn raw_fork() -> libc::pid_t {
    let Some(next) = RAW_FORK.get() else { return missing() };
    if let Err(errno) = may_fork() {
        return errno::failed(errno.0);
    }
    off_paged_stack(|| {
        fork_prepare();
        at_fork::prepare();
        // SAFETY: passed on to the caller.
        let pid = unsafe { next() };
        if pid == 0 {
            at_fork::child()
        } else {
            at_fork::parent()
        }
        let _kept = errno::Kept::now();
        if pid == 0 {
            fork_child()
        } else {
            fork_parent()
        }
        pid
    })
}

/// clone(2), the C library's wrapper. Without shared memory the child first runs on its copy of our stack, until its memory is
/// served, and only then on the stack that it was given, which may be far. It gets a copy of the descriptors, also where they
/// were to be shared.
///
/// # Safety
/// As for the function. The last three arguments may be whatever lies in their places: the kernel reads those that `flags`
/// asks for.
pub unsafe fn clone(
    entry: Entry,
    stack: *mut c_void,
    flags: c_int,
    arg: *mut c_void,
    rest: (*mut c_int, *mut c_void, *mut c_int),
) -> c_int {
    if flags & (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID) != 0 {
        user_mode::keep_words(&[rest.2.addr()]);
    }
    if flags & libc::CLONE_PARENT_SETTID != 0 {
        user_mode::keep_words(&[rest.0.addr()]);
    }
    if let Some(managed) = managed_even_inside()
        && flags & (libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_VFORK | libc::CLONE_THREAD) == libc::CLONE_VM
    {
        // Descriptors that are opened from now on only one of the two would have, and both look after the same memory.
        managed.with(Memory::page_now);
    }
    if let Some(managed) = managed_even_inside()
        && flags & (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_THREAD) == libc::CLONE_VM
        && !stack.is_null()
    {
        let (begin, prepared) = vm_sharers::prepare(managed, entry, arg, stack.addr());
        // SAFETY: passed on to the caller; `begin` runs what was to be run.
        let result =
            CLONE.get().map_or_else(missing, |next| unsafe { next(begin, stack, flags, prepared, rest.0, rest.1, rest.2) });
        if result < 0 {
            // SAFETY: nobody began.
            unsafe { vm_sharers::undo(prepared) };
        }
        return result;
    }
    if flags & libc::CLONE_VM != 0 || (managed_even_inside().is_none() && !recorder::is_started()) {
        // SAFETY: passed on to the caller.
        return CLONE.get().map_or_else(missing, |next| unsafe { next(entry, stack, flags, arg, rest.0, rest.1, rest.2) });
    }
    let Some(entry) = entry.filter(|_| !stack.is_null()) else { return errno::failed(libc::EINVAL) };
    if let Err(errno) = may_fork() {
        return errno::failed(errno.0);
    }
    // The child needs descriptors of its own for its memory; where it opens them, the parent's would be closed.
    let flags = flags & !libc::CLONE_FILES;
    let (parent, tls, child) = (rest.0.addr(), rest.1.addr(), rest.2.addr());
    #[cfg(target_arch = "x86_64")]
    let args = [flags as u32 as usize, 0, parent, child, tls, 0];
    #[cfg(target_arch = "aarch64")]
    let args = [flags as u32 as usize, 0, parent, tls, child, 0];
    off_paged_stack(|| {
        fork_prepare();
        at_fork::prepare();
        // SAFETY: the child has a copy of all memory and goes on with a copy of this frame, as after fork.
        let result = unsafe { call(libc::SYS_clone, args) };
        if result == Ok(0) {
            at_fork::child()
        } else {
            at_fork::parent()
        }
        if result == Ok(0) {
            fork_child();
            // SAFETY: the stack that the caller gave for this. Ends the process, as returning does when there are no other
            // threads; here the pager's would keep it alive.
            unsafe { libc::_exit(stack::call_on(stack.addr(), || entry(arg))) }
        }
        fork_parent();
        result.map_or_else(|errno| errno::failed(errno.0), |pid| pid as c_int)
    })
}

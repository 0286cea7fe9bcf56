//! What the program may do with signals while SIGSYS is ours (`user_mode`): everything, only SIGSYS itself stays open and keeps
//! our handler. Signal stacks that lie in paged memory stay in near, since the kernel writes there; threads get other stacks
//! than those, since the C library hands the kernel parts of a stack while all signals are blocked.
//!
//! In all other processes these functions pass on.

use crate::function::Function;
use crate::lifecycle::managed;
use crate::user_mode::{self, SIGSYS_BIT, is_active};
use crate::{errno, placing, recorded_threads, signal_stacks};
use libc::{sigset_t, stack_t};
use nearfar_core::addr::Extent;
use nearfar_profile::recorder;
use nearfar_sys::errno::Errno;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

type Void = *mut c_void;
type Mask = *const sigset_t;
type SetMask = unsafe extern "C" fn(c_int, Mask, *mut sigset_t) -> c_int;
type Handler = unsafe extern "C" fn(c_int, usize) -> usize;

static SIGACTION: Function<unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int> =
    Function::next(c"sigaction");
static SIGNAL: Function<Handler> = Function::next(c"signal");
static SYSV_SIGNAL: Function<Handler> = Function::next(c"__sysv_signal");
static SIGPROCMASK: Function<SetMask> = Function::next(c"sigprocmask");
static PTHREAD_SIGMASK: Function<SetMask> = Function::next(c"pthread_sigmask");
static SIGSUSPEND: Function<unsafe extern "C" fn(Mask) -> c_int> = Function::next(c"sigsuspend");
static PPOLL: Function<unsafe extern "C" fn(Void, usize, Void, Mask) -> c_int> = Function::next(c"ppoll");
static PSELECT: Function<unsafe extern "C" fn(c_int, Void, Void, Void, Void, Mask) -> c_int> = Function::next(c"pselect");
static EPOLL_PWAIT: Function<unsafe extern "C" fn(c_int, Void, c_int, c_int, Mask) -> c_int> = Function::next(c"epoll_pwait");
static SIGALTSTACK: Function<unsafe extern "C" fn(*const stack_t, *mut stack_t) -> c_int> = Function::next(c"sigaltstack");
static PTHREAD_CREATE: Function<unsafe extern "C" fn(Void, *const libc::pthread_attr_t, Void, Void) -> c_int> =
    Function::next(c"pthread_create");

fn missing() -> c_int {
    errno::set(Errno(libc::ENOSYS));
    -1
}

/// A mask without SIGSYS.
fn open(mask: &mut sigset_t) {
    // SAFETY: the kernel's mask is the first 8 bytes.
    unsafe { *std::ptr::from_mut(mask).cast::<u64>() &= !SIGSYS_BIT };
}

/// Calls `go` with `mask`, or with a copy of it that leaves SIGSYS open.
///
/// # Safety
/// `mask` is null or a valid mask.
unsafe fn opened<R>(mask: Mask, go: impl FnOnce(Mask) -> R) -> R {
    if mask.is_null() || !is_active() {
        return go(mask);
    }
    // SAFETY: the caller's promise.
    let mut copy = unsafe { *mask };
    open(&mut copy);
    go(&copy)
}

/// sigaction(2).
///
/// # Safety
/// As for the system call; likewise below.
pub unsafe fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let Some(next) = SIGACTION.get() else { return missing() };
    if !is_active() || (new.is_null() && signal != libc::SIGSYS) {
        // SAFETY: passed on to the caller.
        return unsafe { next(signal, new, old) };
    }
    // SAFETY: structures of the program, as the function takes them.
    unsafe {
        if signal != libc::SIGSYS {
            let mut copy = *new;
            open(&mut copy.sa_mask);
            return next(signal, &copy, old);
        }
        let wanted = (!new.is_null()).then(|| *new);
        let before = {
            let mut program = user_mode::program();
            let before = *program;
            *program = wanted.or(before);
            before
        };
        if !old.is_null() {
            *old = before.unwrap_or(std::mem::zeroed());
        }
    }
    0
}

/// # Safety
/// As for signal(2).
unsafe fn set_handler(next: Option<Handler>, signal: c_int, handler: usize) -> usize {
    if signal != libc::SIGSYS || !is_active() {
        let Some(next) = next else { return libc::SIG_ERR };
        // SAFETY: passed on to the caller.
        return unsafe { next(signal, handler) };
    }
    // SAFETY: all zeros is a valid value; then structures of our own.
    unsafe {
        let (mut new, mut old): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
        (new.sa_sigaction, new.sa_flags) = (handler, libc::SA_RESTART);
        sigaction(signal, &new, &mut old);
        old.sa_sigaction
    }
}

/// signal(2), and functions that do the same.
///
/// # Safety
/// As for the function.
pub unsafe fn signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { set_handler(SIGNAL.get(), signal, handler) }
}

/// sysv_signal(3).
///
/// # Safety
/// As for the function.
pub unsafe fn sysv_signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { set_handler(SYSV_SIGNAL.get(), signal, handler) }
}

/// sigprocmask(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn sigprocmask(how: c_int, new: Mask, old: *mut sigset_t) -> c_int {
    let Some(next) = SIGPROCMASK.get() else { return missing() };
    // SAFETY: passed on to the caller.
    unsafe { opened(new, |new| next(how, new, old)) }
}

/// pthread_sigmask(3).
///
/// # Safety
/// As for the function.
pub unsafe fn pthread_sigmask(how: c_int, new: Mask, old: *mut sigset_t) -> c_int {
    let Some(next) = PTHREAD_SIGMASK.get() else { return libc::ENOSYS };
    // SAFETY: passed on to the caller.
    unsafe { opened(new, |new| next(how, new, old)) }
}

/// sigsuspend(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn sigsuspend(mask: Mask) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { opened(mask, |mask| SIGSUSPEND.get().map_or_else(missing, |next| next(mask))) }
}

/// ppoll(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn ppoll(fds: Void, count: usize, time: Void, mask: Mask) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { opened(mask, |mask| PPOLL.get().map_or_else(missing, |next| next(fds, count, time, mask))) }
}

/// pselect(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn pselect(count: c_int, sets: [Void; 3], time: Void, mask: Mask) -> c_int {
    let [read, write, except] = sets;
    // SAFETY: passed on to the caller.
    unsafe { opened(mask, |mask| PSELECT.get().map_or_else(missing, |next| next(count, read, write, except, time, mask))) }
}

/// epoll_pwait(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn epoll_pwait(fd: c_int, events: Void, count: c_int, time: c_int, mask: Mask) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { opened(mask, |mask| EPOLL_PWAIT.get().map_or_else(missing, |next| next(fd, events, count, time, mask))) }
}

fn extent(stack: &stack_t) -> Extent {
    let start = stack.ss_sp.addr();
    Extent { start, end: start.saturating_add(stack.ss_size) }
}

/// Keeps a stack in near on which the kernel will write; false when that would leave too little of near.
fn keep(stack: Extent) -> bool {
    managed().filter(|managed| managed.is_paged(stack.start)).is_none_or(|managed| {
        let kept = managed.with(|memory| memory.lend_for_good(stack));
        if !kept {
            errno::set(Errno::ENOMEM);
        }
        kept
    })
}

/// sigaltstack(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int {
    let Some(next) = SIGALTSTACK.get() else { return missing() };
    if !is_active() {
        // SAFETY: passed on to the caller.
        return unsafe { next(new, old) };
    }
    // SAFETY: structures of the program, and our own; all zeros is a valid one.
    unsafe {
        let wanted = (!new.is_null()).then(|| *new);
        let enabled = wanted.filter(|stack| stack.ss_flags & libc::SS_DISABLE == 0);
        if enabled.is_some_and(|stack| !keep(extent(&stack))) {
            return -1;
        }
        let mut before: stack_t = std::mem::zeroed();
        let result = next(wanted.as_ref().map_or(null(), std::ptr::from_ref), &mut before);
        if result != 0 {
            return result;
        }
        if signal_stacks::is_own(before.ss_sp.addr()) {
            before = stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        } else if wanted.is_some()
            && before.ss_flags & libc::SS_DISABLE == 0
            && enabled.is_none_or(|stack| !extent(&stack).overlaps(&extent(&before)))
            && let Some(managed) = managed()
        {
            managed.with(|memory| memory.lend_no_more(extent(&before)));
        }
        if wanted.is_some() && enabled.is_none() {
            signal_stacks::give_own();
        }
        if !old.is_null() {
            *old = before;
        }
    }
    0
}

/// `pthread_attr_t` as glibc has had it since threads have been in it.
#[repr(C)]
struct Attributes {
    scheduling: [c_int; 2],
    flags: c_int,
    guard: usize,
    stack_end: usize,
    stack_len: usize,
}
const HAS_STACK: c_int = 8;

/// Attributes without the stack that they name, when that is paged memory. The C library then takes one of its own, as large.
///
/// # Safety
/// `attr` is null or valid.
unsafe fn without_paged_stack(attr: *const libc::pthread_attr_t) -> Option<libc::pthread_attr_t> {
    if attr.is_null() {
        return None;
    }
    // SAFETY: the caller's promise. A plain copy shares what the original points to, and lives shorter.
    let mut copy = unsafe { attr.read() };
    // SAFETY: the layout of this C library; it is checked against what the library says of the stack.
    let inner = unsafe { &mut *(&raw mut copy).cast::<Attributes>() };
    let (mut start, mut len) = (null_mut(), 0);
    // SAFETY: valid attributes; the locals are filled.
    let known = unsafe { libc::pthread_attr_getstack(attr, &mut start, &mut len) } == 0;
    let named = known && inner.flags & HAS_STACK != 0 && start.addr().checked_add(len) == Some(inner.stack_end);
    if !named || !managed().is_some_and(|managed| managed.is_paged(start.addr())) {
        return None;
    }
    inner.flags &= !HAS_STACK;
    inner.stack_end = 0;
    Some(copy)
}

/// pthread_create(3).
///
/// # Safety
/// As for the function.
pub unsafe fn pthread_create(thread: Void, attr: *const libc::pthread_attr_t, entry: Void, arg: Void) -> c_int {
    let Some(next) = PTHREAD_CREATE.get() else { return libc::ENOSYS };
    // The kernel writes into a thread's control block (rseq) whenever it comes back from a system call, also from the one in
    // which it was handed our lock: in paged memory it would wait for the pager, and the pager for the lock.
    // SAFETY: passed on to the caller.
    let other = unsafe { without_paged_stack(attr) };
    let attr = other.as_ref().map_or(attr, std::ptr::from_ref);
    if placing::wants_stacks() {
        // Only in jobs without a pager.
        // SAFETY: passed on to the caller.
        return unsafe { placing::stacks::create(next, thread, attr, entry, arg) };
    }
    if recorder::is_on() && !nearfar_sys::thread::is_inside() {
        // SAFETY: passed on to the caller.
        return unsafe { recorded_threads::create(next, thread, attr, entry, arg) };
    }
    if !is_active() || managed().is_none() {
        // SAFETY: passed on to the caller.
        return unsafe { next(thread, attr, entry, arg) };
    }
    // SAFETY: passed on to the caller.
    user_mode::off_paged_stack(|| unsafe { next(thread, attr, entry, arg) })
}

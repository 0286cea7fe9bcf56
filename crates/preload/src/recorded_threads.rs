//! Stacks of threads in a process that is observed (`nearfar profile`): each thread tells where its stack is before the program's
//! function runs on it, and that it ends, however it does. The C library maps them without a call that we could see.

use crate::thread_entry::{self, Create};
use nearfar_core::addr::PAGE;
use nearfar_profile::recorder;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

type Void = *mut c_void;

/// Smaller stacks are not worth a record.
const LEAST: usize = 256 << 10;
const NONE: u32 = u32::MAX;

/// A value of it is what a thread has whose stack was told of: its destructor tells of the end, also when the thread is cancelled.
static KEY: AtomicU32 = AtomicU32::new(NONE);

/// When recording starts, before the program has keys of its own: a value of an early key needs no memory in the thread.
pub fn start() {
    let mut key = 0;
    // SAFETY: fills a local; the destructor is never unloaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.store(key, Ordering::Relaxed);
    }
}

/// pthread_create(3) of `next`, of a thread whose stack is recorded.
///
/// # Safety
/// As for the function.
pub unsafe fn create(next: Create, thread: Void, attr: *const libc::pthread_attr_t, entry: Void, arg: Void) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        match stack_size(attr) {
            Some(len) if len >= LEAST => thread_entry::create(next, (thread, attr), (entry, arg), (begun, len)),
            _ => next(thread, attr, entry, arg),
        }
    }
}

/// Bytes of the stack that a thread with these attributes gets.
///
/// # Safety
/// `attr` is null or valid.
unsafe fn stack_size(attr: *const libc::pthread_attr_t) -> Option<usize> {
    let mut len = 0;
    // SAFETY: the caller's promise, and plain calls on locals; all zeros is a valid value.
    unsafe {
        if !attr.is_null() {
            return (libc::pthread_attr_getstacksize(attr, &mut len) == 0).then_some(len);
        }
        let mut default: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_attr_init(&mut default) != 0 {
            return None;
        }
        let known = libc::pthread_attr_getstacksize(&default, &mut len) == 0;
        libc::pthread_attr_destroy(&mut default);
        known.then_some(len)
    }
}

/// On the new thread. Its stack begins to be used here; above lie its thread-local data, then its descriptor, unless the program has made
/// the stack. (pthread_getattr_np(3) would allocate, and a thread that allocates gets a heap of its own.)
fn begun(len: usize) {
    // SAFETY: no arguments.
    let descriptor = unsafe { libc::pthread_self() } as usize;
    let here = crate::stack::here();
    let top = if descriptor.wrapping_sub(here) < len { descriptor } else { here };
    // A page that the stack shares with thread-local data is not told of.
    let end = here & !(PAGE - 1);
    recorder::stack_begun(top.next_multiple_of(PAGE).saturating_sub(len), end, descriptor);
    let key = KEY.load(Ordering::Relaxed);
    if key != NONE {
        // SAFETY: a key of ours.
        unsafe { libc::pthread_setspecific(key, end as *const c_void) };
    }
}

/// The calling thread ends.
extern "C" fn ended(end: *mut c_void) {
    recorder::stack_ended(end.addr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_stacks() {
        // SAFETY: plain calls on locals.
        unsafe {
            assert!(stack_size(std::ptr::null()).is_some_and(|len| len >= 16 << 10));
            let mut attr: libc::pthread_attr_t = std::mem::zeroed();
            assert_eq!((libc::pthread_attr_init(&mut attr), libc::pthread_attr_setstacksize(&mut attr, 3 << 20)), (0, 0));
            assert_eq!(stack_size(&attr), Some(3 << 20));
            libc::pthread_attr_destroy(&mut attr);
        }
    }
}

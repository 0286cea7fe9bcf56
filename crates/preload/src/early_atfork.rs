//! Handlers around fork that are registered before ours: held back until ours are (`lifecycle::register_atfork`).

use crate::function::Function;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};

/// The arguments of the C library's function: before, after in the parent, after in the child, and the object they lie in.
pub type AtFork = [*mut c_void; 4];

const MOST: usize = 16;

struct Held(UnsafeCell<([AtFork; MOST], usize)>);

// SAFETY: used while the C library is not ready, when there is one thread, and by the one that starts us after that. No borrow of it
// outlives a step below.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(([[std::ptr::null_mut(); 4]; MOST], 0)));

/// Keeps them for `pass_on`. False if there is no room. To be called while the C library is not ready, or by the thread that starts us.
pub fn hold(handlers: AtFork) -> bool {
    // SAFETY: no other thread is here.
    let (held, count) = unsafe { &mut *HELD.0.get() };
    let Some(place) = held.get_mut(*count) else { return false };
    *place = handlers;
    *count += 1;
    true
}

/// Registers what was held back, in its order, also what comes meanwhile. By the thread that starts us.
pub fn pass_on() {
    for index in 0..MOST {
        // SAFETY: no other thread is here.
        let (held, count) = unsafe { *HELD.0.get() };
        if index >= count {
            return;
        }
        // SAFETY: the program's own, on their way to where it sent them. No memory for one of them is no memory at all.
        let _ = unsafe { register(held[index]) };
    }
}

/// The C library's function.
///
/// # Safety
/// As for pthread_atfork(3).
pub unsafe fn register([prepare, parent, child, object]: AtFork) -> c_int {
    type Register = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int;
    static NEXT: Function<Register> = Function::next(c"__register_atfork");
    // SAFETY: passed on to the caller.
    NEXT.get().map_or(libc::ENOSYS, |next| unsafe { next(prepare, parent, child, object) })
}

//! Threads of the program that do something of ours first, on their own stack.

use std::ffi::{c_int, c_void};

type Void = *mut c_void;
/// The C library's pthread_create.
pub type Create = unsafe extern "C" fn(Void, *const libc::pthread_attr_t, Void, Void) -> c_int;

/// What a thread runs: `first` with `given`, then the program's function.
struct Start {
    first: fn(usize),
    given: usize,
    body: Body,
}

/// The program's function.
#[repr(C)]
struct Body {
    entry: usize,
    arg: usize,
}

/// pthread_create(3) of `next`, of a thread that first calls `first(given)`.
///
/// # Safety
/// As for the function.
pub unsafe fn create(
    next: Create,
    (thread, attr): (Void, *const libc::pthread_attr_t),
    (entry, arg): (Void, Void),
    (first, given): (fn(usize), usize),
) -> c_int {
    let start = Start { first, given, body: Body { entry: entry.addr(), arg: arg.addr() } };
    let start = Box::into_raw(Box::new(start));
    // SAFETY: passed on to the caller; the start belongs to the new thread when there is one, and to us when there is none.
    unsafe {
        let result = next(thread, attr, begin as *mut c_void, start.cast());
        if result != 0 {
            drop(Box::from_raw(start));
        }
        result
    }
}

/// The first function of such a thread. In assembly: it must leave no frame behind, since a thread that ends by pthread_exit(3) or
/// is cancelled is unwound, which must not pass through Rust.
#[unsafe(naked)]
unsafe extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("sub rsp, 8", "call {}", "add rsp, 8", "mov rdi, rdx", "jmp rax", sym prepare);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        sym prepare
    );
}

/// Does what comes first; returns in two registers what is to run.
extern "C" fn prepare(start: *mut c_void) -> Body {
    // SAFETY: `create` made it from a box, for this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    (start.first)(start.given);
    start.body
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static GIVEN: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn body(arg: *mut c_void) -> *mut c_void {
        (arg.addr() + GIVEN.load(Ordering::Relaxed)) as *mut c_void
    }

    #[test]
    fn threads_begin_where_they_should() {
        let mut thread: libc::pthread_t = 0;
        let mut result = std::ptr::null_mut();
        let keep: fn(usize) = |given| GIVEN.store(given, Ordering::Relaxed);
        let what = (body as *mut c_void, 40 as *mut c_void);
        // SAFETY: plain calls on locals.
        unsafe {
            let next: Create = std::mem::transmute(libc::pthread_create as *const ());
            assert_eq!(create(next, ((&raw mut thread).cast(), std::ptr::null()), what, (keep, 2)), 0);
            assert_eq!(libc::pthread_join(thread, &mut result), 0);
        }
        assert_eq!(result.addr(), 42);
    }
}

//! Stacks: each thread's is placed by the thread itself, before the program's function runs on it; the main thread's at start. The
//! kernel keeps the policy of a mapping as it grows, so that a main stack placed small stays placed.

use crate::next::Next;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::proc_maps;
use std::ffi::{c_int, c_void};

type Void = *mut c_void;
/// The C library's pthread_create.
pub type Create = unsafe extern "C" fn(Void, *const libc::pthread_attr_t, Void, Void) -> c_int;

/// What a thread runs.
#[repr(C)]
pub struct Start {
    entry: usize,
    arg: usize,
}

/// pthread_create(3) of `next`, of a thread that first places its stack.
///
/// # Safety
/// As for the function.
pub unsafe fn create(next: Create, thread: Void, attr: *const libc::pthread_attr_t, entry: Void, arg: Void) -> c_int {
    let start = Box::into_raw(Box::new(Start { entry: entry.addr(), arg: arg.addr() }));
    // SAFETY: passed on to the caller; the start belongs to the new thread when there is one, and to us when there is none.
    unsafe {
        let result = next(thread, attr, begin as *mut c_void, start.cast());
        if result != 0 {
            drop(Box::from_raw(start));
        }
        result
    }
}

/// The first function of a placed thread. In assembly: it must leave no frame behind, since a thread that ends by pthread_exit(3) or
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

/// Places the stack; returns in two registers what is to run.
extern "C" fn prepare(start: *mut c_void) -> Start {
    // SAFETY: `create` made it from a box, for this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    if let (Some(placing), Some(stack)) = (super::get(), own_stack()) {
        placing.place_stack(stack);
    }
    *start
}

/// The stack of the calling thread, which is not the main one.
fn own_stack() -> Option<Extent> {
    static GETATTR: Next<unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int> =
        Next::new(c"pthread_getattr_np");
    let next = GETATTR.get()?;
    // SAFETY: plain calls on locals, which are filled.
    unsafe {
        let mut attr: libc::pthread_attr_t = std::mem::zeroed();
        if next(libc::pthread_self(), &mut attr) != 0 {
            return None;
        }
        let (mut start, mut len) = (std::ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&attr, &mut start, &mut len) == 0;
        libc::pthread_attr_destroy(&mut attr);
        let start = start.addr().next_multiple_of(PAGE);
        let end = (start + len) & !(PAGE - 1);
        (known && start < end).then_some(Extent { start, end })
    }
}

/// The mapping of the main stack, and how long it may become.
pub fn main_stack() -> Option<(Extent, u64)> {
    let text = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = text.lines().find(|line| line.ends_with("[stack]"))?;
    let range = proc_maps::parse_line(line)?.range;
    let limit = nearfar_sys::rlimit::limit(nearfar_sys::rlimit::Limit::Stack).unwrap_or(u64::MAX);
    Some((range, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_found() {
        let here = std::thread::spawn(|| (own_stack(), crate::stack::here())).join().expect("ended");
        assert!(here.0.expect("a stack").contains(here.1));
        let (stack, limit) = main_stack().expect("a main stack");
        assert!(stack.len() >= PAGE && limit > 0);
    }

    extern "C" fn body(arg: *mut c_void) -> *mut c_void {
        (arg.addr() + 1) as *mut c_void
    }

    #[test]
    fn threads_begin_where_they_should() {
        let mut thread: libc::pthread_t = 0;
        let mut result = std::ptr::null_mut();
        // SAFETY: plain calls on locals.
        unsafe {
            let create: Create = std::mem::transmute(libc::pthread_create as *const ());
            assert_eq!(
                self::create(create, (&raw mut thread).cast(), std::ptr::null(), body as *mut c_void, 41 as *mut c_void),
                0
            );
            assert_eq!(libc::pthread_join(thread, &mut result), 0);
        }
        assert_eq!(result.addr(), 42);
    }
}

//! Stacks: each thread's is placed by the thread itself, before the program's function runs on it; the main thread's at start. The
//! kernel keeps the policy of a mapping as it grows, so that a main stack placed small stays placed.

use crate::function::Function;
use crate::thread_entry::{self, Create};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::proc_maps;
use std::ffi::{c_int, c_void};

type Void = *mut c_void;

/// pthread_create(3) of `next`, of a thread that first places its stack.
///
/// # Safety
/// As for the function.
pub unsafe fn create(next: Create, thread: Void, attr: *const libc::pthread_attr_t, entry: Void, arg: Void) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { thread_entry::create(next, (thread, attr), (entry, arg), (place, 0)) }
}

/// Places the stack of the calling thread.
fn place(_: usize) {
    if let (Some(placing), Some(stack)) = (super::get(), own_stack()) {
        placing.place_stack(stack);
    }
}

/// The stack of the calling thread, which is not the main one.
fn own_stack() -> Option<Extent> {
    static GETATTR: Function<unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int> =
        Function::next(c"pthread_getattr_np");
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
}

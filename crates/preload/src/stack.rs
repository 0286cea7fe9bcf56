//! Running on another stack.
//!
//! A program may run on a stack that is paged: a coroutine's or a signal stack in heap memory. Whoever holds the lock of
//! `Memory` on such a stack and touches a page of it that is far waits for the pager, which waits for the lock. So calls from
//! paged stacks are made on a stack of our own.

use nearfar_sys::map::OwnedMap;
use std::arch::asm;
use std::ffi::c_void;
use std::hint::black_box;

/// Enough for anything that `Memory` does, and for the C library's fork with handlers. Costs what is touched.
const BYTES: usize = 512 << 10;

/// An address within the frame of the caller.
#[inline(always)]
pub fn here() -> usize {
    let mark = 0u8;
    (&raw const *black_box(&mark)).addr()
}

/// Calls `act` on a stack of our own; on the present one if there is no memory for another.
#[cold]
#[inline(never)]
pub fn call_on_own<R>(act: impl FnOnce() -> R) -> R {
    match OwnedMap::new(BYTES) {
        // SAFETY: a fresh mapping of that size, which outlives the call.
        Ok(stack) => unsafe { call_on(stack.range().end, act) },
        Err(_) => act(),
    }
}

/// Calls `act` on the stack that ends at `top`.
///
/// # Safety
/// `top` is the upper end of memory that nobody else uses and that is large enough for `act`. `act` does not unwind.
pub unsafe fn call_on<R>(top: usize, act: impl FnOnce() -> R) -> R {
    let mut call = Call { act: Some(act), result: None };
    let data = (&raw mut call).cast::<c_void>();
    let entry = entry_of(&call);
    let top = top & !15;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `entry` gets the pointer to `call`, which lives until the stack is switched back; the stack pointer is kept in a
    // register that the called function preserves; the new stack is aligned as the ABI wants it at a call.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, r13",
            "call r14",
            "mov rsp, r12",
            in("rdi") data, in("r13") top, in("r14") entry,
            out("r12") _,
            clobber_abi("C"),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            "mov x20, sp",
            "mov sp, x21",
            "blr x22",
            "mov sp, x20",
            in("x0") data, in("x21") top, in("x22") entry,
            out("x20") _,
            clobber_abi("C"),
        );
    }
    match call.result {
        Some(result) => result,
        // `run` has set it: this is not reached.
        None => nearfar_sys::process::exit_now(1),
    }
}

struct Call<R, F> {
    act: Option<F>,
    result: Option<R>,
}

fn entry_of<R, F: FnOnce() -> R>(_: &Call<R, F>) -> extern "C" fn(*mut c_void) {
    run::<R, F>
}

extern "C" fn run<R, F: FnOnce() -> R>(call: *mut c_void) {
    // SAFETY: `call_on` passes its local, which nobody else uses meanwhile.
    let call = unsafe { &mut *call.cast::<Call<R, F>>() };
    call.result = call.act.take().map(|act| act());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_stack_and_back() {
        let outside = here();
        let (inside, sum) = call_on_own(|| (here(), (0..1000u64).map(black_box).sum::<u64>()));
        assert_eq!(sum, 499_500);
        assert!(outside.abs_diff(inside) > BYTES / 2);
        let nested = call_on_own(|| call_on_own(|| vec![1, 2, 3]));
        assert_eq!(nested, [1, 2, 3]);
    }
}

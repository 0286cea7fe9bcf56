//! The system call instruction of aarch64.

use std::arch::asm;

/// Issues system call `number`; the result is the kernel's, `-4095..0` meaning `-errno`.
///
/// # Safety
/// The arguments must satisfy the contract of that system call (valid pointers, mappings that nobody else relies on).
pub unsafe fn syscall6(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves all registers but x0; the caller answers for the effect of the call.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4], in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// The thread pointer of the calling thread.
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack)) };
    pointer
}

/// Fills in what the ABI wants at a thread pointer: the table of the thread's blocks.
///
/// # Safety
/// `pointer` has the room of a thread control block, which nobody uses yet.
pub unsafe fn begin_thread_block(pointer: usize, table: usize) {
    // SAFETY: passed on to the caller.
    unsafe { (pointer as *mut usize).write(table) };
}

/// clone(2) of a thread that runs `entry(arg)` on the stack that ends at `stack`, with thread pointer `pointer`. Its number is stored in
/// `tid`, as `flags` say.
///
/// # Safety
/// `stack` and `pointer` are for the new thread alone; `arg` is what `entry` wants.
pub unsafe fn clone_thread(
    flags: usize,
    stack: usize,
    tid: *mut u32,
    pointer: usize,
    entry: extern "C" fn(*mut std::ffi::c_void) -> !,
    arg: *mut std::ffi::c_void,
) -> isize {
    let result: isize;
    // SAFETY: the new thread goes on behind the instruction with the same registers but x0 and the stack pointer, and never gets
    // past the call; the caller's stack is not touched.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x21",
            "blr x20",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone as usize,
            inlateout("x0") flags => result,
            in("x1") stack & !15, in("x2") tid, in("x3") pointer, in("x4") tid,
            in("x20") entry, in("x21") arg,
        );
    }
    result
}

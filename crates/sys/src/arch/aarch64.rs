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

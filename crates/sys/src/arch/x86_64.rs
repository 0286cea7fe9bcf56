//! The system call instruction of x86-64.

use std::arch::asm;

/// Issues system call `number`; the result is the kernel's, `-4095..0` meaning `-errno`.
///
/// # Safety
/// The arguments must satisfy the contract of that system call (valid pointers, mappings that nobody else relies on).
pub unsafe fn syscall6(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves all registers but rax, rcx and r11; the caller answers for the effect of the call.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

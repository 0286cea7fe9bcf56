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

/// The thread pointer of the calling thread.
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the ABI keeps the thread pointer in the word that it points to.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack)) };
    pointer
}

/// Fills in what the ABI and the C library want at a thread pointer: the pointer itself (twice), the table of the thread's blocks, and
/// the two guards, which all threads have alike.
///
/// # Safety
/// `pointer` has the room of a thread control block, which nobody uses yet.
pub unsafe fn begin_thread_block(pointer: usize, table: usize) {
    let (canary, guard): (usize, usize);
    // SAFETY: words of the calling thread's control block, where the ABI has them.
    unsafe {
        asm!("mov {}, qword ptr fs:[0x28]", out(reg) canary, options(pure, readonly, nostack));
        asm!("mov {}, qword ptr fs:[0x30]", out(reg) guard, options(pure, readonly, nostack));
    }
    let words = pointer as *mut usize;
    for (index, word) in [(0, pointer), (1, table), (2, pointer), (5, canary), (6, guard)] {
        // SAFETY: passed on to the caller.
        unsafe { words.add(index).write(word) };
    }
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
    // SAFETY: the new thread goes on behind the instruction with the same registers but rax and the stack pointer, and never gets
    // past the call; the caller's stack is not touched.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as usize => result,
            in("rdi") flags, in("rsi") stack & !15, in("rdx") tid, in("r10") tid, in("r8") pointer,
            in("r12") entry, in("r13") arg,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

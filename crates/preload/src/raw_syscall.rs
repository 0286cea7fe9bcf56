//! libc's `syscall()`: calls of the mmap family go where the functions of that name go, everything else to the kernel as is.
//!
//! Allocators and runtimes call madvise and friends this way; unseen, a discarded page would come back from far as it was.
//! The function is written in assembly since it must not leave a frame of its own: a raw vfork or clone returns twice.

use crate::maps;
use nearfar_sys::errno::Errno;
use std::ffi::{c_int, c_long, c_void};

/// syscall(2).
///
/// # Safety
/// As for the system call that is named.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() -> c_long {
    std::arch::naked_asm!(
        "cmp rdi, {mmap}",
        "je 3f",
        "cmp rdi, {munmap}",
        "je 3f",
        "cmp rdi, {mprotect}",
        "je 3f",
        "cmp rdi, {madvise}",
        "je 3f",
        "cmp rdi, {mremap}",
        "je 3f",
        // FUTEX_WAKE has three arguments, and what registers happen to hold besides would pass for watched pointers to the
        // filter of `user_mode`: fatal where signals are blocked, as in nearfar's own locks.
        "cmp rdi, {futex}",
        "jne 5f",
        "mov eax, edx",
        "and eax, 0x7f",
        "cmp eax, {wake}",
        "jne 5f",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "5:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "mov rdi, rax",
        "jmp {failed}",
        "3:",
        "jmp {mapping}",
        futex = const libc::SYS_futex,
        wake = const libc::FUTEX_WAKE,
        mmap = const libc::SYS_mmap,
        munmap = const libc::SYS_munmap,
        mprotect = const libc::SYS_mprotect,
        madvise = const libc::SYS_madvise,
        mremap = const libc::SYS_mremap,
        failed = sym failed,
        mapping = sym mapping,
    )
}

extern "C" fn failed(result: c_long) -> c_long {
    crate::errno::set(Errno(-result as i32));
    -1
}

/// The mmap family; the arguments are those of `syscall`, the last one on the stack.
unsafe extern "C" fn mapping(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    let addr = a as *mut c_void;
    // SAFETY: the caller of `syscall` answers for the arguments, as for the functions called here.
    unsafe {
        match number {
            libc::SYS_mmap => maps::mmap(addr, b, c as c_int, d as c_int, e as c_int, f as i64) as c_long,
            libc::SYS_munmap => c_long::from(maps::munmap(addr, b)),
            libc::SYS_mprotect => c_long::from(maps::mprotect(addr, b, c as c_int)),
            libc::SYS_madvise => c_long::from(maps::madvise(addr, b, c as c_int)),
            _ => maps::mremap(addr, b, c, d as c_int, e as *mut c_void) as c_long,
        }
    }
}

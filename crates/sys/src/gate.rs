//! The gate: a page of code from which system calls pass the filter of `seccomp`, and the range of addresses that the filter
//! watches. Both are the same in every process, since a filter is inherited by all children.
//!
//! The page has two entries. `call` is a function for our own use. `pass` is where a thread is sent that was caught at a
//! system call: it makes the call with the registers as they are, says that the call is over, and goes back behind the
//! place where it was caught. All registers are then as the kernel leaves them, and nothing of ours is on the way while the
//! call blocks, is interrupted, restarts, or is left by longjmp.

use crate::errno::Errno;
use nearfar_core::addr::{Extent, PAGE};
use std::sync::atomic::{AtomicBool, Ordering};

/// Watched addresses are those with `address >> WATCHED_SHIFT == WATCHED_PREFIX`: far from where the kernel puts anything by
/// itself and from the usual wishes of allocators and runtimes, so that other programs never have a pointer there.
pub const WATCHED_SHIFT: u32 = 44;
/// See `WATCHED_SHIFT`.
pub const WATCHED_PREFIX: usize = 3;
/// The watched addresses.
pub const WATCHED: Extent = Extent { start: WATCHED_PREFIX << WATCHED_SHIFT, end: (WATCHED_PREFIX + 1) << WATCHED_SHIFT };
/// Where the gate is: 64 KiB below.
pub const GATE: usize = WATCHED.start - (64 << 10);

/// Bytes of the caught thread's stack that `pass` uses: two words, behind the 128 bytes that functions may use unasked.
#[cfg(target_arch = "x86_64")]
pub const PASS_STACK: usize = 144;
#[cfg(target_arch = "x86_64")]
const CALL: usize = 32;

/// Stack of `pass`: the address of a 32-bit word to clear after the call, then the address to go back to.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const CODE: [u8; 64] = [
    0x0f, 0x05,                                     // syscall
    0x48, 0x8b, 0x0c, 0x24,                         // mov rcx, [rsp]
    0xc7, 0x01, 0x00, 0x00, 0x00, 0x00,             // mov dword ptr [rcx], 0
    0x48, 0x8b, 0x4c, 0x24, 0x08,                   // mov rcx, [rsp + 8]: what the kernel leaves in rcx as well
    0x48, 0x8d, 0xa4, 0x24, 0x90, 0x00, 0x00, 0x00, // lea rsp, [rsp + 144]: changes no flags
    0xff, 0xe1,                                     // jmp rcx
    0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
    0x48, 0x89, 0xf8,                               // mov rax, rdi
    0x49, 0x89, 0xf3,                               // mov r11, rsi
    0x49, 0x8b, 0x3b,                               // mov rdi, [r11]
    0x49, 0x8b, 0x73, 0x08,                         // mov rsi, [r11 + 8]
    0x49, 0x8b, 0x53, 0x10,                         // mov rdx, [r11 + 16]
    0x4d, 0x8b, 0x53, 0x18,                         // mov r10, [r11 + 24]
    0x4d, 0x8b, 0x43, 0x20,                         // mov r8, [r11 + 32]
    0x4d, 0x8b, 0x4b, 0x28,                         // mov r9, [r11 + 40]
    0x0f, 0x05,                                     // syscall
    0xc3,                                           // ret
];

static OPEN: AtomicBool = AtomicBool::new(false);

/// Puts the gate in place, once per process.
#[cfg(target_arch = "x86_64")]
pub fn open() -> Result<(), Errno> {
    use crate::map;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing, by its flags.
    let got = unsafe { map::mmap(GATE, PAGE, map::RW, flags, -1, 0)? };
    let page = Extent::new(got, PAGE);
    if got != GATE {
        // Kernels before 4.17 take the address for a wish.
        // SAFETY: mapped just now.
        unsafe { map::munmap(page)? };
        return Err(Errno::EEXIST);
    }
    // SAFETY: a fresh writable page that nobody else knows.
    unsafe {
        std::ptr::copy_nonoverlapping(CODE.as_ptr(), GATE as *mut u8, CODE.len());
        map::mprotect(page, libc::PROT_READ | libc::PROT_EXEC)?;
    }
    OPEN.store(true, Ordering::Release);
    Ok(())
}

/// The gate is written for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub fn open() -> Result<(), Errno> {
    let _ = (GATE, PAGE);
    Err(Errno(libc::ENOSYS))
}

/// True when the gate is in place in this process.
pub fn is_open() -> bool {
    OPEN.load(Ordering::Acquire)
}

/// Makes a system call that no filter of ours catches; the result is the kernel's, `-4095..0` meaning `-errno`.
///
/// # Safety
/// The arguments must satisfy the contract of that system call.
pub unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    #[cfg(target_arch = "x86_64")]
    if is_open() {
        // SAFETY: `open` has put this function there: it takes a number and a pointer to six words, as C functions do.
        let call: unsafe extern "C" fn(usize, *const usize) -> isize = unsafe { std::mem::transmute(GATE + CALL) };
        // SAFETY: passed on to the caller.
        return unsafe { call(number, args.as_ptr()) };
    }
    // SAFETY: passed on to the caller.
    unsafe { crate::arch::syscall6(number, args) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_go_through_the_gate() {
        open().expect("the address is free");
        assert!(is_open());
        // SAFETY: no arguments, and nonsense that the kernel refuses.
        let (pid, bad) = unsafe { (call(libc::SYS_getpid as usize, [0; 6]), call(libc::SYS_close as usize, [usize::MAX; 6])) };
        assert_eq!((pid as u32, bad), (std::process::id(), -libc::EBADF as isize));
    }
}

//! The only place where the bytes of frames are looked at or changed: hashing, zeroing, copying, touching.
//!
//! A frame address handed to these functions must be populated: the pool is registered with userfaultfd, and the pager would
//! wait for itself on a hole. `FramePool` and `Hold` masks say what is populated; `sys::pagemap` asks the kernel.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::map;
use std::sync::atomic::{AtomicU8, Ordering};
use twox_hash::XxHash3_64;

/// Hash of the content of the page at `addr` (XXH3, 64 bits). Equal hashes are taken for equal pages; the chance of a
/// mistake is 2^-64 for each modified page.
///
/// # Safety
/// The page at `addr` is populated, readable, and changed by nobody meanwhile.
pub unsafe fn page_hash(addr: usize) -> u64 {
    // SAFETY: passed on to the caller.
    XxHash3_64::oneshot(unsafe { std::slice::from_raw_parts(addr as *const u8, PAGE) })
}

/// True when the page at `addr` is all zero.
///
/// # Safety
/// As for `page_hash`.
pub unsafe fn is_zero(addr: usize) -> bool {
    // SAFETY: passed on to the caller; a page is aligned for u64.
    let words = unsafe { std::slice::from_raw_parts(addr as *const u64, PAGE / 8) };
    // The first words tell nearly always; the rest is read only for pages that begin with zeros.
    words[..8].iter().all(|&word| word == 0)
        && words.chunks_exact(8).all(|eight| eight.iter().fold(0, |or, &word| or | word) == 0)
}

/// Fills `len` bytes at `addr` with zeros.
///
/// # Safety
/// The range is writable memory of the pager, populated or in the nursery, and nobody else uses it.
pub unsafe fn zero(addr: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::write_bytes(addr as *mut u8, 0, len) };
}

/// The page at `addr`, to be changed.
///
/// # Safety
/// As for `zero`, for one page, as long as the reference is used.
pub unsafe fn page_mut<'a>(addr: usize) -> &'a mut [u8; PAGE] {
    // SAFETY: passed on to the caller; any bytes are a valid page.
    unsafe { &mut *(addr as *mut [u8; PAGE]) }
}

/// Copies the page at `from` to `to`, which is returned.
///
/// # Safety
/// As for `page_hash` of `from` and `page_mut` of `to`.
pub unsafe fn copy_page<'a>(from: usize, to: usize) -> &'a mut [u8; PAGE] {
    // SAFETY: passed on to the caller.
    let (from, to) = unsafe { (&*(from as *const [u8; PAGE]), page_mut(to)) };
    *to = *from;
    to
}

/// Changes the byte at `addr`, for tests of what finds that.
///
/// # Safety
/// As for `zero`, for one byte.
pub unsafe fn flip(addr: usize) {
    // SAFETY: passed on to the caller.
    unsafe { *(addr as *mut u8) ^= 0x10 };
}

/// Writes nothing to each page of the range, as a store: breaks the sharing of pages that a fork left.
///
/// # Safety
/// Every page of the range is present and writable. Other threads may use it: the store is atomic and changes no bit.
pub unsafe fn touch(range: Extent) {
    for addr in (range.start..range.end).step_by(PAGE) {
        // SAFETY: the page is present and writable, and the store writes back what is there, atomically.
        let byte = unsafe { AtomicU8::from_ptr(addr as *mut u8) };
        // Compare-and-exchange, since compilers turn `fetch_or(0)` into a load, which breaks no sharing.
        let mut value = byte.load(Ordering::Relaxed);
        while let Err(now) = byte.compare_exchange_weak(value, value, Ordering::SeqCst, Ordering::Relaxed) {
            value = now;
        }
    }
}

/// Frees the kernel's page table of an aligned 2 MiB range without any page in it, so that a huge page can come there in one
/// piece (kernels from 6.14 on; without effect on older ones). Costs well under 1 us where there is no table.
pub fn drop_table(range: Extent) {
    // SAFETY: there is nothing in the range that could be discarded.
    let _ = unsafe { map::madvise(range, libc::MADV_DONTNEED) };
}

/// Makes one huge page of an aligned 2 MiB range of small pages, all present. False when the kernel does not.
pub fn collapse(range: Extent) -> bool {
    const MADV_COLLAPSE: i32 = 25;
    // SAFETY: this advice keeps content; threads that use the range wait meanwhile.
    unsafe { map::madvise(range, MADV_COLLAPSE) }.is_ok()
}

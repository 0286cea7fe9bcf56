//! Mappings: raw mmap family, and an owned private mapping for nearfar's own tables.
//!
//! Raw calls on purpose: the libc functions of these names are interposed by our own library.

use crate::errno::{Errno, call};
use nearfar_core::addr::{BLOCK, Extent, PAGE, round_up};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Read and write access.
pub const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// Private, anonymous, without a promise of memory.
pub const ANON: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

static OWN: AtomicUsize = AtomicUsize::new(0);

/// Counts `len` bytes of address space that are nearfar's own from now on.
pub fn note_own(len: usize) {
    OWN.fetch_add(len, Ordering::Relaxed);
}

/// The opposite.
pub fn note_gone(len: usize) {
    OWN.fetch_sub(len, Ordering::Relaxed);
}

/// Bytes of address space that are nearfar's own.
pub fn own_bytes() -> usize {
    OWN.load(Ordering::Relaxed)
}

/// mmap(2) as the kernel has it.
///
/// # Safety
/// With `MAP_FIXED` the range is replaced: nobody may rely on what it held.
pub unsafe fn mmap(addr: usize, len: usize, prot: i32, flags: i32, fd: i32, offset: i64) -> Result<usize, Errno> {
    // SAFETY: the caller answers for a fixed address; otherwise the kernel picks free space.
    unsafe { call(libc::SYS_mmap, [addr, len, prot as usize, flags as usize, fd as isize as usize, offset as usize]) }
}

/// munmap(2).
///
/// # Safety
/// Nobody may use the range afterwards.
pub unsafe fn munmap(range: Extent) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { call(libc::SYS_munmap, [range.start, range.len(), 0, 0, 0, 0]) }.map(|_| ())
}

/// mremap(2).
///
/// # Safety
/// As for mmap and munmap of the two ranges.
pub unsafe fn mremap(old: Extent, new_len: usize, flags: i32, new_addr: usize) -> Result<usize, Errno> {
    // SAFETY: passed on to the caller.
    unsafe { call(libc::SYS_mremap, [old.start, old.len(), new_len, flags as usize, new_addr, 0]) }
}

/// mprotect(2).
///
/// # Safety
/// Code that uses the range must expect the new protection.
pub unsafe fn mprotect(range: Extent, prot: i32) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { call(libc::SYS_mprotect, [range.start, range.len(), prot as usize, 0, 0, 0]) }.map(|_| ())
}

/// madvise(2).
///
/// # Safety
/// Advice such as `MADV_DONTNEED` discards content: nobody may rely on it.
pub unsafe fn madvise(range: Extent, advice: i32) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { call(libc::SYS_madvise, [range.start, range.len(), advice as usize, 0, 0, 0]) }.map(|_| ())
}

/// `MADV_DONTNEED` on many ranges of the calling process with one interruption of its other CPUs, where the kernel can
/// (process_madvise(2) of oneself, since 6.15), else one by one. A range by itself costs 4 to 15 us, in company about 1 us.
///
/// # Safety
/// As for `madvise`: nobody may rely on the content.
pub unsafe fn discard_many(ranges: &[Extent]) {
    // Not in libc yet.
    const PIDFD_SELF_THREAD_GROUP: i32 = -10001;
    const MOST: usize = 64;
    let mut rest = ranges;
    while rest.len() > 1 {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
        let count = rest.len().min(MOST);
        let mut wanted = 0;
        for (vector, range) in vectors.iter_mut().zip(rest) {
            *vector = libc::iovec { iov_base: range.start as *mut _, iov_len: range.len() };
            wanted += range.len();
        }
        let pid = PIDFD_SELF_THREAD_GROUP as isize as usize;
        let arguments = [pid, vectors.as_ptr() as usize, count, libc::MADV_DONTNEED as usize, 0, 0];
        // SAFETY: the caller gave the content up; the vectors live until the call returns.
        match unsafe { call(libc::SYS_process_madvise, arguments) } {
            Ok(done) if done == wanted => rest = &rest[count..],
            _ => break,
        }
    }
    for &range in rest {
        // SAFETY: passed on to the caller. What the kernel refused to discard stays, which the caller has to expect of advice.
        let _ = unsafe { madvise(range, libc::MADV_DONTNEED) };
    }
}

/// mincore(2): one byte per page of `range`, bit 0 set when the page is present. `out` must have a byte per page.
pub fn mincore(range: Extent, out: &mut [u8]) -> Result<(), Errno> {
    assert!(out.len() >= range.len().div_ceil(PAGE), "one byte per page");
    // SAFETY: the kernel writes one byte per page into `out`, whose length was checked; it only looks at page tables.
    unsafe { call(libc::SYS_mincore, [range.start, range.len(), out.as_mut_ptr() as usize, 0, 0, 0]) }.map(|_| ())
}

/// Reserves `len` bytes of address space without access, aligned to a block.
pub fn reserve(len: usize) -> Result<Extent, Errno> {
    let padded = len.checked_add(BLOCK).ok_or(Errno::ENOMEM)?;
    // SAFETY: not fixed: the kernel picks free space.
    let raw = unsafe { mmap(0, padded, libc::PROT_NONE, ANON, -1, 0)? };
    let start = round_up(raw, BLOCK).ok_or(Errno::ENOMEM)?;
    let head = Extent { start: raw, end: start };
    let tail = Extent { start: start + len, end: raw + padded };
    for spare in [head, tail] {
        if !spare.is_empty() {
            // SAFETY: the spare ends were mapped just above and nobody has seen them.
            unsafe { munmap(spare)? };
        }
    }
    Ok(Extent::new(start, len))
}

/// A private anonymous mapping for nearfar's own data, unmapped on drop. Reads as zeros until written.
pub struct OwnedMap {
    range: Extent,
}

impl OwnedMap {
    /// Maps `len` bytes, rounded up to pages, readable and writable, without a promise of memory.
    pub fn new(len: usize) -> Result<Self, Errno> {
        let len = round_up(len, PAGE).ok_or(Errno::ENOMEM)?;
        // SAFETY: not fixed: the kernel picks free space.
        let start = unsafe { mmap(0, len, RW, ANON, -1, 0)? };
        note_own(len);
        Ok(Self { range: Extent::new(start, len) })
    }

    /// The mapped bytes.
    pub fn range(&self) -> Extent {
        self.range
    }
}

impl Drop for OwnedMap {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; whoever used it borrowed from `self`.
        let _ = unsafe { munmap(self.range) };
        note_gone(self.range.len());
    }
}

//! The heap of small allocations: mimalloc, with its memory from our own mmap hook, so that all of it lies in the arena.
//!
//! mimalloc calls `mmap`, `munmap`, `mprotect` and `madvise` by name, and those names are ours (`hooks.rs`). It is used only
//! while nearfar manages, so a block is mimalloc's exactly when its address lies in what the arena gave to mmap.

#[cfg(not(test))]
use std::ffi::c_ulong;
use std::ffi::{c_int, c_long, c_void};

// Numbers of `mi_option_t` in mimalloc 2.3.
const SHOW_ERRORS: c_int = 0;
const SHOW_STATS: c_int = 1;
const VERBOSE: c_int = 2;
const EAGER_COMMIT: c_int = 3;
const ARENA_EAGER_COMMIT: c_int = 4;
const ALLOW_LARGE_OS_PAGES: c_int = 6;
const RESERVE_HUGE_OS_PAGES: c_int = 7;
const RESERVE_OS_MEMORY: c_int = 9;
const EAGER_COMMIT_DELAY: c_int = 14;
const PURGE_DELAY: c_int = 15;
const DESTROY_ON_EXIT: c_int = 22;
const ARENA_RESERVE: c_int = 23;
const ARENA_PURGE_MULT: c_int = 24;
const ALLOW_THP: c_int = 37;

/// Settings, each with its reason. They override the program's MIMALLOC_* variables, which are meant for its own copy.
const OPTIONS: [(c_int, c_long); 14] = [
    // Nothing may be printed into the program's output.
    (SHOW_ERRORS, 0),
    (SHOW_STATS, 0),
    (VERBOSE, 0),
    // Made writable piece by piece as it is used: what a process may write counts against the job's budget while it does
    // not page, and a small program must not count for a whole segment.
    (EAGER_COMMIT, 0),
    (ARENA_EAGER_COMMIT, 0),
    (EAGER_COMMIT_DELAY, 0),
    // The pager decides about page sizes.
    (ALLOW_LARGE_OS_PAGES, 0),
    (ALLOW_THP, 1),
    (RESERVE_HUGE_OS_PAGES, 0),
    (RESERVE_OS_MEMORY, 0),
    // Asked of the arena at a time, in KiB.
    (ARENA_RESERVE, 64 << 10),
    // Freed memory is discarded (no write-back of garbage), but not at once: getting it back costs faults.
    (PURGE_DELAY, 500),
    (ARENA_PURGE_MULT, 4),
    // 2: do nothing at exit. Collecting would bring far memory near only to free it.
    (DESTROY_ON_EXIT, 2),
];

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_usable_size(block: *const c_void) -> usize;
    fn mi_is_in_heap_region(block: *const c_void) -> bool;
}

/// Smallest size passed on: below it mimalloc aligns to 8 bytes, and programs rely on 16 (they tag pointers).
const LEAST: usize = 16;

/// Sets mimalloc up; before its first use.
pub fn configure() {
    for (option, value) in OPTIONS {
        // SAFETY: option numbers of this version; sets a word of mimalloc's table.
        unsafe { mi_option_set(option, value) };
    }
}

/// True when `block` is of this heap, by mimalloc's own books; for the case that the kernel gave it memory outside the arena.
#[cold]
pub fn owns(block: *const c_void) -> bool {
    // SAFETY: takes any address, and reads mimalloc's tables only.
    unsafe { mi_is_in_heap_region(block) }
}

/// malloc(3).
#[inline]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: takes any size.
    unsafe { libmimalloc_sys::mi_malloc(size.max(LEAST)) }
}

/// malloc(3) of zeros.
#[inline]
pub fn zalloc(size: usize) -> *mut c_void {
    // SAFETY: takes any size.
    unsafe { libmimalloc_sys::mi_zalloc(size.max(LEAST)) }
}

/// memalign(3); `align` is a power of two.
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: takes any size and power of two.
    unsafe { libmimalloc_sys::mi_malloc_aligned(size.max(LEAST), align) }
}

/// realloc(3).
///
/// # Safety
/// `block` is a block of this heap.
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: passed on to the caller.
    unsafe { libmimalloc_sys::mi_realloc(block, size.max(LEAST)) }
}

/// free(3).
///
/// # Safety
/// `block` is a block of this heap, not used afterwards.
#[inline]
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: passed on to the caller.
    unsafe { libmimalloc_sys::mi_free(block) }
}

/// malloc_usable_size(3).
///
/// # Safety
/// `block` is a block of this heap.
pub unsafe fn usable_size(block: *const c_void) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { mi_usable_size(block) }
}

/// `PR_SET_VMA` of prctl(2); the libc crate lacks it here.
#[cfg(not(test))]
const PR_SET_VMA: c_int = 0x53_56_4d_41;

#[cfg(not(test))]
unsafe extern "C" {
    fn __real_prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
}

/// prctl(2) of the code linked into this library (`--wrap` in build.rs; the program's calls do not come here). Naming a range
/// would make a kernel mapping of its own of it, and the arena is to be one mapping.
///
/// # Safety
/// As for prctl(2).
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if option == PR_SET_VMA {
        return 0;
    }
    // SAFETY: passed on to the caller.
    unsafe { __real_prctl(option, a, b, c, d) }
}

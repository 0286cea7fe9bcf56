//! Blocks that are given back in a process without a job: the C library's, or those of the pools that a program placed data in by
//! name (`alone`). Without pools the question costs one load.

use crate::errno::{self, Kept};
use crate::libc_heap;
use nearfar_sys::errno::Errno;
use nearfar_tiers::pool::Pool;
use std::ffi::c_void;
use std::ptr::null_mut;

/// free(3).
///
/// # Safety
/// `block` is null or a live block, not used afterwards.
#[inline]
pub unsafe fn free(block: *mut c_void) {
    if Pool::of(block.addr()).is_none() {
        // SAFETY: passed on to the caller: no pool's, so the C library's.
        return unsafe { libc_heap::free(block) };
    }
    let _kept = Kept::now();
    // SAFETY: passed on to the caller.
    unsafe { Pool::free(block) }
}

/// realloc(3) of a block that is not null, with size 0 as in glibc: the block is freed and the result is null.
///
/// # Safety
/// `block` is a live block; unless the result is null it is not used afterwards.
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(pool) = Pool::of(block.addr()) else {
        // SAFETY: passed on to the caller: no pool's, so the C library's.
        return unsafe { libc_heap::realloc(block, size) };
    };
    if size == 0 {
        // SAFETY: passed on to the caller.
        unsafe { free(block) };
        return null_mut();
    }
    // SAFETY: passed on to the caller.
    let new = unsafe { pool.realloc(block, size) };
    if new.is_null() {
        errno::set(Errno::ENOMEM);
    }
    new
}

/// malloc_usable_size(3).
///
/// # Safety
/// `block` is a live block.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    match Pool::of(block.addr()) {
        // SAFETY: passed on to the caller.
        Some(_) => unsafe { Pool::usable_size(block) },
        // SAFETY: passed on to the caller: no pool's, so the C library's.
        None => unsafe { libc_heap::usable_size(block) },
    }
}

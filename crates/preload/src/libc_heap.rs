//! The C library's own heap, reached past our exported names: for whatever happens before nearfar manages, inside nearfar, and
//! in processes that it does not manage.
//!
//! These entry points are glibc's; musl has none, so the preloaded library needs glibc.

use crate::next::Next;
use std::ffi::c_void;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

/// malloc(3) of the C library.
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: takes any size.
    unsafe { __libc_malloc(size) }
}

/// calloc(3) of the C library.
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: takes any sizes, and checks their product.
    unsafe { __libc_calloc(count, size) }
}

/// memalign(3) of the C library.
pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: takes any alignment and size.
    unsafe { __libc_memalign(align, size) }
}

/// realloc(3) of the C library.
///
/// # Safety
/// `block` is null or a block of the C library.
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: passed on to the caller.
    unsafe { __libc_realloc(block, size) }
}

/// free(3) of the C library.
///
/// # Safety
/// `block` is null or a block of the C library, not used afterwards.
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: passed on to the caller.
    unsafe { __libc_free(block) }
}

/// malloc_usable_size(3) of the C library, which has no second name: the next one in the order of loading.
///
/// # Safety
/// `block` is null or a block of the C library.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    static NEXT: Next<unsafe extern "C" fn(*mut c_void) -> usize> = Next::new(c"malloc_usable_size");
    // SAFETY: passed on to the caller.
    NEXT.get().map_or(0, |next| unsafe { next(block) })
}

//! The C library's own heap, reached past our exported names: for whatever happens before nearfar manages, inside nearfar, and
//! in processes that it does not manage.
//!
//! These entry points are glibc's; musl has none, so the preloaded library needs glibc. They are looked up in the C library itself:
//! jemalloc and its like define `__libc_malloc` as well, and come first in the order of loading; their heap is the program's, and may
//! be paged.

use crate::function::Function;
use crate::loaded;
use std::ffi::{CStr, c_void};

type Block = *mut c_void;

static MALLOC: Function<unsafe extern "C" fn(usize) -> Block> = Function::found_by(own, c"__libc_malloc");
static CALLOC: Function<unsafe extern "C" fn(usize, usize) -> Block> = Function::found_by(own, c"__libc_calloc");
static REALLOC: Function<unsafe extern "C" fn(Block, usize) -> Block> = Function::found_by(own, c"__libc_realloc");
static MEMALIGN: Function<unsafe extern "C" fn(usize, usize) -> Block> = Function::found_by(own, c"__libc_memalign");
static FREE: Function<unsafe extern "C" fn(Block)> = Function::found_by(own, c"__libc_free");
static USABLE_SIZE: Function<unsafe extern "C" fn(Block) -> usize> = Function::found_by(own, c"malloc_usable_size");

/// Nobody else has a function of the name by which the C library is found.
fn own(name: &CStr) -> usize {
    loaded::symbol_of(libc::gnu_get_libc_version as *const () as usize, name).unwrap_or(0)
}

/// An address of the C library's code.
pub fn code() -> usize {
    MALLOC.get().map_or(0, |function| function as usize)
}

/// malloc(3) of the C library.
pub fn malloc(size: usize) -> Block {
    // SAFETY: takes any size.
    MALLOC.get().map_or(std::ptr::null_mut(), |function| unsafe { function(size) })
}

/// calloc(3) of the C library.
pub fn calloc(count: usize, size: usize) -> Block {
    // SAFETY: takes any sizes, and checks their product.
    CALLOC.get().map_or(std::ptr::null_mut(), |function| unsafe { function(count, size) })
}

/// memalign(3) of the C library.
pub fn memalign(align: usize, size: usize) -> Block {
    // SAFETY: takes any alignment and size.
    MEMALIGN.get().map_or(std::ptr::null_mut(), |function| unsafe { function(align, size) })
}

/// realloc(3) of the C library.
///
/// # Safety
/// `block` is null or a block of the C library.
pub unsafe fn realloc(block: Block, size: usize) -> Block {
    // SAFETY: passed on to the caller.
    REALLOC.get().map_or(std::ptr::null_mut(), |function| unsafe { function(block, size) })
}

/// free(3) of the C library.
///
/// # Safety
/// `block` is null or a block of the C library, not used afterwards.
pub unsafe fn free(block: Block) {
    if let Some(function) = FREE.get() {
        // SAFETY: passed on to the caller.
        unsafe { function(block) }
    }
}

/// malloc_usable_size(3) of the C library.
///
/// # Safety
/// `block` is null or a block of the C library.
pub unsafe fn usable_size(block: Block) -> usize {
    // SAFETY: passed on to the caller.
    USABLE_SIZE.get().map_or(0, |function| unsafe { function(block) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_the_c_library() {
        let block = malloc(100);
        // SAFETY: a live block, freed once.
        unsafe {
            assert!(usable_size(block) >= 100);
            let block = realloc(block, 1000);
            assert!(usable_size(block) >= 1000);
            free(block);
        }
    }
}

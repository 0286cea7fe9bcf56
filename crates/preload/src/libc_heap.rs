//! The C library's own heap, reached past our exported names: for whatever happens before nearfar manages, inside nearfar, and
//! in processes that it does not manage.
//!
//! These entry points are glibc's; musl has none, so the preloaded library needs glibc. They are looked up in the C library itself:
//! jemalloc and its like define `__libc_malloc` as well, and come first in the order of loading; their heap is the program's, and may
//! be paged.

use crate::loaded;
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the C library, looked up once.
struct Own<F> {
    name: &'static CStr,
    found: AtomicUsize,
    kind: PhantomData<F>,
}

// SAFETY: a name and a number; `F` is a function pointer type.
unsafe impl<F> Sync for Own<F> {}

impl<F: Copy> Own<F> {
    /// For `name`, which must be a function of type `F`.
    const fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        Self { name, found: AtomicUsize::new(0), kind: PhantomData }
    }

    #[inline]
    fn get(&self) -> Option<F> {
        let mut found = self.found.load(Ordering::Relaxed);
        if found == 0 {
            found = self.look();
        }
        // SAFETY: `F` is a function pointer of the size of a word, and of the type of this name (`new`).
        (found != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&found) })
    }

    #[cold]
    fn look(&self) -> usize {
        // Nobody else has a function of this name.
        let inside = libc::gnu_get_libc_version as *const () as usize;
        let found = loaded::symbol_of(inside, self.name).unwrap_or(0);
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

type Block = *mut c_void;

static MALLOC: Own<unsafe extern "C" fn(usize) -> Block> = Own::new(c"__libc_malloc");
static CALLOC: Own<unsafe extern "C" fn(usize, usize) -> Block> = Own::new(c"__libc_calloc");
static REALLOC: Own<unsafe extern "C" fn(Block, usize) -> Block> = Own::new(c"__libc_realloc");
static MEMALIGN: Own<unsafe extern "C" fn(usize, usize) -> Block> = Own::new(c"__libc_memalign");
static FREE: Own<unsafe extern "C" fn(Block)> = Own::new(c"__libc_free");
static USABLE_SIZE: Own<unsafe extern "C" fn(Block) -> usize> = Own::new(c"malloc_usable_size");

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

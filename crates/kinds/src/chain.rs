//! The heap behind ours: the malloc family that comes next in the order of loading, the C library's as a rule. For a library that
//! takes the place of malloc and wants most calls to go on as if it were not there, and for its own Rust code (`Chain`), which must
//! not come back through its own malloc.
//!
//! Looking the names up may itself allocate, and the loader allocates before names can be looked up; glibc's heap has second names
//! for that. Needs glibc.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Void = *mut c_void;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> Void;
    fn __libc_calloc(count: usize, size: usize) -> Void;
    fn __libc_realloc(block: Void, size: usize) -> Void;
    fn __libc_memalign(align: usize, size: usize) -> Void;
    fn __libc_free(block: Void);
}

extern "C" fn no_size(_: Void) -> usize {
    0
}

/// Makes one function out of a name, its type, and what is called while the name is not known.
macro_rules! next {
    ($(#[$doc:meta])* $function:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)?, $name:literal, $fallback:ident) => {
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $function($($arg: $kind),*) $(-> $result)? {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            let mut found = FOUND.load(Ordering::Relaxed);
            if found.is_null() {
                found = look_up($name, &FOUND).unwrap_or($fallback as Void);
            }
            // SAFETY: either a function of this name, whose type is that of C, or one that does the same. The caller keeps its contract.
            unsafe {
                let next: unsafe extern "C" fn($($kind),*) $(-> $result)? = std::mem::transmute(found);
                next($($arg),*)
            }
        }
    };
}

/// The next function called `name`; `None` while a name is being looked up.
#[cold]
#[inline(never)]
fn look_up(name: &CStr, found: &AtomicPtr<c_void>) -> Option<Void> {
    // Of all threads: another one that allocates meanwhile gets glibc's heap, as one does who comes back from the look-up.
    static LOOKING: AtomicBool = AtomicBool::new(false);
    if LOOKING.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    found.store(next, Ordering::Relaxed);
    LOOKING.store(false, Ordering::Release);
    (!next.is_null()).then_some(next)
}

next! {
    /// malloc(3).
    ///
    /// # Safety
    /// None; the function is the program's.
    malloc(size: usize) -> Void, c"malloc", __libc_malloc
}
next! {
    /// calloc(3).
    ///
    /// # Safety
    /// As for `malloc`.
    calloc(count: usize, size: usize) -> Void, c"calloc", __libc_calloc
}
next! {
    /// realloc(3).
    ///
    /// # Safety
    /// `block` is null or a block of this heap; unless the result is null it is not used afterwards.
    realloc(block: Void, size: usize) -> Void, c"realloc", __libc_realloc
}
next! {
    /// memalign(3).
    ///
    /// # Safety
    /// As for `malloc`.
    memalign(align: usize, size: usize) -> Void, c"memalign", __libc_memalign
}
next! {
    /// free(3).
    ///
    /// # Safety
    /// `block` is null or a block of this heap, not used afterwards.
    free(block: Void), c"free", __libc_free
}
next! {
    /// malloc_usable_size(3).
    ///
    /// # Safety
    /// `block` is null or a block of this heap.
    usable_size(block: Void) -> usize, c"malloc_usable_size", no_size
}

/// The heap of Rust code in a library that exports malloc.
pub struct Chain;

// SAFETY: malloc and memalign give blocks of the size and alignment asked for, which free and realloc take.
unsafe impl GlobalAlloc for Chain {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: takes any size; alignments of layouts are powers of two.
        unsafe { if layout.align() <= 16 { malloc(layout.size()) } else { memalign(layout.align(), layout.size()) } }.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees a live block of `alloc`.
        unsafe { free(block.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_behind_is_a_heap() {
        // SAFETY: blocks of this heap, each freed once.
        unsafe {
            let block = malloc(100);
            assert!(usable_size(block) >= 100);
            let block = realloc(block, 10_000);
            assert!(usable_size(block) >= 10_000);
            free(block);
            let block = memalign(4096, 1);
            assert!(block.addr().is_multiple_of(4096));
            free(block);
            let layout = Layout::from_size_align(1000, 64).expect("a layout");
            let block = Chain.alloc_zeroed(layout);
            assert!(block.addr().is_multiple_of(64) && *block == 0 && *block.add(999) == 0);
            Chain.dealloc(block, layout);
        }
    }
}

//! The malloc family over any heap: what the manual pages promise beyond giving out blocks. Overflow, alignments, sizes of 0, `errno`.
//!
//! A library that takes the place of malloc implements `Heap` and exports the functions of `malloc_family!`.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

pub use nearfar_tiers::pool::moved;

/// Void pointers, as C has them.
pub type Void = *mut c_void;

const PAGE: usize = 4096;
/// Largest request that makes sense: differences of pointers into the block must fit.
const LARGEST: usize = isize::MAX as usize;

/// A heap of a process. Null is "no memory"; `errno` need not be set.
///
/// # Safety
/// Blocks are as large and aligned as asked for and do not overlap.
pub unsafe trait Heap {
    /// A block; of size 0 too.
    fn malloc(size: usize) -> Void;
    /// A block of zeros.
    fn zalloc(size: usize) -> Void;
    /// A block at a multiple of `align`, a power of two.
    fn memalign(align: usize, size: usize) -> Void;
    /// `block` with room for `size` bytes, which are not 0.
    ///
    /// # Safety
    /// `block` is a live block; unless the result is null it is not used afterwards.
    unsafe fn realloc(block: Void, size: usize) -> Void;
    /// Gives back a block. Keeps `errno`.
    ///
    /// # Safety
    /// `block` is null or a live block, not used afterwards.
    unsafe fn free(block: Void);
    /// Bytes that a block has room for.
    ///
    /// # Safety
    /// `block` is a live block.
    unsafe fn usable_size(block: Void) -> usize;
}

/// Sets `errno`.
pub fn set_errno(number: c_int) {
    // SAFETY: the C library gives every thread a valid location of its own.
    unsafe { *libc::__errno_location() = number };
}

/// `errno`.
pub fn errno() -> c_int {
    // SAFETY: as in `set_errno`.
    unsafe { *libc::__errno_location() }
}

#[cold]
fn no_memory() -> Void {
    set_errno(libc::ENOMEM);
    null_mut()
}

#[inline(always)]
fn checked(size: usize, block: impl FnOnce() -> Void) -> Void {
    if size > LARGEST {
        return no_memory();
    }
    let block = block();
    if block.is_null() { no_memory() } else { block }
}

/// malloc(3).
#[inline(always)]
pub fn malloc<H: Heap>(size: usize) -> Void {
    checked(size, || H::malloc(size))
}

/// calloc(3).
#[inline(always)]
pub fn calloc<H: Heap>(count: usize, size: usize) -> Void {
    let bytes = count.saturating_mul(size);
    checked(bytes, || H::zalloc(bytes))
}

/// realloc(3), with size 0 as in glibc: the block is freed and the result is null.
///
/// # Safety
/// `block` is null or a live block; unless the result is null, or `size` not 0, it is not used afterwards.
#[inline(always)]
pub unsafe fn realloc<H: Heap>(block: Void, size: usize) -> Void {
    if block.is_null() {
        return malloc::<H>(size);
    }
    if size == 0 {
        // SAFETY: passed on to the caller.
        unsafe { H::free(block) };
        return null_mut();
    }
    // SAFETY: passed on to the caller.
    checked(size, || unsafe { H::realloc(block, size) })
}

/// reallocarray(3).
///
/// # Safety
/// As for `realloc`.
pub unsafe fn reallocarray<H: Heap>(block: Void, count: usize, size: usize) -> Void {
    match count.checked_mul(size) {
        // SAFETY: passed on to the caller.
        Some(bytes) => unsafe { realloc::<H>(block, bytes) },
        None => no_memory(),
    }
}

/// memalign(3), and aligned_alloc(3) as glibc has had it until 2.37: other alignments are rounded up to a power of two.
pub fn memalign<H: Heap>(align: usize, size: usize) -> Void {
    match align.checked_next_power_of_two().filter(|&align| align <= LARGEST) {
        Some(align) => checked(size, || H::memalign(align, size)),
        None => {
            set_errno(libc::EINVAL);
            null_mut()
        }
    }
}

/// posix_memalign(3): returns the error, leaves `errno` and, on failure, `*out` alone.
///
/// # Safety
/// `out` points to writable memory for a pointer.
pub unsafe fn posix_memalign<H: Heap>(out: *mut Void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<Void>() {
        return libc::EINVAL;
    }
    let kept = errno();
    let block = memalign::<H>(align, size);
    set_errno(kept);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: passed on to the caller.
    unsafe { *out = block };
    0
}

/// valloc(3).
pub fn valloc<H: Heap>(size: usize) -> Void {
    memalign::<H>(PAGE, size)
}

/// pvalloc(3).
pub fn pvalloc<H: Heap>(size: usize) -> Void {
    match size.max(1).checked_next_multiple_of(PAGE) {
        Some(size) => memalign::<H>(PAGE, size),
        None => no_memory(),
    }
}

/// malloc_usable_size(3).
///
/// # Safety
/// `block` is null or a live block.
pub unsafe fn usable_size<H: Heap>(block: Void) -> usize {
    // SAFETY: passed on to the caller.
    if block.is_null() { 0 } else { unsafe { H::usable_size(block) } }
}

/// Exports the malloc family over the heap `$heap`, each name behind `$prefix`.
#[macro_export]
macro_rules! malloc_family {
    ($heap:ty, $prefix:literal) => {
        $crate::malloc_family! { @ $heap, $prefix,
            "malloc" malloc(size: usize) -> Void = malloc;
            "calloc" calloc(count: usize, size: usize) -> Void = calloc;
            "realloc" realloc(block: Void, size: usize) -> Void = realloc;
            "reallocarray" reallocarray(block: Void, count: usize, size: usize) -> Void = reallocarray;
            "memalign" memalign(align: usize, size: usize) -> Void = memalign;
            "aligned_alloc" aligned_alloc(align: usize, size: usize) -> Void = memalign;
            "posix_memalign" posix_memalign(out: *mut Void, align: usize, size: usize) -> std::ffi::c_int = posix_memalign;
            "valloc" valloc(size: usize) -> Void = valloc;
            "pvalloc" pvalloc(size: usize) -> Void = pvalloc;
            "malloc_usable_size" malloc_usable_size(block: Void) -> usize = usable_size;
        }
        /// free(3).
        ///
        /// # Safety
        /// As for the C function.
        #[cfg_attr(not(test), unsafe(export_name = concat!($prefix, "free")))]
        pub unsafe extern "C" fn free(block: Void) {
            // SAFETY: the program keeps the contract of the C function.
            unsafe { <$heap as $crate::family::Heap>::free(block) }
        }
        /// The older name of free.
        ///
        /// # Safety
        /// As for the C function.
        #[cfg_attr(not(test), unsafe(export_name = concat!($prefix, "cfree")))]
        pub unsafe extern "C" fn cfree(block: Void) {
            // SAFETY: the program keeps the contract of the C function.
            unsafe { <$heap as $crate::family::Heap>::free(block) }
        }
    };
    (@ $heap:ty, $prefix:literal,
     $($name:literal $function:ident($($arg:ident: $kind:ty),*) -> $result:ty = $forward:ident;)*) => {$(
        #[doc = concat!("`", $prefix, $name, "` for the program.")]
        ///
        /// # Safety
        /// As for the C function of this name.
        #[cfg_attr(not(test), unsafe(export_name = concat!($prefix, $name)))]
        pub unsafe extern "C" fn $function($($arg: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $crate::family::$forward::<$heap>($($arg),*) }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::next_heap;

    struct Behind;
    // SAFETY: the C library's heap.
    unsafe impl Heap for Behind {
        fn malloc(size: usize) -> Void {
            // SAFETY: takes any size.
            unsafe { next_heap::malloc(size) }
        }
        fn zalloc(size: usize) -> Void {
            // SAFETY: takes any size.
            unsafe { next_heap::calloc(1, size) }
        }
        fn memalign(align: usize, size: usize) -> Void {
            // SAFETY: takes any alignment and size.
            unsafe { next_heap::memalign(align, size) }
        }
        unsafe fn realloc(block: Void, size: usize) -> Void {
            // SAFETY: passed on to the caller.
            unsafe { next_heap::realloc(block, size) }
        }
        unsafe fn free(block: Void) {
            // SAFETY: passed on to the caller.
            unsafe { next_heap::free(block) }
        }
        unsafe fn usable_size(block: Void) -> usize {
            // SAFETY: passed on to the caller.
            unsafe { next_heap::usable_size(block) }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_as_documented() {
        let refused = |block: Void, number: c_int| {
            assert!(block.is_null() && errno() == number, "{block:?}, errno {}", errno());
            set_errno(0);
        };
        refused(malloc::<Behind>(usize::MAX), libc::ENOMEM);
        refused(calloc::<Behind>(usize::MAX / 4 + 2, 4), libc::ENOMEM);
        refused(pvalloc::<Behind>(usize::MAX), libc::ENOMEM);
        refused(memalign::<Behind>(usize::MAX, 1), libc::EINVAL);
        // SAFETY: blocks of this heap, each freed once; what is refused is not freed.
        unsafe {
            let block = malloc::<Behind>(10);
            refused(reallocarray::<Behind>(block, usize::MAX, 2), libc::ENOMEM);
            assert!(realloc::<Behind>(block, 0).is_null() && usable_size::<Behind>(null_mut()) == 0);
            let mut block = null_mut();
            assert_eq!(posix_memalign::<Behind>(&raw mut block, 3, 1), libc::EINVAL);
            assert_eq!(posix_memalign::<Behind>(&raw mut block, 64, usize::MAX), libc::ENOMEM);
            assert!(block.is_null() && errno() == 0);
            assert_eq!(posix_memalign::<Behind>(&raw mut block, 64, 0), 0);
            assert!(!block.is_null() && block.addr().is_multiple_of(64));
            Behind::free(block);
        }
    }
}

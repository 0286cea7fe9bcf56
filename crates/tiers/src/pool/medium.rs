//! Blocks of a page and its like that a thread has freed and may soon want again: a short list per size. mimalloc serves blocks up to
//! 1 KiB in a few ns, and takes a longer way for larger ones.
//!
//! Lists go through the blocks themselves. A block is kept only under the size that mimalloc gives to every request of its class, so
//! that any block of a list serves any request of the class.

use super::ffi;
use std::cell::Cell;
use std::ffi::c_void;

/// Blocks above this are medium.
pub const LEAST: usize = 1 << 10;
/// Blocks up to this are.
pub const MOST: usize = 64 << 10;
/// Classes from [`LEAST`] to [`MOST`]: four per doubling, as mimalloc has them.
pub const CLASSES: usize = 24;
/// Bytes kept per class, at least two blocks.
const MOST_PER_CLASS: usize = 128 << 10;

/// The lists of one thread in one pool.
#[repr(C)]
pub struct Medium {
    lists: [List; CLASSES],
}

#[repr(C)]
struct List {
    first: Cell<*mut c_void>,
    len: Cell<usize>,
}

/// The class of a request or of a block of `bytes`, above [`LEAST`] and up to [`MOST`].
#[inline(always)]
fn class_of(bytes: usize) -> usize {
    let last = bytes - 1;
    let doubling = last.ilog2() as usize;
    ((doubling << 2) | ((last >> (doubling - 2)) & 3)) - ((LEAST.ilog2() as usize) << 2)
}

/// Bytes of the blocks of a class.
#[inline(always)]
const fn bytes_of(class: usize) -> usize {
    (5 + (class & 3)) << (LEAST.ilog2() as usize + (class >> 2) - 2)
}

impl Medium {
    /// A kept block for a request of `size`.
    #[inline(always)]
    pub fn take(&self, size: usize) -> Option<*mut c_void> {
        let list = self.lists.get(class_of(size))?;
        let block = list.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: blocks of a list are free, of more than a word, and hold the address of the next.
        list.first.set(unsafe { block.cast::<*mut c_void>().read() });
        list.len.set(list.len.get() - 1);
        Some(block)
    }

    /// Keeps `block`, which mimalloc says is of `bytes`; false when it is not to be kept.
    ///
    /// # Safety
    /// `block` is a live block of this pool that nobody uses afterwards.
    #[inline(always)]
    pub unsafe fn keep(&self, block: *mut c_void, bytes: usize) -> bool {
        let class = class_of(bytes);
        // Aligned blocks may have any size.
        if bytes_of(class) != bytes {
            return false;
        }
        let Some(list) = self.lists.get(class) else { return false };
        if list.len.get() >= (MOST_PER_CLASS / bytes).max(2) {
            return false;
        }
        // SAFETY: passed on to the caller; it has room for a word.
        unsafe { block.cast::<*mut c_void>().write(list.first.get()) };
        list.first.set(block);
        list.len.set(list.len.get() + 1);
        true
    }

    /// Gives all blocks back.
    pub fn give_up(&self) {
        for class in 0..CLASSES {
            while let Some(block) = self.take(bytes_of(class)) {
                // SAFETY: a live block that was given to `keep`, and taken out here.
                unsafe { ffi::mi_free(block) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_mimalloc() {
        assert_eq!((class_of(LEAST + 1), class_of(MOST), bytes_of(0), bytes_of(CLASSES - 1)), (0, CLASSES - 1, 1280, MOST));
        for size in (LEAST + 1..=MOST).step_by(7) {
            let class = class_of(size);
            assert!(bytes_of(class) >= size && (class == 0 || bytes_of(class - 1) < size), "{size}");
            // SAFETY: takes any size.
            let block = unsafe { libmimalloc_sys::mi_malloc(size) };
            // SAFETY: a live block, freed once.
            let usable = unsafe { ffi::mi_usable_size(block) };
            // SAFETY: as above.
            unsafe { ffi::mi_free(block) };
            assert_eq!(usable, bytes_of(class), "mimalloc rounds {size} to another size: blocks of that size are never kept");
        }
    }
}

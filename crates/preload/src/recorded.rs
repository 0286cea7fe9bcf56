//! Blocks of the C library's heap in a process that is observed (`nearfar profile`): each call is passed on, and told of if the block
//! is an object. Where nothing is recorded that is one comparison.

use crate::libc_heap;
use nearfar_profile::recorder;
use std::ffi::c_void;

/// A block has been allocated, or is null.
#[inline(always)]
pub fn begun(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if recorder::wants(size) {
        recorder::allocated(block.addr(), size, caller);
    }
    block
}

/// A block, or null, is about to be freed: told of before its address can be used again.
#[inline(always)]
pub fn ends(block: *mut c_void) {
    if recorder::is_on() && recorder::wants(most_bytes(block)) {
        recorder::freed(block.addr());
    }
}

/// At least as many bytes as were asked for when `block` was allocated: the size of its chunk, which lies before it. Asking the C
/// library would reach another allocator's function where the program has one.
fn most_bytes(block: *mut c_void) -> usize {
    const FLAGS: usize = 7;
    if block.is_null() {
        return 0;
    }
    // SAFETY: a live block of the C library, which keeps the chunk's size in the word before it.
    unsafe { block.cast::<usize>().sub(1).read() & !FLAGS }
}

/// realloc(3) of the C library.
///
/// # Safety
/// `block` is null or a live block of the C library; unless the result is null it is not used afterwards.
pub unsafe fn realloc(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    // SAFETY: passed on to the caller.
    let go = || unsafe { libc_heap::realloc(block, size) };
    if !recorder::is_on() {
        return go();
    }
    let mut new = std::ptr::null_mut();
    recorder::reallocated(block.addr(), most_bytes(block), size, caller, || {
        new = go();
        new.addr()
    });
    new
}

//! Which heap a call goes to: the kind's inside the window, the C library's otherwise. A block is known by its address.

use crate::tally::{self, NotPlaced};
use crate::{talk, window};
use nearfar_core::units::Bytes;
use nearfar_kinds::autohbw::Level;
use nearfar_kinds::family::{self, Heap, Void, moved};
use nearfar_kinds::next_heap;
use nearfar_kinds::placed::{Placed, Room};
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

/// The program's malloc.
pub struct AutoHbw;

static KIND: OnceLock<Placed> = OnceLock::new();

thread_local! {
    /// This thread is placing an allocation; what that allocates is not placed.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Allocations in the window come from `kind` from now on.
pub fn set_kind(kind: Placed) {
    let _ = KIND.set(kind);
}

/// The kind, once there is one.
pub fn kind() -> Option<&'static Placed> {
    KIND.get()
}

/// A call and its numbers, for the log.
struct Call<'a>(&'static str, &'a [usize]);

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.1.iter().map(usize::to_string).collect();
        write!(f, "{}({})", self.0, numbers.join(", "))
    }
}

/// A block of `size` bytes by `place`, or by `otherwise` when the kind has none.
#[cold]
#[inline(never)]
fn placed(size: usize, call: &Call<'_>, place: impl Fn(&Placed) -> Void, otherwise: impl Fn() -> Void) -> Void {
    let Some(kind) = kind().filter(|_| !INSIDE.replace(true)) else { return otherwise() };
    let kept = family::errno();
    let room = kind.room(size);
    let block = if room == Room::Refused { std::ptr::null_mut() } else { place(kind) };
    if block.is_null() {
        tally::missed(if room == Room::Refused { NotPlaced::Full } else { NotPlaced::Refused }, size);
    } else {
        if room == Room::Spills {
            tally::missed(NotPlaced::Spilled, size);
        }
        // SAFETY: a live block of the kind.
        if tally::placed(size, unsafe { Placed::usable_size(block) }) {
            kind.grew(size);
        }
    }
    if talk::talks(Level::Allocations) {
        let free = kind.free_bytes().map_or_else(String::new, |free| format!(", {} free", Bytes(free)));
        match block.is_null() {
            true => talk::say(Level::Allocations, &format_args!("{call} is not placed{free}")),
            false => talk::say(Level::Allocations, &format_args!("{call} = {block:?} in {kind}{free}")),
        }
        talk::say_callers();
    }
    family::set_errno(kept);
    INSIDE.set(false);
    if block.is_null() { otherwise() } else { block }
}

// SAFETY: each block comes from one of two heaps, which keep this contract, and goes back to the one that its address tells.
unsafe impl Heap for AutoHbw {
    #[inline(always)]
    fn malloc(size: usize) -> Void {
        // SAFETY: takes any size.
        let otherwise = || unsafe { next_heap::malloc(size) };
        if !window::holds(size) {
            return otherwise();
        }
        placed(size, &Call("malloc", &[size]), |kind| kind.malloc(size), otherwise)
    }

    #[inline(always)]
    fn zalloc(size: usize) -> Void {
        // SAFETY: takes any size.
        let otherwise = || unsafe { next_heap::calloc(1, size) };
        if !window::holds(size) {
            return otherwise();
        }
        placed(size, &Call("calloc", &[size]), |kind| kind.zalloc(size), otherwise)
    }

    #[inline(always)]
    fn memalign(align: usize, size: usize) -> Void {
        // SAFETY: takes any size, and powers of two.
        let otherwise = || unsafe { next_heap::memalign(align, size) };
        if !window::holds(size) {
            return otherwise();
        }
        placed(size, &Call("memalign", &[align, size]), |kind| kind.memalign(align, size), otherwise)
    }

    #[inline(always)]
    unsafe fn realloc(block: Void, size: usize) -> Void {
        let ours = Placed::owns(block.addr());
        match (ours, window::holds(size)) {
            // SAFETY: passed on to the caller; the block is the C library's.
            (false, false) => unsafe { next_heap::realloc(block, size) },
            // SAFETY: passed on to the caller; the block is the C library's.
            (false, true) => unsafe { realloc_library(block, size) },
            // SAFETY: passed on to the caller; the block is placed.
            (true, inside) => unsafe { realloc_placed(block, size, inside) },
        }
    }

    #[inline(always)]
    unsafe fn free(block: Void) {
        if Placed::owns(block.addr()) {
            let kept = family::errno();
            // SAFETY: passed on to the caller; the block is placed.
            unsafe {
                tally::freed(Placed::usable_size(block));
                Placed::free(block);
            }
            return family::set_errno(kept);
        }
        // SAFETY: passed on to the caller; the block is the C library's, or null.
        unsafe { next_heap::free(block) }
    }

    unsafe fn usable_size(block: Void) -> usize {
        // SAFETY: passed on to the caller; the address tells whose block it is.
        unsafe { if Placed::owns(block.addr()) { Placed::usable_size(block) } else { next_heap::usable_size(block) } }
    }
}

/// # Safety
/// As for realloc(3), of a block of the C library whose new size is in the window.
#[cold]
unsafe fn realloc_library(block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    let old = unsafe { next_heap::usable_size(block) };
    let new = placed(size, &Call("realloc", &[block.addr(), size]), |kind| kind.malloc(size), std::ptr::null_mut);
    // SAFETY: passed on to the caller: a live block of the C library, which it gives up, and a new one. Without that one, the C library
    // may have a better way than to copy.
    unsafe {
        if new.is_null() { next_heap::realloc(block, size) } else { moved(block, old, new, size, |block| next_heap::free(block)) }
    }
}

/// # Safety
/// As for realloc(3), of a block that is placed.
#[cold]
unsafe fn realloc_placed(block: Void, size: usize, inside: bool) -> Void {
    // SAFETY: passed on to the caller.
    let old = unsafe { Placed::usable_size(block) };
    // In place while at least half of it is used; smaller ones go where the new size belongs.
    if inside && size <= old && size >= old / 2 {
        return block;
    }
    // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
    let new = unsafe { moved(block, old, AutoHbw::malloc(size), size, |block| AutoHbw::free(block)) };
    // A block can always be made smaller.
    if new.is_null() && size <= old { block } else { new }
}

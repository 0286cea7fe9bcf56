//! The program's malloc: each block from its tier, counted there by the room that it has, given back to where its address says.

use crate::{talk, tiers};
use nearfar_kinds::family::{self, Heap, Void};
use nearfar_kinds::memtier_env::LogLevel;
use nearfar_kinds::next_heap;
use nearfar_kinds::placed::{self, Placed, Room};
use std::cell::Cell;
use std::ptr::null_mut;

/// The program's malloc.
pub struct Tiered;

thread_local! {
    /// This thread is in a tier's heap; what that allocates comes from the C library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A new block of `size` bytes from the tier that is chosen for it.
#[inline(always)]
fn new(call: &'static str, size: usize, library: impl Fn() -> Void, place: impl Fn(&Placed) -> Void) -> Void {
    let tier = match tiers::open() {
        // Files are closed while this thread forks, and handlers of others may allocate.
        Some(open) if !INSIDE.get() && !placed::this_thread_forks() => open.choose(size),
        _ => tiers::DRAM,
    };
    let block = if tier == tiers::DRAM { library() } else { from_kind(tier, size, place) };
    if tiers::counts() && !block.is_null() {
        // SAFETY: a live block of this tier.
        tiers::given(tier, unsafe { room_of(tier, block) });
    }
    if talk::talks(LogLevel::Debug) && !INSIDE.get() {
        tell(call, size, tier, block);
    }
    block
}

#[inline(never)]
fn from_kind(tier: usize, size: usize, place: impl Fn(&Placed) -> Void) -> Void {
    let Some(placed) = tiers::open().and_then(|open| open.placed(tier)) else { return null_mut() };
    // As documented: without room the allocation fails, rather than the process at the first touch.
    if placed.room(size) == Room::Refused {
        return null_mut();
    }
    let kept = family::errno();
    INSIDE.set(true);
    let block = place(placed);
    INSIDE.set(false);
    family::set_errno(kept);
    block
}

#[cold]
fn tell(call: &'static str, size: usize, tier: usize, block: Void) {
    let Some(open) = tiers::open() else { return };
    let kept = family::errno();
    INSIDE.set(true);
    talk::say(LogLevel::Debug, &format_args!("{call}({size}) = {block:?} in {}", open.name(tier)));
    INSIDE.set(false);
    family::set_errno(kept);
}

/// The tier of a block.
#[inline(always)]
fn tier_of(block: Void) -> usize {
    tiers::open().map_or(tiers::DRAM, |open| open.of(block))
}

/// # Safety
/// `block` is a live block of `tier`.
#[inline(always)]
unsafe fn room_of(tier: usize, block: Void) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { if tier == tiers::DRAM { next_heap::usable_size(block) } else { Placed::usable_size(block) } }
}

// SAFETY: each block comes from one of several heaps, which keep this contract, and goes back to the one that its address tells.
unsafe impl Heap for Tiered {
    #[inline(always)]
    fn malloc(size: usize) -> Void {
        // SAFETY: takes any size.
        new("malloc", size, || unsafe { next_heap::malloc(size) }, |placed| placed.malloc(size))
    }

    #[inline(always)]
    fn zalloc(size: usize) -> Void {
        // SAFETY: takes any size.
        new("calloc", size, || unsafe { next_heap::calloc(1, size) }, |placed| placed.zalloc(size))
    }

    fn memalign(align: usize, size: usize) -> Void {
        // SAFETY: takes any size, and powers of two.
        new("memalign", size, || unsafe { next_heap::memalign(align, size) }, |placed| placed.memalign(align, size))
    }

    /// Stays in the tier of the block.
    unsafe fn realloc(block: Void, size: usize) -> Void {
        let tier = tier_of(block);
        // SAFETY: passed on to the caller.
        let old = unsafe { room_of(tier, block) };
        let moved = if tier == tiers::DRAM {
            // SAFETY: passed on to the caller; the block is the C library's.
            unsafe { next_heap::realloc(block, size) }
        } else {
            // In place while at least half of it is used.
            if size <= old && size >= old / 2 {
                return block;
            }
            let is_fork = placed::this_thread_forks();
            // SAFETY: takes any size.
            let library = || unsafe { next_heap::malloc(size) };
            let new = if is_fork { library() } else { from_kind(tier, size, |placed| placed.malloc(size)) };
            // SAFETY: a live block of a kind, which the caller gives up, and a new one.
            unsafe { family::moved(block, old, new, size, |block| Placed::free(block)) }
        };
        if !moved.is_null() {
            tiers::returned(tier, old);
            // Its own tier's, but in a handler of fork.
            let tier = tier_of(moved);
            // SAFETY: a live block of this tier.
            tiers::given(tier, unsafe { room_of(tier, moved) });
            if talk::talks(LogLevel::Debug) {
                tell("realloc", size, tier, moved);
            }
        }
        moved
    }

    #[inline(always)]
    unsafe fn free(block: Void) {
        if block.is_null() {
            return;
        }
        let tier = tier_of(block);
        if tiers::counts() {
            // SAFETY: passed on to the caller.
            tiers::returned(tier, unsafe { room_of(tier, block) });
        }
        if tier == tiers::DRAM {
            // SAFETY: passed on to the caller; the block is the C library's.
            return unsafe { next_heap::free(block) };
        }
        let kept = family::errno();
        INSIDE.set(true);
        // SAFETY: passed on to the caller; the block is a kind's.
        unsafe { Placed::free(block) };
        INSIDE.set(false);
        family::set_errno(kept);
    }

    unsafe fn usable_size(block: Void) -> usize {
        // SAFETY: passed on to the caller.
        unsafe { room_of(tier_of(block), block) }
    }
}

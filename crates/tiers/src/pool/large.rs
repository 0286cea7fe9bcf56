//! Large blocks that a thread has freed and may soon want again. mimalloc looks for room and gives memory back for each such block,
//! which takes some hundred ns to tens of µs; programs that allocate their work arrays in a loop pay that in every round.
//!
//! Little is kept: 8 MiB per thread and 64 MiB per process, so that freed memory is freed. Blocks go back when the thread ends.

use super::ffi;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks above this are large; mimalloc is quick up to here.
pub const LEAST: usize = super::medium::MOST;
/// Larger ones are not kept.
const MOST: usize = 4 << 20;
/// Blocks kept per thread.
const SLOTS: usize = 16;
const MOST_PER_THREAD: usize = 8 << 20;
const MOST_PER_PROCESS: usize = 64 << 20;

#[derive(Clone, Copy)]
struct Kept {
    block: *mut c_void,
    bytes: usize,
    pool: usize,
}

const NOTHING: Kept = Kept { block: null_mut(), bytes: 0, pool: 0 };

/// What a thread takes of [`MOST_PER_PROCESS`] at a time, so that threads do not meet in one counter at every block.
const CLAIM: usize = 4 << 20;

thread_local! {
    static KEPT: [Cell<Kept>; SLOTS] = const { [const { Cell::new(NOTHING) }; SLOTS] };
    static BYTES: Cell<usize> = const { Cell::new(0) };
    /// Of `CLAIMED`.
    static CLAIM_OF_THREAD: Cell<usize> = const { Cell::new(0) };
    /// The slot that is replaced next.
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

/// What all threads together may keep, as far as they have asked for it.
static CLAIMED: AtomicUsize = AtomicUsize::new(0);

/// True when this thread may keep `bytes` in all.
fn may_keep(bytes: usize, watch: fn()) -> bool {
    let claim = CLAIM_OF_THREAD.with(Cell::get);
    bytes <= claim || (bytes <= MOST_PER_THREAD && claim_more(claim, watch))
}

#[cold]
fn claim_more(claim: usize, watch: fn()) -> bool {
    if CLAIMED.fetch_add(CLAIM, Ordering::Relaxed) + CLAIM > MOST_PER_PROCESS {
        CLAIMED.fetch_sub(CLAIM, Ordering::Relaxed);
        return false;
    }
    CLAIM_OF_THREAD.with(|of_thread| of_thread.set(claim + CLAIM));
    // A thread that only frees has no heap, and must give its blocks back when it ends as well.
    watch();
    true
}

/// A kept block of `pool` for `size` bytes, and the bytes that it has; at most a quarter of it is wasted.
pub fn take(pool: usize, size: usize) -> Option<(*mut c_void, usize)> {
    if BYTES.with(Cell::get) < size {
        return None;
    }
    KEPT.with(|kept| {
        let fits = |one: &Kept| one.pool == pool && one.bytes >= size && one.bytes - size <= one.bytes / 4;
        let slot = kept.iter().find(|slot| fits(&slot.get()))?;
        let kept = empty(slot);
        Some((kept.block, kept.bytes))
    })
}

fn empty(slot: &Cell<Kept>) -> Kept {
    let kept = slot.replace(NOTHING);
    BYTES.with(|bytes| bytes.set(bytes.get() - kept.bytes));
    kept
}

/// Keeps `block`, of `bytes` and of `pool`; false when it is not to be kept. `watch` sees to it that [`give_up`] is called when this thread
/// ends.
pub fn keep(pool: usize, block: *mut c_void, bytes: usize, watch: fn()) -> bool {
    if bytes > MOST {
        return false;
    }
    KEPT.with(|kept| {
        // Older ones make room, from the oldest.
        for _ in 0..SLOTS {
            let slot = &kept[NEXT.with(|next| next.replace((next.get() + 1) % SLOTS))];
            if slot.get().block.is_null() && may_keep(BYTES.with(Cell::get) + bytes, watch) {
                slot.set(Kept { block, bytes, pool });
                BYTES.with(|all| all.set(all.get() + bytes));
                return true;
            }
            free(slot);
        }
        false
    })
}

fn free(slot: &Cell<Kept>) {
    if !slot.get().block.is_null() {
        // SAFETY: a live block that was given to `keep`, and taken out here.
        unsafe { ffi::mi_free(empty(slot).block) };
    }
}

/// Gives all blocks of this thread back.
pub fn give_up() {
    KEPT.with(|kept| kept.iter().for_each(free));
    CLAIMED.fetch_sub(CLAIM_OF_THREAD.with(|claim| claim.replace(0)), Ordering::Relaxed);
}

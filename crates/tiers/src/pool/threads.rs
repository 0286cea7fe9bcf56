//! What each thread has of each pool that it uses, a heap and a few kept blocks, and what becomes of it when the thread ends.
//!
//! mimalloc has a destructor of threads of its own, after which its heaps are gone. Destructors of the program may run later and still
//! allocate, so ours takes its place: it comes again until the last round and only then lets the heaps go.

use super::medium::Medium;
use super::{MOST_POOLS, Pool, ffi, large};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    static LOCALS: [Cell<*mut Local>; MOST_POOLS] = const { [const { Cell::new(null_mut()) }; MOST_POOLS] };
}

/// A thread's part of a pool. All zeros but the heap is the empty one.
#[repr(C)]
pub struct Local {
    /// The heap, for this thread alone.
    pub heap: *mut ffi::Heap,
    /// Blocks that were freed.
    pub medium: Medium,
    /// Bytes of large blocks that `Pool::live` does not know of yet.
    pub pending: Cell<i64>,
}

/// The C library calls destructors that set their key again this many times.
const ROUNDS: usize = 4;

/// The calling thread's part of `pool`; `None` without memory.
#[inline(always)]
pub fn local(pool: &Pool) -> Option<&'static Local> {
    let local = LOCALS.with(|locals| locals[pool.id].get());
    // SAFETY: null, or made by `new_local` and alive until the thread has ended; only this thread has it.
    unsafe { local.as_ref() }.or_else(|| new_local(pool))
}

/// The calling thread's part of `pool`, if it has one.
#[inline(always)]
pub fn present(pool: &Pool) -> Option<&'static Local> {
    let local = LOCALS.with(|locals| locals[pool.id].get());
    // SAFETY: as above.
    unsafe { local.as_ref() }
}

#[cold]
#[inline(never)]
fn new_local(pool: &Pool) -> Option<&'static Local> {
    // SAFETY: an arena that exists; a block of zeros from mimalloc's own memory, which is a valid `Local`.
    let (heap, local) = unsafe { (ffi::mi_heap_new_in_arena(pool.arena), libmimalloc_sys::mi_zalloc(size_of::<Local>())) };
    let local = local.cast::<Local>();
    if heap.is_null() || local.is_null() {
        return None;
    }
    // SAFETY: fresh and large enough.
    unsafe { (*local).heap = heap };
    LOCALS.with(|locals| locals[pool.id].set(local));
    watch();
    // SAFETY: as in `local`.
    unsafe { local.as_ref() }
}

/// Has this thread's heaps let go when it ends, and not before.
pub fn watch() {
    if let Some(key) = key() {
        // SAFETY: keys that exist. mimalloc's destructor is not called for a value of null; ours does its work.
        unsafe {
            libc::pthread_setspecific(key, std::ptr::dangling());
            libc::pthread_setspecific(ffi::_mi_heap_default_key, null());
        }
    }
}

/// The key, made at first use. No lock: the child of a fork in that moment must not wait for a thread of its parent.
fn key() -> Option<libc::pthread_key_t> {
    // One more than the key.
    static KEY: AtomicU32 = AtomicU32::new(0);
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some(known - 1);
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: writes a local; the destructor lives as long as the process.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(other) => {
            // SAFETY: made just now, and nobody knows it.
            unsafe { libc::pthread_key_delete(key) };
            Some(other - 1)
        }
    }
}

/// # Safety
/// Called by the C library in a thread that ends, with what `watch` or it itself set.
unsafe extern "C" fn ended(round: *mut c_void) {
    let round = round.addr();
    if let Some(key) = key()
        && round < ROUNDS
    {
        // SAFETY: a key that exists.
        unsafe { libc::pthread_setspecific(key, (round + 1) as *const c_void) };
        return;
    }
    large::give_up();
    give_up();
    Pool::all().for_each(Pool::settle);
    LOCALS.with(|locals| {
        for local in locals.iter().map(|local| local.replace(null_mut())).filter(|local| !local.is_null()) {
            // SAFETY: a block of `new_local`, which nothing leads to any more.
            unsafe { ffi::mi_free(local.cast()) };
        }
    });
    // SAFETY: this thread's heaps, which nothing leads to any more. Their live blocks stay, for other threads.
    unsafe { ffi::mi_thread_done() };
}

/// Gives all medium blocks of this thread back.
pub fn give_up() {
    LOCALS.with(|locals| {
        for local in locals {
            // SAFETY: as in `local`.
            if let Some(local) = unsafe { local.get().as_ref() } {
                local.medium.give_up();
            }
        }
    });
}

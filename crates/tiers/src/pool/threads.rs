//! The heaps of each thread, one per pool that it uses, and what becomes of them when the thread ends.
//!
//! mimalloc has a destructor of threads of its own, after which its heaps are gone. Destructors of the program may run later and still
//! allocate, so ours takes its place: it comes again until the last round and only then lets the heaps go.

use super::{MOST_POOLS, Pool, ffi, large};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

thread_local! {
    static HEAPS: [Cell<*mut ffi::Heap>; MOST_POOLS] = const { [const { Cell::new(null_mut()) }; MOST_POOLS] };
}

/// The kernel of glibc calls destructors that set their key again this many times.
const ROUNDS: usize = 4;

/// The calling thread's heap in `pool`.
#[inline(always)]
pub fn heap(pool: &Pool) -> *mut ffi::Heap {
    let heap = HEAPS.with(|heaps| heaps[pool.id].get());
    if heap.is_null() { new_heap(pool) } else { heap }
}

#[cold]
#[inline(never)]
fn new_heap(pool: &Pool) -> *mut ffi::Heap {
    // SAFETY: an arena that exists.
    let heap = unsafe { ffi::mi_heap_new_in_arena(pool.arena) };
    HEAPS.with(|heaps| heaps[pool.id].set(heap));
    watch();
    heap
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

fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: writes a local; the destructor lives as long as the process.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0).then_some(key)
    })
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
    HEAPS.with(|heaps| heaps.iter().for_each(|heap| heap.set(null_mut())));
    // SAFETY: this thread's heaps, which nothing leads to any more. Their live blocks stay, for other threads.
    unsafe { ffi::mi_thread_done() };
}

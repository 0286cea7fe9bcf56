//! The heap of nearfar's own Rust code: tables of the pager must never live in memory that the pager pages.
//!
//! dlmalloc over raw mappings, behind one lock. The lock is taken around fork by `at_fork`, so that the child finds the
//! heap whole, and is given up in the child without waking anybody (the waiters do not exist there).
//! Not for the program's data, and not for hot paths.

use dlmalloc::Dlmalloc;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::futex::Lock;
use nearfar_sys::{arch, map};
use nearfar_tiers::guard::Holder;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg_attr(not(test), global_allocator)]
static INTERNAL: Internal = Internal {
    lock: Lock::new(),
    holder: Holder::none(),
    inside: AtomicUsize::new(0),
    heap: UnsafeCell::new(Dlmalloc::new_with_allocator(RawPages)),
};

/// Memory straight from the kernel, past our own hooks.
struct RawPages;

// SAFETY: `alloc` returns fresh private mappings of the size asked for, `remap`, `free_part` and `free` act on those only,
// and fresh anonymous memory reads as zeros.
unsafe impl dlmalloc::Allocator for RawPages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        // SAFETY: not fixed: the kernel picks free space.
        match unsafe { map::mmap(0, size, map::RW, map::ANON, -1, 0) } {
            Ok(addr) => {
                map::note_own(size);
                (addr as *mut u8, size, 0)
            }
            // Called under the lock.
            Err(_) => RESERVE.take(size).map_or((null_mut(), 0, 0), |addr| (addr as *mut u8, size, 0)),
        }
    }

    fn remap(&self, ptr: *mut u8, old: usize, new: usize, can_move: bool) -> *mut u8 {
        let flags = if can_move { libc::MREMAP_MAYMOVE } else { 0 };
        // SAFETY: dlmalloc passes a mapping that it got from `alloc`, and forgets the old range on success.
        match unsafe { map::mremap(Extent::new(ptr as usize, old), new, flags, 0) } {
            Ok(addr) => {
                map::note_own(new);
                map::note_gone(old);
                addr as *mut u8
            }
            Err(_) => null_mut(),
        }
    }

    fn free_part(&self, ptr: *mut u8, old: usize, new: usize) -> bool {
        self.free((ptr as usize + new) as *mut u8, old - new)
    }

    fn free(&self, ptr: *mut u8, size: usize) -> bool {
        // SAFETY: dlmalloc gives up a range that it got from `alloc` and uses no more.
        let gone = unsafe { map::munmap(Extent::new(ptr as usize, size)) }.is_ok();
        if gone {
            map::note_gone(size);
        }
        gone
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

/// Address space that was taken when there was enough, for when the kernel gives none any more: the program may have lowered its
/// limits behind our back, and tables of the pager are not a thing that may be wanting. Memory is used when it is.
struct Reserve {
    next: AtomicUsize,
    end: AtomicUsize,
}

const RESERVE_BYTES: usize = 64 << 20;
static RESERVE: Reserve = Reserve { next: AtomicUsize::new(0), end: AtomicUsize::new(0) };

impl Reserve {
    fn take(&self, size: usize) -> Option<usize> {
        let (next, end) = (self.next.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        (size <= end - next).then(|| {
            self.next.store(next + size, Ordering::Relaxed);
            next
        })
    }
}

/// Takes the reserve; once.
pub fn keep_reserve() {
    // SAFETY: not fixed: the kernel picks free space.
    if let Ok(start) = unsafe { map::mmap(0, RESERVE_BYTES, map::RW, map::ANON, -1, 0) } {
        map::note_own(RESERVE_BYTES);
        RESERVE.next.store(start, Ordering::Relaxed);
        RESERVE.end.store(start + RESERVE_BYTES, Ordering::Relaxed);
    }
}

/// Ends the process with a message where there is no memory for our own tables: nobody could go on from here.
fn some(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        nearfar_tiers::pager::stop(
            "the kernel gives no memory for nearfar's own tables: a limit (ulimit -v, -d) is reached, or overcommit is refused",
        );
    }
    block
}

struct Internal {
    lock: Lock,
    holder: Holder,
    /// The thread (its pointer) that is in the heap; 0: none. A handler of a signal that came meanwhile may fork.
    inside: AtomicUsize,
    heap: UnsafeCell<Dlmalloc<RawPages>>,
}

// SAFETY: the heap is reached only through `with`, under the lock.
unsafe impl Sync for Internal {}

impl Internal {
    /// Ends the process where another one that shares its memory was killed inside this heap: it stays half changed.
    fn stop_if_lost(&self) {
        if self.holder.gone().is_some() {
            nearfar_tiers::pager::stop("a process that shares this one's memory was killed inside nearfar");
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut Dlmalloc<RawPages>) -> R) -> R {
        let me = Holder::me();
        self.lock.acquire_and_look(|| self.stop_if_lost());
        self.inside.store(arch::thread_pointer(), Ordering::Relaxed);
        self.holder.note(me);
        // SAFETY: the lock is held, so this is the only reference; `act` is dlmalloc code that does not come back here.
        let result = act(unsafe { &mut *self.heap.get() });
        self.inside.store(0, Ordering::Relaxed);
        self.holder.clear();
        self.lock.release();
        result
    }
}

// SAFETY: dlmalloc returns blocks of the layout asked for that do not overlap, and the lock serialises it.
unsafe impl GlobalAlloc for Internal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees a layout of non-zero size.
        some(self.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) }))
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees that the block came from here with this layout.
        self.with(|heap| unsafe { heap.free(ptr, layout.size(), layout.align()) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        some(self.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) }))
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`; the caller guarantees a non-zero new size.
        some(self.with(|heap| unsafe { heap.realloc(ptr, layout.size(), layout.align(), new_size) }))
    }
}

/// This thread forks from a handler of a signal that came while it was in the heap: it holds the lock as it is, on both sides. Written
/// by the thread that holds it.
static HELD_ALREADY: AtomicBool = AtomicBool::new(false);

/// Before fork: nobody else is inside the heap until one of the next two.
pub fn fork_prepare() {
    if INTERNAL.inside.load(Ordering::Relaxed) == arch::thread_pointer() {
        HELD_ALREADY.store(true, Ordering::Relaxed);
        return;
    }
    let me = Holder::me();
    INTERNAL.lock.acquire_and_look(|| INTERNAL.stop_if_lost());
    INTERNAL.holder.note(me);
}

/// After fork, in the parent.
pub fn fork_parent() {
    if HELD_ALREADY.swap(false, Ordering::Relaxed) {
        return;
    }
    INTERNAL.holder.clear();
    INTERNAL.lock.release();
}

/// After fork, in the child: the only thread is the one that took the lock.
pub fn fork_child() {
    if HELD_ALREADY.swap(false, Ordering::Relaxed) {
        return;
    }
    INTERNAL.holder.clear();
    INTERNAL.lock.reset();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_that_comes_inside_the_heap_may_fork() {
        INTERNAL.with(|_| {
            fork_prepare();
            fork_parent();
            fork_prepare();
            fork_child();
        });
        fork_prepare();
        assert!(!INTERNAL.lock.try_acquire(), "held over a fork from outside of the heap");
        fork_parent();
    }

    #[test]
    fn threads_and_sizes() {
        let work = |seed: usize| {
            move || {
                for round in 1..500usize {
                    let layout = Layout::from_size_align(round * seed % 70_000 + 1, 1 << (round % 7)).expect("valid");
                    // SAFETY: non-zero size; freed once with the same layout.
                    unsafe {
                        let block = INTERNAL.alloc_zeroed(layout);
                        assert!(!block.is_null() && block.addr().is_multiple_of(layout.align()));
                        assert_eq!((*block, *block.add(layout.size() - 1)), (0, 0));
                        block.write_bytes(0xA5, layout.size());
                        INTERNAL.dealloc(block, layout);
                    }
                }
            }
        };
        let crew: Vec<_> = (1..5).map(|seed| std::thread::spawn(work(seed * 7919))).collect();
        assert!(crew.into_iter().all(|thread| thread.join().is_ok()));
    }
}

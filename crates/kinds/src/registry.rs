//! Heaps over ranges, with the kind that each serves: found by address without a lock, since a free may come from anywhere.

use crate::code;
use crate::kind::Kind;
use crate::lock::{self, Lock};
use crate::range_heap::RangeHeap;
use crate::static_kind::COUNT;
use nearfar_core::addr::Extent;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

struct Slot {
    start: AtomicUsize,
    /// 0 while the slot is free.
    end: AtomicUsize,
    /// Ranges that are gone: the two halves of a range belong together while this stays as it is.
    gone: AtomicUsize,
    kind: AtomicPtr<Kind>,
    heap: AtomicPtr<RangeHeap>,
}

impl Slot {
    const fn free() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            kind: AtomicPtr::new(null_mut()),
            heap: AtomicPtr::new(null_mut()),
        }
    }

    fn is_free(&self) -> bool {
        self.end.load(Ordering::Acquire) == 0
    }

    /// Gives a free slot a range, under the registry's lock.
    fn occupy(&self, range: Extent) {
        self.start.store(range.start, Ordering::Release);
        self.end.store(range.end, Ordering::Release);
    }

    /// Frees the slot, under the registry's lock.
    fn vacate(&self) {
        self.end.store(0, Ordering::Release);
        self.gone.fetch_add(1, Ordering::Release);
    }

    /// True when `addr` lies in the range. Where the range goes meanwhile it was not meant: who asks for a live block of it keeps it.
    fn holds(&self, addr: usize) -> bool {
        self.holds_while(addr, || ())
    }

    /// `meanwhile` comes between the two halves, as what another thread does may.
    fn holds_while(&self, addr: usize, meanwhile: impl FnOnce()) -> bool {
        let gone = self.gone.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        meanwhile();
        let start = self.start.load(Ordering::Acquire);
        (start..end).contains(&addr) && self.gone.load(Ordering::Acquire) == gone
    }

    fn heap(&self) -> Option<&'static RangeHeap> {
        // SAFETY: published whole; it goes only when the program destroys the kind, which it must not while it uses blocks of it.
        unsafe { self.heap.load(Ordering::Acquire).as_ref() }
    }
}

/// Slots below `COUNT` are not used: the slot of a kind that a program made is its partition.
static SLOTS: [Slot; code::MAX_KINDS + MOST_HUGE] = [const { Slot::free() }; code::MAX_KINDS + MOST_HUGE];
/// Heaps of huge pages, for kinds that are there from the start.
const MOST_HUGE: usize = 64;
/// One past the last slot that was ever used.
static HIGH: AtomicUsize = AtomicUsize::new(0);
/// Some range has overlapped another one. Only areas of the program can, which are memory.
static OVERLAPS: AtomicBool = AtomicBool::new(false);

static LOCK: Lock = Lock::new();

fn heaps() -> impl Iterator<Item = &'static RangeHeap> {
    // SAFETY: heaps are removed under the registry's lock, which the callers hold.
    SLOTS.iter().filter_map(|slot| unsafe { slot.heap.load(Ordering::Acquire).as_ref() })
}

/// The two ends of a pipe on which the parent of a fork waits for its child; -1 without one.
static PIPE: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// Has forks wait for first uses and for the heaps, from the time on when the library is loaded: a fork beside the first use must know
/// of it, or the child waits for a thread that it does not have.
extern "C" fn watch_forks() {
    // SAFETY: three functions that live as long as the process.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static WATCH_FORKS: extern "C" fn() = watch_forks;

extern "C" fn before_fork() {
    lock::take_first();
    LOCK.take();
    heaps().for_each(|heap| heap.lock().take());
    // Handlers of others come between this and ours on the other side, and may allocate.
    lock::set_forks(true);
    if heaps().any(RangeHeap::is_shared_by_fork) {
        let mut ends = [-1; 2];
        // SAFETY: writes a local. Without descriptors nobody waits: the child copies what its parent may be writing.
        unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
        PIPE.iter().zip(ends).for_each(|(end, fd)| end.store(fd, Ordering::Relaxed));
    }
}

/// Closes one end of the pipe.
fn close(end: usize) {
    let fd = PIPE[end].swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: a descriptor of ours, once.
        unsafe { libc::close(fd) };
    }
}

/// What lies in files must not change before the child has its copy.
extern "C" fn after_fork_in_parent() {
    let before = errno();
    close(1);
    let fd = PIPE[0].load(Ordering::Relaxed);
    if fd >= 0 {
        let mut byte = 0u8;
        // There is nothing to read: the pipe ends when the child has its copy, or is not there.
        // SAFETY: reads into a local.
        while unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } < 0 && errno() == libc::EINTR {}
    }
    close(0);
    after_fork();
    lock::release_first();
    // SAFETY: the address of this thread's errno, which fork(2) may have set.
    unsafe { *libc::__errno_location() = before };
}

fn errno() -> c_int {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() }
}

extern "C" fn after_fork_in_child() {
    close(0);
    heaps().for_each(RangeHeap::part_from_parent);
    // The message: the parent has closed its own end.
    close(1);
    after_fork();
    lock::renew_first();
}

fn after_fork() {
    lock::set_forks(false);
    // SAFETY: `before_fork` took them all.
    heaps().for_each(|heap| unsafe { heap.lock().release() });
    // SAFETY: as above.
    unsafe { LOCK.release() };
}

/// Puts a heap for a kind that is there from the start.
///
/// # Errors
/// `TOO_MANY`.
pub fn add_static(heap: RangeHeap, kind: *mut Kind) -> Result<&'static RangeHeap, c_int> {
    LOCK.with(|| {
        let slot = free_slot(code::MAX_KINDS..SLOTS.len())?;
        Ok(publish(slot, heap, |_| kind).0)
    })
}

/// Puts a heap, and makes a kind for it. `name` gets the number of the kind's file or area.
///
/// # Errors
/// `TOO_MANY`.
pub fn add_dynamic(heap: RangeHeap, name: &str) -> Result<*mut Kind, c_int> {
    LOCK.with(|| {
        let slot = free_slot(COUNT..code::MAX_KINDS)?;
        let make = |heap: *mut RangeHeap| Box::into_raw(Box::new(Kind::new(slot as u32, name, heap.cast())));
        Ok(publish(slot, heap, make).1)
    })
}

fn free_slot(mut range: std::ops::Range<usize>) -> Result<usize, c_int> {
    range.find(|&slot| SLOTS[slot].is_free()).ok_or(code::TOO_MANY)
}

fn publish(slot: usize, heap: RangeHeap, kind: impl FnOnce(*mut RangeHeap) -> *mut Kind) -> (&'static RangeHeap, *mut Kind) {
    let range = heap.range();
    let heap = Box::into_raw(Box::new(heap));
    // SAFETY: leaked above; freed only by `remove`.
    let published: &'static RangeHeap = unsafe { &*heap };
    if lock::forks() {
        // As all others are; now that it stays where it is.
        published.lock().take();
    }
    let kind = kind(heap);
    let meets = |other: &Slot| range.start < other.end.load(Ordering::Acquire) && other.start.load(Ordering::Acquire) < range.end;
    if SLOTS.iter().any(meets) {
        OVERLAPS.store(true, Ordering::Release);
    }
    let place = &SLOTS[slot];
    place.heap.store(heap, Ordering::Release);
    place.kind.store(kind, Ordering::Release);
    place.occupy(range);
    HIGH.fetch_max(slot + 1, Ordering::AcqRel);
    (published, kind)
}

/// The heap in whose range `addr` lies, and its kind.
#[inline]
pub fn find(addr: usize) -> Option<(&'static RangeHeap, *mut Kind)> {
    let high = HIGH.load(Ordering::Acquire);
    if high == 0 { None } else { find_below(high, addr) }
}

#[cold]
fn find_below(high: usize, addr: usize) -> Option<(&'static RangeHeap, *mut Kind)> {
    let mut slots = SLOTS[COUNT..high].iter().filter(|slot| slot.holds(addr));
    let first = slots.next()?;
    // The rest need not be looked at where no two can be meant.
    let second = if OVERLAPS.load(Ordering::Acquire) { slots.next() } else { None };
    let slot = match second {
        None => first,
        Some(second) => {
            // SAFETY: in more than one range, so in areas of the program, all of whose blocks have a head.
            let has = |slot: &&Slot| slot.heap().is_some_and(|heap| unsafe { heap.has(addr) });
            [first, second].into_iter().chain(slots).find(has).unwrap_or(first)
        }
    };
    slot.heap().map(|heap| (heap, slot.kind.load(Ordering::Acquire)))
}

/// Kinds that programs made and have not destroyed.
pub fn kinds() -> impl Iterator<Item = *const Kind> {
    let slots = &SLOTS[COUNT..code::MAX_KINDS];
    let used = slots.iter().filter(|slot| !slot.is_free());
    used.map(|slot| slot.kind.load(Ordering::Acquire).cast_const())
}

/// True for a kind that a program made and has not destroyed.
pub fn is_dynamic(kind: *const Kind) -> bool {
    let high = HIGH.load(Ordering::Acquire).min(code::MAX_KINDS);
    let here = |slot: &Slot| !slot.is_free() && slot.kind.load(Ordering::Acquire).cast_const() == kind;
    high > COUNT && SLOTS[COUNT..high].iter().any(here)
}

/// Takes a kind that a program made out of the books, with all its blocks. False when there is no such kind.
///
/// # Safety
/// No block of the kind, and not the kind itself, is used afterwards.
pub unsafe fn remove(kind: *mut Kind) -> bool {
    LOCK.with(|| {
        let slots = &SLOTS[COUNT..code::MAX_KINDS];
        let here = |slot: &&Slot| !slot.is_free() && slot.kind.load(Ordering::Acquire) == kind;
        let Some(slot) = slots.iter().find(here) else { return false };
        slot.vacate();
        let heap = slot.heap.swap(null_mut(), Ordering::AcqRel);
        slot.kind.store(null_mut(), Ordering::Release);
        // SAFETY: both were leaked by `publish`, and are out of the books now.
        unsafe {
            drop(Box::from_raw(heap));
            drop(Box::from_raw(kind));
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ranges_of_a_slot_are_not_taken_for_one() {
        let slot = Slot::free();
        slot.occupy(Extent { start: 800, end: 900 });
        assert!(slot.holds(800) && !slot.holds(500) && !slot.holds(900));
        // A block of neither: above the new range and below the old one.
        let reuse = || {
            slot.vacate();
            slot.occupy(Extent { start: 100, end: 200 });
        };
        assert!(!slot.holds_while(500, reuse));
        assert!(slot.holds(150) && !slot.holds(850));
    }
}

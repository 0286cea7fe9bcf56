//! A heap in a range that is given: an area of the program (FIXED), a file (PMEM) or huge pages (HUGETLB).
//!
//! dlmalloc, which grows from a bump pointer over the range and keeps its books in the blocks: nothing is allocated elsewhere, so that
//! the program's own malloc may be served from here. One lock. Before each block lie 16 bytes that say how large it is.

use crate::heap_file::HeapFile;
use crate::lock::{self, Lock};
use dlmalloc::{Allocator, Dlmalloc};
use nearfar_core::addr::{Extent, PAGE, round_down, round_up};
use nearfar_sys::errno::Errno;
use nearfar_sys::map;
use nearfar_sys::numa::{self, MemoryPolicy};
use nearfar_tiers::pool::moved;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a huge page that the kernel reserves.
const HUGE: usize = 2 << 20;
/// The range grows by at least this, and by no more than is asked for: what is left at the end serves no larger block.
const STEP: usize = 64 << 10;
/// What lies before a block.
const HEAD: usize = 16;
/// Freed blocks from this size give their pages back at once.
const LARGE: usize = 64 << 10;

/// What the range is made of.
pub enum Backing {
    /// Memory of the program's, which it keeps.
    Area,
    /// A file without a name, mapped piece by piece as the heap grows.
    File(HeapFile),
    /// Huge pages, taken from the kernel's reserve as the heap grows.
    Huge(Option<MemoryPolicy>),
}

/// Before each block: its heap, how far before it dlmalloc's block begins, and the bytes that the program may use.
#[repr(C)]
struct Head {
    /// Programs make kinds over areas that overlap, and use one of them: an address is then not enough to know the heap by.
    heap: u32,
    /// As a power of two.
    ahead: u32,
    usable: usize,
}

/// Numbers of heaps.
static HEAPS: AtomicU32 = AtomicU32::new(0);

struct Grower {
    range: Extent,
    /// First byte that the heap does not have yet.
    end: Cell<usize>,
    backing: Backing,
}

impl Grower {
    fn step(&self) -> usize {
        match self.backing {
            Backing::Huge(_) => HUGE,
            Backing::File(_) => PAGE,
            Backing::Area => 1,
        }
    }

    fn extend(&self, range: Extent) -> Result<(), Errno> {
        match &self.backing {
            Backing::Area => Ok(()),
            Backing::File(file) => {
                let offset = (range.start - self.range.start) as i64;
                loop {
                    // SAFETY: a file of ours. So that a full file system is an allocation that fails, not a signal later.
                    match unsafe { libc::posix_fallocate(file.fd(), offset, range.len() as i64) } {
                        0 => break,
                        libc::EINTR => {}
                        error => return Err(Errno(error)),
                    }
                }
                let flags = libc::MAP_SHARED | libc::MAP_FIXED;
                // SAFETY: replaces reserved addresses of ours that nobody has yet.
                unsafe { map::mmap(range.start, range.len(), map::RW, flags, file.fd(), offset) }.map(|_| ())
            }
            Backing::Huge(policy) => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
                // SAFETY: as above. Without MAP_NORESERVE: pages that are not there are an error here, not a signal later.
                unsafe { map::mmap(range.start, range.len(), map::RW, flags, -1, 0)? };
                let Some(policy) = policy else { return Ok(()) };
                numa::set_range(range, policy, false).map_err(|_| {
                    self.give_back(range);
                    Errno::EINVAL
                })
            }
        }
    }

    /// Gives the pages of `range`, whole ones of the range's end, back to where they came from.
    fn give_back(&self, range: Extent) {
        if let Backing::File(_) = self.backing {
            // SAFETY: memory that the heap has given up; the file gets a hole.
            let _ = unsafe { map::madvise(range, libc::MADV_REMOVE) };
        }
        // SAFETY: addresses of ours that nobody uses any more: reserved again.
        let _ = unsafe { map::mmap(range.start, range.len(), libc::PROT_NONE, map::ANON | libc::MAP_FIXED, -1, 0) };
    }
}

// SAFETY: `alloc` gives out each byte of the range once, until `free_part` takes it back.
unsafe impl Allocator for Grower {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let nothing = (null_mut(), 0, 0);
        let left = self.range.end - self.end.get();
        if size > left {
            return nothing;
        }
        let wish = match self.backing {
            // All at once: it costs nothing, and no odd piece is left at the end.
            Backing::Area => left,
            _ => round_up(size.max(STEP), self.step()).unwrap_or(size).min(left),
        };
        for len in [wish, round_up(size, self.step()).unwrap_or(size).min(left)] {
            let range = Extent::new(self.end.get(), len);
            if self.extend(range).is_ok() {
                self.end.set(range.end);
                return (range.start as *mut u8, len, 0);
            }
        }
        nothing
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, start: *mut u8, old: usize, new: usize) -> bool {
        let end = start.addr() + old;
        let Some(from) = round_up(start.addr() + new, self.step()) else { return false };
        if matches!(self.backing, Backing::Area) || end != self.end.get() || from != start.addr() + new || from >= end {
            return false;
        }
        self.give_back(Extent { start: from, end });
        self.end.set(from);
        true
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        !matches!(self.backing, Backing::Area)
    }

    fn allocates_zeros(&self) -> bool {
        !matches!(self.backing, Backing::Area)
    }

    fn page_size(&self) -> usize {
        self.step().max(PAGE)
    }
}

/// See the head of this file.
pub struct RangeHeap {
    id: u32,
    /// As it was given.
    given: Extent,
    range: Extent,
    lock: Lock,
    heap: UnsafeCell<Dlmalloc<Grower>>,
    live: AtomicU64,
    /// Freed blocks from this size give their pages back.
    give_back_from: AtomicUsize,
    /// Its file is another process's: nothing is given out or freed.
    is_foreign: AtomicBool,
    is_file: bool,
}

// SAFETY: the heap is used under the lock only.
unsafe impl Send for RangeHeap {}
// SAFETY: as above.
unsafe impl Sync for RangeHeap {}

impl RangeHeap {
    /// A heap over `range`: the program's own memory, or reserved addresses for the other backings.
    ///
    /// # Safety
    /// Nobody else uses the range while the heap lives.
    pub unsafe fn new(range: Extent, backing: Backing) -> Self {
        let given = range;
        let start = round_up(given.start, HEAD).unwrap_or(given.end);
        // A few bytes may lie between two multiples.
        let range = Extent { start, end: round_down(given.end, HEAD).max(start) };
        let mut heap = Dlmalloc::new_with_allocator(Grower { range, end: Cell::new(range.start), backing });
        let unit = match heap.allocator().backing {
            // It may be small.
            Backing::Area => 64,
            Backing::File(_) => PAGE,
            Backing::Huge(_) => HUGE,
        };
        let is_file = matches!(heap.allocator().backing, Backing::File(_));
        heap.set_granularity(unit);
        Self {
            id: HEAPS.fetch_add(1, Ordering::Relaxed),
            given,
            range,
            lock: Lock::new(),
            heap: UnsafeCell::new(heap),
            live: AtomicU64::new(0),
            give_back_from: AtomicUsize::new(LARGE),
            is_foreign: AtomicBool::new(false),
            is_file,
        }
    }

    /// Bytes of the range as it was given, what no block fits into included.
    pub fn given_bytes(&self) -> u64 {
        self.given.len() as u64
    }

    /// True for a block of this heap.
    ///
    /// # Safety
    /// `addr` lies in the range, which is memory, and is a live block of a heap like this.
    pub unsafe fn has(&self, addr: usize) -> bool {
        // SAFETY: passed on to the caller: its head lies before it.
        self.range.start + HEAD <= addr && unsafe { (*(addr as *const Head).sub(1)).heap } == self.id
    }

    /// Where its blocks lie.
    pub fn range(&self) -> Extent {
        self.range
    }

    /// The lock, for forks.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// True for a file that parent and child of a fork share, until the child has one of its own.
    pub fn is_shared_by_fork(&self) -> bool {
        self.is_file && self.taken() > 0
    }

    /// In the child of a fork, which holds the lock and whose parent waits: gives the heap a file of its own. Where there is none to be
    /// had, what lies in it can be read and written, by this process alone, and the heap gives out nothing more.
    pub fn part_from_parent(&self) {
        // SAFETY: the lock is held.
        let grower = unsafe { &mut *self.heap.get() }.allocator_mut();
        let taken = Extent { start: self.range.start, end: grower.end.get() };
        let Backing::File(file) = &mut grower.backing else { return };
        if taken.is_empty() {
            // The next piece would be at the same place of the same file as the parent's.
            match file.copied(taken) {
                Ok(own) => *file = own,
                Err(_) => self.is_foreign.store(true, Ordering::Relaxed),
            }
            return;
        }
        // SAFETY: puts the same bytes in place of the heap's own mapping; no thread but this runs.
        let map_over = |flags, fd| unsafe { map::mmap(taken.start, taken.len(), map::RW, flags | libc::MAP_FIXED, fd, 0) };
        match file.copied(taken) {
            Ok(own) if map_over(libc::MAP_SHARED, own.fd()).is_ok() => *file = own,
            _ => {
                self.is_foreign.store(true, Ordering::Relaxed);
                let _ = map_over(libc::MAP_PRIVATE, file.fd());
            }
        }
    }

    fn taken(&self) -> usize {
        self.with(|heap| heap.allocator().end.get() - self.range.start)
    }

    /// True while nothing may be given out or freed: the file is not ours, or about to be copied.
    fn is_closed(&self) -> bool {
        self.is_file && (self.is_foreign.load(Ordering::Relaxed) || lock::forks())
    }

    /// Bytes given out and not freed.
    pub fn live_bytes(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Bytes that the heap has taken of its range.
    pub fn taken_bytes(&self) -> u64 {
        self.taken() as u64
    }

    /// The file's blocks in bytes, where it is a file.
    pub fn file_bytes(&self) -> Option<u64> {
        self.with(|heap| match &heap.allocator().backing {
            Backing::File(file) => {
                // SAFETY: all-zero bits are a stat, which the kernel fills.
                let mut facts: libc::stat = unsafe { std::mem::zeroed() };
                // SAFETY: an open file, and a local to write to.
                (unsafe { libc::fstat(file.fd(), &raw mut facts) } == 0).then_some(facts.st_blocks as u64 * 512)
            }
            _ => None,
        })
    }

    /// Freed blocks of `bytes` and more give their pages back; `usize::MAX` for never.
    pub fn give_back_from(&self, bytes: usize) {
        self.give_back_from.store(bytes, Ordering::Relaxed);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Dlmalloc<Grower>) -> T) -> T {
        // SAFETY: the lock makes this the only reference; `work` does not come back here.
        self.lock.with(|| work(unsafe { &mut *self.heap.get() }))
    }

    /// A block aligned to `align`, a power of two; null when there is no room.
    pub fn memalign(&self, align: usize, size: usize) -> *mut c_void {
        let align = align.max(HEAD);
        // Before a block of larger alignment there is room for one more such unit, in which the head lies.
        let ahead = if align == HEAD { HEAD } else { align };
        let Some(whole) = round_up(size.max(1), HEAD).and_then(|size| size.checked_add(ahead)) else { return null_mut() };
        if whole > self.range.len() || self.is_closed() {
            return null_mut();
        }
        let base = self.with(|heap| {
            // SAFETY: a power of two.
            let base = unsafe { heap.c_memalign(align, whole) };
            // What lies free at the end of what was taken counts only when the range grows from there.
            // SAFETY: gives back what is not in use.
            if base.is_null() && unsafe { heap.trim(0) } {
                // SAFETY: the same power of two as before.
                return unsafe { heap.c_memalign(align, whole) };
            }
            base
        });
        if base.is_null() {
            return null_mut();
        }
        let usable = whole - ahead;
        let block = base.wrapping_add(ahead);
        // SAFETY: at least HEAD bytes before the block are part of what dlmalloc gave, and aligned to 16.
        unsafe { block.cast::<Head>().sub(1).write(Head { heap: self.id, ahead: ahead.trailing_zeros(), usable }) };
        self.live.fetch_add(usable as u64, Ordering::Relaxed);
        block.cast()
    }

    /// A block of zeros.
    pub fn zalloc(&self, size: usize) -> *mut c_void {
        let block = self.memalign(HEAD, size);
        if !block.is_null() {
            // SAFETY: a fresh block of that many bytes. The range may have been used before.
            unsafe { block.cast::<u8>().write_bytes(0, size) };
        }
        block
    }

    /// Bytes that a block has room for.
    ///
    /// # Safety
    /// `block` is a live block of a heap like this.
    pub unsafe fn usable_size(block: *const c_void) -> usize {
        // SAFETY: passed on to the caller: its head lies before it.
        unsafe { (*block.cast::<Head>().sub(1)).usable }
    }

    /// `block` with room for `size` bytes; null when there is no room, and it is then as it was.
    ///
    /// # Safety
    /// `block` is a live block of this heap; unless the result is null it is not used afterwards.
    pub unsafe fn realloc(&self, block: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: passed on to the caller.
        let old = unsafe { Self::usable_size(block) };
        // What there is no smaller block for stays as well.
        if size <= old && size.max(HEAD) > old / 2 {
            return block;
        }
        // SAFETY: a live block, which the caller gives up, and a new one.
        unsafe { moved(block, old, self.memalign(HEAD, size), size, |block| self.free(block)) }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `block` is a live block of this heap, not used afterwards.
    pub unsafe fn free(&self, block: *mut c_void) {
        // Lost, which costs memory only.
        if self.is_closed() {
            return;
        }
        // SAFETY: passed on to the caller.
        let Head { ahead, usable, .. } = unsafe { block.cast::<Head>().sub(1).read() };
        self.live.fetch_sub(usable as u64, Ordering::Relaxed);
        let gives_back = usable >= self.give_back_from.load(Ordering::Relaxed);
        self.with(|heap| {
            if gives_back {
                empty(&heap.allocator().backing, Extent::new(block.addr(), usable));
            }
            // SAFETY: what dlmalloc gave, once.
            unsafe { heap.c_free(block.cast::<u8>().wrapping_sub(1 << ahead)) };
        });
    }
}

impl Drop for RangeHeap {
    fn drop(&mut self) {
        if !matches!(self.heap.get_mut().allocator().backing, Backing::Area) {
            // SAFETY: the heap's own range; who drops it answers for its blocks.
            let _ = unsafe { map::munmap(self.range) };
        }
    }
}

/// Gives back the pages that lie wholly in a block about to be freed; dlmalloc's own words come to its ends only afterwards.
fn empty(backing: &Backing, block: Extent) {
    let (unit, advice) = match backing {
        Backing::Area => return,
        Backing::File(_) => (PAGE, libc::MADV_REMOVE),
        Backing::Huge(_) => (HUGE, libc::MADV_DONTNEED),
    };
    let Some(start) = round_up(block.start, unit) else { return };
    let range = Extent { start, end: round_down(block.end, unit) };
    if !range.is_empty() {
        // SAFETY: memory of a block that its owner gave up. What the kernel refuses stays, which costs memory only.
        let _ = unsafe { map::madvise(range, advice) };
    }
}

#[cfg(test)]
mod tests;

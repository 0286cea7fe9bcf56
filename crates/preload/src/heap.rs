//! The malloc family: which heap a call goes to, and the promises of the manual pages on top.
//!
//! Requests of at least `min_size` go to the arena, smaller ones to mimalloc, whose memory comes from the arena too, or with
//! `--heap=large` to the C library. A block given back is known by its address: an arena block, mimalloc's, or the C
//! library's (from before we managed, or from inside nearfar). Blocks wander between heaps only in realloc.
//!
//! What the C library and the loader allocate for themselves stays in the C library's heap: they touch their streams, thread
//! vectors and name service state in the child of a fork before any fork handler runs, when nobody serves far memory there,
//! and in the parent while the lock of `Memory` is held. Such calls are known by their return address (`hooks.rs`).
//!
//! Budget of malloc and free of a small block: mimalloc's own time plus two loads and one thread-local read; no locks here.

use crate::errno::{self, Kept};
use crate::lifecycle::{managed_even_inside, managed_heap, nobody_forks};
use crate::managed::{Half, Managed};
use crate::placing::{self, Block};
use crate::{libc_heap, recorded, small_heap};
use nearfar_core::addr::{PAGE, round_up};
use nearfar_sys::errno::Errno;
use nearfar_tiers::memory::Memory;
use nearfar_tiers::pool::moved;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Largest request that makes sense: differences of pointers into the block must fit.
const LARGEST: usize = isize::MAX as usize;
/// Alignments above this are the arena's business: mimalloc would take a segment for each.
const LARGEST_SMALL_ALIGN: usize = 128 << 10;
/// What the C library allocates for itself is smaller; larger results of its functions are the program's data.
const LARGEST_LIBRARY: usize = 64 << 10;
/// Nor is it more than this in all: a program may keep its data in the nodes of tsearch, in obstacks and the like.
const MOST_LIBRARY: isize = 32 << 20;
/// Live bytes that the C library allocated for itself while we managed; some are counted only when they go, so it drifts.
static LIBRARY_BYTES: AtomicIsize = AtomicIsize::new(0);

fn no_memory() -> *mut c_void {
    errno::set(Errno::ENOMEM);
    null_mut()
}

#[inline]
fn or_no_memory(block: *mut c_void) -> *mut c_void {
    if block.is_null() { no_memory() } else { block }
}

/// A near block, or null with `errno`, if the request is for near (`placing`); `None` when it goes on to the other heaps.
#[cold]
#[inline(never)]
fn near(size: usize, align: usize, zeroed: bool, caller: usize) -> Option<*mut c_void> {
    match placing::block(size, align, zeroed, caller) {
        Block::Near(block) => Some(block),
        Block::Refused => Some(no_memory()),
        Block::Elsewhere => None,
    }
}

/// Whose block it is.
#[derive(PartialEq, Eq)]
enum Owner {
    Arena,
    Small,
    Libc,
}

impl Managed {
    /// By address alone: touches no memory that may be paged, so it may be asked inside nearfar too.
    #[inline]
    fn owner_by_address(&self, block: *mut c_void) -> Owner {
        match self.half(block.addr()) {
            Some(Half::Maps) => Owner::Small,
            Some(Half::Blocks) => Owner::Arena,
            None => Owner::Libc,
        }
    }

    #[inline]
    fn owner(&self, block: *mut c_void) -> Owner {
        match self.owner_by_address(block) {
            // When the arena is full mimalloc gets its memory from elsewhere.
            Owner::Libc if self.overflowed.load(Ordering::Relaxed) && self.heap_all && small_heap::owns(block) => Owner::Small,
            owner => owner,
        }
    }

    #[cold]
    fn large(&self, size: usize, align: usize, caller: usize) -> (*mut c_void, bool) {
        match self.with(|memory| memory.alloc(size.max(1), align, caller)) {
            Some((addr, zeroed)) => (addr as *mut c_void, zeroed),
            None => (no_memory(), false),
        }
    }

    #[inline]
    fn malloc(&self, size: usize, caller: usize) -> *mut c_void {
        if size >= self.min_size {
            if size > LARGEST { no_memory() } else { self.large(size, PAGE, caller).0 }
        } else if self.heap_all {
            or_no_memory(small_heap::malloc(size))
        } else {
            libc_heap::malloc(size)
        }
    }

    /// `align` is a power of two.
    fn aligned(&self, align: usize, size: usize, caller: usize) -> *mut c_void {
        if size > LARGEST || align > LARGEST {
            return no_memory();
        }
        if size >= self.min_size || align > LARGEST_SMALL_ALIGN {
            self.large(size, align.max(PAGE), caller).0
        } else if self.heap_all {
            or_no_memory(small_heap::memalign(align, size))
        } else {
            libc_heap::memalign(align, size)
        }
    }

    /// # Safety
    /// `block` is a live block of `owner`.
    unsafe fn usable_size(&self, owner: &Owner, block: *mut c_void) -> usize {
        match owner {
            Owner::Arena => self.with(|memory| memory.block_size(block.addr())).unwrap_or(0),
            // SAFETY: passed on to the caller.
            Owner::Small => unsafe { small_heap::usable_size(block) },
            // SAFETY: passed on to the caller.
            Owner::Libc => unsafe { libc_heap::usable_size(block) },
        }
    }

    /// # Safety
    /// `block` is a live block of `owner`, not used afterwards.
    #[inline]
    unsafe fn free(&self, owner: &Owner, block: *mut c_void) {
        match owner {
            // SAFETY: passed on to the caller.
            Owner::Small => unsafe { small_heap::free(block) },
            Owner::Arena => drop(self.with(|memory| memory.free(block.addr()))),
            // SAFETY: passed on to the caller.
            Owner::Libc => unsafe { libc_heap::free(count_library(block, false)) },
        }
    }

    /// Frees any block.
    ///
    /// # Safety
    /// `block` is null or a live block, not used afterwards.
    #[cold]
    unsafe fn free_slowly(&self, block: *mut c_void) {
        if block.is_null() {
            return;
        }
        let inside = Memory::inside();
        let owner = if inside { self.owner_by_address(block) } else { self.owner(block) };
        if inside && owner != Owner::Libc {
            return;
        }
        let _kept = Kept::now();
        // SAFETY: passed on to the caller.
        unsafe { self.free(&owner, block) }
    }

    /// # Safety
    /// `block` is a live block; unless the result is null it is not used afterwards. `size` is not 0.
    unsafe fn realloc(&self, block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
        let owner = self.owner(block);
        match owner {
            // An arena block grows and shrinks without copying; it goes back to the small heap only when it has become
            // much smaller, so that a size wavering around the limit does not copy each time.
            Owner::Arena if size >= self.min_size / 2 => {
                return match self.with(|memory| memory.resize(block.addr(), size, caller)) {
                    Some(addr) => addr as *mut c_void,
                    None => no_memory(),
                };
            }
            // SAFETY: passed on to the caller.
            Owner::Small if size < self.min_size => return or_no_memory(unsafe { small_heap::realloc(block, size) }),
            // SAFETY: passed on to the caller.
            Owner::Libc if size < self.min_size => return unsafe { libc_heap::realloc(block, size) },
            _ => {}
        }
        let new = self.malloc(size, caller);
        // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
        unsafe { moved(block, self.usable_size(&owner, block), new, size, |block| self.free(&owner, block)) }
    }
}

/// True when a request by `caller` is the C library's own.
#[inline(always)]
fn is_library(managed: &Managed, size: usize, caller: usize) -> bool {
    managed.heap_all
        && managed.is_library_code(caller)
        && size <= LARGEST_LIBRARY
        && LIBRARY_BYTES.load(Ordering::Relaxed) < MOST_LIBRARY
}

/// Counts a block that the C library allocated for itself, or one that it gives back.
#[cold]
fn count_library(block: *mut c_void, more: bool) -> *mut c_void {
    // SAFETY: null or a live block of the C library.
    let bytes = unsafe { libc_heap::usable_size(block) } as isize;
    let before = LIBRARY_BYTES.fetch_add(if more { bytes } else { -bytes }, Ordering::Relaxed);
    if !more && before < bytes {
        LIBRARY_BYTES.store(0, Ordering::Relaxed);
    }
    block
}

/// malloc(3), called from `caller`.
#[inline(always)]
pub fn malloc(size: usize, caller: usize) -> *mut c_void {
    if placing::wants_block(size)
        && let Some(block) = near(size, 0, false, caller)
    {
        return block;
    }
    elsewhere(size, caller)
}

/// malloc(3) of what is not near.
#[inline(always)]
pub fn elsewhere(size: usize, caller: usize) -> *mut c_void {
    match managed_heap() {
        Some(managed) if is_library(managed, size, caller) => count_library(libc_heap::malloc(size), true),
        Some(managed) => managed.malloc(size, caller),
        None => recorded::begun(libc_heap::malloc(size), size, caller),
    }
}

/// calloc(3): memory that is fresh from the arena reads as zeros already and is not touched.
#[inline(always)]
pub fn calloc(count: usize, size: usize, caller: usize) -> *mut c_void {
    if let Some(bytes) = count.checked_mul(size)
        && placing::wants_block(bytes)
        && let Some(block) = near(bytes, 0, true, caller)
    {
        return block;
    }
    elsewhere_zeroed(count, size, caller)
}

/// calloc(3) of what is not near.
#[inline(always)]
pub fn elsewhere_zeroed(count: usize, size: usize, caller: usize) -> *mut c_void {
    let Some(managed) = managed_heap() else {
        return recorded::begun(libc_heap::calloc(count, size), count.wrapping_mul(size), caller);
    };
    if is_library(managed, count.saturating_mul(size), caller) {
        return count_library(libc_heap::calloc(count, size), true);
    }
    let Some(bytes) = count.checked_mul(size).filter(|&bytes| bytes <= LARGEST) else { return no_memory() };
    if bytes >= managed.min_size {
        let (block, zeroed) = managed.large(bytes, PAGE, caller);
        if !block.is_null() && !zeroed {
            // SAFETY: a fresh block of at least so many bytes.
            unsafe { block.cast::<u8>().write_bytes(0, bytes) };
        }
        block
    } else if managed.heap_all {
        or_no_memory(small_heap::zalloc(bytes))
    } else {
        libc_heap::calloc(count, size)
    }
}

/// free(3). A managed block freed inside nearfar (a fork handler of the program that runs after ours) is given up: its heap
/// must not be touched then.
///
/// # Safety
/// `block` is null or a live block, not used afterwards.
#[inline(always)]
pub unsafe fn free(block: *mut c_void) {
    let Some(managed) = managed_even_inside() else {
        if placing::owns(block) {
            // SAFETY: passed on to the caller.
            return unsafe { free_near(block) };
        }
        recorded::ends(block);
        // SAFETY: nothing was ever managed, so the block is the C library's.
        return unsafe { libc_heap::free(block) };
    };
    match managed.half(block.addr()) {
        // SAFETY: passed on to the caller.
        None if placing::owns(block) => unsafe { free_near(block) },
        // mimalloc touches `errno` only through calls that fail, and discarding its own memory does not.
        // SAFETY: passed on to the caller; the block lies where only mimalloc has blocks.
        Some(Half::Maps) if nobody_forks() => unsafe { small_heap::free(block) },
        // SAFETY: passed on to the caller; only the C library has blocks outside the arena.
        None if !managed.heap_all => unsafe { libc_heap::free(block) },
        // SAFETY: passed on to the caller.
        _ => unsafe { managed.free_slowly(block) },
    }
}

/// # Safety
/// `block` is a live block of a pool, not used afterwards.
#[cold]
unsafe fn free_near(block: *mut c_void) {
    let _kept = Kept::now();
    // SAFETY: passed on to the caller.
    unsafe { placing::free(block) }
}

/// realloc(3) where the block is near already, or is to be.
///
/// # Safety
/// As for `realloc`; `block` is not null and `size` not 0.
#[cold]
unsafe fn realloc_near(block: *mut c_void, size: usize, caller: usize) -> Option<*mut c_void> {
    let was_near = placing::owns(block);
    // SAFETY: passed on to the caller.
    let new = match if was_near { unsafe { placing::resize(block, size, caller) } } else { Block::Elsewhere } {
        Block::Near(block) => return Some(block),
        Block::Refused => return Some(no_memory()),
        Block::Elsewhere if was_near => elsewhere(size, caller),
        Block::Elsewhere => near(size, 0, false, caller)?,
    };
    // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
    Some(unsafe { moved(block, usable_size(block), new, size, |block| free(block)) })
}

/// realloc(3), with size 0 as in glibc: the block is freed and the result is null.
///
/// # Safety
/// `block` is null or a live block; unless the result is null it is not used afterwards.
pub unsafe fn realloc(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size, caller);
    }
    if size != 0
        && (placing::wants_block(size) || placing::owns(block))
        // SAFETY: passed on to the caller.
        && let Some(new) = unsafe { realloc_near(block, size, caller) }
    {
        return new;
    }
    let Some(managed) = managed_even_inside() else {
        if placing::owns(block) {
            // SAFETY: passed on to the caller.
            unsafe { free(block) };
            return null_mut();
        }
        // SAFETY: nothing was ever managed, so the block is the C library's.
        return unsafe { recorded::realloc(block, size, caller) };
    };
    if size == 0 {
        // SAFETY: passed on to the caller.
        unsafe { free(block) };
        return null_mut();
    }
    if size > LARGEST {
        return no_memory();
    }
    if Memory::inside() {
        return match managed.owner_by_address(block) {
            // SAFETY: passed on to the caller.
            Owner::Libc => unsafe { libc_heap::realloc(block, size) },
            // Its bytes may be far, and nobody serves them to this thread now.
            Owner::Arena | Owner::Small => no_memory(),
        };
    }
    // SAFETY: passed on to the caller.
    unsafe { managed.realloc(block, size, caller) }
}

/// reallocarray(3).
///
/// # Safety
/// As for `realloc`.
pub unsafe fn reallocarray(block: *mut c_void, count: usize, size: usize, caller: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: passed on to the caller.
        Some(bytes) => unsafe { realloc(block, bytes, caller) },
        None => no_memory(),
    }
}

/// memalign(3), and aligned_alloc(3) as glibc has had it until 2.37: other alignments are rounded up to a power of two.
pub fn memalign(align: usize, size: usize, caller: usize) -> *mut c_void {
    if placing::wants_block(size)
        && let Some(align) = align.checked_next_power_of_two()
        && let Some(block) = near(size, align, false, caller)
    {
        return block;
    }
    elsewhere_aligned(align, size, caller)
}

/// memalign(3) of what is not near.
pub fn elsewhere_aligned(align: usize, size: usize, caller: usize) -> *mut c_void {
    let Some(managed) = managed_heap() else { return recorded::begun(libc_heap::memalign(align, size), size, caller) };
    match align.checked_next_power_of_two() {
        Some(align) => managed.aligned(align, size, caller),
        None => {
            errno::set(Errno::EINVAL);
            null_mut()
        }
    }
}

/// posix_memalign(3): returns the error and, on failure, leaves `*out` alone; `errno` only on success, as glibc.
///
/// # Safety
/// `out` points to writable memory for a pointer.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize, caller: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let kept = Kept::now();
    let block = memalign(align, size, caller);
    if block.is_null() {
        drop(kept);
        errno::set(Errno::ENOMEM);
        return libc::ENOMEM;
    }
    // SAFETY: passed on to the caller.
    unsafe { *out = block };
    0
}

/// valloc(3).
pub fn valloc(size: usize, caller: usize) -> *mut c_void {
    memalign(PAGE, size, caller)
}

/// pvalloc(3).
pub fn pvalloc(size: usize, caller: usize) -> *mut c_void {
    match round_up(size.max(1), PAGE) {
        Some(size) => memalign(PAGE, size, caller),
        None => no_memory(),
    }
}

/// malloc_usable_size(3).
///
/// # Safety
/// `block` is null or a live block.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    if placing::owns(block) {
        // SAFETY: passed on to the caller.
        return unsafe { placing::usable_size(block) };
    }
    match managed_even_inside() {
        Some(managed) => {
            let owner = if Memory::inside() { managed.owner_by_address(block) } else { managed.owner(block) };
            // SAFETY: passed on to the caller.
            unsafe { managed.usable_size(&owner, block) }
        }
        // SAFETY: nothing was ever managed, so the block is the C library's.
        None => unsafe { libc_heap::usable_size(block) },
    }
}

/// strdup(3) and strndup(3): the copy is the program's data, which malloc could not tell by its caller.
///
/// # Safety
/// `text` points to `most` bytes or to a C string.
pub unsafe fn string_copy(text: *const c_char, most: usize) -> *mut c_char {
    // SAFETY: passed on to the caller.
    let len = unsafe { libc::strnlen(text, most) };
    let copy = malloc(len + 1, 0).cast::<c_char>();
    if !copy.is_null() {
        // SAFETY: a fresh block of so many bytes, and as many readable ones.
        unsafe {
            copy.copy_from_nonoverlapping(text, len);
            copy.add(len).write(0);
        }
    }
    copy
}

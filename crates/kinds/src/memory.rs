//! The heap functions of memkind.h: any kind, blocks told by their address. Kinds that callers give with a block are a hint that is
//! not needed, so that a wrong one does no harm; what is nobody's block is the C library's.

use crate::kind::{self, Kind};
use crate::paged;
use crate::place::{self, Home, quietly};
use crate::range_heap::RangeHeap;
use crate::static_kind::StaticKind;
use crate::{code, registry};
use nearfar_tiers::pool::{Pool, moved};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

type Void = *mut c_void;

/// From this size it is worth asking whether the nodes can hold it at all.
pub const LARGE: usize = 1 << 20;
/// Every block is aligned to this.
const ALIGN: usize = 16;

/// Whose block an address is.
#[derive(Clone, Copy)]
pub enum Owner {
    /// A pool of a kind that is there from the start.
    Pool(&'static Pool),
    /// A heap over a range, and its kind.
    Range(&'static RangeHeap, *mut Kind),
    /// Somebody else: a job of ours, or the C library.
    Other,
}

/// Whose block `block` is, by address alone.
#[inline]
pub fn owner(block: *const c_void) -> Owner {
    let addr = block.addr();
    if let Some(pool) = Pool::of(addr) {
        return Owner::Pool(pool);
    }
    registry::find(addr).map_or(Owner::Other, |(heap, kind)| Owner::Range(heap, kind))
}

/// Where blocks of `kind` come from.
#[inline]
fn home(kind: *const Kind) -> Option<Home> {
    if let Some(kind) = kind::static_kind(kind) {
        return place::home(kind);
    }
    if kind.is_null() {
        return None;
    }
    // SAFETY: a kind that is not there from the start was made by `registry`, and its private part is its heap.
    unsafe { (*kind).private().cast::<RangeHeap>().as_ref() }.map(Home::Range)
}

/// By partition: malloc(0) gives a block (`memkind_set_allow_zero_allocs`).
static ZERO_ALLOWED: [AtomicBool; code::MAX_KINDS] = [const { AtomicBool::new(false) }; code::MAX_KINDS];

fn zero_flag(kind: *const Kind) -> Option<&'static AtomicBool> {
    // SAFETY: null, or a kind of ours.
    let partition = unsafe { kind.as_ref() }?.partition();
    ZERO_ALLOWED.get(partition)
}

/// `memkind_set_allow_zero_allocs`.
///
/// # Safety
/// `kind` is null or a kind.
pub unsafe fn allow_zero(kind: *const Kind, allow: bool) -> c_int {
    let Some(flag) = zero_flag(kind) else { return code::INVALID };
    flag.store(allow, Ordering::Relaxed);
    code::SUCCESS
}

fn set_errno(errno: c_int) {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

/// Null with ENOMEM.
#[cold]
fn no_memory() -> Void {
    set_errno(libc::ENOMEM);
    null_mut()
}

/// The size to allocate for `size`; `None` for nothing at all.
#[inline]
fn real_size(kind: *const Kind, size: usize) -> Option<usize> {
    if size > 0 { Some(size) } else { zero_flag(kind).filter(|flag| flag.load(Ordering::Relaxed)).map(|_| 1) }
}

/// `memkind_malloc`.
///
/// # Safety
/// `kind` is a kind (null is refused).
#[inline]
pub unsafe fn malloc(kind: *const Kind, size: usize) -> Void {
    let Some(size) = real_size(kind, size) else { return null_mut() };
    let block = match home(kind) {
        Some(Home::Pool(pool)) if size < LARGE || !place::exceeds(pool, size) => pool.malloc(size),
        Some(Home::Range(heap)) => heap.memalign(ALIGN, size),
        // SAFETY: takes any size.
        Some(Home::Paged(paged, tier)) => unsafe { (paged.malloc)(size, tier) },
        _ => null_mut(),
    };
    if block.is_null() { no_memory() } else { block }
}

/// `memkind_calloc`, with the check of n * size that memkind lacks.
///
/// # Safety
/// As for [`malloc`].
pub unsafe fn calloc(kind: *const Kind, count: usize, size: usize) -> Void {
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
    let Some(bytes) = real_size(kind, bytes) else { return null_mut() };
    let block = match home(kind) {
        Some(Home::Pool(pool)) if bytes < LARGE || !place::exceeds(pool, bytes) => pool.zalloc(bytes),
        Some(Home::Range(heap)) => heap.zalloc(bytes),
        // SAFETY: takes any size.
        Some(Home::Paged(paged, tier)) => unsafe { (paged.calloc)(1, bytes, tier) },
        _ => null_mut(),
    };
    if block.is_null() { no_memory() } else { block }
}

/// `memkind_posix_memalign`; `errno` is not changed.
///
/// # Safety
/// As for [`malloc`]; `out` can be written.
pub unsafe fn posix_memalign(kind: *const Kind, out: *mut Void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<Void>() || out.is_null() {
        return libc::EINVAL;
    }
    let block = match real_size(kind, size) {
        None => null_mut(),
        Some(size) => {
            let block = quietly(|| match home(kind) {
                Some(Home::Pool(pool)) if size < LARGE || !place::exceeds(pool, size) => pool.memalign(align, size),
                Some(Home::Range(heap)) => heap.memalign(align, size),
                Some(Home::Paged(paged, tier)) => {
                    let mut block = null_mut();
                    // SAFETY: a local, and an alignment that was checked.
                    if unsafe { (paged.posix_memalign)(&raw mut block, align, size, tier) } == 0 { block } else { null_mut() }
                }
                _ => null_mut(),
            });
            if block.is_null() {
                return libc::ENOMEM;
            }
            block
        }
    };
    // SAFETY: passed on to the caller.
    unsafe { out.write(block) };
    0
}

/// `memkind_free`.
///
/// # Safety
/// `block` is null or a live block of any allocator of the process, not used afterwards.
#[inline]
pub unsafe fn free(block: Void) {
    match owner(block) {
        // SAFETY: passed on to the caller.
        Owner::Pool(_) => unsafe { Pool::free(block) },
        // SAFETY: passed on to the caller.
        Owner::Range(heap, _) => unsafe { heap.free(block) },
        // SAFETY: passed on to the caller.
        Owner::Other => unsafe { free_other(block) },
    }
}

#[cold]
unsafe fn free_other(block: Void) {
    match paged::get() {
        _ if block.is_null() => {}
        // SAFETY: takes any block of the process.
        Some(paged) => unsafe { (paged.free)(block) },
        // SAFETY: not ours, so the C library's.
        None => unsafe { libc::free(block) },
    }
}

/// `memkind_malloc_usable_size`.
///
/// # Safety
/// `block` is null or a live block of any allocator of the process.
pub unsafe fn usable_size(block: Void) -> usize {
    match owner(block) {
        _ if block.is_null() => 0,
        // SAFETY: passed on to the caller.
        Owner::Pool(_) => unsafe { Pool::usable_size(block) },
        // SAFETY: passed on to the caller.
        Owner::Range(..) => unsafe { RangeHeap::usable_size(block) },
        Owner::Other => match paged::get() {
            // SAFETY: takes any block of the process.
            Some(paged) => unsafe { (paged.usable_size)(block) },
            // SAFETY: not ours, so the C library's.
            None => unsafe { libc::malloc_usable_size(block) },
        },
    }
}

/// `memkind_detect_kind`: null for null, the default kind for what is nobody's.
pub fn detect(block: *const c_void) -> *mut Kind {
    if block.is_null() {
        return null_mut();
    }
    match owner(block) {
        Owner::Pool(pool) => kind::pointer(place::owner(pool).unwrap_or(StaticKind::Default)),
        Owner::Range(_, kind) => kind,
        Owner::Other => kind::pointer(StaticKind::Default),
    }
}

/// `memkind_realloc`. The block stays in its pool as long as `kind` is its kind, whatever CPU asks.
///
/// # Safety
/// As for [`malloc`] and [`free`]; `kind` null means the block's own.
pub unsafe fn realloc(kind: *const Kind, block: Void, size: usize) -> Void {
    if block.is_null() {
        if kind.is_null() {
            set_errno(libc::EINVAL);
            return null_mut();
        }
        // SAFETY: passed on to the caller.
        return unsafe { malloc(kind, size) };
    }
    let zero_kind = if kind.is_null() && size == 0 { detect(block).cast_const() } else { kind };
    let Some(size) = real_size(zero_kind, size) else {
        // SAFETY: passed on to the caller.
        unsafe { free(block) };
        return null_mut();
    };
    let is_own = |own: *const Kind| kind.is_null() || own == kind;
    let new = match owner(block) {
        Owner::Pool(pool) if is_own(detect(block)) => {
            // SAFETY: passed on to the caller.
            if size >= LARGE && place::exceeds(pool, size) { null_mut() } else { unsafe { pool.realloc(block, size) } }
        }
        // SAFETY: passed on to the caller.
        Owner::Range(heap, own) if is_own(own) => unsafe { heap.realloc(block, size) },
        // SAFETY: passed on to the caller.
        Owner::Other if kind.is_null() || is_paged(kind) => unsafe { realloc_other(kind, block, size) },
        // SAFETY: passed on to the caller.
        _ => return unsafe { move_to(kind, block, size) },
    };
    if new.is_null() { no_memory() } else { new }
}

fn is_paged(kind: *const Kind) -> bool {
    matches!(home(kind), Some(Home::Paged(..)))
}

/// # Safety
/// As for [`realloc`], with a block that is not ours.
unsafe fn realloc_other(kind: *const Kind, block: Void, size: usize) -> Void {
    match (paged::get(), home(kind)) {
        // SAFETY: takes any block of the process.
        (Some(_), Some(Home::Paged(paged, tier))) => unsafe { (paged.realloc)(block, size, tier) },
        // SAFETY: as above.
        (Some(paged), _) => unsafe { (paged.realloc)(block, size, paged::Tier::Far) },
        // SAFETY: not ours, so the C library's.
        (None, _) => unsafe { libc::realloc(block, size) },
    }
}

/// # Safety
/// As for [`realloc`], with a kind other than the block's.
unsafe fn move_to(kind: *const Kind, block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
    unsafe { moved(block, usable_size(block), malloc(kind, size), size, |block| free(block)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i19_a_kind_that_allows_no_bytes_gives_blocks_of_them() {
        // Of its own, since other tests use kinds at the same time.
        let kind = kind::pointer(StaticKind::HighestCapacity).cast_const();
        // SAFETY: a kind, and blocks of it, each given up once.
        unsafe {
            let mut out = null_mut();
            assert!(malloc(kind, 0).is_null() && calloc(kind, 0, 8).is_null());
            assert!(realloc(kind, malloc(kind, 10), 0).is_null());
            assert_eq!(allow_zero(kind, true), code::SUCCESS);
            assert_eq!(posix_memalign(kind, &raw mut out, 64, 0), 0);
            for block in [malloc(kind, 0), calloc(kind, 8, 0), out, realloc(kind, null_mut(), 0)] {
                let block = realloc(kind, block, 100);
                assert!(!block.is_null());
                let block = realloc(null_mut(), realloc(kind, block, 0), 0);
                assert!(!block.is_null() && detect(block).cast_const() == kind, "{block:?}");
                free(block);
            }
            assert_eq!(allow_zero(kind, false), code::SUCCESS);
            assert!(malloc(kind, 0).is_null() && realloc(kind, malloc(kind, 10), 0).is_null());
        }
    }
}

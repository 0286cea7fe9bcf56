//! The two tiers, as values and as types, and memory in them by layout.

use crate::ffi;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_int;
use std::fmt;
use std::ptr::null_mut;

/// One of the two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Fast and small.
    Near,
    /// Large and slower.
    Far,
}

impl Tier {
    pub(crate) const fn number(self) -> c_int {
        match self {
            Self::Near => 0,
            Self::Far => 1,
        }
    }
}

/// A tier as a type, for collections. Only [`Near`] and [`Far`].
pub trait Tiered: sealed::Sealed {
    /// Which one.
    const TIER: Tier;
}

/// Near memory; as a `#[global_allocator]`, for the whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near;

/// Far memory; as a `#[global_allocator]`, for the whole program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Far;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Near {}
    impl Sealed for super::Far {}
}

impl Tiered for Near {
    const TIER: Tier = Tier::Near;
}

impl Tiered for Far {
    const TIER: Tier = Tier::Far;
}

/// There was no memory, or the tiers cannot be used (`describe` says why).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// What was asked for.
    pub bytes: usize,
    /// Of which tier.
    pub tier: Tier,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tier = if self.tier == Tier::Near { "near" } else { "far" };
        write!(f, "{} bytes of {tier} memory cannot be had; {}", self.bytes, crate::describe())
    }
}

impl std::error::Error for NoMemory {}

/// malloc(3) aligns for this.
const MALLOC_ALIGN: usize = 16;

/// A block of `layout`; null on failure.
pub(crate) fn alloc(tier: Tier, layout: Layout) -> *mut u8 {
    if layout.align() <= MALLOC_ALIGN {
        // SAFETY: takes any size.
        return unsafe { ffi::nearfar_malloc(layout.size(), tier.number()) }.cast();
    }
    let mut block = null_mut();
    // SAFETY: `block` is a local; the alignment of a layout is a power of two, here a multiple of a pointer's.
    let why = unsafe { ffi::nearfar_posix_memalign(&raw mut block, layout.align(), layout.size(), tier.number()) };
    if why == 0 { block.cast() } else { null_mut() }
}

/// A block of zeros; null on failure.
pub(crate) fn alloc_zeroed(tier: Tier, layout: Layout) -> *mut u8 {
    if layout.align() <= MALLOC_ALIGN {
        // SAFETY: takes any sizes.
        return unsafe { ffi::nearfar_calloc(1, layout.size(), tier.number()) }.cast();
    }
    let block = alloc(tier, layout);
    if !block.is_null() {
        // SAFETY: a fresh block of that size.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    block
}

/// Gives a block back.
///
/// # Safety
/// `block` is a live block of `alloc`, `alloc_zeroed` or `realloc`.
pub(crate) unsafe fn dealloc(block: *mut u8) {
    // SAFETY: passed on to the caller.
    unsafe { ffi::nearfar_free(block.cast()) }
}

/// The block with another size; null on failure, when the old one stays.
///
/// # Safety
/// `block` is a live block of `layout`; `size` is not 0 and makes a layout with the same alignment.
pub(crate) unsafe fn realloc(tier: Tier, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if layout.align() <= MALLOC_ALIGN {
        // SAFETY: passed on to the caller.
        return unsafe { ffi::nearfar_realloc(block.cast(), size, tier.number()) }.cast();
    }
    // SAFETY: the caller guarantees that size and alignment make a layout.
    let new = alloc(tier, unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
    if !new.is_null() {
        // SAFETY: two live blocks of at least so many bytes; the caller gives up the old one.
        unsafe {
            new.copy_from_nonoverlapping(block, size.min(layout.size()));
            dealloc(block);
        }
    }
    new
}

macro_rules! allocators {
    ($($name:ident)*) => {$(
        // SAFETY: blocks come from nearfar's heap, which serves any layout of non-zero size and never gives out a live block.
        unsafe impl GlobalAlloc for $name {
            unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
                alloc($name::TIER, layout)
            }

            unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
                alloc_zeroed($name::TIER, layout)
            }

            unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
                // SAFETY: passed on to the caller.
                unsafe { dealloc(block) }
            }

            unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
                // SAFETY: passed on to the caller.
                unsafe { realloc($name::TIER, block, layout, size) }
            }
        }
    )*};
}

allocators! { Near Far }

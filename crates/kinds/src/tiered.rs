//! Tiers made of kinds: the functions of memkind_memtier.h on `memtier`'s decisions. What is allocated is counted by kind for the whole
//! process, as `memtier_kind_allocated_size` gives it; a block that is freed without its kind is known by its address.

use crate::kind::{self, Kind};
use crate::memory;
use crate::memtier::{Builder, Counters, Ctl, Memory, Policy, Value};
use crate::place;
use crate::{code, create, registry};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

type Void = *mut c_void;

/// `struct memtier_builder`.
pub type KindBuilder = Builder<*mut Kind>;
/// `struct memtier_memory`.
pub type KindMemory = Memory<*mut Kind>;

/// What functions of memkind_memtier.h return that cannot do what they are asked.
const FAILED: c_int = -1;

/// Bytes that blocks of memtier's functions have room for, by partition.
static ALLOCATED: Counters<{ code::MAX_KINDS }> = Counters::new();

/// # Safety
/// `kind` is null or a kind.
#[inline]
unsafe fn partition(kind: *const Kind) -> Option<usize> {
    // SAFETY: passed on to the caller.
    unsafe { kind.as_ref() }.map(Kind::partition).filter(|&partition| partition < code::MAX_KINDS)
}

/// Counts a block that was given out by `kind`.
///
/// # Safety
/// `kind` is null or a kind, `block` null or a live block.
#[inline]
unsafe fn given(kind: *const Kind, block: Void) -> Void {
    // SAFETY: passed on to the caller.
    if let (false, Some(index)) = (block.is_null(), unsafe { partition(kind) }) {
        // SAFETY: passed on to the caller.
        ALLOCATED.add(index, unsafe { memory::usable_size(block) } as i64);
    }
    block
}

/// Counts `bytes` that come back to `kind`.
///
/// # Safety
/// `kind` is null or a kind.
#[inline]
unsafe fn returned(kind: *const Kind, bytes: usize) {
    // SAFETY: passed on to the caller.
    if let Some(index) = unsafe { partition(kind) } {
        ALLOCATED.add(index, -(bytes as i64));
    }
}

/// `memtier_builder_new`; null for a policy that there is not.
pub fn new_builder(policy: c_uint) -> *mut KindBuilder {
    let policy = match policy {
        0 => Policy::StaticRatio,
        1 => Policy::DynamicThreshold,
        _ => return null_mut(),
    };
    Box::into_raw(Box::new(Builder::new(policy)))
}

/// `memtier_builder_delete`.
///
/// # Safety
/// `builder` is null or of [`new_builder`], not used afterwards.
pub unsafe fn delete_builder(builder: *mut KindBuilder) {
    if !builder.is_null() {
        // SAFETY: passed on to the caller.
        drop(unsafe { Box::from_raw(builder) });
    }
}

/// 0, or -1 after a line in the log (MEMKIND_DEBUG=1).
fn status(result: Result<(), impl std::fmt::Display>) -> c_int {
    match result {
        Ok(()) => code::SUCCESS,
        Err(why) => {
            place::info(&format!("memtier: {why}"));
            FAILED
        }
    }
}

/// `memtier_builder_add_tier`.
///
/// # Safety
/// `builder` is null or of [`new_builder`]; `kind` is null or a kind.
pub unsafe fn add_tier(builder: *mut KindBuilder, kind: *mut Kind, ratio: c_uint) -> c_int {
    // SAFETY: passed on to the caller.
    match unsafe { builder.as_mut() } {
        Some(builder) if !kind.is_null() => status(builder.add(kind, ratio)),
        _ => FAILED,
    }
}

/// `memtier_ctl_set`.
///
/// # Safety
/// `builder` is null or of [`new_builder`], `name` null or a C string, `value` null or a value of the type that the name asks for.
pub unsafe fn set(builder: *mut KindBuilder, name: *const c_char, value: *const c_void) -> c_int {
    if name.is_null() || value.is_null() {
        return FAILED;
    }
    // SAFETY: passed on to the caller.
    let (builder, name) = unsafe { (builder.as_mut(), CStr::from_ptr(name)) };
    let Some(builder) = builder else { return FAILED };
    let Some(ctl) = name.to_str().ok().and_then(Ctl::of) else {
        return status(Err(format!("{} is not the name of a setting", name.to_string_lossy())));
    };
    // SAFETY: passed on to the caller.
    let value = unsafe {
        match ctl {
            Ctl::CheckCount => Value::Unsigned(value.cast::<c_uint>().read_unaligned()),
            Ctl::Trigger | Ctl::Degree => Value::Float(value.cast::<f32>().read_unaligned()),
            Ctl::Val(_) | Ctl::Min(_) | Ctl::Max(_) => Value::Size(value.cast::<usize>().read_unaligned()),
        }
    };
    status(builder.set(ctl, value))
}

/// `memtier_builder_construct_memtier_memory`; null for what does not go together.
///
/// # Safety
/// `builder` is null or of [`new_builder`].
pub unsafe fn build(builder: *mut KindBuilder) -> *mut KindMemory {
    // SAFETY: passed on to the caller.
    let Some(builder) = (unsafe { builder.as_ref() }) else { return null_mut() };
    match builder.build() {
        Ok(memory) => Box::into_raw(Box::new(memory)),
        Err(why) => {
            status(Err(why));
            null_mut()
        }
    }
}

/// `memtier_delete_memtier_memory`. Blocks stay.
///
/// # Safety
/// `memory` is null or of [`build`], not used afterwards.
pub unsafe fn delete(memory: *mut KindMemory) {
    if !memory.is_null() {
        // SAFETY: passed on to the caller.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// The kind for `size` bytes; null without a memory.
///
/// # Safety
/// `memory` is null or of [`build`], and its kinds exist.
#[inline]
unsafe fn choose(memory: *const KindMemory, size: usize) -> *mut Kind {
    // SAFETY: passed on to the caller.
    let Some(memory) = (unsafe { memory.as_ref() }) else { return null_mut() };
    let allocated = ALLOCATED.mine();
    // SAFETY: passed on to the caller.
    memory.choose(size, |kind| unsafe { partition(kind) }.map_or(0, |index| allocated.about(index)))
}

/// `memtier_malloc`.
///
/// # Safety
/// As for `choose`.
pub unsafe fn malloc(memory: *const KindMemory, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { kind_malloc(choose(memory, size), size) }
}

/// `memtier_calloc`, whose tier is chosen by the size of the whole.
///
/// # Safety
/// As for `choose`.
pub unsafe fn calloc(memory: *const KindMemory, count: usize, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { kind_calloc(choose(memory, count.saturating_mul(size)), count, size) }
}

/// `memtier_realloc`: stays in the tier of the block.
///
/// # Safety
/// As for `choose`; `block` is null or a live block, not used afterwards unless the result is null.
pub unsafe fn realloc(memory: *const KindMemory, block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { if block.is_null() { malloc(memory, size) } else { kind_realloc(memory::detect(block), block, size) } }
}

/// `memtier_posix_memalign`.
///
/// # Safety
/// As for `choose`; `out` can be written.
pub unsafe fn posix_memalign(memory: *const KindMemory, out: *mut Void, align: usize, size: usize) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { kind_posix_memalign(choose(memory, size), out, align, size) }
}

/// `memtier_kind_malloc`.
///
/// # Safety
/// `kind` is null or a kind.
pub unsafe fn kind_malloc(kind: *mut Kind, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { given(kind, memory::malloc(kind, size)) }
}

/// `memtier_kind_calloc`.
///
/// # Safety
/// `kind` is null or a kind.
pub unsafe fn kind_calloc(kind: *mut Kind, count: usize, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { given(kind, memory::calloc(kind, count, size)) }
}

/// `memtier_kind_posix_memalign`.
///
/// # Safety
/// `kind` is null or a kind; `out` can be written.
pub unsafe fn kind_posix_memalign(kind: *mut Kind, out: *mut Void, align: usize, size: usize) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        let error = memory::posix_memalign(kind, out, align, size);
        if error == code::SUCCESS {
            given(kind, out.read());
        }
        error
    }
}

/// `memtier_kind_realloc`.
///
/// # Safety
/// `kind` is null or a kind; `block` is null or a live block, not used afterwards unless the result is null and `size` is not 0.
pub unsafe fn kind_realloc(kind: *mut Kind, block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe {
        if block.is_null() {
            return kind_malloc(kind, size);
        }
        if size == 0 {
            kind_free(kind, block);
            return null_mut();
        }
        let (own, old) = (memory::detect(block), memory::usable_size(block));
        let kind = if kind.is_null() { own } else { kind };
        let new = memory::realloc(kind, block, size);
        if !new.is_null() {
            returned(own, old);
            given(kind, new);
        }
        new
    }
}

/// `memtier_kind_free`, also without a kind.
///
/// # Safety
/// `block` is null or a live block, not used afterwards.
pub unsafe fn kind_free(_kind: *mut Kind, block: Void) {
    if block.is_null() {
        return;
    }
    // SAFETY: passed on to the caller. A kind that is given is only a hint.
    unsafe {
        returned(memory::detect(block), memory::usable_size(block));
        memory::free(block);
    }
}

/// `memtier_kind_allocated_size`; 0 for a kind that was destroyed, which programs ask for.
///
/// # Safety
/// `kind` is null, a kind, or one that was.
pub unsafe fn allocated(kind: *const Kind) -> usize {
    if kind::static_kind(kind).is_none() && !registry::is_dynamic(kind) {
        return 0;
    }
    // SAFETY: it was found in the books.
    let bytes = unsafe { partition(kind) }.map_or(0, |index| ALLOCATED.exact(index));
    usize::try_from(bytes).unwrap_or(0)
}

/// `memkind_destroy_kind`. What was counted goes with the blocks: the next kind may get the number of this one.
///
/// # Safety
/// Neither the kind nor its blocks are used afterwards, but for [`allocated`].
pub unsafe fn destroy(kind: *mut Kind) -> c_int {
    if registry::is_dynamic(kind) {
        // SAFETY: it was found in the books.
        if let Some(index) = unsafe { partition(kind) } {
            ALLOCATED.clear(index);
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { create::destroy(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::pointer;
    use crate::static_kind::StaticKind;

    #[test]
    fn a_ratio_of_kinds_is_kept_and_counted() {
        let (near, far) = (pointer(StaticKind::Default), pointer(StaticKind::Regular));
        // SAFETY: a builder and a memory of ours, blocks freed once.
        unsafe {
            let builder = new_builder(0);
            assert_eq!((add_tier(builder, near, 1), add_tier(builder, far, 4), add_tier(builder, far, 4)), (0, 0, -1));
            assert_eq!(
                (add_tier(builder, null_mut(), 4), set(builder, c"nonsense".as_ptr(), (&raw const near).cast())),
                (-1, -1)
            );
            let memory = build(builder);
            delete_builder(builder);
            let blocks: Vec<_> = (0..1000).map(|_| calloc(memory, 100, 10)).collect();
            assert!(blocks.iter().all(|block| !block.is_null()));
            let (a, b) = (allocated(near), allocated(far));
            assert!((b as f64 / a as f64 - 4.0).abs() < 0.1, "{a} {b}");
            let larger = realloc(memory, blocks[0], 5000);
            assert_eq!(memory::detect(larger), near, "the first block went to the first tier, and stays there");
            kind_free(null_mut(), larger);
            blocks[1..].iter().for_each(|&block| kind_free(null_mut(), block));
            assert_eq!((allocated(near), allocated(far)), (0, 0));
            delete(memory);
            assert!(new_builder(2).is_null() && build(null_mut()).is_null() && malloc(null_mut(), 10).is_null());
        }
    }
}

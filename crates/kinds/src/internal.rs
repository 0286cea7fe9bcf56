//! Functions that memkind exports by accident, and the tables of operations. They have the sense that is left without jemalloc's arenas:
//! what allocates does, what asks about nodes answers, what makes or maps arenas says that it failed.

use crate::kind::{self, Kind, Ops};
use crate::static_kind::{Family, NodeChoice, StaticKind};
use crate::{code, memory, place, stats};
use nearfar_core::addr::Extent;
use nearfar_core::placement::NodeSet;
use nearfar_sys::map;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::null_mut;

type Void = *mut c_void;

/// Makes or destroys a kind by its table, or maps arenas: not without arenas.
pub fn failed() -> c_int {
    code::OPERATION_FAILED
}

/// The same for functions that map.
pub fn map_failed() -> Void {
    libc::MAP_FAILED
}

/// The default kind, which serves `memkind_default_*` whatever kind they are given.
pub fn default() -> *mut Kind {
    kind::pointer(StaticKind::Default)
}

/// What `*_get_arena` (the only one there is, 0), `*_get_mmap_flags` and `*_get_mbind_mode` tell.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn tell<T>(out: *mut T, value: T) -> c_int {
    if out.is_null() {
        return code::INVALID;
    }
    // SAFETY: passed on to the caller.
    unsafe { out.write(value) };
    code::SUCCESS
}

/// Flags of ordinary memory.
pub const PLAIN: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// Flags of huge pages.
pub const HUGE: c_int = PLAIN | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
/// Flags of files.
pub const FILE: c_int = libc::MAP_SHARED;

/// `*_get_mbind_nodemask`: the nodes of `of`, in a mask of `bits` bits.
///
/// # Safety
/// `mask` is null or has `bits` bits that can be written.
pub unsafe fn nodemask(of: StaticKind, mask: *mut c_ulong, bits: c_ulong) -> c_int {
    if mask.is_null() {
        return code::INVALID;
    }
    let nodes = match of.family() {
        Family::Default => Some(place::topology().nodes.iter().filter(|node| node.bytes > 0).map(|node| node.id).collect()),
        _ => place::nodes(of),
    };
    let words = (bits as usize).div_ceil(c_ulong::BITS as usize);
    for word in 0..words {
        let value = nodes.as_ref().and_then(|nodes: &NodeSet| nodes.words().get(word)).copied().unwrap_or(0);
        // SAFETY: within the bits that the caller has.
        unsafe { mask.add(word).write(value) };
    }
    if nodes.is_some() { code::SUCCESS } else { place::check(of) }
}

/// `memkind_default_mbind`: gives a range the policy of a kind.
///
/// # Safety
/// The range is the caller's.
pub unsafe fn mbind(kind: *const Kind, start: Void, size: usize) -> c_int {
    let Some(kind) = kind::static_kind(kind) else { return code::INVALID };
    match (place::mode(kind), place::nodes(kind)) {
        (Some(PolicyMode::Default), _) => code::SUCCESS,
        (Some(mode), Some(nodes)) => {
            let policy = MemoryPolicy::new(mode, nodes);
            numa::set_range(Extent::new(start.addr(), size), &policy, false).map_or(code::MBIND, |()| code::SUCCESS)
        }
        _ => place::check(kind),
    }
}

/// `memkind_default_mmap`: fresh memory with the policy of a kind.
///
/// # Safety
/// As for mmap(2) without MAP_FIXED.
pub unsafe fn mmap(kind: *const Kind, hint: Void, size: usize) -> Void {
    let flags = if kind::static_kind(kind).is_some_and(StaticKind::is_huge) { HUGE } else { PLAIN };
    // SAFETY: not fixed: the kernel picks free space.
    let Ok(start) = (unsafe { map::mmap(hint.addr(), size, map::RW, flags, -1, 0) }) else { return libc::MAP_FAILED };
    // SAFETY: mapped just now.
    if unsafe { mbind(kind, start as Void, size) } == code::SUCCESS {
        return start as Void;
    }
    // SAFETY: mapped just now, and nobody has it.
    let _ = unsafe { map::munmap(Extent::new(start, size)) };
    libc::MAP_FAILED
}

/// `memkind_nohugepage_madvise`.
///
/// # Safety
/// The range is the caller's.
pub unsafe fn no_huge_pages(start: Void, size: usize) -> c_int {
    // SAFETY: the size of pages to come does not change what they hold.
    match unsafe { map::madvise(Extent::new(start.addr(), size), libc::MADV_NOHUGEPAGE) } {
        // EINVAL is a kernel without huge pages.
        Ok(()) | Err(nearfar_sys::errno::Errno::EINVAL) => code::SUCCESS,
        Err(_) => code::OPERATION_FAILED,
    }
}

/// `memkind_posix_check_alignment`.
pub fn check_alignment(align: usize) -> c_int {
    if align.is_power_of_two() && align >= size_of::<Void>() { code::SUCCESS } else { libc::EINVAL }
}

/// `memkind_arena_update_memory_usage_policy`: accepted; freed memory goes back at once in any case.
pub fn usage_policy(kind: *const Kind, policy: c_uint) -> c_int {
    if kind.is_null() || policy > 1 { code::INVALID } else { code::SUCCESS }
}

/// Functions of the tables, with a one-line forward each.
macro_rules! operations {
    ($($name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)? = $forward:expr;)*) => {$(
        unsafe extern "C" fn $name($($arg: $kind),*) $(-> $result)? {
            // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $forward }
        }
    )*};
}

type KindRef = *mut Kind;

operations! {
    op_create(_kind: KindRef, _ops: *mut Ops, _name: *const c_char) -> c_int = failed();
    op_destroy(kind: KindRef) -> c_int = crate::create::destroy(kind);
    op_malloc(kind: KindRef, size: usize) -> Void = memory::malloc(kind, size);
    op_calloc(kind: KindRef, count: usize, size: usize) -> Void = memory::calloc(kind, count, size);
    op_posix_memalign(kind: KindRef, out: *mut Void, align: usize, size: usize) -> c_int = memory::posix_memalign(kind, out, align, size);
    op_realloc(kind: KindRef, block: Void, size: usize) -> Void = memory::realloc(kind, block, size);
    op_free(_kind: KindRef, block: Void) = memory::free(block);
    op_mbind(kind: KindRef, start: Void, size: usize) -> c_int = mbind(kind, start, size);
    op_madvise(_kind: KindRef, start: Void, size: usize) -> c_int = no_huge_pages(start, size);
    op_flags_plain(_kind: KindRef, out: *mut c_int) -> c_int = tell(out, PLAIN);
    op_flags_huge(_kind: KindRef, out: *mut c_int) -> c_int = tell(out, HUGE);
    op_mode_bind(_kind: KindRef, out: *mut c_int) -> c_int = tell(out, libc::MPOL_BIND);
    op_mode_preferred(_kind: KindRef, out: *mut c_int) -> c_int = tell(out, libc::MPOL_PREFERRED);
    op_mode_interleave(_kind: KindRef, out: *mut c_int) -> c_int = tell(out, libc::MPOL_INTERLEAVE);
    op_nodemask(kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = nodemask(kind::static_kind(kind).unwrap_or(StaticKind::Default), mask, bits);
    op_arena(_kind: KindRef, out: *mut c_uint, _size: usize) -> c_int = tell(out, 0);
    op_check_available(kind: KindRef) -> c_int = check_available(kind);
    op_init_once() = ();
    op_finalize(_kind: KindRef) -> c_int = code::SUCCESS;
    op_usable_size(_kind: KindRef, block: Void) -> usize = memory::usable_size(block);
    op_usage_policy(kind: KindRef, policy: c_uint) -> c_int = usage_policy(kind, policy);
    op_get_stat(kind: KindRef, stat: c_uint, out: *mut usize) -> c_int = stats::get(kind, stat, out);
    op_defrag(_kind: KindRef, _block: Void) -> Void = null_mut();
}

/// `memkind_check_available`.
pub fn check_available(kind: *const Kind) -> c_int {
    match kind::static_kind(kind) {
        Some(kind) => place::check(kind),
        None if crate::registry::is_dynamic(kind) => code::SUCCESS,
        None => code::INVALID,
    }
}

/// The table of a kind that programs make: no pages to choose, no nodes.
pub const fn dynamic_ops() -> Ops {
    Ops {
        create: Some(op_create),
        destroy: Some(op_destroy),
        malloc: Some(op_malloc),
        calloc: Some(op_calloc),
        posix_memalign: Some(op_posix_memalign),
        realloc: Some(op_realloc),
        free: Some(op_free),
        mmap: None,
        mbind: None,
        madvise: None,
        get_mmap_flags: None,
        get_mbind_mode: None,
        get_mbind_nodemask: None,
        get_arena: Some(op_arena),
        check_available: Some(op_check_available),
        init_once: None,
        finalize: Some(op_finalize),
        malloc_usable_size: Some(op_usable_size),
        update_memory_usage_policy: Some(op_usage_policy),
        get_stat: Some(op_get_stat),
        defrag_reallocate: Some(op_defrag),
    }
}

/// The table of a kind that is there from the start.
pub const fn static_ops(kind: StaticKind) -> Ops {
    Ops {
        mbind: Some(op_mbind),
        madvise: if matches!(kind.node_choice(), NodeChoice::Interleaved) { Some(op_madvise) } else { None },
        get_mmap_flags: Some(if kind.is_huge() { op_flags_huge } else { op_flags_plain }),
        get_mbind_mode: Some(match kind.node_choice() {
            NodeChoice::Preferred => op_mode_preferred,
            NodeChoice::Interleaved => op_mode_interleave,
            NodeChoice::Nearest | NodeChoice::All => op_mode_bind,
        }),
        get_mbind_nodemask: Some(op_nodemask),
        init_once: Some(op_init_once),
        ..dynamic_ops()
    }
}

//! hbwmalloc.h: high-bandwidth memory under one policy for the whole process.

use crate::kind::{self, Kind};
use crate::static_kind::StaticKind;
use crate::{code, memory, place};
use nearfar_core::addr::PAGE;
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

type Void = *mut c_void;

/// `hbw_policy_t`.
const BIND: c_uint = 1;
const PREFERRED: c_uint = 2;
const INTERLEAVE: c_uint = 3;
const BIND_ALL: c_uint = 4;

/// `hbw_pagesize_t`.
const PAGES_4KB: c_uint = 1;
const PAGES_2MB: c_uint = 2;
const PAGES_1GB_STRICT: c_uint = 3;
const PAGES_1GB: c_uint = 4;

/// `HBW_TOUCH_PAGES`.
const TOUCH: c_int = 1;

/// 0 until it is set or an allocation fixes the default.
static POLICY: AtomicU32 = AtomicU32::new(0);

/// `hbw_get_policy`.
pub fn policy() -> c_uint {
    match POLICY.load(Ordering::Relaxed) {
        0 => PREFERRED,
        policy => policy,
    }
}

/// `hbw_set_policy`: once, before any allocation.
pub fn set_policy(policy: c_uint) -> c_int {
    if !(BIND..=BIND_ALL).contains(&policy) {
        return libc::EINVAL;
    }
    match POLICY.compare_exchange(0, policy, Ordering::Relaxed, Ordering::Relaxed) {
        Err(fixed) if fixed != policy => libc::EPERM,
        _ => 0,
    }
}

/// `hbw_check_available`.
pub fn check_available() -> c_int {
    if place::check(StaticKind::Hbw) == code::SUCCESS { 0 } else { libc::ENODEV }
}

/// The kind that serves pages of this size; the policy is fixed from now on.
#[inline]
fn kind(pages: c_uint) -> *mut Kind {
    let mut policy = POLICY.load(Ordering::Relaxed);
    if policy == 0 {
        let _ = POLICY.compare_exchange(0, PREFERRED, Ordering::Relaxed, Ordering::Relaxed);
        policy = self::policy();
    }
    let kind = match (policy, pages) {
        (_, PAGES_1GB | PAGES_1GB_STRICT) => StaticKind::HbwGbtlb,
        (BIND, PAGES_2MB) => StaticKind::HbwHugetlb,
        (BIND, _) => StaticKind::Hbw,
        (BIND_ALL, PAGES_2MB) => StaticKind::HbwAllHugetlb,
        (BIND_ALL, _) => StaticKind::HbwAll,
        (INTERLEAVE, _) => StaticKind::HbwInterleave,
        _ => match (place::check(StaticKind::Hbw) == code::SUCCESS, pages) {
            (true, PAGES_2MB) => StaticKind::HbwPreferredHugetlb,
            (true, _) => StaticKind::HbwPreferred,
            // Preferred means that ordinary memory will do.
            (false, PAGES_2MB) => StaticKind::Hugetlb,
            (false, _) => StaticKind::Default,
        },
    };
    kind::pointer(kind)
}

/// `hbw_malloc`.
#[inline]
pub fn malloc(size: usize) -> Void {
    // SAFETY: a kind.
    unsafe { memory::malloc(kind(PAGES_4KB), size) }
}

/// `hbw_calloc`.
pub fn calloc(count: usize, size: usize) -> Void {
    // SAFETY: a kind.
    unsafe { memory::calloc(kind(PAGES_4KB), count, size) }
}

/// `hbw_realloc`.
///
/// # Safety
/// `block` is null or a live block; unless the result is null it is not used afterwards.
pub unsafe fn realloc(block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { memory::realloc(kind(PAGES_4KB), block, size) }
}

/// `hbw_posix_memalign`.
///
/// # Safety
/// `out` can be written.
pub unsafe fn posix_memalign(out: *mut Void, align: usize, size: usize) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe { memory::posix_memalign(kind(PAGES_4KB), out, align, size) }
}

/// `hbw_posix_memalign_psize`.
///
/// # Safety
/// `out` can be written.
pub unsafe fn posix_memalign_psize(out: *mut Void, align: usize, size: usize, pages: c_uint) -> c_int {
    let is_known = (PAGES_4KB..=PAGES_1GB).contains(&pages);
    let is_odd = pages == PAGES_1GB_STRICT && !size.is_multiple_of(1 << 30);
    if !is_known || is_odd || (pages == PAGES_2MB && policy() == INTERLEAVE) {
        return libc::EINVAL;
    }
    // SAFETY: passed on to the caller.
    unsafe { memory::posix_memalign(kind(pages), out, align, size) }
}

/// Pages asked about at a time.
const BATCH: usize = 512;

/// `hbw_verify_memory_region`: 0 when all pages lie on nodes of high bandwidth, -1 when one does not, EINVAL or EFAULT.
///
/// # Safety
/// With `HBW_TOUCH_PAGES` the region can be read and written.
pub unsafe fn verify(start: Void, size: usize, flags: c_int) -> c_int {
    if start.is_null() || size == 0 || flags & !TOUCH != 0 || start.addr().checked_add(size).is_none() {
        return libc::EINVAL;
    }
    let nodes = place::nodes(StaticKind::HbwAll).unwrap_or(NodeSet::EMPTY);
    let end = start.addr() + size;
    let mut is_high = true;
    let mut at = start.addr() & !(PAGE - 1);
    while at < end {
        let pages: Vec<usize> = (at..end).step_by(PAGE).take(BATCH).collect();
        if flags & TOUCH != 0 {
            for &page in &pages {
                let byte = page.max(start.addr()) as *mut u8;
                // SAFETY: in the region, which the caller answers for. A read and a write, so that the page is there.
                unsafe { byte.write_volatile(byte.read_volatile()) };
            }
        }
        let Ok(places) = place::quietly(|| numa::nodes_of(&pages)) else { return libc::EFAULT };
        for place in places {
            match place {
                Some(node) => is_high &= nodes.contains(node),
                None => return libc::EFAULT,
            }
        }
        at += pages.len() * PAGE;
    }
    if is_high { 0 } else { -1 }
}

//! What programmers call (`include/nearfar.h`): memory in a tier by name, and questions about tiers. Routes to the job's tiers
//! (`job_tiers`) or, without a job, to those of the machine (`standalone`). Holds no policy.
//!
//! Contracts of the C functions are in nearfar.h. Nothing here panics, and nothing but the first call takes a lock.

use crate::errno::{self, Kept};
use crate::lifecycle::managed_even_inside;
use crate::placing::{self, Placing};
use crate::{heap, job_tiers, standalone};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::Tier;
use nearfar_sys::errno::Errno;
use nearfar_sys::numa;
use nearfar_tiers::pool::{Pool, moved};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// `struct nearfar_where`.
#[repr(C)]
#[derive(Default)]
pub struct Where {
    near_bytes: u64,
    far_bytes: u64,
    absent_bytes: u64,
    unknown_bytes: u64,
    reserved: [u64; 4],
}

/// `struct nearfar_capacity`.
#[repr(C)]
#[derive(Default)]
pub struct Capacity {
    total_bytes: u64,
    free_bytes: u64,
    used_bytes: u64,
    reserved: [u64; 5],
}

/// Whose tiers.
enum Tiers {
    Job(&'static Placing),
    Standalone(&'static standalone::Standalone),
}

/// What places objects under a job; the first call may start it.
#[inline]
fn job() -> Option<&'static Placing> {
    placing::get().or_else(|| {
        managed_even_inside();
        placing::get()
    })
}

#[inline]
fn tiers() -> Result<Tiers, Errno> {
    match job() {
        Some(placing) => Ok(Tiers::Job(placing)),
        None => standalone::get().map(Tiers::Standalone),
    }
}

const fn tier(number: c_int) -> Result<Tier, Errno> {
    match number {
        0 => Ok(Tier::Near),
        1 => Ok(Tier::Far),
        _ => Err(Errno::EINVAL),
    }
}

/// The block, or null with `errno`.
#[inline]
fn returned(block: Result<*mut c_void, Errno>) -> *mut c_void {
    match block {
        Ok(block) if !block.is_null() => block,
        Ok(_) => failed(Errno::ENOMEM),
        Err(errno) => failed(errno),
    }
}

#[cold]
fn failed(errno: Errno) -> *mut c_void {
    errno::set(errno);
    null_mut()
}

fn answered(answer: Result<(), Errno>) -> c_int {
    answer.map_or_else(|errno| errno::failed(errno.0), |()| 0)
}

/// nearfar_malloc.
#[inline]
pub fn malloc(size: usize, number: c_int) -> *mut c_void {
    returned(tier(number).and_then(|tier| {
        Ok(match tiers()? {
            Tiers::Job(placing) => job_tiers::malloc(placing, tier, size),
            Tiers::Standalone(alone) => alone.malloc(tier, size),
        })
    }))
}

/// nearfar_calloc.
pub fn calloc(count: usize, size: usize, number: c_int) -> *mut c_void {
    returned(tier(number).and_then(|tier| {
        let bytes = count.checked_mul(size).ok_or(Errno::ENOMEM)?;
        Ok(match tiers()? {
            Tiers::Job(placing) => job_tiers::zalloc(placing, tier, bytes),
            Tiers::Standalone(alone) => alone.zalloc(tier, bytes),
        })
    }))
}

fn aligned(align: usize, size: usize, tier: Tier) -> Result<*mut c_void, Errno> {
    Ok(match tiers()? {
        Tiers::Job(placing) => job_tiers::memalign(placing, tier, align, size),
        Tiers::Standalone(alone) => alone.memalign(tier, align, size),
    })
}

/// nearfar_posix_memalign.
///
/// # Safety
/// `out` points to writable memory for a pointer.
pub unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize, number: c_int) -> c_int {
    if out.is_null() || !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let _kept = Kept::now();
    match tier(number).and_then(|tier| aligned(align, size, tier)) {
        Ok(block) if block.is_null() => libc::ENOMEM,
        Ok(block) => {
            // SAFETY: passed on to the caller.
            unsafe { *out = block };
            0
        }
        Err(errno) => errno.0,
    }
}

/// nearfar_realloc.
///
/// # Safety
/// `block` is null or a live block of nearfar or malloc; unless the result is null, or `size` is 0, it is not used afterwards.
pub unsafe fn realloc(block: *mut c_void, size: usize, number: c_int) -> *mut c_void {
    if block.is_null() {
        return malloc(size, number);
    }
    if size == 0 {
        // SAFETY: passed on to the caller.
        unsafe { free(block) };
        return null_mut();
    }
    returned(tier(number).and_then(|tier| {
        Ok(match tiers()? {
            // SAFETY: passed on to the caller.
            Tiers::Job(placing) => unsafe { job_tiers::realloc(placing, tier, block, size) },
            // SAFETY: passed on to the caller; the block is a pool's.
            Tiers::Standalone(alone) if Pool::of(block.addr()).is_some() => unsafe { alone.realloc(tier, block, size) },
            Tiers::Standalone(alone) => {
                let new = alone.malloc(tier, size);
                // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
                unsafe { moved(block, heap::usable_size(block), new, size, |block| heap::free(block)) }
            }
        })
    }))
}

/// nearfar_free.
///
/// # Safety
/// `block` is null or a live block of nearfar or malloc, not used afterwards.
#[inline]
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: passed on to the caller.
    unsafe { heap::free(block) }
}

/// nearfar_usable_size.
///
/// # Safety
/// `block` is null or a live block of nearfar or malloc.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { heap::usable_size(block) }
}

/// nearfar_where.
///
/// # Safety
/// `out` points to writable memory for the structure, or is null.
pub unsafe fn where_is(start: *const c_void, len: usize, out: *mut Where) -> c_int {
    if out.is_null() || start.addr().checked_add(len).is_none() {
        return errno::failed(libc::EINVAL);
    }
    let range = Extent { start: start.addr(), end: start.addr() + len };
    let found = tiers().map(|tiers| {
        let mut found = Where::default();
        match tiers {
            Tiers::Job(placing) if job_tiers::is_paged(placing) => {
                let [near, far, absent] = job_tiers::whereabouts(placing, range);
                (found.near_bytes, found.far_bytes, found.absent_bytes) = (near, far, absent);
            }
            Tiers::Job(placing) => by_nodes(range, &mut found, |node| job_tiers::tier_of_node(placing, node)),
            Tiers::Standalone(alone) => by_nodes(range, &mut found, |node| alone.tier_of_node(node)),
        }
        found
    });
    answered(found.map(|found| {
        // SAFETY: passed on to the caller.
        unsafe { out.write(found) };
    }))
}

/// Pages that the kernel is asked about at a time.
const BATCH: usize = 1024;

/// Counts the bytes of `range` by where their pages are.
fn by_nodes(range: Extent, found: &mut Where, tier_of: impl Fn(u32) -> Tier) {
    let mut page = range.start & !(PAGE - 1);
    while page < range.end {
        let count = (range.end - page).div_ceil(PAGE).min(BATCH);
        let pages: Vec<usize> = (0..count).map(|index| page + index * PAGE).collect();
        let nodes = numa::nodes_of(&pages);
        for (index, &start) in pages.iter().enumerate() {
            let bytes = (start.saturating_add(PAGE).min(range.end) - start.max(range.start)) as u64;
            match nodes.as_ref().map(|nodes| nodes.get(index).copied().flatten()) {
                Ok(Some(node)) if tier_of(node) == Tier::Near => found.near_bytes += bytes,
                Ok(Some(_)) => found.far_bytes += bytes,
                Ok(None) => found.absent_bytes += bytes,
                Err(_) => found.unknown_bytes += bytes,
            }
        }
        let Some(next) = page.checked_add(count * PAGE) else { return };
        page = next;
    }
}

/// nearfar_capacity.
///
/// # Safety
/// `out` points to writable memory for the structure, or is null.
pub unsafe fn capacity(number: c_int, out: *mut Capacity) -> c_int {
    answered(tier(number).and_then(|tier| {
        if out.is_null() {
            return Err(Errno::EINVAL);
        }
        let (total_bytes, free_bytes, used_bytes) = match tiers()? {
            Tiers::Job(placing) => job_tiers::capacity(placing, tier),
            Tiers::Standalone(alone) => alone.capacity(tier),
        };
        // SAFETY: passed on to the caller.
        unsafe { out.write(Capacity { total_bytes, free_bytes, used_bytes, ..Capacity::default() }) };
        Ok(())
    }))
}

/// nearfar_tiers.
pub fn count() -> c_int {
    match tiers() {
        Ok(Tiers::Job(_)) => 2,
        Ok(Tiers::Standalone(alone)) => 1 + c_int::from(alone.is_two),
        Err(errno) => errno::failed(errno.0),
    }
}

/// nearfar_paged_tiers: 1 when near is a budget of memory with room for placed blocks (flat and hybrid mode) and far is paged, 0 when
/// both are nodes or ordinary memory, or near is a cache only. For libmemkind.so, which asks by dlsym.
pub fn is_paged() -> c_int {
    job().is_some_and(|placing| job_tiers::is_paged(placing) && job_tiers::capacity(placing, Tier::Near).0 > 0).into()
}

/// nearfar_describe.
pub fn describe() -> *const c_char {
    match job() {
        Some(placing) => job_tiers::describe(placing).as_ptr(),
        None => standalone::describe().as_ptr(),
    }
}

/// nearfar_version: NEARFAR_VERSION of the header that belongs to this library.
pub const fn version() -> c_uint {
    const fn number(text: &str) -> c_uint {
        let (bytes, mut at, mut value) = (text.as_bytes(), 0, 0);
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            value = value * 10 + (bytes[at] - b'0') as c_uint;
            at += 1;
        }
        value
    }
    number(env!("CARGO_PKG_VERSION_MAJOR")) * 10000
        + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
        + number(env!("CARGO_PKG_VERSION_PATCH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_library() {
        let header = include_str!("../../../include/nearfar.h");
        let value = |name: &str| {
            let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define NEARFAR_VERSION_{name} ")));
            line.and_then(|number| number.trim().parse::<c_uint>().ok()).expect("a number")
        };
        assert_eq!(version(), value("MAJOR") * 10000 + value("MINOR") * 100 + value("PATCH"));
    }

    #[test]
    fn pages_are_counted_to_the_byte() {
        let data = vec![1u8; 5 * PAGE];
        let range = Extent { start: data.as_ptr().addr() + 7, end: data.as_ptr().addr() + 4 * PAGE - 5 };
        let mut found = Where::default();
        by_nodes(range, &mut found, |_| Tier::Far);
        assert_eq!(found.far_bytes + found.unknown_bytes, range.len() as u64);
        assert_eq!((found.near_bytes, found.absent_bytes), (0, 0));
    }
}

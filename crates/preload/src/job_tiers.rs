//! Near and far of a process in a job, for programs that place data themselves (`api`): the state of the job is matched here and
//! nowhere else. Holds no policy.

use crate::heap;
use crate::managed::Managed;
use nearfar_core::addr::Extent;
use nearfar_core::placement::Tier;
use std::ffi::{CStr, c_void};

/// `size` bytes in `tier`; null when there is no memory.
pub fn malloc(_managed: &Managed, _tier: Tier, size: usize) -> *mut c_void {
    heap::malloc(size, 0)
}

/// The same, zeros.
pub fn zalloc(_managed: &Managed, _tier: Tier, size: usize) -> *mut c_void {
    heap::calloc(1, size, 0)
}

/// The same, aligned to a power of two.
pub fn memalign(_managed: &Managed, _tier: Tier, align: usize, size: usize) -> *mut c_void {
    heap::memalign(align, size)
}

/// Another size, in `tier`; null when there is no memory, and the block is then as it was.
///
/// # Safety
/// `block` is a live block; unless the result is null it is not used afterwards. `size` is not 0.
pub unsafe fn realloc(_managed: &Managed, _tier: Tier, block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: passed on to the caller.
    unsafe { heap::realloc(block, size, 0) }
}

/// True when near is a budget of memory and far is paged.
pub fn is_paged(_managed: &Managed) -> bool {
    true
}

/// Bytes of `range` that are near, far, absent, in a paged job.
pub fn whereabouts(_managed: &Managed, range: Extent) -> [u64; 3] {
    [range.len() as u64, 0, 0]
}

/// The tier that pages on `node` are in, in a job on nodes.
pub fn tier_of_node(_managed: &Managed, _node: u32) -> Tier {
    Tier::Near
}

/// Bytes of a tier: in all, free, given out.
pub fn capacity(_managed: &Managed, _tier: Tier) -> (u64, u64, u64) {
    (u64::MAX, u64::MAX, 0)
}

/// What near and far are, for people.
pub fn describe(_managed: &Managed) -> &'static CStr {
    c"near and far of this job"
}

//! Near and far of a process in a job, for programs that place data themselves (`api`): the kind of job is matched here and nowhere
//! else. Holds no policy.

use crate::heap;
use crate::placing::{self, Block, Placing};
use nearfar_core::addr::Extent;
use nearfar_core::placement::{NodeSet, Tier};
use nearfar_sys::{numa, zones};
use nearfar_tiers::pool::moved;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

fn block_or(block: Block, elsewhere: impl FnOnce() -> *mut c_void) -> *mut c_void {
    match block {
        Block::Near(block) => block,
        Block::Refused => null_mut(),
        Block::Elsewhere => elsewhere(),
    }
}

/// `size` bytes in `tier`; null when there is no memory.
pub fn malloc(_placing: &Placing, tier: Tier, size: usize) -> *mut c_void {
    block_or(placing::block_of(tier, size, 0, false), || heap::elsewhere(size, 0))
}

/// The same, zeros.
pub fn zalloc(_placing: &Placing, tier: Tier, size: usize) -> *mut c_void {
    block_or(placing::block_of(tier, size, 0, true), || heap::elsewhere_zeroed(1, size, 0))
}

/// The same, aligned to a power of two.
pub fn memalign(_placing: &Placing, tier: Tier, align: usize, size: usize) -> *mut c_void {
    block_or(placing::block_of(tier, size, align, false), || heap::elsewhere_aligned(align, size, 0))
}

/// Another size, in `tier`; null when there is no memory, and the block is then as it was.
///
/// # Safety
/// `block` is a live block; unless the result is null it is not used afterwards. `size` is not 0.
pub unsafe fn realloc(placing: &Placing, tier: Tier, block: *mut c_void, size: usize) -> *mut c_void {
    let is_of = placing::tier_of(block);
    if is_of.is_none() && tier == Tier::Far && !placing::wants_block(size) {
        // Grows without copying where it can.
        // SAFETY: passed on to the caller.
        return unsafe { heap::realloc(block, size, 0) };
    }
    // SAFETY: passed on to the caller.
    let old = unsafe { heap::usable_size(block) };
    if is_of == Some(tier) && size <= old && size >= old / 2 {
        return block;
    }
    // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
    unsafe { moved(block, old, malloc(placing, tier, size), size, |block| heap::free(block)) }
}

/// True when near is a budget of memory and far is paged.
pub fn is_paged(placing: &Placing) -> bool {
    placing.managed().is_some()
}

/// Bytes of `range` that are near, far, absent, in a paged job.
pub fn whereabouts(placing: &Placing, range: Extent) -> [u64; 3] {
    placing.managed().map_or([0; 3], |managed| managed.with(|memory| memory.whereabouts(range)))
}

/// The tier that pages on `node` are in, in a job on nodes.
pub fn tier_of_node(placing: &Placing, node: u32) -> Tier {
    if placing.placement().near.contains(node) { Tier::Near } else { Tier::Far }
}

/// Bytes of a tier: in all, free, given out.
pub fn capacity(placing: &Placing, tier: Tier) -> (u64, u64, u64) {
    let of = |nodes: &NodeSet, bytes: fn(u32) -> Option<u64>| {
        if nodes.is_empty() { u64::MAX } else { nodes.iter().filter_map(bytes).sum() }
    };
    match tier {
        Tier::Near => {
            let (room, nodes) = (placing.room(), &placing.placement().near);
            let total = room.most().min(of(nodes, zones::total_bytes));
            (total, room.left().unwrap_or_else(|| of(nodes, numa::free_bytes)), room.live())
        }
        Tier::Far => {
            let nodes = &placing.placement().far;
            (of(nodes, zones::total_bytes), of(nodes, numa::free_bytes), 0)
        }
    }
}

/// What near and far are, for people.
pub fn describe(placing: &Placing) -> &'static CStr {
    static TEXT: OnceLock<CString> = OnceLock::new();
    TEXT.get_or_init(|| {
        let placement = placing.placement();
        let nodes = |nodes: &NodeSet| match nodes.len() {
            0 => "any other node".to_owned(),
            1 => format!("node {nodes}"),
            _ => format!("nodes {nodes}"),
        };
        let text = match placing.managed() {
            Some(_) => {
                let most = nearfar_core::units::Bytes(placing.room().most());
                format!("near: memory of this job that is never paged (at most {most}), far: paged by nearfar run")
            }
            None => format!("near: {}, far: {} (nearfar run)", nodes(&placement.near), nodes(&placement.far)),
        };
        CString::new(text).unwrap_or_default()
    })
}

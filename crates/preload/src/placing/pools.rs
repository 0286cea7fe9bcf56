//! The heaps that near blocks come from: one for each group of CPUs that has the same nearest nodes of near, so that a block that is
//! used again is used by CPUs as near as those that used it before.
//!
//! The policy of each is all of near: the kernel takes the node nearest to the CPU that *touches* a page first, which is the one that
//! computes. (memkind decides by the CPU that allocates, and users complain of wrong nodes.)

use super::nearest::Nearest;
use nearfar_core::placement::{Full, NodeSet, Placement, Spread};
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_tiers::pool::{MOST_POOLS, Pool, PoolPages, PoolSpec};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

thread_local! {
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread is in a pool: mappings that are made now are the allocator's own.
pub fn at_work() -> bool {
    AT_WORK.with(Cell::get)
}

/// Calls `act`, marked as work of a pool.
#[inline]
pub fn working<R>(act: impl FnOnce() -> R) -> R {
    let before = AT_WORK.with(|at_work| at_work.replace(true));
    let result = act();
    AT_WORK.with(|at_work| at_work.set(before));
    result
}

/// What memory of near is made with: `None` where near is ordinary memory.
pub fn near_policy(placement: &Placement) -> Option<MemoryPolicy> {
    if placement.near.is_empty() {
        return None;
    }
    let mode = match (placement.near_spread, placement.full) {
        (Spread::Interleave, _) => PolicyMode::Interleave,
        (Spread::Weighted, _) => PolicyMode::WeightedInterleave,
        (Spread::Nearest, Full::Spill) => PolicyMode::PreferredMany,
        // What does not fit is refused before it is touched.
        (Spread::Nearest, Full::Fail | Full::Wait) => PolicyMode::Bind,
    };
    Some(MemoryPolicy::new(mode, placement.near))
}

/// The same for far: where spilled and other objects go.
pub fn far_policy(placement: &Placement) -> Option<MemoryPolicy> {
    let mode = match placement.far_spread {
        Spread::Interleave => PolicyMode::Interleave,
        Spread::Weighted => PolicyMode::WeightedInterleave,
        Spread::Nearest => PolicyMode::PreferredMany,
    };
    (!placement.far.is_empty()).then(|| MemoryPolicy::new(mode, placement.far))
}

/// The pools of one tier, made as they are needed.
pub struct Pools {
    spec: PoolSpec,
    reach: Nearest,
    pools: [AtomicPtr<Pool>; MOST_POOLS],
}

impl Pools {
    /// For memory of `policy` on `nodes`.
    pub fn new(policy: Option<MemoryPolicy>, nodes: &NodeSet) -> Self {
        let interleaved =
            policy.is_some_and(|policy| matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave));
        // Interleaving goes by page: with huge ones an array would lie on few nodes.
        let pages = if interleaved { PoolPages::NoHuge } else { PoolPages::Default };
        let reach = if interleaved || policy.is_none() { Nearest::default() } else { Nearest::of(nodes) };
        let pools = [const { AtomicPtr::new(null_mut()) }; MOST_POOLS];
        Self { spec: PoolSpec { policy, pages, most: None }, reach, pools }
    }

    /// The pool for the calling thread; `None` when there is no address space, or no such node.
    pub fn here(&self) -> Option<&'static Pool> {
        let group = if self.reach.is_uniform() { 0 } else { self.reach.group_of(numa::here().1) };
        let pool = &self.pools[group.min(MOST_POOLS - 1)];
        // SAFETY: null, or a pool, which lives as long as the process.
        unsafe { pool.load(Ordering::Acquire).as_ref() }.or_else(|| self.make(pool))
    }

    /// True when `pool` is one of these.
    pub fn has(&self, pool: &Pool) -> bool {
        self.pools.iter().take(self.reach.groups()).any(|own| std::ptr::eq(own.load(Ordering::Acquire), pool))
    }

    #[cold]
    fn make(&self, slot: &AtomicPtr<Pool>) -> Option<&'static Pool> {
        let made = working(|| Pool::create(&self.spec)).ok()?;
        let new = std::ptr::from_ref(made).cast_mut();
        match slot.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(made),
            // Another thread was quicker; this one stays empty: address space only.
            // SAFETY: as in `here`.
            Err(other) => unsafe { other.as_ref() },
        }
    }
}

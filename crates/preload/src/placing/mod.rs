//! Placing objects: which of the program's heap blocks, mappings, static arrays and stacks go near, and putting them there. In flat
//! and hybrid jobs only; everything else passes by after one comparison (`size_filter`).
//!
//! The same in two kinds of jobs, which differ in what near is:
//! - **NUMA nodes** (no pager): near objects have a memory policy of their own; the process's policy, which the command set before
//!   exec, is far's. Where far is not nodes, or everything goes near anyway, nothing is placed one by one.
//! - **A budget of ordinary memory** (far is a file or emulated, the pager is there): near objects come from memory that the pager
//!   does not know, and are charged to the budget first; everything else is paged through what is left.
//!
//! `accounting` keeps the books and says what fits, `nodes` asks the nodes; `pools` are the heaps, `sites` finds the rule of a plan,
//! `statics` and `stacks` find what is not allocated; `maps` follows mappings.

mod code;
mod grant;
mod maps;
mod nodes;
mod nearest;
mod pools;
mod accounting;
mod sites;
pub mod stacks;
mod lifecycle;
pub mod statics;
mod table;
mod size_filter;

pub use grant::Grant;
#[cfg_attr(test, allow(unused_imports))]
pub use lifecycle::finish;
pub use lifecycle::{fork_begin, fork_child, fork_parent, fork_prepare, open, start_nodes, start_paged};
pub use maps::{Mapping, Remap, forget_map, has_maps, place_map, remap};
pub use pools::at_work;

use crate::managed::Managed;
use accounting::{Limits, Room};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::{Full, ObjectKind, Placement, Policy, Tier};
use nearfar_core::stats::Counter;
use nearfar_sys::map;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_sys::process;
use nearfar_sys::thread;
use nearfar_tiers::job::Slot;
use nearfar_tiers::pool::{Pool, moved};
use pools::{Pools, working};
use sites::{Found, Sites};
use size_filter::SizeFilter;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static PLACING: AtomicPtr<Placing> = AtomicPtr::new(null_mut());
static HEAP: SizeFilter = SizeFilter::empty();
static MAPS: SizeFilter = SizeFilter::empty();
static STACKS: AtomicBool = AtomicBool::new(false);

/// Near blocks of at least this size are given back to the kernel when they are freed where their room is counted: in a paged job the
/// pager gets it, and on nodes that are asked what a heap keeps would be taken for what was granted and touched.
const LARGE_BLOCK: usize = 64 << 10;

/// What places objects in this process; lives as long as it.
pub struct Placing {
    placement: Placement,
    /// In a paged job.
    managed: Option<&'static Managed>,
    room: Room,
    near: Pools,
    far: Pools,
    near_policy: Option<MemoryPolicy>,
    far_policy: Option<MemoryPolicy>,
    sites: Option<Sites>,
    maps: table::Table,
    /// One line about refused allocations was written.
    told: AtomicBool,
}

/// What came of asking for a near block.
pub enum Block {
    /// Here it is.
    Near(*mut c_void),
    /// It is not for near, or there is no room and it may go elsewhere.
    Elsewhere,
    /// There is no room, and it may not (`errno` is not set).
    Refused,
}

/// What places objects, if anything does.
#[inline]
pub fn get() -> Option<&'static Placing> {
    // SAFETY: null, or published after it was built, never freed.
    unsafe { PLACING.load(Ordering::Acquire).as_ref() }
}

/// True when heap blocks of `size` may have to be placed: all that other allocations pay.
#[inline(always)]
pub fn wants_block(size: usize) -> bool {
    HEAP.holds(size)
}

/// True when mappings of `size` may have to be placed.
#[inline]
pub fn wants_map(size: usize) -> bool {
    MAPS.holds(size) && !at_work()
}

/// True when the stacks of new threads may have to be placed.
#[inline]
pub fn wants_stacks() -> bool {
    STACKS.load(Ordering::Relaxed)
}

/// True when `block` is of a pool.
#[inline]
pub fn owns(block: *const c_void) -> bool {
    Pool::of(block.addr()).is_some()
}

/// Which tier a block of a pool is in; `None` for other addresses.
pub fn tier_of(block: *const c_void) -> Option<Tier> {
    let pool = Pool::of(block.addr())?;
    Some(if get().is_some_and(|placing| placing.far.has(pool)) { Tier::Far } else { Tier::Near })
}

/// True when everything goes near by the process's policy alone, and nothing is placed one by one.
fn by_process(placement: &Placement) -> bool {
    placement.is_numa() && placement.policy == Policy::All && placement.full == Full::Spill && placement.near_limit == u64::MAX
}

impl Placing {
    fn new(placement: Placement, managed: Option<&'static Managed>, limits: Limits, slot: Option<&'static Slot>) -> Self {
        let (near_policy, far_policy) = (pools::near_policy(&placement), pools::far_policy(&placement));
        Self {
            managed,
            room: Room::new(limits, slot),
            near: Pools::new(near_policy, &placement.near),
            far: Pools::new(far_policy, &placement.far),
            near_policy,
            far_policy,
            sites: None,
            maps: table::Table::new(),
            told: AtomicBool::new(false),
            placement,
        }
    }

    /// What was asked for.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// In a paged job, the memory that is paged.
    pub fn managed(&self) -> Option<&'static Managed> {
        self.managed
    }

    /// The books of near.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Where an object goes.
    fn tier(&self, kind: ObjectKind, bytes: usize, caller: usize) -> Option<Tier> {
        let Some(sites) = &self.sites else { return self.placement.by_size(bytes as u64) };
        let found = sites.find(kind, bytes as u64, caller);
        if found != Found::NotAsked {
            self.room.count(Counter::SitesAsked, 1);
        }
        match found {
            Found::Tier(tier) => {
                self.room.count(Counter::SitesMatched, 1);
                Some(tier)
            }
            Found::Nothing | Found::NotAsked => None,
        }
    }

    /// A block of near, whatever policy says.
    fn near_block(&self, size: usize, align: usize, zeroed: bool) -> Block {
        let taken = accounting::of_block(size);
        match self.grant(taken) {
            Grant::Near => {}
            Grant::Far => return Block::Elsewhere,
            Grant::Refused => return Block::Refused,
        }
        let block = working(|| allocate(self.near.here()?, size, align, zeroed));
        let Some(block) = block else {
            self.room.give(taken);
            self.room.count(Counter::SpilledObjects, 1);
            return Block::Elsewhere;
        };
        // SAFETY: a live block.
        let usable = unsafe { Pool::usable_size(block) };
        self.room.correct(taken, accounting::of_block(usable));
        Block::Near(block)
    }

    /// # Safety
    /// As for [`free`].
    unsafe fn free(&self, block: *mut c_void) {
        // SAFETY: a live block of a pool.
        let usable = unsafe { Pool::usable_size(block) };
        if (self.managed.is_some() || self.room.is_checked()) && usable >= LARGE_BLOCK {
            discard(Extent::new(block.addr(), usable));
        }
        // SAFETY: passed on to the caller.
        working(|| unsafe { Pool::free(block) });
        self.room.give(accounting::of_block(usable));
    }

    /// Moves to near what is there already: static data, stacks.
    fn bind(&self, range: Extent, policy: Option<MemoryPolicy>) -> bool {
        match policy {
            Some(policy) => numa::set_range(range, &policy, true).is_ok(),
            None => true,
        }
    }

    /// Stacks prefer near: they cannot be refused, so they must not be bound either.
    fn stack_policy(&self) -> Option<MemoryPolicy> {
        self.near_policy.map(|policy| match policy.mode {
            PolicyMode::Bind => MemoryPolicy { mode: PolicyMode::PreferredMany, ..policy },
            _ => policy,
        })
    }

    /// Places the stack of the calling thread.
    pub fn place_stack(&self, stack: Extent) {
        if self.tier(ObjectKind::ThreadStack, stack.len(), 0) == Some(Tier::Near) && self.bind(stack, self.stack_policy()) {
            self.count_placed(stack.len());
        }
    }

    fn place_main_stack(&self) {
        let Some((stack, limit)) = stacks::main_stack() else { return };
        let size = usize::try_from(limit).unwrap_or(usize::MAX).max(stack.len());
        if self.tier(ObjectKind::MainStack, size, 0) == Some(Tier::Near) && self.bind(stack, self.stack_policy()) {
            self.count_placed(stack.len());
        }
    }

    fn count_placed(&self, bytes: usize) {
        self.room.count(Counter::PlacedObjects, 1);
        self.room.count(Counter::PlacedBytes, bytes as u64);
    }

    /// Places static arrays; returns those that are near now.
    fn place_statics(&self) -> Vec<Extent> {
        let arrays = match self.placement.policy {
            Policy::All => statics::all(),
            _ => statics::find(&self.placement, self.sites.as_ref()),
        };
        let mut placed = Vec::new();
        let mut left_out = 0;
        for array in arrays {
            if !self.room.take(array.len() as u64) {
                self.room.count(Counter::SpilledObjects, 1);
                self.room.count(Counter::SpilledBytes, array.len() as u64);
                left_out += array.len() as u64;
            } else if self.bind(array, self.near_policy) {
                self.count_placed(array.len());
                placed.push(array);
            } else {
                self.room.give(array.len() as u64);
            }
        }
        if left_out > 0 && self.placement.full != Full::Spill {
            let left_out = nearfar_core::units::Bytes(left_out);
            say(&format!("{left_out} of static arrays do not fit into near, and cannot be refused: they stay in far"));
        }
        placed
    }

    /// Puts everything in force; last of all, the windows.
    fn publish(self) -> &'static Self {
        let placing: &'static Self = Box::leak(Box::new(self));
        PLACING.store(std::ptr::from_ref(placing).cast_mut(), Ordering::Release);
        placing
    }

    fn open_windows(&self) {
        let individually = !by_process(&self.placement);
        let sizes = |kind| match &self.sites {
            Some(sites) => sites.sizes(kind),
            None => size_filter::of_placement(&self.placement, individually),
        };
        let stacks = !sizes(ObjectKind::ThreadStack).is_empty() && self.near_policy.is_some();
        STACKS.store(stacks, Ordering::Relaxed);
        HEAP.set(&sizes(ObjectKind::Heap));
        MAPS.set(&sizes(ObjectKind::Map));
    }
}

/// Gives the whole pages of `range` back to the kernel; they read as zeros then.
fn discard(range: Extent) {
    let start = range.start.next_multiple_of(PAGE);
    let whole = Extent { start, end: (range.end & !(PAGE - 1)).max(start) };
    if !whole.is_empty() {
        // SAFETY: the inside of a block that the program has just given up.
        let _ = unsafe { map::madvise(whole, libc::MADV_DONTNEED) };
    }
}

fn allocate(pool: &Pool, size: usize, align: usize, zeroed: bool) -> Option<*mut c_void> {
    let block = match (align <= 16, zeroed) {
        (true, false) => pool.malloc(size),
        (true, true) => pool.zalloc(size),
        (false, _) => pool.memalign(align, size),
    };
    if zeroed && align > 16 && !block.is_null() {
        // SAFETY: a fresh block of so many bytes.
        unsafe { block.cast::<u8>().write_bytes(0, size) };
    }
    (!block.is_null()).then_some(block)
}

fn say(what: &str) {
    process::write_stderr(format!("nearfar: process {}: {what}\n", process::pid()).as_bytes());
}

/// A block for the program: near if the policy says so and there is room. `caller` is where malloc returns to, 0 if not known.
#[cold]
#[inline(never)]
pub fn block(size: usize, align: usize, zeroed: bool, caller: usize) -> Block {
    // Inside nearfar (a handler of a fork, our own threads) nothing is placed; nor what an allocator asks for itself.
    let Some(placing) = get().filter(|_| !thread::is_inside() && !at_work()) else { return Block::Elsewhere };
    match placing.tier(ObjectKind::Heap, size, caller) {
        Some(Tier::Near) => placing.near_block(size, align, zeroed),
        _ => Block::Elsewhere,
    }
}

/// A block of the tier that the program named. Of far: `Elsewhere` when that is what other allocations are anyway.
pub fn block_of(tier: Tier, size: usize, align: usize, zeroed: bool) -> Block {
    let Some(placing) = get() else { return Block::Elsewhere };
    match tier {
        Tier::Near => placing.near_block(size, align, zeroed),
        // All other memory is near by the process's policy.
        Tier::Far if placing.far_policy.is_some() && by_process(&placing.placement) => {
            working(|| allocate(placing.far.here()?, size, align, zeroed)).map_or(Block::Elsewhere, Block::Near)
        }
        Tier::Far => Block::Elsewhere,
    }
}

/// Whether the block of a pool that realloc(3) makes `size` bytes large stays near. It does unless sizes decide.
fn stays(placing: &Placing, size: usize, caller: usize) -> bool {
    match placing.placement.policy {
        Policy::Sizes => placing.placement.by_size(size as u64) == Some(Tier::Near),
        Policy::Plan if wants_block(size) => placing.tier(ObjectKind::Heap, size, caller) != Some(Tier::Far),
        _ => true,
    }
}

/// realloc(3) of a block of a pool; the caller moves the content when the answer is `Elsewhere`.
///
/// # Safety
/// `block` is a live block of a pool; with `Near` it is not used afterwards. `size` is not 0.
#[cold]
pub unsafe fn resize(block: *mut c_void, size: usize, caller: usize) -> Block {
    let Some(placing) = get() else {
        // Made by the library's own functions, outside any job.
        let Some(pool) = Pool::of(block.addr()) else { return Block::Elsewhere };
        // SAFETY: passed on to the caller.
        let new = working(|| unsafe { pool.realloc(block, size) });
        return if new.is_null() { Block::Refused } else { Block::Near(new) };
    };
    if tier_of(block) == Some(Tier::Near) && !stays(placing, size, caller) {
        return Block::Elsewhere;
    }
    // SAFETY: passed on to the caller.
    let old = unsafe { Pool::usable_size(block) };
    if size <= old && size >= old / 2 {
        return Block::Near(block);
    }
    let new = match block_of(tier_of(block).unwrap_or(Tier::Near), size, 16, false) {
        Block::Near(new) => new,
        other => return other,
    };
    // SAFETY: passed on to the caller: a live block, which it gives up, and a new one.
    Block::Near(unsafe { moved(block, old, new, size, |block| free(block)) })
}

/// Frees a block of a pool.
///
/// # Safety
/// `block` is a live block of a pool, not used afterwards.
pub unsafe fn free(block: *mut c_void) {
    match get() {
        // SAFETY: passed on to the caller.
        Some(placing) if tier_of(block) == Some(Tier::Near) => unsafe { placing.free(block) },
        // SAFETY: passed on to the caller.
        _ => working(|| unsafe { Pool::free(block) }),
    }
}

/// Bytes that a block of a pool has room for.
///
/// # Safety
/// `block` is a live block of a pool.
pub unsafe fn usable_size(block: *const c_void) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { Pool::usable_size(block) }
}

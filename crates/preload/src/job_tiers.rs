//! Near and far of a process in a job, for programs that place data themselves (`api`). What kind of job it is, is matched here and
//! nowhere else: nodes (`placing` alone), or paged (`managed` as well; without `placing` in cache mode, where tiers change nothing).
//! Holds no policy: whether near has room is for `placing` to say.

use crate::heap;
use crate::lifecycle::managed_even_inside;
use crate::managed::Managed;
use crate::placing::{self, Block, Placing};
use nearfar_core::addr::Extent;
use nearfar_core::node::words;
use nearfar_core::placement::Tier;
use nearfar_sys::{numa, process};
use nearfar_tiers::memory::{Memory, Whereabouts};
use nearfar_tiers::pool::Pool;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What a job has made of this process.
#[derive(Clone, Copy)]
pub struct Job {
    managed: Option<&'static Managed>,
    placing: Option<&'static Placing>,
}

/// What malloc(3) aligns for.
const MALLOC_ALIGN: usize = 16;

/// The job of this process, if it is in one that it can use.
#[inline]
pub fn get() -> Option<Job> {
    let managed = managed_even_inside();
    let placing = placing::get();
    (managed.is_some() || placing.is_some()).then_some(Job { managed, placing })
}

impl Job {
    /// A block of `tier` by the job's rules; `other` makes those that are not near.
    #[inline]
    fn block(self, tier: Tier, size: usize, align: usize, zeroed: bool, other: impl FnOnce() -> *mut c_void) -> *mut c_void {
        // During a fork, in handlers of the program, nothing is placed: the books are at rest.
        if self.placing.is_none() || Memory::inside() {
            return other();
        }
        match placing::block_of(tier, size, align, zeroed) {
            Block::Near(block) => block,
            Block::Elsewhere => other(),
            Block::Refused => null_mut(),
        }
    }

    /// `size` bytes in `tier`; null when there is no memory.
    #[inline]
    pub fn malloc(self, tier: Tier, size: usize) -> *mut c_void {
        self.block(tier, size, MALLOC_ALIGN, false, || heap::elsewhere(size, 0))
    }

    /// The same, zeros.
    pub fn zalloc(self, tier: Tier, size: usize) -> *mut c_void {
        self.block(tier, size, MALLOC_ALIGN, true, || heap::zeroed_elsewhere(1, size, 0))
    }

    /// The same, aligned to a power of two.
    pub fn memalign(self, tier: Tier, align: usize, size: usize) -> *mut c_void {
        self.block(tier, size, align, false, || heap::aligned_elsewhere(align, size))
    }

    /// True when `block` is in `tier` by who made it.
    pub fn has(self, tier: Tier, block: *const c_void) -> bool {
        let plain = if placing::has_far_heap() { Tier::Near } else { Tier::Far };
        placing::tier_of(block).unwrap_or(plain) == tier
    }

    /// True when `block` is one of the program's ordinary ones, and these are far.
    pub fn is_ordinary_far(self, block: *const c_void) -> bool {
        !placing::owns(block) && !placing::has_far_heap()
    }

    /// True when near is a budget of memory and far is paged.
    pub fn is_paged(self) -> bool {
        self.managed.is_some()
    }

    /// Where the bytes of `range` are, in a paged job; `None` in others, where their nodes tell.
    pub fn whereabouts(self, range: Extent) -> Option<Whereabouts> {
        Some(self.managed?.with(|memory| memory.whereabouts(range)))
    }

    /// The tier that pages on `node` are in, in a job on nodes.
    pub fn tier_of_node(self, node: u32) -> Tier {
        match self.placing {
            Some(placing) if !placing.order().near.contains(node) => Tier::Far,
            _ => Tier::Near,
        }
    }

    /// Bytes of a tier: in all, free, given out by this process.
    pub fn capacity(self, tier: Tier) -> (u64, u64, u64) {
        let used = self.used(tier);
        let Some(managed) = self.managed else {
            let (total, free) = self.of_nodes(tier);
            return (total, free, used);
        };
        match (tier, self.placing) {
            (Tier::Near, Some(placing)) => (placing.most(), placing.left().unwrap_or(u64::MAX), used),
            (Tier::Near, None) => {
                let (total, charged) = managed.with(Memory::near_budget);
                (total, total.saturating_sub(charged), used)
            }
            // A file grows as far as its disk has space; others write there too.
            (Tier::Far, _) => (u64::MAX, u64::MAX, used),
        }
    }

    /// Bytes of pools of `tier`. Other blocks of far are not told from the rest of the program's.
    fn used(self, tier: Tier) -> u64 {
        let is_of = |pool: &&'static Pool| placing::tier_of(pool.range().start as *const c_void) == Some(tier);
        Pool::all().filter(is_of).map(Pool::live_bytes).sum()
    }

    fn of_nodes(self, tier: Tier) -> (u64, u64) {
        let Some(order) = self.placing.map(Placing::order) else { return (u64::MAX, u64::MAX) };
        let nodes = match tier {
            Tier::Near => order.near,
            Tier::Far => order.far,
        };
        if nodes.is_empty() {
            return (u64::MAX, process::memory_available());
        }
        let total = nodes.iter().filter_map(numa::total_bytes).sum::<u64>();
        let free = nodes.iter().filter_map(numa::free_bytes).sum::<u64>();
        match (tier, self.placing.and_then(Placing::left)) {
            (Tier::Near, left) => (total.min(order.near_limit), free.min(left.unwrap_or(u64::MAX))),
            (Tier::Far, _) => (total, free),
        }
    }

    /// What near and far are, for people.
    pub fn describe(self) -> &'static CStr {
        static MADE: AtomicPtr<CString> = AtomicPtr::new(null_mut());
        let made = MADE.load(Ordering::Acquire);
        if !made.is_null() {
            // SAFETY: published below, never freed.
            return unsafe { &*made };
        }
        let made = Box::leak(Box::new(CString::new(self.text()).unwrap_or_default()));
        // Two threads at once make the same text; that of the first stays lost, some bytes.
        MADE.store(made, Ordering::Release);
        made
    }

    fn text(self) -> String {
        let order = self.placing.map(Placing::order);
        match (self.managed, order) {
            (None, Some(order)) => {
                let nodes = |set: &nearfar_core::placement::NodeSet, other: &str| match set.len() {
                    0 => other.to_owned(),
                    1 => format!("node {set}"),
                    _ => format!("nodes {set}"),
                };
                let limit = match order.near_limit {
                    u64::MAX => String::new(),
                    bytes => format!(" (at most {})", words::size(bytes)),
                };
                format!("near: {}{limit}; far: {}", nodes(&order.near, "memory"), nodes(&order.far, "all other memory"))
            }
            (Some(managed), _) => {
                let near = words::size(managed.with(Memory::near_budget).0);
                match self.placing {
                    Some(placing) => format!(
                        "near: memory that is never paged, {} of the {near} of this job; far: paged through the rest",
                        words::size(placing.most())
                    ),
                    None => format!("cache mode: near is a cache of {near} in front of far, and all data are far"),
                }
            }
            (None, None) => "near and far: ordinary memory".to_owned(),
        }
    }
}

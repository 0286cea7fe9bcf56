//! Whether the nodes of near have room for more, for those who want to know before they touch it (`--full=fail`, `wait`, and limits).
//!
//! The kernel promises memory without keeping any back, and kills when a bound node has none at the first touch. So what was granted
//! to all processes of the job and is not touched yet is counted against what the nodes have free:
//!
//!     granted + more - resident <= free - margin
//!
//! First without asking how much is resident, which is what costs: a walk over the page tables.

use nearfar_core::addr::PAGE;
use nearfar_core::placement::{Full, NodeSet};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::numa_maps::parse_numa_line;
use nearfar_sys::root::Root;
use nearfar_sys::{numa, zones};
use nearfar_tiers::job::{Job, Slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// Kept free beside the kernel's own watermarks: page tables of the near pages (a 512th), free pages that CPUs hold for themselves
/// and that "free" counts, and what others take between our look and the first touch.
const MARGIN: u64 = 8 << 20;
const MARGIN_SHARE: u64 = 128;
/// Looking at page tables may take this part of the time.
const LOOK_SHARE: u64 = 20;

/// The room in a set of nodes.
pub struct NodeRoom {
    job: Job,
    nodes: NodeSet,
    /// Most pages that the job may have there.
    limit: u64,
    /// Whether the nodes are asked, or only the limit counts.
    checked: bool,
    /// What is kept free.
    margin: u64,
    /// Bytes of this process on the nodes, when they were last counted, less what was given back since.
    resident: AtomicU64,
    /// When they may be counted again.
    look_ns: AtomicU64,
    /// Bytes that came by fork: they are there, but each page that is written needs another one.
    inherited: AtomicU64,
}

impl NodeRoom {
    /// Of `nodes`, for a job that may have `limit` bytes there.
    pub fn new(job: Job, nodes: NodeSet, limit: u64, full: Full) -> Self {
        let own: u64 = nodes.iter().map(|node| zones::reserved_bytes(node) + MARGIN).sum();
        let margin = own + free_of(&nodes) / MARGIN_SHARE;
        let [resident, look_ns, inherited] = [const { AtomicU64::new(0) }; 3];
        Self { inherited, job, nodes, limit: limit / PAGE as u64, checked: full != Full::Spill, margin, resident, look_ns }
    }

    /// Charges `pages` if there is room for them.
    pub fn grant(&self, slot: &Slot, pages: u64) -> bool {
        if self.try_grant(slot, pages) {
            return true;
        }
        if self.job.processes() <= 1 {
            return false;
        }
        // What a process had that has ended may not have been given back yet.
        self.job.bury_dead();
        self.try_grant(slot, pages)
    }

    fn try_grant(&self, slot: &Slot, pages: u64) -> bool {
        if !self.job.try_charge_within(slot, pages, self.limit) {
            return false;
        }
        let fits = !self.checked || self.nodes_have_room(slot);
        if !fits {
            self.job.uncharge(slot, pages);
        }
        fits
    }

    /// The rule above, for what is charged now.
    fn nodes_have_room(&self, slot: &Slot) -> bool {
        let free = free_of(&self.nodes).saturating_sub(self.margin);
        let granted = self.job.charged_pages() * PAGE as u64;
        if granted <= free {
            return true;
        }
        if granted <= free + self.job.sum_of(Counter::NearUsed) {
            return true;
        }
        self.count_resident(slot)
            && granted <= free_of(&self.nodes).saturating_sub(self.margin) + self.job.sum_of(Counter::NearUsed)
    }

    /// Counts this process's pages on the nodes, if that was not done just now.
    fn count_resident(&self, slot: &Slot) -> bool {
        let start = now_ns();
        if start < self.look_ns.load(Ordering::Relaxed) {
            return false;
        }
        let text = Root::this().read("/proc/self/numa_maps", 128 << 20).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        // What was granted has a policy of its own; stacks, which are not counted, prefer only.
        let is_granted = |policy: &str| ["bind", "interleave", "weighted"].iter().any(|mode| policy.starts_with(mode));
        let areas = text.lines().filter_map(|line| parse_numa_line(line, PAGE as u64)).filter(|area| is_granted(&area.policy));
        let on_nodes =
            |nodes: Vec<(u32, u64)>| nodes.into_iter().filter(|(node, _)| self.nodes.contains(*node)).map(|(_, bytes)| bytes);
        let counted: u64 = areas.flat_map(|area| on_nodes(area.nodes)).sum();
        let resident = counted.saturating_sub(self.inherited.load(Ordering::Relaxed));
        self.resident.store(resident, Ordering::Relaxed);
        slot.set(Counter::NearUsed, resident);
        slot.raise(Counter::NearPeak, resident);
        let end = now_ns();
        self.look_ns.store(end + (end - start) * LOOK_SHARE, Ordering::Relaxed);
        true
    }

    /// Uncharges `pages`.
    pub fn give_back(&self, slot: &Slot, pages: u64) {
        self.job.uncharge(slot, pages);
        // They may have been resident.
        let bytes = pages * PAGE as u64;
        let less = |resident: u64| Some(resident.saturating_sub(bytes));
        if self.resident.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            slot.set(Counter::NearUsed, self.resident.load(Ordering::Relaxed));
        }
    }

    /// Bytes that the job may have on the nodes in all.
    pub fn most(&self) -> u64 {
        let whole: u64 = self.nodes.iter().filter_map(zones::total_bytes).sum();
        whole.saturating_sub(self.margin).min(self.limit.saturating_mul(PAGE as u64))
    }

    /// Bytes that are left now: a guess, since who has been granted memory may not have touched it.
    pub fn left(&self) -> u64 {
        let granted = self.job.charged_pages();
        let of_limit = self.limit.saturating_sub(granted).saturating_mul(PAGE as u64);
        let untouched = (granted * PAGE as u64).saturating_sub(self.job.sum_of(Counter::NearUsed));
        free_of(&self.nodes).saturating_sub(self.margin + if self.checked { untouched } else { 0 }).min(of_limit)
    }

    /// In the child of a fork, which inherits `pages`.
    pub fn after_fork(&self, slot: &Slot, pages: u64) {
        self.job.force_charge(slot, pages);
        self.inherited.store(pages * PAGE as u64, Ordering::Relaxed);
        self.resident.store(0, Ordering::Relaxed);
        self.look_ns.store(0, Ordering::Relaxed);
    }
}

fn free_of(nodes: &NodeSet) -> u64 {
    nodes.iter().filter_map(numa::free_bytes).sum()
}

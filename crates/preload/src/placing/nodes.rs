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
pub struct NodeCapacity {
    job: Job,
    nodes: NodeSet,
    /// Most pages that the job may have there.
    limit: u64,
    /// What happens when there is no room: for `Spill`, the nodes are not asked, only the limit counts.
    full: Full,
    /// What is kept free.
    margin: u64,
    /// When page tables may be looked at again by those who wait.
    look_ns: AtomicU64,
}

impl NodeCapacity {
    /// Of `nodes`, for a job that may have `limit` bytes there.
    pub fn new(job: Job, nodes: NodeSet, limit: u64, full: Full) -> Self {
        let own: u64 = nodes.iter().map(|node| zones::reserved_bytes(node) + MARGIN).sum();
        let margin = own + available_of(&nodes) / MARGIN_SHARE;
        Self { job, nodes, limit: limit / PAGE as u64, full, margin, look_ns: AtomicU64::new(0) }
    }

    /// True when what is given out is compared with what the nodes have.
    pub fn is_checked(&self) -> bool {
        self.full != Full::Spill
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
        let fits = !self.is_checked() || self.nodes_have_room(slot, pages);
        if !fits {
            self.job.uncharge(slot, pages);
        }
        fits
    }

    /// The rule above, for what is charged now, `more` pages of it just now.
    fn nodes_have_room(&self, slot: &Slot, more: u64) -> bool {
        let fits = || {
            let available = available_of(&self.nodes).saturating_sub(self.margin);
            let granted = self.job.charged_pages() * PAGE as u64;
            granted <= available || granted <= available + self.resident(slot, more)
        };
        fits() || (self.look(slot, more) && fits())
    }

    /// Bytes that the job is known to have touched. What lies on the nodes beyond what was granted is a heap's own, and says nothing
    /// of what is not touched yet.
    fn resident(&self, slot: &Slot, more: u64) -> u64 {
        let granted = |other: &Slot| other.charged_pages().saturating_sub(if std::ptr::eq(other, slot) { more } else { 0 });
        self.job.members().map(|(_, other)| other.get(Counter::NearUsed).min(granted(other) * PAGE as u64)).sum()
    }

    /// Counts the pages that this process and the others have on the nodes; `more` are charged and not yet given out. A refusal is
    /// final and always looks first; those who wait may come back, and look only as often as their share of time allows.
    fn look(&self, slot: &Slot, more: u64) -> bool {
        let start = now_ns();
        if self.full == Full::Wait && start < self.look_ns.load(Ordering::Relaxed) {
            return false;
        }
        self.note_resident(slot, self.count_of("self"), more);
        for (pid, other) in self.job.members().filter(|(_, other)| !std::ptr::eq(*other, slot)) {
            // Who has touched all it was granted says nothing new.
            if other.get(Counter::NearUsed) < other.charged_pages() * PAGE as u64 {
                self.note_resident(other, self.count_of(&pid.to_string()), 0);
            }
        }
        let end = now_ns();
        self.look_ns.store(end + (end - start) * LOOK_SHARE, Ordering::Relaxed);
        true
    }

    fn note_resident(&self, slot: &Slot, counted: Option<u64>, more: u64) {
        let granted = slot.charged_pages().saturating_sub(more) * PAGE as u64;
        if let Some(resident) = counted.map(|counted| counted.min(granted)) {
            slot.set(Counter::NearUsed, resident);
            slot.raise(Counter::NearPeak, resident);
        }
    }

    /// Bytes that a process has on the nodes for what was granted; `None` when it may not be asked.
    fn count_of(&self, process: &str) -> Option<u64> {
        let text = Root::this().read(&format!("/proc/{process}/numa_maps"), 128 << 20).ok()?;
        Some(String::from_utf8_lossy(&text).lines().map(|line| bytes_in(line, &self.nodes)).sum())
    }

    /// Uncharges `pages`.
    pub fn give_back(&self, slot: &Slot, pages: u64) {
        self.job.uncharge(slot, pages);
        // They may have been resident.
        slot.set(Counter::NearUsed, slot.get(Counter::NearUsed).saturating_sub(pages * PAGE as u64));
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
        let untouched = if self.is_checked() { untouched } else { 0 };
        available_of(&self.nodes).saturating_sub(self.margin + untouched).min(of_limit)
    }

    /// In the child of a fork, which inherits `pages`.
    pub fn after_fork(&self, slot: &Slot, pages: u64) {
        self.job.force_charge(slot, pages);
        self.look_ns.store(0, Ordering::Relaxed);
    }
}

/// Bytes that a line of numa_maps says are on `nodes` for objects that were granted: these have a policy of their own, while stacks,
/// which are not counted, prefer only. What processes share after a fork counts for each in part: it is there once, and who writes
/// needs another page.
fn bytes_in(line: &str, nodes: &NodeSet) -> u64 {
    let Some(area) = parse_numa_line(line, PAGE as u64) else { return 0 };
    if !["bind", "interleave", "weighted"].iter().any(|mode| area.policy.starts_with(mode)) {
        return 0;
    }
    let sharers = line.split_once(" mapmax=").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    let bytes: u64 = area.nodes.iter().filter(|(node, _)| nodes.contains(*node)).map(|(_, bytes)| bytes).sum();
    bytes / sharers.unwrap_or(1).max(1)
}

fn available_of(nodes: &NodeSet) -> u64 {
    nodes.iter().filter_map(numa::available_bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_is_told_from_the_rest() {
        let near: NodeSet = [1].into_iter().collect();
        let bytes = |line: &str| bytes_in(line, &near);
        assert_eq!(bytes("7f00 bind:1 anon=300 dirty=300 active=0 N0=100 N1=200 kernelpagesize_kB=4"), 200 << 12);
        assert_eq!(bytes("7f00 prefer:1 anon=300 dirty=300 N1=200 kernelpagesize_kB=4"), 0, "a stack");
        assert_eq!(bytes("7f00 default anon=1 N1=1 kernelpagesize_kB=4"), 0);
        assert_eq!(bytes("7f00 bind:1 anon=8 dirty=8 mapmax=2 N1=8 kernelpagesize_kB=4"), 4 << 12, "parent and child");
    }
}

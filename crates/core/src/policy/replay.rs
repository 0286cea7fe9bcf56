//! Replay of a trace of unit accesses against eviction policies and against Belady's optimum.
//!
//! Near holds `capacity` pages in all; the last part of it, `limbo` pages, is a FIFO of victims that come back without I/O. A
//! policy sees what it sees in the pager: arrivals, never hits. The whole trace is in memory; prefetch and time are left out.

use crate::policy::units::UnitMap;
use crate::policy::{Arrival, Evict, Unit, evict_by_name};
use std::collections::{BTreeSet, VecDeque};

/// One visit to a unit of so many pages.
pub type Access = (Unit, u32);

/// What a replay counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Visits.
    pub accesses: u64,
    /// Visits that found the unit in near and visible: the policy saw nothing of them.
    pub hits: u64,
    /// Visits that found the unit in limbo.
    pub rescued: u64,
    /// Visits that had to read from far.
    pub misses: u64,
    /// Pages read from far.
    pub pages_in: u64,
}

impl Tally {
    /// Share of the visits that needed no read, 0 to 1 (0 for an empty trace).
    pub fn hit_rate(&self) -> f64 {
        (self.hits + self.rescued) as f64 / self.accesses.max(1) as f64
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            accesses: self.accesses - earlier.accesses,
            hits: self.hits - earlier.hits,
            rescued: self.rescued - earlier.rescued,
            misses: self.misses - earlier.misses,
            pages_in: self.pages_in - earlier.pages_in,
        }
    }
}

/// A near memory under one policy, step by step.
pub struct Replay<'a> {
    policy: &'a mut dyn Evict,
    room: u64,
    burst: u64,
    limbo_room: u64,
    resident: UnitMap<u32>,
    limbo: UnitMap<(u32, u64)>,
    /// Victims in order; an entry whose stamp differs from `limbo`'s was rescued since.
    order: VecDeque<(Unit, u64)>,
    limbo_pages: u64,
    resident_pages: u64,
    stamp: u64,
    tally: Tally,
}

impl<'a> Replay<'a> {
    /// An empty near of `capacity` pages, `limbo` of them for victims; tells `policy` its capacity.
    pub fn new(capacity: u64, limbo: u64, policy: &'a mut dyn Evict) -> Self {
        let room = capacity.saturating_sub(limbo).max(1);
        policy.set_capacity(room);
        Self {
            policy,
            room,
            burst: 0,
            limbo_room: limbo,
            resident: UnitMap::default(),
            limbo: UnitMap::default(),
            order: VecDeque::new(),
            limbo_pages: 0,
            resident_pages: 0,
            stamp: 0,
            tally: Tally::default(),
        }
    }

    /// From now on, whenever room is wanting, `pages` more are made: the pager evicts ahead of need.
    pub fn evict_ahead(&mut self, pages: u64) {
        self.burst = pages.min(self.room / 2);
    }

    /// Visits one unit. A unit keeps the size of its first visit while it is in near.
    pub fn access(&mut self, (unit, pages): Access) {
        self.tally.accesses += 1;
        if self.resident.contains_key(&unit) {
            self.tally.hits += 1;
            return;
        }
        let (pages, arrival) = match self.limbo.remove(&unit) {
            Some((pages, _)) => {
                self.limbo_pages -= u64::from(pages);
                self.tally.rescued += 1;
                (pages, Arrival::Rescued)
            }
            None => {
                self.tally.misses += 1;
                self.tally.pages_in += u64::from(pages);
                (pages, Arrival::Demanded)
            }
        };
        // Room is made first, as in the pager: the newcomer cannot be its own victim.
        let ahead = if self.resident_pages + u64::from(pages) > self.room { self.burst } else { 0 };
        while self.resident_pages + u64::from(pages) + ahead > self.room {
            let Some(victim) = self.policy.victim() else { break };
            self.release(victim);
        }
        self.resident.insert(unit, pages);
        self.resident_pages += u64::from(pages);
        self.policy.insert(unit, pages, arrival);
    }

    fn release(&mut self, victim: Unit) {
        let Some(pages) = self.resident.remove(&victim) else { return };
        self.resident_pages -= u64::from(pages);
        self.stamp += 1;
        self.limbo.insert(victim, (pages, self.stamp));
        self.order.push_back((victim, self.stamp));
        self.limbo_pages += u64::from(pages);
        while self.limbo_pages > self.limbo_room {
            let Some((unit, stamp)) = self.order.pop_front() else { break };
            if let Some(&(pages, current)) = self.limbo.get(&unit)
                && current == stamp
            {
                self.limbo.remove(&unit);
                self.limbo_pages -= u64::from(pages);
            }
        }
    }

    /// Counts so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// Replays `trace` from an empty near.
pub fn replay(trace: &[Access], capacity: u64, limbo: u64, policy: &mut dyn Evict) -> Tally {
    let mut near = Replay::new(capacity, limbo, policy);
    trace.iter().for_each(|&access| near.access(access));
    near.tally()
}

/// Position of the next visit to the same unit for each visit, `usize::MAX` when there is none.
fn next_visits(trace: &[Access]) -> Vec<usize> {
    let mut seen: UnitMap<usize> = UnitMap::default();
    let mut next = vec![usize::MAX; trace.len()];
    for (at, &(unit, _)) in trace.iter().enumerate().rev() {
        if let Some(later) = seen.insert(unit, at) {
            next[at] = later;
        }
    }
    next
}

/// Belady's MIN with `capacity` pages: evicts the unit whose next visit is furthest away. No policy can miss less when all
/// units have the same size; with different sizes it is a good yardstick, not a bound.
pub fn belady(trace: &[Access], capacity: u64) -> Tally {
    let next = next_visits(trace);
    let mut tally = Tally { accesses: trace.len() as u64, ..Tally::default() };
    let mut resident: UnitMap<(usize, u32)> = UnitMap::default();
    let mut by_next: BTreeSet<(usize, Unit)> = BTreeSet::new();
    let mut used = 0;
    for (at, &(unit, pages)) in trace.iter().enumerate() {
        if let Some((due, size)) = resident.get(&unit).copied() {
            tally.hits += 1;
            by_next.remove(&(due, unit));
            by_next.insert((next[at], unit));
            resident.insert(unit, (next[at], size));
            continue;
        }
        tally.misses += 1;
        tally.pages_in += u64::from(pages);
        while used + u64::from(pages) > capacity {
            let Some((_, victim)) = by_next.pop_last() else { break };
            if let Some((_, size)) = resident.remove(&victim) {
                used -= u64::from(size);
            }
        }
        by_next.insert((next[at], unit));
        resident.insert(unit, (next[at], pages));
        used += u64::from(pages);
    }
    tally
}

/// True LRU with `capacity` pages, which sees every hit: what a pager with reference bits could do. For comparison.
pub fn lru(trace: &[Access], capacity: u64) -> Tally {
    let mut tally = Tally { accesses: trace.len() as u64, ..Tally::default() };
    let mut resident: UnitMap<(usize, u32)> = UnitMap::default();
    let mut by_last: BTreeSet<(usize, Unit)> = BTreeSet::new();
    let mut used = 0;
    for (at, &(unit, pages)) in trace.iter().enumerate() {
        if let Some((last, size)) = resident.insert(unit, (at, pages)) {
            tally.hits += 1;
            by_last.remove(&(last, unit));
            by_last.insert((at, unit));
            resident.insert(unit, (at, size));
            continue;
        }
        tally.misses += 1;
        tally.pages_in += u64::from(pages);
        by_last.insert((at, unit));
        used += u64::from(pages);
        while used > capacity && by_last.len() > 1 {
            let Some((_, victim)) = by_last.pop_first() else { break };
            if let Some((_, size)) = resident.remove(&victim) {
                used -= u64::from(size);
            }
        }
    }
    tally
}

/// One line of [`table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Capacity in pages, limbo included.
    pub capacity: u64,
    /// Name of the policy; `belady` and `lru (sees hits)` are the yardsticks.
    pub policy: &'static str,
    /// What it did.
    pub tally: Tally,
}

/// Share of near that is limbo in [`table`]: one part in this many.
pub const LIMBO_SHARE: u64 = 32;

/// Replays `trace` for each capacity (pages) and each policy by name (unknown names are left out), and adds the yardsticks.
pub fn table(trace: &[Access], capacities: &[u64], policies: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &capacity in capacities {
        for name in policies {
            if let Some(mut policy) = evict_by_name(name, capacity) {
                let tally = replay(trace, capacity, capacity / LIMBO_SHARE, policy.as_mut());
                rows.push(Row { capacity, policy: policy.name(), tally });
            }
        }
        rows.push(Row { capacity, policy: "lru (sees hits)", tally: lru(trace, capacity) });
        rows.push(Row { capacity, policy: "belady", tally: belady(trace, capacity) });
    }
    rows
}

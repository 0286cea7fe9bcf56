//! Replay of a trace of unit accesses against eviction policies and against Belady's optimum.
//!
//! Near holds `capacity` pages in all; the last part of it, `limbo` pages, is a FIFO of victims that come back without I/O. A
//! policy sees what it sees in the pager: arrivals, never hits; being rescued from limbo is the only reference bit there is.
//! The whole trace is in memory; prefetch and time are left out.

use crate::policy::units::UnitMap;
use crate::policy::{Arrival, Evict, Unit};
use std::collections::{BTreeSet, VecDeque};

/// What is done to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is read.
    Read,
    /// It is changed: when it leaves near it must be written.
    Write,
    /// It is touched for the first time since it holds nothing: zeros are given, nothing is read.
    Fresh,
    /// The program gives it up: it holds nothing any more.
    Discard,
}

/// One visit to a unit, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The unit.
    pub unit: Unit,
    /// Its pages.
    pub pages: u32,
    /// What is done to it.
    pub act: Action,
}

impl Access {
    /// A visit that reads.
    pub const fn read(unit: Unit, pages: u32) -> Self {
        Self { unit, pages, act: Action::Read }
    }

    fn is_visit(&self) -> bool {
        self.act != Action::Discard
    }

    fn writes(&self) -> bool {
        matches!(self.act, Action::Write | Action::Fresh)
    }
}

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
    /// First touches: they read nothing whatever the policy does, and count neither as hit nor as miss.
    pub fresh: u64,
    /// Pages read from far.
    pub pages_in: u64,
    /// Pages of changed units that were written when they left view.
    pub pages_out: u64,
}

impl Tally {
    /// Share of the visits to data that needed no read, 0 to 1 (0 for an empty trace).
    pub fn hit_rate(&self) -> f64 {
        (self.hits + self.rescued) as f64 / (self.accesses - self.fresh).max(1) as f64
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            accesses: self.accesses - earlier.accesses,
            hits: self.hits - earlier.hits,
            rescued: self.rescued - earlier.rescued,
            misses: self.misses - earlier.misses,
            fresh: self.fresh - earlier.fresh,
            pages_in: self.pages_in - earlier.pages_in,
            pages_out: self.pages_out - earlier.pages_out,
        }
    }

    /// A visit that found nothing in near.
    fn absent(&mut self, access: &Access) {
        if access.act == Action::Fresh {
            self.fresh += 1;
        } else {
            self.misses += 1;
            self.pages_in += u64::from(access.pages);
        }
    }

    fn leaves(&mut self, held: Held) {
        self.pages_out += if held.dirty { u64::from(held.pages) } else { 0 };
    }
}

/// A unit in near.
#[derive(Clone, Copy, Debug)]
struct Held {
    pages: u32,
    dirty: bool,
}

/// A near memory under one policy, step by step.
pub struct Replay<'a> {
    policy: &'a mut dyn Evict,
    room: u64,
    burst: u64,
    limbo_room: u64,
    resident: UnitMap<Held>,
    /// What far has, in whatever version.
    backed: UnitMap<()>,
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
            backed: UnitMap::default(),
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

    /// Visits one unit, or ends it. A unit keeps the size of its first visit while it is in near.
    pub fn access(&mut self, access: Access) {
        if !access.is_visit() {
            self.discard(access.unit);
            return;
        }
        self.tally.accesses += 1;
        if let Some(held) = self.resident.get_mut(&access.unit) {
            held.dirty |= access.writes();
            self.tally.hits += 1;
            return;
        }
        let (pages, arrival) = match self.limbo.remove(&access.unit) {
            Some((pages, _)) => {
                self.limbo_pages -= u64::from(pages);
                self.tally.rescued += 1;
                (pages, Arrival::Rescued)
            }
            None => {
                self.tally.absent(&access);
                if access.act == Action::Fresh {
                    self.backed.remove(&access.unit);
                    (access.pages, Arrival::Touched)
                } else {
                    self.backed.insert(access.unit, ());
                    (access.pages, Arrival::Demanded)
                }
            }
        };
        // Room is made first, as in the pager: the newcomer cannot be its own victim.
        let ahead = if self.resident_pages + u64::from(pages) > self.room { self.burst } else { 0 };
        while self.resident_pages + u64::from(pages) + ahead > self.room {
            let Some(victim) = self.policy.victim() else { break };
            self.release(victim);
        }
        self.resident.insert(access.unit, Held { pages, dirty: access.writes() });
        self.resident_pages += u64::from(pages);
        self.policy.insert(access.unit, pages, arrival);
    }

    fn discard(&mut self, unit: Unit) {
        self.policy.remove(unit);
        self.backed.remove(&unit);
        if let Some(held) = self.resident.remove(&unit) {
            self.resident_pages -= u64::from(held.pages);
        }
        if let Some((pages, _)) = self.limbo.remove(&unit) {
            self.limbo_pages -= u64::from(pages);
        }
    }

    fn release(&mut self, victim: Unit) {
        let Some(held) = self.resident.remove(&victim) else { return };
        self.tally.leaves(held);
        // As in the pager: what far never had says nothing of the future.
        let known = self.backed.insert(victim, ()).is_some();
        self.policy.left(victim, if held.dirty && known { held.pages } else { 0 });
        self.resident_pages -= u64::from(held.pages);
        self.stamp += 1;
        self.limbo.insert(victim, (held.pages, self.stamp));
        self.order.push_back((victim, self.stamp));
        self.limbo_pages += u64::from(held.pages);
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

/// Position of the next visit that needs what the unit holds now, for each visit; `usize::MAX` when there is none.
pub(super) fn next_visits(trace: &[Access]) -> Vec<usize> {
    let mut seen: UnitMap<usize> = UnitMap::default();
    let mut next = vec![usize::MAX; trace.len()];
    for (at, access) in trace.iter().enumerate().rev() {
        let later = if access.is_visit() { seen.insert(access.unit, at) } else { seen.remove(&access.unit) };
        if access.is_visit()
            && let Some(later) = later
        {
            next[at] = later;
        }
    }
    next
}

/// A near that knows for each visit how much its unit is worth from then on: the least worth leaves.
pub(super) struct Ranked {
    tally: Tally,
    resident: UnitMap<(usize, Held)>,
    order: BTreeSet<(usize, Unit)>,
    used: u64,
}

impl Ranked {
    pub(super) fn new() -> Self {
        Self { tally: Tally::default(), resident: UnitMap::default(), order: BTreeSet::new(), used: 0 }
    }

    /// Units that rank above `limit` get `rank`.
    pub(super) fn rank_again(&mut self, limit: usize, rank: usize) {
        while let Some(&(high, unit)) = self.order.last()
            && high > limit
        {
            self.order.remove(&(high, unit));
            self.order.insert((rank, unit));
            if let Some(entry) = self.resident.get_mut(&unit) {
                entry.0 = rank;
            }
        }
    }

    /// Visits a unit that has `rank` from now on; victims are taken from the low ranks.
    pub(super) fn access(&mut self, access: &Access, rank: usize, capacity: u64) {
        let old = self.resident.remove(&access.unit);
        if let Some((rank, held)) = old {
            self.order.remove(&(rank, access.unit));
            self.used -= u64::from(held.pages);
        }
        if !access.is_visit() {
            return;
        }
        self.tally.accesses += 1;
        let mut held = Held { pages: access.pages, dirty: access.writes() };
        match old {
            Some((_, before)) => {
                self.tally.hits += 1;
                held = Held { pages: before.pages, dirty: before.dirty || held.dirty };
            }
            None => self.tally.absent(access),
        }
        self.used += u64::from(held.pages);
        while self.used > capacity {
            let Some((_, victim)) = self.order.pop_first() else { break };
            if let Some((_, gone)) = self.resident.remove(&victim) {
                self.used -= u64::from(gone.pages);
                self.tally.leaves(gone);
            }
        }
        self.order.insert((rank, access.unit));
        self.resident.insert(access.unit, (rank, held));
    }
}

impl Ranked {
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }
}

/// Belady's MIN with `capacity` pages: evicts the unit whose next visit is furthest away. No policy can miss less when all
/// units have the same size; with different sizes it is a good yardstick, not a bound. It is not the least that must be
/// written: of two units that are needed equally late it knows not which is clean.
pub fn belady(trace: &[Access], capacity: u64) -> Tally {
    let next = next_visits(trace);
    let mut near = Ranked::new();
    for (at, access) in trace.iter().enumerate() {
        near.access(access, usize::MAX - next[at], capacity);
    }
    near.tally()
}

/// True LRU with `capacity` pages, which sees every hit: what a pager with reference bits could do. For comparison.
pub fn lru(trace: &[Access], capacity: u64) -> Tally {
    let mut near = Ranked::new();
    for (at, access) in trace.iter().enumerate() {
        near.access(access, at, capacity);
    }
    near.tally()
}

/// Share of near that is limbo: one part in this many.
pub const LIMBO_SHARE: u64 = 32;

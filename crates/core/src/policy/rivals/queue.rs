//! Policies that are one queue: first in, first out; least recently seen; second chance.
//!
//! Hits are invisible to eviction policies, so this LRU is the one that a pager can have; true LRU is `replay::lru`.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

/// What a unit that is seen again means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: units leave in the order of their arrival.
    Fifo,
    /// It goes to the front of the queue.
    Lru,
    /// A rescue from limbo, the reference bit of CLOCK, lets it pass once more.
    Clock,
}

/// The queue.
pub struct Queue {
    rule: Rule,
    lists: Lists<1>,
}

impl Queue {
    /// An empty queue; none of these rules needs to know the capacity.
    pub fn new(rule: Rule) -> Self {
        Self { rule, lists: Lists::new() }
    }
}

impl Evict for Queue {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let mark = u8::from(self.rule == Rule::Clock && arrival == Arrival::Rescued);
        if self.rule == Rule::Lru || !self.lists.update(unit, pages, |old| old | mark) {
            self.lists.push(0, unit, pages, mark, 0);
        }
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    /// O(1) amortised: each insert pays for at most one pass over its unit.
    fn victim(&mut self) -> Option<Unit> {
        while self.lists.back(0)?.mark != 0 {
            self.lists.shift(0, 0, 0, 0);
        }
        self.lists.pop(0).map(|node| node.unit)
    }

    fn set_capacity(&mut self, _: u64) {}

    fn resident_pages(&self) -> u64 {
        self.lists.pages(0)
    }

    fn name(&self) -> &'static str {
        match self.rule {
            Rule::Fifo => "fifo",
            Rule::Lru => "lru",
            Rule::Clock => "clock",
        }
    }
}

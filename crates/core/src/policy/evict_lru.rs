//! Least recently *seen*: like FIFO, but a unit that is inserted again while resident moves to the front. Hits are invisible to
//! eviction policies, so this is the LRU that a pager can have; true LRU is `replay::lru`.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

/// Evicts the unit that was seen longest ago.
pub struct Lru {
    lists: Lists<1>,
}

impl Lru {
    /// An empty policy; LRU needs no capacity.
    pub fn new() -> Self {
        Self { lists: Lists::new() }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Evict for Lru {
    fn insert(&mut self, unit: Unit, pages: u32, _: Arrival) {
        self.lists.push(0, unit, pages, 0, 0);
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    fn victim(&mut self) -> Option<Unit> {
        self.lists.pop(0).map(|node| node.unit)
    }

    fn set_capacity(&mut self, _: u64) {}

    fn resident_pages(&self) -> u64 {
        self.lists.pages(0)
    }

    fn name(&self) -> &'static str {
        "lru"
    }
}

//! Second chance: arrival order, but a unit that was rescued from limbo is passed over once. Limbo is the reference bit.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

/// Evicts in order of arrival and gives rescued units a second round.
pub struct Clock {
    lists: Lists<1>,
}

impl Clock {
    /// An empty policy; CLOCK needs no capacity.
    pub fn new() -> Self {
        Self { lists: Lists::new() }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Evict for Clock {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let mark = u8::from(arrival == Arrival::Rescued);
        if !self.lists.update(unit, pages, |old| old | mark) {
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
        "clock"
    }
}

//! First in, first out: the unit that arrived earliest leaves. A rescue is a new arrival.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

/// Evicts in order of arrival.
pub struct Fifo {
    lists: Lists<1>,
}

impl Fifo {
    /// An empty policy; FIFO needs no capacity.
    pub fn new() -> Self {
        Self { lists: Lists::new() }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl Evict for Fifo {
    fn insert(&mut self, unit: Unit, pages: u32, _: Arrival) {
        if !self.lists.update(unit, pages, |mark| mark) {
            self.lists.push(0, unit, pages, 0, 0);
        }
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
        "fifo"
    }
}

//! Keep what came first: the newest unit leaves, apart from a few newcomers that are kept to be used. One newcomer in 32 stays
//! for good and takes the place of the oldest. Near-optimal on loops and as good as any on uniform access; slow to follow
//! change. Here for comparison: the adaptive policy takes what is good in it.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

const NEW: usize = 0;
const KEPT: usize = 1;

/// A frozen set and a short queue of newcomers.
pub struct Freeze {
    lists: Lists<2>,
    capacity: u64,
    turn: u32,
}

impl Freeze {
    /// For a near of `capacity` pages.
    pub fn new(capacity: u64) -> Self {
        Self { lists: Lists::new(), capacity, turn: 0 }
    }
}

impl Evict for Freeze {
    fn insert(&mut self, unit: Unit, pages: u32, _: Arrival) {
        if self.lists.update(unit, pages, |mark| mark) {
            return;
        }
        self.lists.push(NEW, unit, pages, 0, 0);
        let queue = self.capacity / 50;
        while self.lists.pages(NEW) > queue && self.lists.pages(KEPT) + queue < self.capacity {
            self.lists.shift(NEW, KEPT, 0, 0);
        }
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    fn victim(&mut self) -> Option<Unit> {
        self.turn = (self.turn + 1) % 32;
        if self.turn == 0 && self.lists.count(KEPT) > 0 && self.lists.count(NEW) > 0 {
            self.lists.shift(NEW, KEPT, 0, 0);
            return self.lists.pop(KEPT).map(|node| node.unit);
        }
        let list = if self.lists.count(NEW) > 0 { NEW } else { KEPT };
        self.lists.pop(list).map(|node| node.unit)
    }

    fn set_capacity(&mut self, pages: u64) {
        self.capacity = pages;
    }

    fn resident_pages(&self) -> u64 {
        self.lists.pages(NEW) + self.lists.pages(KEPT)
    }

    fn name(&self) -> &'static str {
        "freeze"
    }
}

//! S3-FIFO (Yang et al., SOSP '23) on visible events: a small queue for newcomers, a main queue, a ghost of evicted names.
//!
//! Newcomers that leave the small queue are forgotten unless they come back: rescued from limbo or while their ghost lasts,
//! they go to main. Main gives rescued units further rounds. Resists one-time scans and follows skew; a loop larger than near
//! defeats it (each unit comes back just in time to push out another), which is why it is not the default.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
/// Rounds that a unit can earn in main.
const ROUNDS: u8 = 3;

/// Small queue, main queue, ghost.
pub struct S3Fifo {
    lists: Lists<3>,
    capacity: u64,
}

impl S3Fifo {
    /// For a near of `capacity` pages.
    pub fn new(capacity: u64) -> Self {
        Self { lists: Lists::new(), capacity }
    }

    fn trim_ghost(&mut self) {
        while self.lists.pages(GHOST) > self.capacity {
            self.lists.pop(GHOST);
        }
    }
}

impl Evict for S3Fifo {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let rescued = u8::from(arrival == Arrival::Rescued);
        let (list, mark) = match self.lists.find(unit) {
            Some((GHOST, node)) => (MAIN, (node.mark + rescued).min(ROUNDS)),
            Some(_) => {
                self.lists.update(unit, pages, |mark| (mark + rescued).min(ROUNDS));
                return;
            }
            None => (if rescued == 1 { MAIN } else { SMALL }, rescued),
        };
        self.lists.push(list, unit, pages, mark, 0);
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    /// O(1) amortised: each rescue pays for one further round.
    fn victim(&mut self) -> Option<Unit> {
        loop {
            let small = self.lists.pages(SMALL) * 10 > self.capacity || self.lists.count(MAIN) == 0;
            let list = if small && self.lists.count(SMALL) > 0 { SMALL } else { MAIN };
            let &node = self.lists.back(list)?;
            if node.mark > 0 {
                self.lists.shift(list, MAIN, node.mark - 1, 0);
                continue;
            }
            self.lists.shift(list, GHOST, 0, 0);
            self.trim_ghost();
            return Some(node.unit);
        }
    }

    fn set_capacity(&mut self, pages: u64) {
        self.capacity = pages;
        self.trim_ghost();
    }

    fn resident_pages(&self) -> u64 {
        self.lists.pages(SMALL) + self.lists.pages(MAIN)
    }

    fn name(&self) -> &'static str {
        "s3fifo"
    }
}

//! The default: keeps its share of loops larger than near, follows skew, and lets go of what a change of phase left behind.

use crate::policy::units::Lists;
use crate::policy::{Arrival, Evict, Unit};

const IN: usize = 0;
const MAIN: usize = 1;
const GHOST_IN: usize = 2;
const GHOST_MAIN: usize = 3;
const ROUNDS: u8 = 3;
const PROBE: u32 = 32;

/// Newcomers, main, and the ghosts of both.
pub struct Adaptive {
    lists: Lists<4>,
    capacity: u64,
    clock: u64,
    in_target: u64,
    tau: f64,
    turn: u32,
}

impl Adaptive {
    /// For a near of `capacity` pages.
    pub fn new(capacity: u64) -> Self {
        let mut policy = Self { lists: Lists::new(), capacity, clock: 0, in_target: 0, tau: 0.0, turn: 0 };
        policy.set_capacity(capacity);
        policy
    }

    fn in_min(&self) -> u64 {
        (self.capacity / 50).max((self.capacity / 8).min(4096))
    }

    fn observe(&mut self, distance: u64) {
        let up = distance as f64 >= self.tau;
        self.tau *= if up { 1.1 } else { 1.0 / 1.1 };
        self.tau = self.tau.clamp(self.capacity as f64 / 64.0, self.capacity as f64);
    }

    fn fill(&mut self) {
        while self.lists.pages(IN) > self.in_target && self.lists.pages(MAIN) + self.in_target < self.capacity {
            self.lists.shift(IN, MAIN, 0, 0);
        }
    }

    fn trim(&mut self) {
        while self.lists.pages(GHOST_IN) > self.capacity {
            self.lists.pop(GHOST_IN);
        }
        while let Some(&node) = self.lists.back(GHOST_MAIN) {
            if self.clock - node.time < self.capacity && self.lists.pages(GHOST_MAIN) <= self.capacity {
                break;
            }
            self.lists.pop(GHOST_MAIN);
            self.observe(self.clock - node.time);
        }
    }
}

impl Evict for Adaptive {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let rescued = arrival == Arrival::Rescued;
        if !rescued {
            self.clock += u64::from(pages);
        }
        let found = self.lists.find(unit).map(|(list, node)| (list, *node));
        let (list, mark) = match found {
            Some((IN | MAIN, _)) => {
                self.lists.update(unit, pages, |m| m);
                return;
            }
            Some((GHOST_IN, node)) => {
                let distance = self.clock - node.time;
                if rescued {
                    if node.mark > 0 { (MAIN, 1) } else { (IN, 1) }
                } else if (distance as f64) < 0.75 * self.tau {
                    (MAIN, 0)
                } else {
                    (IN, 0)
                }
            }
            Some((_, node)) => {
                let distance = self.clock - node.time;
                self.observe(distance);
                if rescued {
                    (MAIN, 1)
                } else if (distance as f64) < 0.75 * self.tau {
                    (MAIN, 0)
                } else {
                    (IN, 0)
                }
            }
            None => (IN, 0),
        };
        self.lists.push(list, unit, pages, mark, 0);
        self.fill();
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    fn victim(&mut self) -> Option<Unit> {
        self.trim();
        self.turn = (self.turn + 1) % PROBE;
        let mut from_in = self.lists.pages(IN) >= self.in_target.min(self.lists.pages(MAIN)) && self.lists.count(IN) > 0;
        if from_in && self.turn == 0 && self.lists.count(MAIN) > 0 {
            self.lists.shift(IN, MAIN, 0, 0);
            from_in = false;
        }
        if from_in {
            let mark = self.lists.back(IN)?.mark;
            return self.lists.shift(IN, GHOST_IN, mark, self.clock);
        }
        while self.lists.back(MAIN)?.mark > 0 {
            let mark = self.lists.back(MAIN)?.mark - 1;
            self.lists.shift(MAIN, MAIN, mark.min(ROUNDS), 0);
        }
        self.lists.shift(MAIN, GHOST_MAIN, 0, self.clock)
    }

    fn set_capacity(&mut self, pages: u64) {
        self.capacity = pages;
        self.in_target = self.in_min();
        self.tau = pages as f64 / 4.0;
    }

    fn resident_pages(&self) -> u64 {
        self.lists.pages(IN) + self.lists.pages(MAIN)
    }

    fn name(&self) -> &'static str {
        "adaptive"
    }
}

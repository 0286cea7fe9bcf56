//! The default eviction policy: keeps its share of loops larger than near, follows skew, lets go of what a change of phase left.
//!
//! Newcomers pass through a short FIFO (`IN`); what earns it stays in `MAIN`, which is frozen unless something better comes.
//! Hits are invisible, so worth is measured on what was evicted: names of victims are kept as ghosts, and how soon ghosts come
//! back, per page and per page of misses, is the *rate* of the queue that they left. A few victims are always taken from MAIN,
//! in exchange for newcomers, to know its rate. Two decisions follow:
//!
//! - A ghost that comes back sooner than MAIN's do on average goes to MAIN. In a loop, victims of MAIN are taken anywhere in
//!   their round and come back after half a round, newcomers after a whole one: MAIN stays frozen, which is best there.
//! - When newcomers' ghosts come back at a higher rate than MAIN's, IN grows, up to nearly all of near: then this is FIFO,
//!   which is best when use moves on. When MAIN's rate is higher, IN shrinks. Without evidence nothing changes.
//!
//! Limbo is a ghost that costs no I/O: a newcomer rescued from limbo makes IN a little longer, one rescued twice goes to MAIN.

use crate::policy::units::{Lists, Node};
use crate::policy::{Arrival, Evict, Unit};

const IN: usize = 0;
const MAIN: usize = 1;
/// Ghosts of IN that left lately.
const NEAR: usize = 2;
/// Ghosts of IN that left longer ago.
const FAR: usize = 3;
/// Ghosts of MAIN, the same.
const LEFT_NEAR: usize = 4;
const LEFT_FAR: usize = 5;
/// One victim in this many is taken from MAIN at least, while few of its ghosts are about.
const PROBE: u32 = 32;

/// Rate of return of a queue's ghosts, averaged over about a capacity of misses.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Pages that came back.
    back: f64,
    /// Pages that were away, times the pages of misses during which they were.
    away: f64,
}

impl Rate {
    fn pass(&mut self, keep: f64, away: f64) {
        self.back *= keep;
        self.away = self.away * keep + away;
    }

    /// Per page of misses; 0 without `evidence` pages that came back.
    fn measured(&self, evidence: f64) -> f64 {
        if self.back > evidence { self.back / self.away } else { 0.0 }
    }

    /// Per page of misses, drawn towards `prior` as if `weight` pages had come back at that rate.
    fn drawn(&self, prior: f64, weight: f64) -> f64 {
        (self.back + weight) / (self.away + weight / prior)
    }
}

/// Rates of IN and MAIN over one window of time. A short window favours what comes back soon; only equal windows compare.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    newcomers: Rate,
    main: Rate,
}

impl Pair {
    fn rates(&self, span: f64) -> (f64, f64) {
        let newcomers = self.newcomers.measured(span / 64.0);
        let prior = if newcomers > 0.0 { 2.0 * newcomers } else { 1.0 / span };
        (newcomers, self.main.drawn(prior, span / 256.0))
    }
}

/// Newcomers, main, and the ghosts of both.
pub struct Adaptive {
    lists: Lists<6>,
    capacity: u64,
    /// Pages of misses so far.
    clock: u64,
    /// Pages that IN should have, and at least has because of rescues.
    target: f64,
    floor: f64,
    soon: Pair,
    ever: Pair,
    turn: u32,
    /// MAIN took back a victim from limbo; IN makes room for it, or a sweep through MAIN would rescue one unit after another.
    owed: bool,
}

impl Adaptive {
    /// For a near of `capacity` pages.
    pub fn new(capacity: u64) -> Self {
        let none = Pair::default();
        let mut policy = Self {
            lists: Lists::new(),
            capacity,
            clock: 0,
            target: 0.0,
            floor: 0.0,
            soon: none,
            ever: none,
            turn: 0,
            owed: false,
        };
        policy.set_capacity(capacity);
        policy
    }

    /// 2 % of near, but no less than eight blocks where that is at most 3 %: what streams are at work on must fit.
    fn least(&self) -> f64 {
        (self.capacity / 50).max((self.capacity / 32).min(4096)) as f64
    }

    fn span(&self) -> f64 {
        self.capacity.max(1) as f64
    }

    /// `pages` were missed: ghosts grow older, averages fade, IN adapts.
    fn pass(&mut self, pages: u32) {
        self.clock += u64::from(pages);
        let step = f64::from(pages);
        let keep = (1.0 - step / self.span()).max(0.5);
        let away = |list: usize| self.lists.pages(list) as f64 * step;
        let (near, far, left_near, left_far) = (away(NEAR), away(FAR), away(LEFT_NEAR), away(LEFT_FAR));
        self.soon.newcomers.pass(keep, near);
        self.ever.newcomers.pass(keep, near + far);
        self.soon.main.pass(keep, left_near);
        self.ever.main.pass(keep, left_near + left_far);
        let (soon, soon_main) = self.soon.rates(self.span());
        let (ever, ever_main) = self.ever.rates(self.span());
        if soon > 2.0 * soon_main || ever > 2.0 * ever_main {
            self.target += 2.0 * step;
        } else if ever_main > ever && self.ever.main.back > self.span() / 256.0 {
            self.target -= step;
        }
        self.floor *= 1.0 - 0.1 * (1.0 - keep);
        let least = self.least().max(self.floor);
        self.target = self.target.clamp(least, (0.9 * self.span()).max(least));
        self.age();
    }

    fn age(&mut self) {
        for (near, far) in [(NEAR, FAR), (LEFT_NEAR, LEFT_FAR)] {
            while let Some(&node) = self.lists.back(near) {
                if self.clock - node.time <= self.capacity / 8 {
                    break;
                }
                self.lists.shift(near, far, node.mark, node.time);
            }
            while let Some(&node) = self.lists.back(far) {
                if self.clock - node.time <= 2 * self.capacity {
                    break;
                }
                self.lists.pop(far);
            }
        }
    }

    /// What leaves IN stays if MAIN has room.
    fn fill(&mut self) {
        let target = self.target as u64;
        while self.lists.pages(IN) > target && self.lists.pages(MAIN) + target < self.capacity {
            self.lists.shift(IN, MAIN, 0, 0);
        }
    }
}

impl Evict for Adaptive {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let rescued = arrival == Arrival::Rescued;
        if !rescued {
            self.pass(pages);
        }
        let found = self.lists.find(unit).map(|(list, node)| (list, *node));
        let size = f64::from(pages);
        let mut to = IN;
        let mut mark = 0;
        match found {
            Some((IN | MAIN, _)) => {
                self.lists.update(unit, pages, |mark| mark);
                return;
            }
            Some((NEAR | FAR, node)) if rescued => {
                self.floor = (self.floor.max(self.least()) + size).min(self.span() / 8.0);
                mark = 1;
                if node.mark > 0 {
                    to = MAIN;
                }
            }
            Some((LEFT_NEAR | LEFT_FAR, _)) if rescued => {
                self.soon.main.back += size;
                self.ever.main.back += size;
                (to, mark) = (MAIN, 1);
                self.owed = true;
            }
            Some((list, node)) => {
                let mut away = (self.clock - node.time) as f64;
                let left = matches!(list, LEFT_NEAR | LEFT_FAR);
                if !left {
                    away += self.lists.pages(IN) as f64;
                }
                let near = matches!(list, NEAR | LEFT_NEAR);
                for pair in [near.then_some(&mut self.soon), Some(&mut self.ever)].into_iter().flatten() {
                    if left { pair.main.back += size } else { pair.newcomers.back += size }
                }
                if away * self.ever.rates(self.span()).1 < 0.7 {
                    to = MAIN;
                }
            }
            None => {}
        }
        self.lists.push(to, unit, pages, mark, 0);
        self.fill();
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    /// O(1) amortised: each rescue pays for one further round.
    fn victim(&mut self) -> Option<Unit> {
        // The newcomer that needs the room belongs to IN: without it in the sum, sizes that do not divide the target would
        // make every victim one of MAIN's.
        let full = |oldest: &Node| self.lists.pages(IN) as f64 + f64::from(oldest.pages) >= self.target;
        let from_in = self.lists.back(IN).is_some_and(|oldest| full(oldest) || self.owed || self.lists.count(MAIN) == 0);
        let mut list = if from_in { IN } else { MAIN };
        if list == IN
            && self.lists.count(MAIN) > 0
            && self.lists.pages(LEFT_NEAR) + self.lists.pages(LEFT_FAR) < self.capacity / 64
        {
            self.turn += 1;
            if self.turn >= PROBE {
                self.turn = 0;
                self.lists.shift(IN, MAIN, 0, 0);
                list = MAIN;
            }
        }
        self.owed = false;
        if list == IN {
            let mark = self.lists.back(IN)?.mark;
            return self.lists.shift(IN, NEAR, mark, self.clock);
        }
        while self.lists.back(MAIN)?.mark > 0 {
            self.lists.shift(MAIN, MAIN, 0, 0);
        }
        self.lists.shift(MAIN, LEFT_NEAR, 0, self.clock)
    }

    fn set_capacity(&mut self, pages: u64) {
        self.capacity = pages;
        self.floor = self.floor.min(self.span() / 8.0);
        self.target = self.target.clamp(self.least(), self.span().max(self.least()));
    }

    fn resident_pages(&self) -> u64 {
        self.lists.pages(IN) + self.lists.pages(MAIN)
    }

    fn name(&self) -> &'static str {
        "adaptive"
    }
}

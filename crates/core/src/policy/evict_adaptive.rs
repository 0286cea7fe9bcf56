//! The default eviction policy: keeps its share of loops larger than near, follows skew, lets go of what a change of phase left.
//!
//! Newcomers pass through a short FIFO (`IN`); what earns it stays in `MAIN`, which is frozen unless something better comes.
//! Hits are invisible, so worth is measured on what was evicted: names of victims are kept as ghosts, and how soon ghosts come
//! back, per page and per page of misses, is the *rate* of the queue that they left. A few victims are always taken from MAIN,
//! in exchange for newcomers, to know its rate. Two decisions follow:
//!
//! - A ghost that comes back much sooner than MAIN's do on average goes to MAIN. In a loop, victims of MAIN are taken anywhere
//!   in their round and come back after half a round, newcomers after a whole one: MAIN stays frozen, which is best there.
//! - When newcomers' ghosts come back at twice the rate of MAIN's, IN grows, up to nearly all of near: then this is FIFO, which
//!   is best when use moves on. When MAIN's rate is higher, IN shrinks. Without evidence nothing changes. Ghosts that IN would
//!   not have kept even at its longest do not count here: for a loop a little larger than near, FIFO is as bad as can be.
//!
//! Twice the rate of MAIN's also means that MAIN holds what a past phase left: while IN is short, all ghosts that come back go
//! to MAIN, until it has been replaced once. It is a new MAIN then, of which nothing is known.
//!
//! Of two units that come back equally soon, the one that is written each time costs twice: ghosts that were are taken into
//! MAIN in exchange for units that are not known to be. A loop that reads two arrays and writes a third keeps the third. When
//! MAIN must give for what is better than it, written units do so when they have been there much longer than the others. This
//! is so of whole blocks only: where chunks come and go, nearly all are written at some time (docs/explanation/policies.md has figures).
//!
//! While IN is large its hits are worth knowing too: a few of its units are drawn at random and let go early. Those that come
//! back before they would have left are hits that IN would have had. IN does not shrink while that rate is as good as
//! MAIN's. Victims that are to tell MAIN's rate are drawn at random as well: its oldest may be just what a sweep comes to next.
//!
//! Limbo is a ghost that costs no I/O: a newcomer rescued from limbo makes IN a little longer, one rescued twice goes to MAIN.

use crate::policy::rates::{Known, Pair, Rate};
use crate::policy::units::{Lists, Node};
use crate::policy::{Arrival, Evict, Unit};
use crate::random_numbers::xorshift;

const IN: usize = 0;
const MAIN: usize = 1;
/// The part of MAIN that is known to be written each time it leaves.
const COSTLY: usize = 2;
/// First list of the ghosts of IN, one list per window; the ghosts of MAIN follow.
const GHOSTS: usize = 3;
const LEFT: usize = GHOSTS + WINDOWS;
const WINDOWS: usize = 3;
/// Ghosts of both that are too old to tell of rates, but had to be written.
const PAST: usize = LEFT + WINDOWS;
/// Ghosts of units that IN let go early.
const DRAWN: usize = PAST + 1;
const LISTS: usize = DRAWN + 1;
/// Windows of time in which rates are compared, in eighths of the capacity, of misses. A short window favours what comes back
/// soon, so only equal windows compare; a long one dilutes it. The longest is how long ghosts are kept: two capacities of
/// names cost about 0.3 % of near when units are chunks, far less when they are blocks.
const WINDOW_EIGHTHS: [u64; WINDOWS] = [1, 4, 16];
/// One victim in this many is taken from MAIN, unless enough of its ghosts are about.
const PROBE: u32 = 32;
/// Enough: one part in this many of near. Fewer, and a change of phase is seen late; more, and MAIN of a loop much larger than
/// near is exchanged before it has earned its place.
const PROBES: u64 = 90;
/// A ghost goes to MAIN when it was away for less than this share of the mean absence from MAIN.
const SOONER: f64 = 0.25;
/// A ghost that is written each time goes to MAIN, in exchange for one that is not, when it was away for less than this multiple of
/// the mean absence from MAIN: in a loop it is two.
const NO_LATER: f64 = 2.5;
/// A block is written when this share of its pages was.
const WRITTEN_SHARE: u32 = 4;
/// Written units give when they have been in MAIN this many times as long as the oldest of the others.
const LONGER: u64 = 8;
/// So many ghosts are forgotten with each newcomer.
const FORGOTTEN: usize = 64;
/// So many times the number of units in near are kept in `PAST`.
const PAST_MOST: usize = 8;
/// IN grows when newcomers' rate is this many times MAIN's.
const BETTER: f64 = 2.0;
/// IN's own rate is measured where it is at least this part of near,
const LARGE: f64 = 0.25;
/// by one victim in this many,
const DRAW: u32 = 16;
/// as long as fewer than one part in this many of near are away for it,
const DRAWS: u64 = 64;
/// for this part of the capacity, of misses.
const DRAWN_WINDOW: u64 = 2;
/// As good: this share of MAIN's rate.
const AS_GOOD: f64 = 0.9;
/// Pages by which IN grows and shrinks per page of misses.
const GROW: f64 = 2.0;
const SHRINK: f64 = 0.5;
/// Most of near that IN may be.
const IN_MOST: f64 = 0.9;

/// Newcomers, main, and the ghosts of both.
pub struct Adaptive {
    lists: Lists<LISTS>,
    capacity: u64,
    /// Pages of misses so far.
    clock: u64,
    /// Pages that IN should have.
    target: f64,
    /// Pages that IN needs because of rescues and bursts.
    floor: f64,
    windows: [Pair; WINDOWS],
    /// Rate at which IN's units are visited while they are there.
    inside: Rate,
    /// Size of large newcomers lately, in pages.
    newcomer: u32,
    turn: u32,
    draw_turn: u32,
    state: u64,
    /// MAIN took back a victim from limbo; IN makes room for it, or a sweep through MAIN would rescue one unit after another.
    owed: bool,
    /// Victims of MAIN that came back since one has left.
    came_back: u32,
    /// MAIN is of a past phase.
    past: bool,
    /// Pages that came to MAIN because of that.
    replaced: u64,
    /// When MAIN had been replaced: what left it until then says nothing of what it has now.
    renewed: u64,
    /// Pages that came to COSTLY only because they are written: units that are not must make room for them.
    exchanged: u64,
    /// Which part of MAIN the next probe comes from: the parts take turns by size.
    costly_turn: f64,
}

impl Adaptive {
    /// For a near of `capacity` pages.
    pub fn new(capacity: u64) -> Self {
        let windows = [Pair::default(); WINDOWS];
        let mut policy = Self {
            lists: Lists::new(),
            capacity: 1,
            clock: 0,
            target: 0.0,
            floor: 0.0,
            windows,
            inside: Rate::default(),
            newcomer: 0,
            turn: 0,
            draw_turn: 0,
            state: 0x9e37_79b9_7f4a_7c15,
            owed: false,
            came_back: 0,
            past: false,
            replaced: 0,
            renewed: 0,
            exchanged: 0,
            costly_turn: 0.0,
        };
        policy.set_capacity(capacity);
        policy
    }

    /// 2 % of near, but no less than eight blocks where that is at most 3 %: what streams are at work on must fit. Where near
    /// is small, room for four large newcomers as far as an eighth of it allows.
    fn least(&self) -> f64 {
        let few = (4 * u64::from(self.newcomer)).min(self.capacity / 8);
        (self.capacity / 50).max((self.capacity / 32).min(4096)).max(few) as f64
    }

    /// IN is made longer for the sake of rescues up to an eighth of near; where that is less than room for 32 large newcomers
    /// (streams that are at work at once), up to a quarter.
    fn longest(&self) -> f64 {
        let many = f64::from(32 * self.newcomer);
        (self.span() / 8.0).max(many.min(self.span() / 4.0))
    }

    fn span(&self) -> f64 {
        self.capacity as f64
    }

    fn known(&self, window: usize) -> Known {
        self.windows[window].rates(self.span(), f64::from(self.newcomer))
    }

    /// `pages` were missed: ghosts grow older, averages fade, IN adapts.
    fn pass(&mut self, pages: u32) {
        self.clock += u64::from(pages);
        let step = f64::from(pages);
        let keep = (1.0 - step / self.span()).max(0.5);
        let span = self.span();
        let drawn_away = self.lists.pages(DRAWN) as f64 * step;
        self.inside.pass(keep, drawn_away);
        let (mut past, mut grow, mut shrink) = (false, false, false);
        let (mut newcomers_away, mut main_away) = (0.0, 0.0);
        let main_step = if self.forget() { step } else { 0.0 };
        for window in 0..WINDOWS {
            newcomers_away += self.lists.pages(GHOSTS + window) as f64 * step;
            main_away += self.lists.pages(LEFT + window) as f64 * main_step;
            let pair = &mut self.windows[window];
            pair.newcomers.pass(keep, newcomers_away);
            pair.reached.pass(keep, newcomers_away);
            pair.main.pass(keep, main_away);
            let known = self.known(window);
            past |= known.newcomers > BETTER * known.main;
            grow |= known.reached > BETTER * known.main;
            // The last window has all there is to know of MAIN.
            shrink = known.main > known.reached && self.windows[window].main.back > span / 256.0;
        }
        self.past = past;
        // Windows of one length compare; of MAIN's the second is as long as that of what was drawn.
        let main = self.windows[1].main.measured(span / 512.0);
        if self.is_large() && self.inside.measured(span / 256.0) > AS_GOOD * main.max(f64::MIN_POSITIVE) {
            shrink = false;
        }
        if grow {
            self.target += GROW * step;
        } else if shrink {
            self.target -= SHRINK * step;
        }
        self.floor *= 1.0 - 0.1 * (1.0 - keep);
        let least = self.least().max(self.floor);
        self.target = self.target.clamp(least, (IN_MOST * self.span()).max(least));
        self.age();
    }

    fn is_large(&self) -> bool {
        self.lists.pages(IN) as f64 > LARGE * self.span()
    }

    /// Moves ghosts on to the next window, and forgets them after the last. O(1) amortised.
    fn age(&mut self) {
        while let Some(&node) = self.lists.back(DRAWN)
            && self.clock - node.time > self.capacity / DRAWN_WINDOW
        {
            self.lists.pop(DRAWN);
        }
        for first in [GHOSTS, LEFT] {
            for (window, eighths) in WINDOW_EIGHTHS.into_iter().enumerate() {
                let most = self.capacity / 8 * eighths;
                while let Some(&node) = self.lists.back(first + window)
                    && self.clock - node.time > most
                {
                    match window + 1 < WINDOWS {
                        true => self.lists.shift(first + window, first + window + 1, node.mark, node.time),
                        false if node.written => self.lists.shift(first + window, PAST, 0, node.time),
                        false => self.lists.pop(first + window).map(|node| node.unit),
                    };
                }
            }
        }
        let most = PAST_MOST * (self.lists.count(IN) + self.lists.count(MAIN) + self.lists.count(COSTLY));
        while self.lists.count(PAST) > most {
            self.lists.pop(PAST);
        }
    }

    /// IN was too short by `pages`.
    fn lengthen(&mut self, pages: u32) {
        self.floor = (self.floor.max(self.least()) + f64::from(pages)).min(self.longest());
    }

    /// Takes note that a ghost from `list` came back.
    fn count_back(&mut self, list: usize, pages: u32, ghost: Node) {
        if list == PAST || (list >= LEFT && ghost.time <= self.renewed) {
            return;
        }
        let reached = (self.clock - ghost.born) as f64 <= IN_MOST * self.span();
        let (first, main) = if list >= LEFT { (LEFT, true) } else { (GHOSTS, false) };
        for pair in &mut self.windows[list - first..] {
            let rate = if main { &mut pair.main } else { &mut pair.newcomers };
            rate.back += f64::from(pages);
            if !main && reached {
                pair.reached.back += f64::from(pages);
            }
        }
    }

    /// MAIN has been replaced: what is known of it is about what it held before.
    fn renew(&mut self) {
        self.replaced = 0;
        self.renewed = self.clock;
        self.windows.iter_mut().for_each(|pair| pair.main = Rate::default());
    }

    /// Forgets ghosts that MAIN had before it was replaced, a few at a time; true when none is left.
    fn forget(&mut self) -> bool {
        let mut few = FORGOTTEN;
        for window in LEFT..PAST {
            while let Some(&node) = self.lists.back(window)
                && node.time <= self.renewed
            {
                if few == 0 {
                    return false;
                }
                few -= 1;
                match node.written {
                    true => self.lists.shift(window, PAST, 0, node.time),
                    false => self.lists.pop(window).map(|node| node.unit),
                };
            }
        }
        true
    }

    /// A newcomer of which nothing is known.
    fn enter(&mut self, unit: Unit, pages: u32) {
        self.lists.push(IN, unit, pages, 0, 0);
        self.lists.bear(unit, self.clock);
        self.fill();
    }

    /// Makes a random unit of `list` its oldest.
    fn draw(&mut self, list: usize) {
        let state = &mut self.state;
        self.lists.draw(list, || xorshift(state));
    }

    /// Pages in both parts of MAIN.
    fn kept(&self) -> u64 {
        self.lists.pages(MAIN) + self.lists.pages(COSTLY)
    }

    /// The part of MAIN that a probe is taken from.
    fn probed(&mut self) -> usize {
        self.costly_turn += self.lists.pages(COSTLY) as f64 / self.kept().max(1) as f64;
        if self.costly_turn >= 1.0 && self.lists.count(COSTLY) > 0 {
            self.costly_turn -= 1.0;
            COSTLY
        } else {
            self.cheapest()
        }
    }

    /// The part of MAIN that gives first.
    fn cheapest(&self) -> usize {
        if self.lists.count(MAIN) > 0 { MAIN } else { COSTLY }
    }

    /// The part of MAIN that gives for what is better than MAIN.
    fn oldest(&mut self) -> usize {
        let (Some(other), Some(costly)) = (self.lists.back(MAIN), self.lists.back(COSTLY)) else {
            self.exchanged = 0;
            return self.cheapest();
        };
        if self.exchanged > 0 {
            self.exchanged = self.exchanged.saturating_sub(u64::from(other.pages));
            return MAIN;
        }
        if self.clock - costly.born > LONGER * (self.clock - other.born) { COSTLY } else { MAIN }
    }

    /// Pages that MAIN may have.
    fn share(&self) -> u64 {
        self.capacity.saturating_sub(self.target as u64)
    }

    /// What leaves IN stays if MAIN has room for all of it: with less, sizes that do not divide MAIN's share would make it take
    /// newcomers in and let go of as many for ever.
    fn fill(&mut self) {
        let target = self.target as u64;
        while self.lists.pages(IN) > target
            && let Some(&next) = self.lists.back(IN)
            && self.kept() + u64::from(next.pages) <= self.share()
        {
            let to = if next.written { COSTLY } else { MAIN };
            self.lists.shift(IN, to, 0, 0);
        }
    }
}

impl Evict for Adaptive {
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival) {
        let rescued = arrival == Arrival::Rescued;
        self.newcomer = pages.max(self.newcomer - self.newcomer / 64);
        if !rescued {
            self.pass(pages);
        }
        let (list, node) = match self.lists.find(unit) {
            Some((IN | MAIN | COSTLY, _)) => {
                self.lists.update(unit, pages, |mark| mark);
                return;
            }
            Some((DRAWN, &node)) => {
                // Only what IN would still have had: a visit later than that would have missed.
                if self.clock - node.born < self.lists.pages(IN) {
                    self.inside.back += f64::from(pages);
                }
                self.enter(unit, pages);
                return;
            }
            Some((list, &node)) => (list, node),
            None => {
                self.enter(unit, pages);
                return;
            }
        };
        let (mut to, mut mark) = (IN, 0);
        if rescued && (list < LEFT || list == PAST) {
            self.lengthen(pages);
            mark = 1;
            if node.mark > 0 {
                to = MAIN;
            }
        } else if rescued {
            self.count_back(list, pages, node);
            (to, mark) = (MAIN, 1);
            self.owed = true;
            self.came_back = self.came_back.saturating_add(1);
        } else {
            self.count_back(list, pages, node);
            let queued = if list < LEFT || list == PAST { self.lists.pages(IN) } else { 0 };
            let away = (self.clock - node.time + queued) as f64;
            let absence = away * self.known(WINDOWS - 1).main;
            // Rates are known of what comes back within the windows only.
            let replaces = list != PAST && self.past && !self.is_large();
            self.replaced = if replaces { self.replaced + u64::from(pages) } else { 0 };
            if replaces && self.replaced >= self.kept() {
                self.renew();
            }
            if replaces || (list != PAST && absence < SOONER) {
                to = MAIN;
            } else if node.written && absence < NO_LATER && self.lists.count(MAIN) > 0 {
                to = MAIN;
                self.exchanged = (self.exchanged + u64::from(pages)).min(self.lists.pages(MAIN));
            }
        }
        if to == MAIN && node.written {
            to = COSTLY;
        }
        self.lists.push(to, unit, pages, mark, 0);
        self.lists.bear(unit, self.clock);
        self.fill();
    }

    fn remove(&mut self, unit: Unit) {
        self.lists.take(unit);
    }

    /// O(1) amortised: each rescue pays for one further round.
    fn victim(&mut self) -> Option<Unit> {
        // Victims are asked for ahead of need and in bursts, so that what is resident goes up and down. That is IN's alone:
        // MAIN gives only what is beyond its share.
        let over = self.kept() > self.share() && !self.owed;
        let mut list = match self.lists.count(IN) > 0 {
            true if over => self.oldest(),
            true => IN,
            // They may be all that is in MAIN, and not be able to leave.
            false if self.came_back > 1 && self.lists.count(COSTLY) > 0 => COSTLY,
            false => self.cheapest(),
        };
        if list != IN && !over {
            // The bursts are larger than IN: it needs to be longer.
            let pages = self.lists.back(list).map_or(0, |node| node.pages);
            self.lengthen(pages);
        }
        self.owed = false;
        let left: u64 = (LEFT..PAST).map(|list| self.lists.pages(list)).sum();
        if list == IN && self.kept() > 0 && left < self.capacity / PROBES {
            self.turn += 1;
            if self.turn >= PROBE {
                self.turn = 0;
                list = self.probed();
                let to = if self.lists.back(IN).is_some_and(|node| node.written) { COSTLY } else { MAIN };
                self.lists.shift(IN, to, 0, 0);
            }
        }
        if list == IN && self.is_large() && self.lists.pages(DRAWN) < self.capacity / DRAWS {
            self.draw_turn += 1;
            if self.draw_turn >= DRAW {
                self.draw_turn = 0;
                self.draw(IN);
                return self.lists.shift(IN, DRAWN, 0, self.clock);
            }
        }
        if list == IN {
            let mark = self.lists.back(IN)?.mark;
            return self.lists.shift(IN, GHOSTS, mark, self.clock);
        }
        if !over {
            self.draw(list);
        }
        while self.lists.back(list)?.mark > 0 {
            self.lists.shift(list, list, 0, 0);
            if !over {
                self.draw(list);
            }
        }
        self.lists.shift(list, LEFT, 0, self.clock)
    }

    fn left(&mut self, unit: Unit, written: u32) {
        self.came_back = 0;
        if let Some((list, node)) = self.lists.find(unit)
            && list >= GHOSTS
        {
            let written = unit.chunk_index().is_none() && written > 0 && written >= node.pages / WRITTEN_SHARE;
            self.lists.set_written(unit, written);
        }
    }

    fn set_capacity(&mut self, pages: u64) {
        self.capacity = pages.max(1);
        self.floor = self.floor.min(self.longest());
        let least = self.least().max(self.floor);
        self.target = self.target.clamp(least, (IN_MOST * self.span()).max(least));
    }

    fn resident_pages(&self) -> u64 {
        self.lists.pages(IN) + self.kept()
    }

    fn name(&self) -> &'static str {
        "adaptive"
    }
}

//! A candidate for the next fetch policy, in replay only (`nearfar bench replay`): the grain, learned from what came of what was brought,
//! and steps that repeat, followed ahead. docs/policies.md has what it gains and loses so far; the pager does not use it.
//!
//! *Grain.* Around a page that is asked for comes the aligned group of 2^k pages, where k is learned for each block. A group that was asked
//! for opens a trial: is the group beside it asked for while the first would still be there if groups were twice as large, that is, before
//! half of near was brought? Now and then one half of what is brought stays out of view: whether it is asked for before it leaves is such
//! an observation for narrower groups, and so is a page that is asked for soon after it came with another. What a block has not shown
//! itself is taken from its surroundings, and from all together. The worth of a grain is what is used of it for the time of its read; as
//! often as what was asked for had been there not long ago, the room of a page is worth as much as the page, and that is taken off.
//!
//! *Steps.* Faults of one thread that repeat a distance, at a lag of 1 to 8 faults, go on: the next groups at that distance are brought
//! ahead, as far as they turn out to be asked for. So any number of rows or arrays may advance at once; nothing is kept of a row.

use crate::addr::{BLOCK_PAGES, CHUNK_PAGES, PAGE};
use crate::policy::{Fault, Fetch, Found, Prefetch, Room, Run, View};
use std::collections::HashMap;

/// 2^9 pages are a block.
const LEVELS: usize = 9;
/// Blocks of one neighbourhood, as a power of two.
const AROUND: u32 = 5;
/// What is known of a wider place counts like so many observations.
const PRIOR: f64 = 4.0;
/// Counts are halved from here on: what was long ago counts less.
const MOST: u8 = 48;
/// One group in so many is brought with its other half out of view.
const PROBES: u64 = 8;
/// A page of a read, beside the device's time: moving it into view, and what had to leave for it.
const PAGE_NS: f64 = 1000.0;
/// A fault that waits for a device of unknown latency.
const MISS_NS: f64 = 100_000.0;
/// Groups are at most this share of near.
const NEAR_SHARE: u64 = 16;
const THREADS: usize = 64;
/// What lies so far away has nothing to do with a page: it tells what chance brings.
const STRANGER: u64 = 0x1a75;
const LAGS: usize = 8;
/// Faults of a thread that are remembered.
const HISTORY: usize = 2 * LAGS + 1;
/// Time that what is brought ahead should cover.
const AHEAD_NS: f64 = 4_000_000.0;
const DEPTH: i64 = 64;

/// How often the other half was wanted, for each size of a half.
#[derive(Clone, Copy, Default)]
struct Seen {
    wanted: [u8; LEVELS],
    tried: [u8; LEVELS],
}

impl Seen {
    fn note(&mut self, level: usize, wanted: u8, tried: u8) {
        self.wanted[level] += wanted;
        self.tried[level] += tried;
        if self.tried[level] >= MOST || self.wanted[level] >= MOST {
            self.wanted[level] /= 2;
            self.tried[level] /= 2;
        }
    }

    fn share(&self, level: usize, prior: f64) -> f64 {
        let (wanted, tried) = (f64::from(self.wanted[level]), f64::from(self.tried[level]));
        ((wanted + PRIOR * prior) / (wanted + tried + PRIOR)).min(1.0)
    }
}

/// What is known of a block.
#[derive(Clone, Copy)]
struct Place {
    seen: Seen,
    /// Pages that were asked for when they were in far, since their group was asked for last.
    asked: Marks,
    /// Groups that wait for their sibling, and for their stranger, by the page that was asked for.
    open: [Marks; 2],
    /// When something of each chunk was asked for last, in pages brought since the beginning.
    when: [u64; BLOCK_PAGES / CHUNK_PAGES],
}

impl Default for Place {
    fn default() -> Self {
        Self { seen: Seen::default(), asked: Marks::default(), open: [Marks::default(); 2], when: [0; BLOCK_PAGES / CHUNK_PAGES] }
    }
}

/// A bit for each page of a block.
#[derive(Clone, Copy, Default)]
struct Marks([u64; BLOCK_PAGES / 64]);

impl Marks {
    fn get(&self, page: usize) -> bool {
        self.0[page / 64] >> (page % 64) & 1 == 1
    }

    fn set(&mut self, page: usize) {
        self.0[page / 64] |= 1 << (page % 64);
    }

    /// Takes the marks of a group away; true when there were any.
    fn take(&mut self, group: Run) -> bool {
        let first = group.first as usize % BLOCK_PAGES;
        let mut any = false;
        for page in first..first + group.count as usize {
            any |= self.get(page);
            self.0[page / 64] &= !(1 << (page % 64));
        }
        any
    }
}

impl Place {
    fn latest(&self, group: Run) -> u64 {
        let first = group.first as usize % BLOCK_PAGES;
        let last = first + group.count as usize - 1;
        self.when[first / CHUNK_PAGES..=last / CHUNK_PAGES].iter().copied().max().unwrap_or(0)
    }

    /// Page `page` was asked for, and its group of 2^`level` came. The levels at which it had come with another before, and left.
    fn ask(&mut self, page: usize, level: usize, now: u64) -> (u32, bool) {
        let first = page >> level << level;
        let mut levels = 0;
        for other in (first..first + (1 << level)).filter(|&other| other != page && self.asked.get(other)) {
            levels |= 1 << (other ^ page).ilog2();
        }
        let again = self.asked.take(Run { first: first as u64, count: 1 << level });
        self.asked.set(page);
        self.when[first / CHUNK_PAGES..=(first + (1 << level) - 1) / CHUNK_PAGES].fill(now);
        (levels, again)
    }
}

struct Thread {
    number: u32,
    used: u64,
    pages: [u64; HISTORY],
    /// Groups ahead of a step that goes on.
    depth: i64,
}

/// See the module.
pub struct LearnedFetch {
    blocks: HashMap<u64, Box<Place>>,
    around: HashMap<u64, Seen>,
    all: Seen,
    threads: Vec<Thread>,
    clock: u64,
    /// Share of the trials of unrelated pages that near would have lost if it were half as large.
    strangers: f64,
    /// The same of the pages that are asked for themselves.
    returns: f64,
    /// Pages brought so far.
    brought: u64,
}

impl Default for LearnedFetch {
    fn default() -> Self {
        Self::new()
    }
}

/// What is assumed of a program of which nothing is known.
fn first_guess(level: usize) -> f64 {
    if level < 4 { 0.8 } else { 0.5 }
}

impl LearnedFetch {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self {
            blocks: HashMap::new(),
            around: HashMap::new(),
            all: Seen::default(),
            threads: Vec::new(),
            clock: 0,
            strangers: 0.0,
            returns: 0.0,
            brought: 0,
        }
    }

    fn note(&mut self, page: u64, level: usize, wanted: u8, tried: u8) {
        let block = page / BLOCK_PAGES as u64;
        self.blocks.entry(block).or_default().seen.note(level, wanted, tried);
        self.around.entry(block >> AROUND).or_default().note(level, wanted, tried);
        self.all.note(level, wanted, tried);
    }

    /// The best level around `page`.
    fn level(&self, page: u64, room: &Room) -> usize {
        let block = page / BLOCK_PAGES as u64;
        let (own, around) = (self.blocks.get(&block), self.around.get(&(block >> AROUND)));
        let chance = self.strangers.max(self.returns).min(0.9);
        let page_ns = PAGE_NS + if room.far_bytes_per_s > 0 { PAGE as f64 * 1e9 / room.far_bytes_per_s as f64 } else { 2000.0 };
        let most = (room.near_pages / NEAR_SHARE).clamp(1, BLOCK_PAGES as u64).ilog2() as usize;
        let (mut best, mut least, mut used) = (0, MISS_NS + page_ns, 1.0);
        for level in 0..most.min(LEVELS) {
            let mut share = self.all.share(level, first_guess(level));
            share = around.map_or(share, |seen| seen.share(level, share));
            share = own.map_or(share, |place| place.seen.share(level, share));
            used *= 1.0 + ((share - chance) / (1.0 - chance)).max(0.0);
            let cost = (MISS_NS + (2 << level) as f64 * page_ns) / used;
            if cost < least {
                (best, least) = (level + 1, cost);
            }
        }
        best
    }

    /// Page `page` was asked for, and its group of 2^`level` pages came: was the group of `other`, which came alone before, still there?
    /// `None` while that is open.
    fn try_partner(
        &mut self,
        kind: usize,
        page: u64,
        other: u64,
        level: usize,
        room: &Room,
        view: &dyn View,
    ) -> Option<(bool, bool)> {
        let (own, partner) = (group(page, level), group(other, level));
        let (waited, latest) = match self.blocks.get_mut(&(other / BLOCK_PAGES as u64)) {
            Some(place) => (place.open[kind].take(partner), place.latest(partner)),
            None => (false, 0),
        };
        let there = view.in_far(partner, false) != Some(partner);
        // Were groups twice as large, it would be gone in half the time.
        let there_long = there && 2 * (self.brought - latest) <= room.near_pages;
        let open = &mut self.blocks.entry(page / BLOCK_PAGES as u64).or_default().open[kind];
        let mine = open.take(own);
        if !there {
            open.set(page as usize % BLOCK_PAGES);
        }
        if waited { Some((there, there_long)) } else { mine.then_some((false, false)) }
    }

    fn thread(&mut self, number: u32) -> &mut Thread {
        self.clock += 1;
        let clock = self.clock;
        let slot = match self.threads.iter().position(|thread| thread.number == number) {
            Some(slot) => slot,
            None => {
                let fresh = Thread { number, used: 0, pages: [0; HISTORY], depth: 1 };
                if self.threads.len() < THREADS {
                    self.threads.push(fresh);
                    self.threads.len() - 1
                } else {
                    let slot = (0..THREADS).min_by_key(|&slot| self.threads[slot].used).unwrap_or(0);
                    self.threads[slot] = fresh;
                    slot
                }
            }
        };
        self.threads[slot].used = clock;
        &mut self.threads[slot]
    }
}

fn group(page: u64, level: usize) -> Run {
    Run { first: page >> level << level, count: 1 << level }
}

impl Thread {
    /// The distance that the faults at some lag repeat, and the lag.
    fn step(&self) -> Option<(i64, usize)> {
        let page = |back: usize| self.pages[back] as i64;
        (1..=LAGS).find_map(|lag| {
            let step = page(0) - page(lag);
            (step != 0 && self.pages[2 * lag] != 0 && page(lag) - page(2 * lag) == step).then_some((step, lag))
        })
    }

    fn push(&mut self, page: u64) {
        self.pages.rotate_right(1);
        self.pages[0] = page;
    }
}

impl Prefetch for LearnedFetch {
    fn on_fault(&mut self, fault: &Fault, room: &Room, view: &dyn View) -> Fetch {
        let page = fault.page;
        if fault.found == Found::Zero {
            let most = 1 << (room.near_pages / NEAR_SHARE).clamp(1, BLOCK_PAGES as u64).ilog2();
            let pages = if room.free_pages >= (room.near_pages / 8).max(1) { most } else { most.min(CHUNK_PAGES as u64) };
            return Fetch { run: Some(Run { first: page / pages * pages, count: pages as u32 }), ..Fetch::default() };
        }
        let level = self.level(page, room);
        let run = group(page, level);
        let mut ahead = Vec::new();
        let mut brought = run;
        match fault.found {
            Found::Far => {
                let now = self.brought;
                if level < LEVELS {
                    if let Some((_, long)) = self.try_partner(0, page, page ^ 1 << level, level, room, view) {
                        self.note(page, level, u8::from(long), u8::from(!long));
                    }
                    if let Some((there, long)) = self.try_partner(1, page, page ^ STRANGER, level, room, view) {
                        self.strangers += (f64::from(u8::from(there && !long)) - self.strangers) / 512.0;
                    }
                }
                let place = self.blocks.entry(page / BLOCK_PAGES as u64).or_default();
                let latest = place.latest(group(page, level));
                let soon = latest > 0 && now - latest <= 2 * room.near_pages;
                let (early, again) = place.ask(page as usize % BLOCK_PAGES, level, now);
                self.returns += (f64::from(u8::from(again && soon)) - self.returns) / 512.0;
                self.brought += 1 << level;
                for level in (0..LEVELS).filter(|level| soon && early >> level & 1 == 1) {
                    self.note(page, level, 0, 1);
                }
                if level > 0 && self.clock.is_multiple_of(PROBES) {
                    self.probe(page, level, &mut brought, &mut ahead);
                }
            }
            Found::Staged | Found::Late if level > 0 => {
                // Of a probe, or of a step.
                self.note(page, level - 1, 1, 0);
            }
            _ => {}
        }
        let covers = if room.far_bytes_per_s > 0 {
            (AHEAD_NS * room.far_bytes_per_s as f64 / 1e9 / (run.count as f64 * PAGE as f64)) as i64
        } else {
            4
        };
        let room_ahead = (2 * room.staging_pages).saturating_sub(room.staged_pages) / u64::from(run.count);
        let thread = self.thread(fault.thread);
        thread.push(page);
        match thread.step() {
            Some((step, lag)) => {
                if matches!(fault.found, Found::Staged | Found::Late) {
                    thread.depth = (thread.depth * 2).min(DEPTH);
                }
                let most = thread.depth.min(covers.max(2) / lag as i64 + 1).min(room_ahead as i64);
                for ahead_by in 1..=most {
                    let Some(next) = page.checked_add_signed(step * ahead_by) else { break };
                    let run = group(next, level);
                    if run.first >> level == page >> level {
                        continue;
                    }
                    if let Some(part) = view.in_far(run, step < 0)
                        && ahead.last() != Some(&part)
                    {
                        ahead.push(part);
                    }
                }
            }
            None => thread.depth = (thread.depth / 2).max(1),
        }
        Fetch { run: Some(brought), ahead, show: Vec::new() }
    }

    fn on_wasted(&mut self, run: Run) {
        if run.count.is_power_of_two() && run.count < BLOCK_PAGES as u32 {
            self.note(run.first, run.count.ilog2() as usize, 0, 1);
        }
    }

    fn name(&self) -> &'static str {
        "learned"
    }
}

impl LearnedFetch {
    /// Brings one half in view and the other out of it.
    fn probe(&mut self, page: u64, level: usize, brought: &mut Run, ahead: &mut Vec<Run>) {
        *brought = group(page, level - 1);
        ahead.push(group(page ^ 1 << (level - 1), level - 1));
    }
}

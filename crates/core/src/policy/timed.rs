//! Replay with times: what a program's visits to pages take under a fetch and an eviction policy, with a far device that has a latency and
//! a bandwidth.
//!
//! Threads go from visit to visit, compute as long as is said for each, and wait where a page is not in view. The device reads and writes
//! one thing after another at its bandwidth, and what is read is there a latency later; so what is asked for together costs one latency.
//! Nobody waits for a write, but reads that come after it do. Near is `near` pages: what is in view, what was fetched ahead, and limbo,
//! from which pages come back without a read; what of it is set aside follows the pager's rule.
//! Left out: prefetches that wait for room (the oldest ones make room instead), the limit of what is under way, huge pages, what an eviction
//! costs the program.

mod blocks;
#[cfg(test)]
mod tests;
mod threads;

use crate::addr::{BLOCK_PAGES, CHUNK_PAGES, PAGE};
use crate::policy::headroom::Headroom;
use crate::policy::step::Step;
use crate::policy::{Arrival, Evict, Fault, Found, Prefetch, Room, Run, Unit, View};
use blocks::{Block, Blocks, Page, index};
use std::collections::VecDeque;

/// What things take, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Computing in all, divided among the visits.
    pub visit_ns: f64,
    /// A page fault that needs no read, from the instruction and back.
    pub fault_ns: f64,
    /// Each page that is brought into view or taken out of it, beside the device's time.
    pub page_ns: f64,
    /// A read of one page, when the device has nothing else to do.
    pub latency_ns: f64,
    /// Bandwidth of the device, bytes per second, reads and writes together.
    pub bytes_per_s: f64,
    /// Threads that go on beside each other, on average of all visits: see [`width`]. 1: they take turns.
    pub width: f64,
}

/// What a replay came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// Seconds in all.
    pub seconds: f64,
    /// Seconds of waiting for far, all threads together.
    pub waited_s: f64,
    /// Page faults.
    pub faults: u64,
    /// Those that waited for a read that they began.
    pub demand: u64,
    /// Those that waited for a read that had been begun ahead of them.
    pub late: u64,
    /// Those that found what had been read ahead.
    pub staged: u64,
    /// Pages read.
    pub pages_in: u64,
    /// Of these, read ahead of demand.
    pub ahead: u64,
    /// Pages that were brought and left near, or were there at the end, without a visit that the steps tell of.
    pub useless: u64,
    /// Pages written.
    pub pages_out: u64,
}

struct Ahead {
    run: Run,
    begun: f64,
    ready: f64,
    left: u32,
}

/// The program, near and the device at one moment.
pub(super) struct Sim<'a> {
    costs: Costs,
    near: u64,
    /// What of it the eviction policy may fill.
    kept: u64,
    evict: &'a mut dyn Evict,
    fetch: &'a mut dyn Prefetch,
    blocks: Blocks,
    ahead: Vec<Ahead>,
    staged: VecDeque<u32>,
    aside: Headroom,
    limbo: VecDeque<(u64, u64)>,
    view_pages: u64,
    pub(super) staged_pages: u64,
    limbo_pages: u64,
    stamp: u64,
    now: f64,
    device_free: f64,
    pub(super) timed: Timed,
}

/// Replays `steps` with a near of `near` pages.
pub fn timed(steps: &[Step], near: u64, evict: &mut dyn Evict, fetch: &mut dyn Prefetch, costs: &Costs) -> Timed {
    let mut sim = start(near, evict, fetch, costs);
    sim.follow(steps);
    sim.finish()
}

/// How many threads go on beside each other, on average of all visits.
pub fn width(steps: &[Step]) -> f64 {
    let one = |step: &Step| f64::from(u8::from(matches!(step, Step::Visit { .. })));
    let visits: f64 = steps.iter().map(one).sum();
    visits / threads::follow(steps, 0.0, |step, now| now + one(step)).max(1.0)
}

/// Before the first visit.
pub(super) fn start<'a>(near: u64, evict: &'a mut dyn Evict, fetch: &'a mut dyn Prefetch, costs: &Costs) -> Sim<'a> {
    evict.set_capacity(near);
    Sim {
        costs: *costs,
        near,
        kept: near,
        evict,
        fetch,
        blocks: Blocks::default(),
        ahead: Vec::new(),
        staged: VecDeque::new(),
        aside: Headroom::default(),
        limbo: VecDeque::new(),
        view_pages: 0,
        staged_pages: 0,
        limbo_pages: 0,
        stamp: 0,
        now: 0.0,
        device_free: 0.0,
        timed: Timed::default(),
    }
}

impl Sim<'_> {
    fn follow(&mut self, steps: &[Step]) {
        let (Costs { width, .. }, start) = (self.costs, self.now);
        let visit_ns = self.costs.visit_ns * width;
        let mut each = |step: &Step, now: f64| {
            self.now = now;
            match *step {
                Step::Visit { page, thread, write } => self.visit(page, thread, write, visit_ns),
                Step::Gone { page, pages } => self.gone(page, pages),
            }
            self.now
        };
        self.now = match width > 1.0 {
            true => threads::follow(steps, start, each),
            false => steps.iter().fold(start, |now, step| each(step, now)),
        };
    }

    /// What it came to.
    pub(super) fn finish(mut self) -> Timed {
        let in_near = |page: Page| matches!(page, Page::View | Page::Staged(_) | Page::Limbo(_));
        let unused = |block: &Block| (0..BLOCK_PAGES).filter(|&at| in_near(block.pages[at]) && !block.used[at]).count() as u64;
        self.timed.useless += self.blocks.0.values().map(|block| unused(block)).sum::<u64>();
        self.timed.seconds = self.now / 1e9;
        self.timed
    }

    /// `pages` were written to far before the first visit.
    #[cfg(test)]
    pub(super) fn fill(&mut self, pages: std::ops::Range<u64>) {
        pages.for_each(|page| self.blocks.of(page).pages[index(page)] = Page::Far);
    }

    /// The device moves `pages` when it has done what came before; when it has.
    fn transfer(&mut self, pages: u64) -> f64 {
        let ns = pages as f64 * PAGE as f64 / self.costs.bytes_per_s * 1e9;
        self.device_free = self.device_free.max(self.now) + ns;
        self.device_free
    }

    /// Begins a read of `pages`; when it will be there.
    fn read(&mut self, pages: u64) -> f64 {
        self.timed.pages_in += pages;
        self.transfer(pages) + self.costs.latency_ns
    }

    /// After `ns` of computing.
    pub(super) fn visit(&mut self, page: u64, thread: u32, write: bool, ns: f64) {
        self.now += ns;
        let block = self.blocks.of(page);
        let state = block.pages[index(page)];
        // Before anything is evicted for what comes ahead.
        block.dirty[index(page)] |= write;
        block.used[index(page)] = true;
        let ready = block.ready[index(page)];
        match state {
            // Another thread has asked for it.
            Page::View => self.wait_until(ready),
            _ => self.fault(page, thread, write, state),
        }
    }

    fn fault(&mut self, page: u64, thread: u32, write: bool, state: Page) {
        self.timed.faults += 1;
        self.now += self.costs.fault_ns;
        self.adjust_capacity();
        let found = match state {
            Page::Empty => Found::Zero,
            Page::Limbo(_) => Found::Limbo,
            Page::Staged(id) if self.ahead[id as usize].ready > self.now => Found::Late,
            Page::Staged(_) => Found::Staged,
            Page::Far | Page::View => Found::Far,
        };
        let used = self.view_pages + self.staged_pages + self.limbo_pages;
        let room = Room {
            near_pages: self.near,
            free_pages: self.near.saturating_sub(used),
            data_pages: self.blocks.0.len() as u64 * BLOCK_PAGES as u64,
            staging_pages: self.aside.staging_limit(),
            staged_pages: self.staged_pages,
            far_bytes_per_s: self.costs.bytes_per_s as u64,
        };
        let fault = Fault { page, thread, found, write, now_ns: self.now as u64 };
        let fetch = self.fetch.on_fault(&fault, &room, &self.blocks);
        let run = fetch.run.unwrap_or(Run { first: page, count: 1 });
        let (mut ready, mut pages) = match found {
            Found::Staged | Found::Late => {
                self.timed.late += u64::from(found == Found::Late);
                self.timed.staged += u64::from(found == Found::Staged);
                self.show_ahead(page)
            }
            _ => self.bring(page, run, found),
        };
        for run in fetch.show {
            let other = self.show_ahead(run.first);
            (ready, pages) = (ready.max(other.0), pages + other.1);
        }
        for run in fetch.ahead {
            self.stage(run);
        }
        // All of this is asked for at once; others ask for more meanwhile.
        self.wait_until(ready);
        self.now += pages as f64 * self.costs.page_ns;
    }

    /// As the pager does at each of its rounds.
    fn adjust_capacity(&mut self) {
        self.aside.look(self.now as u64, self.near, self.costs.bytes_per_s as u64, self.staged_pages);
        let kept = self.near.saturating_sub(self.aside.pages());
        if kept != self.kept {
            self.kept = kept;
            self.evict.set_capacity(kept);
        }
    }

    fn wait_until(&mut self, ready: f64) {
        if ready > self.now {
            self.timed.waited_s += (ready - self.now) / 1e9;
            self.now = ready;
        }
    }

    /// Brings what of `run` is in the same state as `page`, around it: when it is there, and how many pages.
    fn bring(&mut self, page: u64, run: Run, found: Found) -> (f64, u64) {
        let block = self.blocks.of(page);
        let wanted = block.pages[index(page)];
        let base = page - index(page) as u64;
        let range = (run.first.max(base) - base) as usize
            ..((run.first + u64::from(run.count)).min(base + BLOCK_PAGES as u64) - base) as usize;
        let same = |state: &Page| std::mem::discriminant(state) == std::mem::discriminant(&wanted);
        let whole = range.len() == BLOCK_PAGES && block.pages.iter().all(same);
        let pages: Vec<usize> = match found {
            Found::Limbo => range.filter(|&at| same(&block.pages[at])).collect(),
            // Only what is in one piece around it.
            _ => {
                let at = index(page);
                let first = (range.start..=at).rev().take_while(|&at| same(&block.pages[at])).last().unwrap_or(at);
                let last = (at..range.end).take_while(|&at| same(&block.pages[at])).last().unwrap_or(at);
                (first..=last).collect()
            }
        };
        let count = pages.len() as u64;
        let mut ready = self.now;
        if found == Found::Far {
            self.timed.demand += 1;
            ready = self.read(count);
        }
        if found != Found::Limbo {
            self.aside.took(count);
        } else {
            self.limbo_pages -= count;
            // They are not limbo's any more while room is made.
            let block = self.blocks.of(page);
            pages.iter().for_each(|&at| block.pages[at] = Page::Far);
        }
        self.make_room(count);
        let block = self.blocks.of(page);
        pages.iter().for_each(|&at| block.pages[at] = Page::View);
        block.whole |= whole;
        self.view_pages += count;
        let arrival = match found {
            Found::Zero => Arrival::Touched,
            Found::Limbo => Arrival::Rescued,
            _ => Arrival::Demanded,
        };
        self.settle(base, &pages, arrival, ready);
        (ready, count)
    }

    /// What came into view, and is there when it is `ready`.
    fn settle(&mut self, base: u64, pages: &[usize], arrival: Arrival, ready: f64) {
        let number = (base / BLOCK_PAGES as u64) as usize;
        let block = self.blocks.of(base);
        pages.iter().for_each(|page| block.ready[*page] = ready);
        if block.whole {
            self.evict.insert(Unit::block(number), BLOCK_PAGES as u32, arrival);
            return;
        }
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { return };
        for chunk in first / CHUNK_PAGES..=last / CHUNK_PAGES {
            let range = chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES;
            let count = block.pages[range].iter().filter(|&&page| page == Page::View).count() as u32;
            if count > 0 {
                self.evict.insert(Unit::chunk(number, chunk), count, arrival);
            }
        }
    }

    fn stage(&mut self, run: Run) {
        let Some(part) = self.blocks.in_far(run, false) else { return };
        let base = part.first - index(part.first) as u64;
        let pages: Vec<usize> = (index(part.first)..index(part.first) + part.count as usize)
            .filter(|&at| self.blocks.of(base).pages[at] == Page::Far)
            .collect();
        let count = pages.len() as u64;
        while self.staged_pages + count > self.aside.staging_limit() && self.drop_staged() {}
        self.aside.took(count);
        self.make_room(count);
        let ready = self.read(count);
        let id = self.ahead.len() as u32;
        self.ahead.push(Ahead { run: part, begun: self.now, ready, left: count as u32 });
        self.staged.push_back(id);
        self.staged_pages += count;
        self.timed.ahead += count;
        let block = self.blocks.of(base);
        pages.iter().for_each(|&at| block.pages[at] = Page::Staged(id));
    }

    /// Shows the run that was brought ahead and has `page`: when it is there, and how many pages.
    fn show_ahead(&mut self, page: u64) -> (f64, u64) {
        let Page::Staged(id) = self.blocks.of(page).pages[index(page)] else { return (self.now, 0) };
        let Ahead { run, begun, ready, .. } = self.ahead[id as usize];
        let base = page - index(page) as u64;
        let block = self.blocks.of(page);
        let pages: Vec<usize> =
            (index(run.first)..index(run.first) + run.count as usize).filter(|&at| block.pages[at] == Page::Staged(id)).collect();
        pages.iter().for_each(|&at| block.pages[at] = Page::View);
        block.whole |= block.pages.iter().all(|&page| page == Page::View) && pages.len() == BLOCK_PAGES;
        self.ahead[id as usize].left = 0;
        self.aside.used(pages.len() as u64, (self.now - begun) as u64);
        self.staged_pages -= pages.len() as u64;
        self.view_pages += pages.len() as u64;
        self.settle(base, &pages, Arrival::Demanded, ready);
        (ready, pages.len() as u64)
    }

    fn drop_staged(&mut self) -> bool {
        while let Some(id) = self.staged.pop_front() {
            let Ahead { run, left, .. } = self.ahead[id as usize];
            if left == 0 {
                continue;
            }
            let block = self.blocks.of(run.first);
            for at in index(run.first)..index(run.first) + run.count as usize {
                if block.pages[at] == Page::Staged(id) {
                    block.pages[at] = Page::Far;
                    self.staged_pages -= 1;
                    self.timed.useless += 1;
                    self.aside.wasted(1);
                }
            }
            self.ahead[id as usize].left = 0;
            self.fetch.on_wasted(run);
            return true;
        }
        false
    }

    fn make_room(&mut self, count: u64) {
        let slack = self.aside.slack();
        while self.view_pages + self.staged_pages + slack + count > self.near {
            let Some(unit) = self.evict.victim() else {
                if self.drop_staged() {
                    continue;
                }
                break;
            };
            self.release(unit);
        }
        while self.view_pages + self.staged_pages + self.limbo_pages + count > self.near {
            let Some((page, stamp)) = self.limbo.pop_front() else { break };
            let block = self.blocks.of(page);
            if block.pages[index(page)] == Page::Limbo(stamp) {
                block.pages[index(page)] = Page::Far;
                self.limbo_pages -= 1;
                self.aside.freed(1);
                self.timed.useless += u64::from(!std::mem::take(&mut block.used[index(page)]));
            }
        }
    }

    fn release(&mut self, unit: Unit) {
        let base = unit.block_number() as u64 * BLOCK_PAGES as u64;
        let range = match unit.chunk_index() {
            Some(chunk) => chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES,
            None => 0..BLOCK_PAGES,
        };
        let block = self.blocks.of(base);
        block.whole = false;
        let mut written = 0;
        for at in range {
            if block.pages[at] == Page::View {
                self.stamp += 1;
                block.pages[at] = Page::Limbo(self.stamp);
                written += u32::from(std::mem::take(&mut block.dirty[at]));
                self.limbo.push_back((base + at as u64, self.stamp));
                self.limbo_pages += 1;
                self.view_pages -= 1;
            }
        }
        if written > 0 {
            self.transfer(u64::from(written));
        }
        self.timed.pages_out += u64::from(written);
        self.evict.left(unit, written);
    }

    fn gone(&mut self, first: u64, pages: u64) {
        let range = first..first.saturating_add(pages);
        let mut numbers: Vec<u64> = match pages / BLOCK_PAGES as u64 > self.blocks.0.len() as u64 {
            true => self.blocks.0.keys().copied().collect(),
            false => (first / BLOCK_PAGES as u64..range.end.div_ceil(BLOCK_PAGES as u64)).collect(),
        };
        numbers.sort_unstable();
        for number in numbers {
            let base = number * BLOCK_PAGES as u64;
            let Some(block) = self.blocks.0.get_mut(&number) else { continue };
            for at in (0..BLOCK_PAGES).filter(|&at| range.contains(&(base + at as u64))) {
                match block.pages[at] {
                    Page::View => self.view_pages -= 1,
                    Page::Limbo(_) => self.limbo_pages -= 1,
                    Page::Staged(id) => {
                        self.staged_pages -= 1;
                        self.ahead[id as usize].left -= 1;
                    }
                    Page::Empty | Page::Far => {}
                }
                (block.pages[at], block.dirty[at], block.used[at]) = (Page::Empty, false, false);
            }
            if !block.pages.contains(&Page::View) {
                if std::mem::take(&mut block.whole) {
                    self.evict.remove(Unit::block(number as usize));
                }
                (0..BLOCK_PAGES / CHUNK_PAGES).for_each(|chunk| self.evict.remove(Unit::chunk(number as usize, chunk)));
            }
        }
    }
}

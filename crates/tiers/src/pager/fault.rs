//! Serves one fault: looks at the state of the page and gives zeros, rescues, installs what is staged, or starts a read.

use super::{Pager, Starved, Wait, page_addr, page_index, pages_extent};
use crate::block::{Block, Frames, HoldId, PageState, Phase};
use crate::frame_bytes;
use crate::hash_map::Map;
use nearfar_core::addr::{BLOCK, BLOCK_CHUNKS, BLOCK_PAGES, CHUNK_PAGES, Extent, PAGE, block_extent, block_of, page_of};
use nearfar_core::policy::{Arrival, Fault, Fetch, Found, Run, Unit, View};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::uffd::PageFault;
use std::ops::Range;

/// Up to so many pages are copied rather than moved.
const COPIED: usize = 2;
/// Runs that prefetch asked for and that wait for frames; older ones are dropped, the stream is elsewhere by then.
const WISHES: usize = 256;

/// The page table as prefetch sees it.
struct Blocks<'a>(&'a Map<usize, Box<Block>>);

impl View for Blocks<'_> {
    fn in_far(&self, run: Run, down: bool) -> Option<Run> {
        let (number, start) = (run.first as usize / BLOCK_PAGES, run.first as usize % BLOCK_PAGES);
        let block = self.0.get(&number)?;
        let limits = start..(start + run.count as usize).min(BLOCK_PAGES);
        let states = &block.state[limits.clone()];
        if !states.contains(&PageState::Far) {
            return None;
        }
        if states.iter().all(|state| matches!(state, PageState::Far | PageState::Empty)) {
            return Some(run);
        }
        let far = |page: &usize| block.state[*page] == PageState::Far;
        let page = if down { limits.clone().rev().find(far) } else { limits.clone().find(far) };
        let part = block.run_around(page?, limits, PageState::Far);
        Some(Run { first: (number * BLOCK_PAGES + part.start) as u64, count: part.len() as u32 })
    }
}

impl Pager {
    /// Serves the faults that wait. True when there were any.
    pub fn serve_faults(&mut self) -> bool {
        let none = PageFault { addr: 0, thread: 0, write: false, protected: false };
        let mut faults = [none; 32];
        let count = match self.uffd.read_faults(&mut faults) {
            Ok(count) => count,
            Err(errno) => super::stop(&format!(
                "the descriptor through which it pages was closed behind nearfar's back, by a raw system call ({errno})"
            )),
        };
        let now = now_ns();
        for &fault in &faults[..count] {
            self.count(Counter::Faults, 1);
            self.waits.push(Wait { addr: fault.addr, thread: fault.thread, since_ns: now, far: false });
            self.awake.waits();
            self.serve(fault, now);
        }
        count > 0
    }

    /// Serves one fault, whose thread is among `waits`.
    pub(super) fn serve(&mut self, fault: PageFault, now: u64) {
        let (number, page) = (block_of(fault.addr), page_index(fault.addr));
        if self.regions.find(fault.addr).is_none() {
            // Unmapped since, or never ours: the thread looks again and the kernel decides.
            self.let_go(Extent::new(fault.addr, PAGE));
            return;
        }
        if fault.protected {
            let _ = self.uffd.write_protect(Extent::new(fault.addr, PAGE), false);
            self.woke(Extent::new(fault.addr, PAGE));
            return;
        }
        if self.is_window_overrun() {
            self.starve(fault, now);
            return;
        }
        match self.block(number).state[page] {
            PageState::Resident => self.serve_stale(fault, now),
            PageState::Empty => self.serve_zeros(fault, now),
            PageState::Far => self.serve_far(fault, now),
            PageState::Held => match self.holder(number, page) {
                Some(id) => self.serve_held(id, fault, now),
                None => super::stop("internal error: a page is held by nobody; please report this"),
            },
        }
    }

    /// The page should be visible. Either it has become so since the fault, or somebody discarded it behind our back
    /// (a raw madvise): then it reads as zeros.
    fn serve_stale(&mut self, fault: PageFault, now: u64) {
        let mut absent = false;
        super::absent_pages(Extent::new(fault.addr, PAGE), |_| absent = true);
        self.count(Counter::FaultsStale, 1);
        if !absent {
            self.let_go(Extent::new(fault.addr, PAGE));
            return;
        }
        if self.is_lone_hole(block_of(fault.addr), page_index(fault.addr)) {
            // Runtimes that discard memory by raw calls do so two pages at a time or more. Zeros here would be silently wrong data.
            super::stop(&format!(
                "the page at {:#x} was in memory and is gone, and nearfar did not take it: the program discarded it by a raw \
                 system call (docs/reference/promises-and-limits.md), or the kernel or nearfar has lost it; please report that",
                fault.addr
            ));
        }
        self.forget_absent(block_of(fault.addr));
        self.serve_zeros(fault, now);
    }

    pub(super) fn decide(&mut self, fault: PageFault, found: Found, now: u64) -> Fetch {
        let room = self.room();
        self.record_visit(fault, found, now);
        let fault = Fault { page: page_of(fault.addr) as u64, thread: fault.thread, found, write: fault.write, now_ns: now };
        self.fetch.on_fault(&fault, &room, &Blocks(&self.blocks))
    }

    /// Queues what prefetch asks for.
    pub(super) fn wish(&mut self, ahead: Vec<Run>) {
        self.wishes.extend(ahead);
        while self.wishes.len() > WISHES {
            self.wishes.pop_front();
        }
    }

    /// The pages of block `number` that may be touched at once with `page`: inside one region and, in the arena's part for
    /// blocks of memory, inside one allocation would be nicer still, but a neighbour's zeros do no harm.
    fn limits(&self, number: usize, page: usize) -> Range<usize> {
        let block = block_extent(number);
        match self.regions.find(page_addr(number, page)).and_then(|(region, _)| region.intersect(&block)) {
            Some(part) => page_index(part.start)..page_index(part.end - 1) + 1,
            None => page..page + 1,
        }
    }

    pub(super) fn clip(run: Option<Run>, number: usize, page: usize) -> Range<usize> {
        let first = (number * BLOCK_PAGES) as u64;
        let Some(run) = run else { return page..page + 1 };
        let start = run.first.max(first).min(first + page as u64) - first;
        let end = (run.first + u64::from(run.count)).clamp(first + page as u64 + 1, first + BLOCK_PAGES as u64) - first;
        start as usize..end as usize
    }

    fn serve_zeros(&mut self, fault: PageFault, now: u64) {
        let (number, page) = (block_of(fault.addr), page_index(fault.addr));
        let fetch = self.decide(fault, Found::Zero, now);
        let wanted = Self::clip(fetch.run, number, page);
        let limits = self.limits(number, page);
        let whole = limits == (0..BLOCK_PAGES) && self.is_movable(number);
        let block = self.block(number);
        let empty = block.all(0..BLOCK_PAGES, PageState::Empty) && block.holds.is_empty();
        if whole
            && wanted == (0..BLOCK_PAGES)
            && empty
            && let Some((frame, zeroed)) = self.get_huge(true)
        {
            if !zeroed {
                // SAFETY: a frame that nobody uses.
                unsafe { frame_bytes::zero(frame, BLOCK) };
            }
            self.count(Counter::FaultsZero, 1);
            self.wish(fetch.ahead);
            let frames = Frames::Span { addr: frame, first: 0, huge: true };
            self.show_frames(number, frames, 0..BLOCK_PAGES, Arrival::Touched);
            return;
        }
        let within = wanted.start.max(limits.start)..wanted.end.min(limits.end);
        let run = self.block(number).run_around(page, within, PageState::Empty);
        let pages = self.get_pages(page, run);
        let Some((run, pages)) = pages else {
            self.starve(fault, now);
            return;
        };
        for &addr in &pages {
            // SAFETY: a page that nobody uses.
            unsafe { frame_bytes::zero(addr, PAGE) };
        }
        self.count(Counter::FaultsZero, 1);
        self.wish(fetch.ahead);
        self.show_frames(number, Frames::Single { first: run.start, pages }, run, Arrival::Touched);
    }

    fn serve_far(&mut self, fault: PageFault, now: u64) {
        let (number, page) = (block_of(fault.addr), page_index(fault.addr));
        let fetch = self.decide(fault, Found::Far, now);
        let run = Self::clip(fetch.run, number, page);
        self.waits_for_far(fault.addr);
        match self.read(number, run, Some(page)) {
            Some(id) => {
                self.hold(id).wanted = true;
                self.count(Counter::FaultsDemand, 1);
                self.slot.objects().missed(fault.addr);
                self.wish(fetch.ahead);
                self.show_ahead(fetch.show);
            }
            None => self.starve(fault, now),
        }
    }

    fn serve_held(&mut self, id: HoldId, fault: PageFault, now: u64) {
        let (phase, prefetch) = (self.hold(id).phase, self.hold(id).prefetch);
        let first_time = !self.hold(id).wanted;
        match phase {
            Phase::Reading => {
                self.hold(id).wanted = true;
                self.waits_for_far(fault.addr);
                self.count(Counter::FaultsLate, 1);
                self.slot.objects().missed(fault.addr);
                if prefetch && first_time {
                    let fetch = self.decide(fault, Found::Late, now);
                    self.wish(fetch.ahead);
                    self.show_ahead(fetch.show);
                }
            }
            Phase::Staged => {
                self.count(Counter::FaultsStaged, 1);
                let fetch = self.decide(fault, Found::Staged, now);
                self.wish(fetch.ahead);
                self.show_hold(id, Arrival::Demanded);
                self.show_ahead(fetch.show);
            }
            Phase::Writing | Phase::Clean => self.rescue(id, page_index(fault.addr), fault, now),
        }
    }

    fn starve(&mut self, fault: PageFault, now: u64) {
        if self.starved.is_empty() {
            self.starved_since_ns = now;
        }
        self.starved.push_back(Starved { fault, since_ns: now });
    }

    /// Tries the faults again that wait for frames.
    pub(super) fn retry_starved(&mut self) {
        for _ in 0..self.starved.len() {
            let Some(next) = self.starved.pop_front() else { break };
            let before = self.starved.len();
            self.serve(next.fault, next.since_ns);
            if self.starved.len() > before {
                // Still nothing: it went to the back, the others would fare no better.
                self.starved.rotate_right(1);
                break;
            }
        }
    }

    pub(super) fn is_movable(&self, number: usize) -> bool {
        self.uffd.can_move() && self.regions.uniform(block_extent(number)).is_some_and(|attr| attr.is_movable())
    }

    fn waits_for_far(&mut self, addr: usize) {
        self.waits.iter_mut().filter(|wait| wait.addr == addr).for_each(|wait| wait.far = true);
    }

    /// Threads that waited in `range` go on: accounts for their stall.
    pub(super) fn woke(&mut self, range: Extent) {
        if !self.waits.iter().any(|wait| range.contains(wait.addr)) {
            return;
        }
        let now = now_ns();
        let (mut stall, mut far, slot) = (0, 0, self.slot);
        self.waits.retain(|wait| {
            let inside = range.contains(wait.addr);
            if inside {
                let waited = now - wait.since_ns;
                stall += waited;
                if wait.far {
                    far += waited;
                    slot.objects().waited(wait.addr, waited);
                }
            }
            !inside
        });
        self.count(Counter::StallNs, stall);
        self.count(Counter::StallFarNs, far);
    }

    /// Wakes threads that wait in `range` without giving them a page.
    pub(super) fn let_go(&mut self, range: Extent) {
        self.uffd.wake(range);
        self.woke(range);
    }

    /// Makes pages `run` of block `number`, which lie in `frames`, visible to the program; they are in no hold.
    pub(super) fn show_frames(&mut self, number: usize, frames: Frames, run: Range<usize>, arrival: Arrival) {
        if frames.is_huge() && run == (0..BLOCK_PAGES) {
            self.drop_table(number);
            match self.show(pages_extent(number, 0..BLOCK_PAGES).start, frames.addr(0), BLOCK) {
                Ok(()) => {
                    self.frames.huge_left(frames.addr(0));
                    let block = self.block(number);
                    block.state.fill(PageState::Resident);
                    (block.huge, block.merged_ns) = (true, 0);
                    self.evict.insert(Unit::block(number), BLOCK_PAGES as u32, arrival);
                    self.woke(block_extent(number));
                    return;
                }
                Err((done, _)) => {
                    // Page by page from where it stopped; the frame is in pieces now.
                    self.frames.break_in_use(frames.addr(0));
                    for page in 0..done / PAGE {
                        self.frames.page_left(frames.addr(page));
                        self.block(number).state[page] = PageState::Resident;
                    }
                    (done / PAGE..BLOCK_PAGES).for_each(|page| self.show_page(number, page, frames.addr(page)));
                }
            }
        } else {
            let mut page = run.start;
            while page < run.end {
                let mut end = page + 1;
                while end < run.end && frames.addr(end) == frames.addr(end - 1) + PAGE {
                    end += 1;
                }
                self.show_run(number, page..end, frames.addr(page));
                page = end;
            }
        }
        self.settle_units(number, run.clone(), arrival);
        self.woke(pages_extent(number, run));
        self.make_huge(number, arrival);
    }

    fn show_run(&mut self, number: usize, run: Range<usize>, frame: usize) {
        if run.len() <= COPIED && self.show_by_copy(number, run.clone(), frame) {
            return;
        }
        let done = match self.show(page_addr(number, run.start), frame, run.len() * PAGE) {
            Ok(()) => run.len(),
            Err((done, _)) => done / PAGE,
        };
        for (index, page) in run.enumerate() {
            if index < done {
                self.frames.page_left(frame + index * PAGE);
                self.block(number).state[page] = PageState::Resident;
            } else {
                self.show_page(number, page, frame + index * PAGE);
            }
        }
    }

    /// Copies pages into the program's view and keeps their frames. Moving them would make the kernel interrupt every CPU that
    /// runs the program, which costs more than copying so little. The kernel's pages were paid for ahead (`hollow_out`).
    fn show_by_copy(&mut self, number: usize, run: Range<usize>, frame: usize) -> bool {
        self.copied_lately += run.len();
        if self.hollow < run.len() {
            return false;
        }
        let done = match self.uffd.copy(page_addr(number, run.start), frame, run.len() * PAGE) {
            Ok(()) => run.len(),
            Err((bytes, _)) => bytes / PAGE,
        };
        self.hollow -= done;
        for (index, page) in run.enumerate() {
            if index < done {
                self.block(number).state[page] = PageState::Resident;
                self.frames.give_page(frame + index * PAGE);
            } else {
                self.show_page(number, page, frame + index * PAGE);
            }
        }
        true
    }

    fn show_page(&mut self, number: usize, page: usize, frame: usize) {
        use nearfar_sys::uffd::Refused;
        let view = page_addr(number, page);
        match self.show(view, frame, PAGE) {
            Ok(()) => self.frames.page_left(frame),
            Err((_, Refused::Exists)) => {
                // Somebody else's page is there: the kernel does not wake for us in this case.
                // SAFETY: the frame is populated, and nobody uses it.
                if !unsafe { frame_bytes::is_zero(frame) } {
                    super::stop(&format!(
                        "a page is at {view:#x} that nearfar has not put there, and what the program stored there would be lost; \
                         please report this"
                    ));
                }
                self.frames.give_page(frame);
                self.uffd.wake(Extent::new(view, PAGE));
            }
            Err((_, why)) => super::stop(&format!("the kernel refuses to place a page at {view:#x}: {why:?}")),
        }
        self.block(number).state[page] = PageState::Resident;
    }

    /// Before a huge page comes to a block in which small pages were: frees the kernel's page table.
    fn drop_table(&mut self, number: usize) {
        if self.block(number).table && self.uffd.can_move() {
            let view = block_extent(number);
            let mut absent = 0;
            super::absent_pages(view, |_| absent += 1);
            if absent == BLOCK_PAGES {
                frame_bytes::drop_table(view);
                self.block(number).table = false;
            }
        }
    }

    /// A block that has become complete in small pages: one huge page and one unit from now on. It would be moved, written
    /// and read in pieces for ever.
    fn make_huge(&mut self, number: usize, arrival: Arrival) {
        // Visits to a part of a huge page would not be seen.
        let whole_again = self.recorder.is_none();
        let block = self.block(number);
        let complete = whole_again
            && block.holds.is_empty()
            && !block.shared
            && !block.pinned
            && block.all(0..BLOCK_PAGES, PageState::Resident);
        if !complete || !self.is_movable(number) || !self.merging.wants() || !frame_bytes::collapse(block_extent(number)) {
            return;
        }
        self.merging.merged();
        let block = self.block(number);
        (block.huge, block.table, block.merged_ns) = (true, false, now_ns());
        let units = std::mem::take(&mut block.units);
        (0..BLOCK_CHUNKS).filter(|chunk| units >> chunk & 1 == 1).for_each(|chunk| self.evict.remove(Unit::chunk(number, chunk)));
        self.evict.insert(Unit::block(number), BLOCK_PAGES as u32, arrival);
    }

    /// Tells the policy what chunks of `run` hold now.
    pub(super) fn settle_units(&mut self, number: usize, run: Range<usize>, arrival: Arrival) {
        for chunk in run.start / CHUNK_PAGES..run.end.div_ceil(CHUNK_PAGES) {
            let block = self.block(number);
            block.table = true;
            let pages = block.count_in_chunk(chunk, PageState::Resident);
            if pages > 0 {
                block.units |= 1 << chunk;
                self.evict.insert(Unit::chunk(number, chunk), pages, arrival);
            } else if block.units >> chunk & 1 == 1 {
                block.units &= !(1 << chunk);
                self.evict.remove(Unit::chunk(number, chunk));
            }
        }
    }
}

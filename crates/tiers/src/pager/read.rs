//! Brings data from far: starts reads into frames, checks what arrived, stages it or shows it to the program.

use super::Pager;
use super::retry::REREADS;
use crate::bits::Bits;
use crate::block::{Block, Frames, HoldId, PageState, Phase, SAMPLED};
use crate::frame_bytes;
use nearfar_core::addr::{BLOCK_PAGES, PAGE, block_of};
use nearfar_core::policy::{Arrival, Run, headroom};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use std::ops::Range;

/// Prefetched data is stale when this many times as much as may be staged was asked for after it: streams take what is staged
/// for them in the order in which it was asked for, but not all at the same pace.
const STALE_ROUNDS: u64 = 3;
/// Pages that a read counts for at least: a disk reads some tens at once in the time of one page alone.
const LEAST_ASKED: usize = 64;
/// Reads of so many pages are compared whole: 3 us, in 60 or more that they take. Longer ones have a page of the sample at least, which is
/// compared: hashing all would take a quarter off the rate of a sweep over a fast device.
const COMPARED: usize = SAMPLED - 1;

impl Pager {
    /// Starts reading the pages of `run` in block `number` that are in far; with `page`, at least that one. `None`: no
    /// frames, or nothing to read.
    pub(super) fn read(&mut self, number: usize, run: Range<usize>, page: Option<usize>) -> Option<HoldId> {
        let block = self.blocks.get(&number)?;
        let far = block.pages_in(0..BLOCK_PAGES, PageState::Far);
        let only = |states: [PageState; 2]| block.state.iter().all(|state| states.contains(state));
        let whole = run == (0..BLOCK_PAGES) && block.holds.is_empty() && only([PageState::Far, PageState::Empty]);
        if whole && far.count() > BLOCK_PAGES / 2 && self.is_movable(number) {
            let (frame, zeroed) = self.get_huge(page.is_some())?;
            let frames = Frames::Span { addr: frame, first: 0, huge: true };
            if !zeroed {
                for page in (0..BLOCK_PAGES).filter(|&page| !far.get(page)) {
                    // SAFETY: a frame that nobody uses.
                    unsafe { frame_bytes::zero(frames.addr(page), PAGE) };
                }
            }
            self.count_demand(page, far.count());
            return Some(self.start_read(number, Bits::of(0..BLOCK_PAGES), far, frames));
        }
        let first = match page {
            Some(page) => page,
            None => run.clone().find(|&page| block.state[page] == PageState::Far)?,
        };
        let span = block.run_around(first, run, PageState::Far);
        let (span, pages) = self.get_pages_for(first, span, page.is_some())?;
        let mask = Bits::of(span.clone());
        self.count_demand(page, span.len());
        Some(self.start_read(number, mask, mask, Frames::Single { first: span.start, pages }))
    }

    /// Bytes of the pages of `mask` that far has; a whole block comes with those that were never touched.
    pub(super) fn bytes_of_far(&self, number: usize, mask: &Bits) -> u64 {
        self.blocks.get(&number).map_or(0, |block| (mask.common(&block.far_valid) * PAGE) as u64)
    }

    /// Counts a read of `pages` pages for the fault on `page`, if it is for one.
    fn count_demand(&self, page: Option<usize>, pages: usize) {
        if page.is_some() {
            self.count(Counter::of_grain(pages), 1);
            self.count(Counter::ReadAroundBytes, (pages.saturating_sub(1) * PAGE) as u64);
        }
    }

    fn start_read(&mut self, number: usize, mask: Bits, far: Bits, frames: Frames) -> HoldId {
        let id = self.new_hold(number, mask, frames.clone(), Phase::Reading);
        // Small reads take longer for each page, and what is staged beside them grows stale as time goes by.
        self.asked_for += mask.count().max(LEAST_ASKED) as u64;
        (self.hold(id).begun, self.hold(id).begun_ns) = (self.asked_for, now_ns());
        for page in mask.iter() {
            self.block(number).state[page] = PageState::Held;
        }
        self.read_pages(id, number, &far, &frames);
        id
    }

    /// Starts reading pages of a hold.
    fn read_pages(&mut self, id: HoldId, number: usize, pages: &Bits, frames: &Frames) {
        for run in pages.runs(0, |_| false) {
            let mut rest = run;
            while !rest.is_empty() {
                let Some((place, first)) = self.block(number).far_at(rest.start) else {
                    super::stop("internal error: a page is in far at no place; please report this")
                };
                // As far as the far copies lie one behind the other.
                let block = self.block(number);
                let together =
                    rest.clone().zip(first..).take_while(|&(page, at)| block.far_at(page) == Some((place, at))).count();
                self.submit(id, false, (place, first), rest.start..rest.start + together, frames);
                rest.start += together;
            }
        }
    }

    pub(super) fn read_ended(&mut self, id: HoldId) {
        if self.hold(id).ops > 0 || self.is_wrong(id) {
            return;
        }
        if self.hold(id).prefetch {
            self.reading_ahead -= self.hold(id).populated.count();
        }
        if self.hold(id).mask.is_empty() {
            // The program discarded all of it meanwhile.
            let hold = self.end_hold(id);
            self.recycle(&hold);
            self.forget_if_blank(hold.block);
            return;
        }
        if self.hold(id).prefetch && !self.hold(id).wanted {
            self.set_phase(id, Phase::Staged);
            let serial = self.hold(id).serial;
            self.staged.push_back((id, serial));
            if self.staged.len() > 4 * self.staged_holds + 64 {
                // Most are behind one that is not asked for, and were asked for themselves.
                let holds = &self.holds;
                self.staged.retain(|&(id, serial)| matches!(&holds[id], Some(hold) if hold.serial == serial));
            }
        } else {
            self.show_hold(id, Arrival::Demanded);
        }
    }

    /// Compares what arrived, or a sample, with the hashes of what was written. What differs is read again, since it may have been
    /// changed on its way, and all of it is compared then; true when that was begun. A difference then stops the program.
    fn is_wrong(&mut self, id: HoldId) -> bool {
        let all = self.job.settings().compare_all;
        let hold = self.hold(id);
        let (number, mask, frames, again) = (hold.block, hold.mask, hold.frames.clone(), hold.again);
        let block = self.block(number);
        let compare = |all: bool| {
            let mut wrong = Bits::default();
            let mut first = None;
            let chosen = |page: usize| all || Block::is_sampled(page);
            for page in mask.iter().filter(|&page| block.far_valid.get(page) && chosen(page)) {
                // SAFETY: the reads into this frame have ended; nobody else uses the frame.
                let found = unsafe { frame_bytes::page_hash(frames.addr(page)) };
                if let Some(expected) = block.differs(page, found) {
                    wrong.set(page);
                    first.get_or_insert((page, expected, found));
                }
            }
            (wrong, first)
        };
        let all = all || again > 0 || mask.count() <= COMPARED;
        let (mut wrong, mut first) = compare(all);
        if first.is_some() && !all {
            (wrong, first) = compare(true);
        }
        let Some((page, expected, found)) = first else { return false };
        let at = block.far_at(page);
        if again == REREADS {
            self.stop_corrupt(number, page, at, expected, found);
        }
        self.note_trouble(|pager| format!("{} a read returned different bytes from those written", pager.far_text(at)));
        self.hold(id).again = again + 1;
        self.read_pages(id, number, &wrong, &frames);
        true
    }

    /// Ends a hold by making its pages visible.
    pub(super) fn show_hold(&mut self, id: HoldId, arrival: Arrival) {
        let before = self.hold(id).phase;
        let pages = self.hold(id).populated.count();
        self.count_phase(before, pages, false);
        let hold = self.end_hold(id);
        if hold.prefetch {
            self.count(Counter::PrefetchUsedBytes, self.bytes_of_far(hold.block, &hold.mask));
            self.aside.used(hold.mask.count() as u64, now_ns().saturating_sub(hold.begun_ns));
        }
        if hold.mask.count() == BLOCK_PAGES && hold.frames.is_huge() {
            self.show_frames(hold.block, hold.frames, 0..BLOCK_PAGES, arrival);
            return;
        }
        // Parts may have been discarded, or never were there: what is left goes page by page or run by run.
        if hold.frames.is_huge() {
            self.break_hold_frame(&hold);
        }
        for page in hold.populated.iter().filter(|&page| !hold.mask.get(page)) {
            self.frames.give_page(hold.frames.addr(page));
        }
        for run in hold.mask.runs(0, |_| false) {
            self.show_frames(hold.block, hold.frames.clone(), run, arrival);
        }
        self.forget_if_blank(hold.block);
    }

    fn break_hold_frame(&mut self, hold: &crate::block::Hold) {
        self.frames.break_in_use(hold.frames.addr(0));
        for page in (0..BLOCK_PAGES).filter(|&page| !hold.populated.get(page)) {
            self.frames.page_left(hold.frames.addr(page));
        }
    }

    /// Shows what was brought ahead and is sure to be asked for; what is still on its way will be shown when it comes.
    pub(super) fn show_ahead(&mut self, runs: Vec<Run>) {
        for run in runs {
            let number = block_of(run.first as usize * PAGE);
            let page = run.first as usize % BLOCK_PAGES;
            let Some(id) = self.holder(number, page) else { continue };
            match self.hold(id).phase {
                Phase::Staged => self.show_hold(id, Arrival::Demanded),
                Phase::Reading => self.hold(id).wanted = true,
                Phase::Writing | Phase::Clean => {}
            }
        }
    }

    /// Starts the prefetches that frames allow.
    pub(super) fn grant_wishes(&mut self) {
        let limit = self.staging_limit();
        // The limit may have come down, and while nothing fits prefetch asks for nothing.
        while self.staged_pages + self.reading_ahead > limit && self.drop_stale() {}
        // What finds no frame does not hold up what needs another kind of frame.
        let mut refused = [false; 2];
        let mut index = 0;
        while let Some(&run) = self.wishes.get(index) {
            let under_way = self.reading_ahead.saturating_sub(self.arriving);
            if self.staged_pages + self.reading_ahead >= limit && !self.drop_stale() || under_way >= self.queue_pages() {
                break;
            }
            let whole = usize::from(run.count as usize == BLOCK_PAGES);
            if refused[whole] || !self.prefetch(run) {
                refused[whole] = true;
                index += 1;
            } else {
                self.wishes.remove(index);
            }
        }
    }

    /// Gives up what was staged long ago and never asked for: the stream it was for has gone elsewhere, and others need the
    /// room. False when there is nothing of the kind.
    fn drop_stale(&mut self) -> bool {
        while let Some(&(id, serial)) = self.staged.front() {
            if self.is_current(id, serial) && self.hold(id).phase == Phase::Staged {
                let since = self.asked_for - self.hold(id).begun;
                // Not the limit of the moment: what is short of room would be dropped the sooner.
                let most = headroom::staged_pages(self.capacity, self.meter.peak_bytes_per_s());
                let stale = since > STALE_ROUNDS * most;
                if stale {
                    self.staged.pop_front();
                    self.end_staged(id);
                }
                return stale;
            }
            self.staged.pop_front();
        }
        false
    }

    /// Pages that may be under way ahead of demand in each direction: what far moves in a few milliseconds keeps it busy, and
    /// a thread that needs something now does not wait for more than that.
    pub(super) fn queue_pages(&self) -> usize {
        headroom::queue_pages(self.meter.peak_bytes_per_s()) as usize
    }

    /// Starts one prefetch. False when frames are wanting (try again later); true also when there is nothing to read.
    fn prefetch(&mut self, run: Run) -> bool {
        let number = block_of(run.first as usize * PAGE);
        let start = run.first as usize % BLOCK_PAGES;
        let pages = start..(start + run.count as usize).min(BLOCK_PAGES);
        let Some(block) = self.blocks.get(&number) else { return true };
        if block.pages_in(pages.clone(), PageState::Far).is_empty() {
            return true;
        }
        // One try for each piece of the run that is in far: pieces between others are left to demand.
        let Some(id) = self.read(number, pages, None) else { return false };
        let hold = self.hold(id);
        hold.prefetch = true;
        let pages = hold.populated.count();
        self.reading_ahead += pages;
        let mask = self.hold(id).mask;
        self.count(Counter::PrefetchBytes, self.bytes_of_far(number, &mask));
        true
    }
}

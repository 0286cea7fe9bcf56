//! Rescues from limbo: what was evicted and is asked for again before its frame is reused.
//!
//! Only what the fetch policy would have read comes back; the rest stays in limbo and soon leaves near. When a chunk or a
//! whole block came back for each page that is asked for, near would stay full of what nobody uses, and a program whose
//! pages in use would fit went round in circles.

use super::{Pager, pages_extent};
use crate::bits::Bits;
use crate::block::{Frames, HoldId, PageState, Phase};
use nearfar_core::addr::PAGE;
use nearfar_core::policy::{Arrival, Found, Run};
use nearfar_core::stats::Counter;
use nearfar_sys::uffd::PageFault;
use std::ops::Range;

/// Up to so many pages are copied out of a frame that stays whole. Moving them would break up a huge page, which costs as
/// much as copying most of it.
const COPIED_OUT: usize = 16;

impl Pager {
    /// Serves a fault on `page`, which the hold `id` has in limbo.
    pub(super) fn rescue(&mut self, id: HoldId, page: usize, fault: PageFault, now: u64) {
        self.count(Counter::FaultsRescued, 1);
        let mut run: Option<Run> = None;
        if !self.hold(id).wanted {
            let fetch = self.decide(fault, Found::Limbo, now);
            self.wish(fetch.ahead);
            run = fetch.run;
        }
        let hold = self.hold(id);
        let (number, phase, mask) = (hold.block, hold.phase, hold.mask);
        let (huge, all) = (hold.frames.is_huge(), mask.count());
        let wanted = Self::clip(run, number, page);
        let mut part = mask.run_around(page, wanted.clone());
        if phase == Phase::Writing && part.len() > COPIED_OUT {
            // A copy of less can be had at once; the rest would have to wait until it is written.
            let first = page - page % COPIED_OUT;
            part = mask.run_around(page, first..first + COPIED_OUT);
        }
        let some = part.len() < all && !self.hold(id).wanted;
        let copied = some && part.len() <= COPIED_OUT && self.copy_out(id, page, part.clone());
        match phase {
            _ if copied => {}
            Phase::Clean if some && !huge => self.take_out(id, part),
            Phase::Clean => self.show_hold(id, Arrival::Rescued),
            // The kernel holds the pages for the write; they come back the moment it ends.
            _ => self.hold(id).wanted = true,
        }
        self.rescue_others(id, number, &Bits::of(wanted));
    }

    /// Brings back the other clean pieces of block `number` that lie inside of what the fetch policy wanted: one fault for each
    /// would cost more.
    fn rescue_others(&mut self, id: HoldId, number: usize, inside: &Bits) {
        let fits = |&other: &HoldId| match &self.holds[other] {
            Some(hold) => {
                let clean = hold.phase == Phase::Clean && !hold.frames.is_huge() && !hold.wanted;
                other != id && clean && hold.mask.iter().all(|page| inside.get(page))
            }
            None => false,
        };
        let others: Vec<HoldId> = self.block_holds(number).iter().copied().filter(fits).collect();
        for other in others {
            self.show_hold(other, Arrival::Rescued);
        }
    }

    fn block_holds(&self, number: usize) -> &[HoldId] {
        self.blocks.get(&number).map_or(&[], |block| &block.holds)
    }

    /// Copies pages of a hold into view; their frames stay where they are, and the write that may be under way goes on. False
    /// when no pages have been paid for.
    fn copy_out(&mut self, id: HoldId, page: usize, run: Range<usize>) -> bool {
        self.copied_lately += run.len();
        let hold = self.hold(id);
        let Frames::Span { addr, first, .. } = hold.frames else { return false };
        let (number, from) = (hold.block, addr + (run.start - first) * PAGE);
        if self.hollow < run.len() {
            return false;
        }
        let done = match self.uffd.copy(super::page_addr(number, run.start), from, run.len() * PAGE) {
            Ok(()) => run.len(),
            Err((bytes, _)) => bytes / PAGE,
        };
        self.hollow -= done;
        let run = run.start..run.start + done;
        if done > 0 {
            self.leaves_hold(id, run.clone());
            self.is_resident(number, run.clone());
            self.end_if_empty(id);
            if !run.contains(&page) {
                // It stopped before the page that was asked for: the thread asks again.
                self.let_go(pages_extent(number, page..page + 1));
            }
        }
        done > 0
    }

    /// Moves pages of a clean hold into view.
    fn take_out(&mut self, id: HoldId, run: Range<usize>) {
        let (number, frames) = (self.hold(id).block, self.hold(id).frames.clone());
        self.leaves_hold(id, run.clone());
        let hold = self.hold(id);
        let before = hold.populated.count();
        run.clone().for_each(|page| hold.populated.clear(page));
        let gone = before - hold.populated.count();
        self.limbo_pages -= gone;
        self.show_frames(number, frames, run, Arrival::Rescued);
        self.end_if_empty(id);
    }

    fn leaves_hold(&mut self, id: HoldId, run: Range<usize>) {
        let hold = self.hold(id);
        let number = hold.block;
        for page in run.clone() {
            hold.mask.clear(page);
            hold.zeros.clear(page);
        }
        let block = self.block(number);
        run.for_each(|page| block.state[page] = PageState::Resident);
    }

    fn is_resident(&mut self, number: usize, run: Range<usize>) {
        self.settle_units(number, run.clone(), Arrival::Rescued);
        self.woke(pages_extent(number, run));
    }

    fn end_if_empty(&mut self, id: HoldId) {
        let hold = self.hold(id);
        if hold.mask.is_empty() && hold.ops == 0 {
            let (phase, pages) = (hold.phase, hold.populated.count());
            self.count_phase(phase, pages, false);
            let hold = self.end_hold(id);
            self.recycle(&hold);
        }
    }
}

//! Finds frames, keeps some ahead of demand, and keeps this process within the job's budget.
//!
//! Order for a frame: a free one; a fresh one while the budget lasts; the oldest clean one of limbo; what prefetch staged
//! and nobody asked for. Evicting goes on in the background of that (`pump`), so that limbo always has clean frames.

use super::{Pager, evict::NotEvicted, yielding::LEAST_FRAMES};
use crate::block::HoldId;
use crate::frame_bytes;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, PAGE};
use nearfar_core::policy::Room;
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use std::collections::VecDeque;
use std::ops::Range;

/// Writes under way at the most: small ones keep a device busy at this depth, and each more delays the reads that threads
/// wait for.
const WRITE_OPS: u32 = 12;
/// Pages that the kernel has for copies into view.
const HOLLOW: Range<usize> = 32..256;
/// Eviction begins when so many pages are wanting.
const BATCH: usize = 64;
/// Faults and completions are looked at again after so long: somewhat less than a read from far takes.
const SLICE_NS: u64 = 50_000;
/// Victims tried in one round that turn out to be pinned, before giving up for now.
const PINNED_TRIES: u32 = 64;
/// How long a process waits for others to shrink before it takes one frame beyond the budget.
const SHARE_WAIT_NS: u64 = 500_000_000;
/// How long the job may be over its budget (after a fork) before those above their share shrink.
const OVER_WAIT_NS: u64 = 50_000_000;

impl Pager {
    pub(super) fn uncharge(&mut self, pages: usize) {
        self.job.uncharge(self.slot, pages as u64);
    }

    pub(super) fn uncharged_room(&self) -> u64 {
        self.job.near_pages().saturating_sub(self.job.charged_pages())
    }

    pub(super) fn room(&self) -> Room {
        let (huge, single) = self.frames.free_pages();
        Room {
            near_pages: self.capacity,
            free_pages: self.uncharged_room() + (huge + single) as u64,
            data_pages: (self.blocks.len() * BLOCK_PAGES) as u64,
            staging_pages: self.aside.staging_limit(),
            staged_pages: (self.staged_pages + self.reading_ahead) as u64 + self.wished_pages(),
            far_bytes_per_s: self.meter.peak_bytes_per_s(),
        }
    }

    /// Pages that prefetch asked for and that wait for room.
    fn wished_pages(&self) -> u64 {
        self.wishes.iter().map(|run| u64::from(run.count)).sum()
    }

    /// A huge frame, and whether it is known to be zero. Without `demand`, what prefetch holds is not sacrificed.
    pub(super) fn get_huge(&mut self, demand: bool) -> Option<(usize, bool)> {
        let frame = self.find_huge(demand);
        if frame.is_some() {
            self.aside.took(BLOCK_PAGES as u64);
        }
        frame
    }

    fn find_huge(&mut self, demand: bool) -> Option<(usize, bool)> {
        if let Some(addr) = self.frames.take_huge() {
            return Some((addr, false));
        }
        if let Some(addr) = self.fresh_huge() {
            return Some((addr, true));
        }
        if let Some(id) = self.oldest(|pager| &mut pager.limbo_huge) {
            self.use_limbo(id);
        } else if self.convert_to_huge() {
            return self.fresh_huge().map(|addr| (addr, true));
        } else if demand && let Some(id) = self.oldest(|pager| &mut pager.staged) {
            self.end_staged(id);
        }
        self.frames.take_huge().map(|addr| (addr, false))
    }

    /// The oldest entry of a list of holds that is still what it was when it was listed.
    fn oldest(&mut self, list: impl Fn(&mut Self) -> &mut VecDeque<(HoldId, u64)>) -> Option<HoldId> {
        loop {
            let (id, serial) = list(self).pop_front()?;
            if self.is_current(id, serial) && self.hold(id).ops == 0 && !self.hold(id).wanted {
                return Some(id);
            }
        }
    }

    /// Ends a clean hold whose frames are needed for what the program asks for.
    fn use_limbo(&mut self, id: HoldId) {
        let pages = self.hold(id).populated.count();
        self.aside.freed(pages as u64);
        self.end_limbo(id);
    }

    /// Ends the oldest clean hold, so that its frames are free. False when there is none.
    pub(super) fn end_oldest_limbo(&mut self) -> bool {
        let Some(id) = self.oldest(|pager| &mut pager.limbo_small).or_else(|| self.oldest(|pager| &mut pager.limbo_huge)) else {
            return false;
        };
        self.end_limbo(id);
        true
    }

    /// A fresh huge frame, charged to the budget.
    fn fresh_huge(&mut self) -> Option<usize> {
        if !self.job.try_charge(self.slot, BLOCK_PAGES as u64) {
            return None;
        }
        self.populate_nursery()
    }

    fn populate_nursery(&mut self) -> Option<usize> {
        let Some(addr) = self.frames.take_nursery() else {
            self.uncharge(BLOCK_PAGES);
            return None;
        };
        frame_bytes::drop_table(nearfar_core::addr::Extent::new(addr, BLOCK));
        // The kernel clears the memory; one store is enough where it gives a huge page, all pages are touched where not.
        for page in 0..BLOCK_PAGES {
            // SAFETY: an empty nursery slot: writable, not registered, ours alone.
            unsafe { frame_bytes::zero(addr + page * PAGE, 1) };
        }
        Some(addr)
    }

    /// Turns single pages, with what is left of the budget, into room for a huge frame: gives them to the kernel.
    fn convert_to_huge(&mut self) -> bool {
        let wanted = BLOCK_PAGES.saturating_sub(self.uncharged_room() as usize);
        while self.frames.free_pages().1 < wanted {
            let Some(id) = self.oldest(|pager| &mut pager.limbo_small) else { return false };
            self.use_limbo(id);
        }
        let released = self.frames.release(wanted);
        self.uncharge(released);
        true
    }

    fn get_page(&mut self, demand: bool) -> Option<usize> {
        if let Some(addr) = self.frames.take_page() {
            return Some(addr);
        }
        if let Some(addr) = self.fresh_huge() {
            self.frames.break_huge(addr);
        } else if let Some(id) = self.oldest(|pager| &mut pager.limbo_small) {
            self.use_limbo(id);
        } else if let Some(addr) = self.frames.take_huge() {
            self.frames.break_huge(addr);
        } else if let Some(id) = self.oldest(|pager| &mut pager.limbo_huge) {
            self.use_limbo(id);
            if let Some(addr) = self.frames.take_huge() {
                self.frames.break_huge(addr);
            }
        } else if demand && let Some(id) = self.oldest(|pager| &mut pager.staged) {
            self.end_staged(id);
            if let Some(addr) = self.frames.take_huge() {
                self.frames.break_huge(addr);
            }
        }
        self.frames.take_page()
    }

    /// Pages for as much of `run` as can be had, at least for `page`, on demand.
    pub(super) fn get_pages(&mut self, page: usize, run: Range<usize>) -> Option<(Range<usize>, Vec<usize>)> {
        self.get_pages_for(page, run, true)
    }

    /// As `get_pages`; without `demand`, what prefetch holds is not sacrificed.
    pub(super) fn get_pages_for(&mut self, page: usize, run: Range<usize>, demand: bool) -> Option<(Range<usize>, Vec<usize>)> {
        let mut pages = Vec::with_capacity(run.len());
        while pages.len() < run.len() {
            match self.get_page(demand) {
                Some(addr) => pages.push(addr),
                None => break,
            }
        }
        if pages.is_empty() {
            return None;
        }
        self.aside.took(pages.len() as u64);
        // A shortened run keeps the page that was asked for.
        let start = if pages.len() == run.len() { run.start } else { page.min(run.end - pages.len()) };
        Some((start..start + pages.len(), pages))
    }

    /// Keeps frames coming: starts prefetches that have room, evicts ahead of need, serves those that wait, starts prefetches
    /// again, shrinks for others.
    /// True when it was not all done, and must be called again before the lock is released.
    pub fn pump(&mut self) -> bool {
        self.adjust_capacity();
        self.keep_far_ahead();
        let mut more = false;
        if !self.resting {
            self.keep_window();
            self.charge_ahead();
            // First what costs little and keeps far busy, unless threads wait for frames.
            if self.starved.is_empty() {
                self.grant_wishes();
                self.far.backend().flush();
            }
            more = self.evict_ahead();
            self.hollow_out();
            self.retry_starved();
            self.grant_wishes();
            self.share_with_others();
            self.collect_room();
        }
        if more {
            return true;
        }
        self.send_gathered();
        if !self.resting {
            self.break_deadlock();
        }
        self.far.backend().flush();
        self.publish();
        false
    }

    /// Gives some free pages to the kernel, still charged: it makes new ones of them when pages are copied into view.
    fn hollow_out(&mut self) {
        let lately = std::mem::take(&mut self.copied_lately);
        let aim = (2 * lately).clamp(HOLLOW.start, HOLLOW.end).min(self.capacity as usize / 64);
        if lately > 0 && self.hollow < aim / 2 {
            let wanted = aim - self.hollow;
            while self.frames.free_pages().1 < wanted {
                let Some(id) = self.oldest(|pager| &mut pager.limbo_small) else { break };
                self.end_limbo(id);
            }
            self.hollow += self.frames.release_single(wanted);
        }
    }

    fn adjust_capacity(&mut self) {
        let capacity = (self.slot.charged_pages() + self.uncharged_room()).saturating_sub(self.not_frames() + self.owed());
        self.capacity = capacity;
        let held = (self.staged_pages + self.reading_ahead) as u64;
        self.aside.look(now_ns(), capacity, self.meter.peak_bytes_per_s(), held);
        let kept = capacity.saturating_sub(self.aside.pages());
        if kept != self.kept {
            self.kept = kept;
            // What limbo and prefetch use is not the policy's: it would take the difference for room to fill, and let go of
            // what it keeps to make that room.
            self.evict.set_capacity(kept);
        }
    }

    /// Pages that prefetch may hold, staged or under way.
    pub(super) fn staging_limit(&self) -> usize {
        self.aside.staging_limit() as usize
    }

    /// Evicts until enough is free or in limbo. In batches, so that small writes can go together, and each in slices, so that
    /// threads that wait for a read are not kept waiting. True when there is more to do.
    fn evict_ahead(&mut self) -> bool {
        // What waits needs a block each at the most; prefetch is offered what is in limbo, and some more while it asks.
        let wished: usize = self.wishes.iter().take(8).map(|run| run.count as usize).sum();
        let wished = wished.min(self.staging_limit().saturating_sub(self.staged_pages + self.reading_ahead));
        let asked = self.starved.len() * BLOCK_PAGES + wished;
        // Also with next to nothing, somebody who waits needs a page.
        let asked = asked.min(self.capacity as usize / 8).max(usize::from(!self.starved.is_empty()));
        let aim = self.aside.slack() as usize + asked + self.tables_want();
        let (mut pinned, mut done) = (0, 0);
        let start = now_ns();
        let postponed = std::mem::take(&mut self.postponed);
        self.waits_for_far = false;
        loop {
            let (huge, single) = self.frames.free_pages();
            // Fresh frames are whole blocks.
            let fresh = self.uncharged_room() as usize / BLOCK_PAGES * BLOCK_PAGES;
            let have = huge + single + self.limbo_pages + fresh;
            let urgent = !self.starved.is_empty() || have < aim / 2;
            self.evicting = have < aim && (self.evicting || urgent || have + BATCH <= aim);
            // A queue of writes deeper than this only delays the reads.
            if !self.evicting || !self.can_write_more() {
                return false;
            }
            if !urgent && postponed {
                self.postponed = true;
                return false;
            }
            if !urgent && now_ns() - start > SLICE_NS {
                // Nothing but refusals: another moment may be better.
                return done > 0;
            }
            let Some(unit) = self.evict.victim() else { return false };
            match self.evict_unit(unit) {
                Ok(()) | Err(NotEvicted::Gone) => done += 1,
                Err(NotEvicted::Pinned) => {
                    pinned += 1;
                    if pinned >= PINNED_TRIES {
                        return false;
                    }
                }
                Err(NotEvicted::FarFull(errno)) => {
                    if !self.far_full(errno) {
                        return false;
                    }
                }
            }
        }
    }

    /// False while so much is being written that more would only delay reads.
    pub(super) fn can_write_more(&self) -> bool {
        self.writing_pages < self.queue_pages() && self.write_ops < WRITE_OPS
    }

    /// Gives frames to the kernel while others starve and this process has more than its share.
    fn share_with_others(&mut self) {
        let over = self.job.charged_pages() > self.job.near_pages();
        if !over {
            self.over_since_ns = 0;
        } else if self.over_since_ns == 0 {
            // After a fork both sides count what they share. Most children end or exec at once: they get the time.
            self.over_since_ns = now_ns();
        }
        let lasting = over && now_ns() - self.over_since_ns > OVER_WAIT_NS;
        if !self.job.is_starving() && !lasting {
            return;
        }
        let charged = self.slot.charged_pages();
        let frames = charged.saturating_sub(self.not_frames());
        // Placed objects cannot go; what is left for paging must not come to nothing.
        let excess = charged.saturating_sub(self.job.fair_share_pages());
        let excess = if self.placed > 0 { excess.min(frames.saturating_sub(LEAST_FRAMES)) } else { excess };
        if excess == 0 || self.told_starving {
            return;
        }
        let hollow = std::mem::take(&mut self.hollow);
        self.uncharge(hollow);
        // In steps, so that those who starve can take turns with us.
        let step = (excess as usize).min(8 * BLOCK_PAGES);
        let mut tries = 0;
        while self.frames.free_pages().0 + self.frames.free_pages().1 < step && tries < 256 {
            tries += 1;
            if let Some(id) = self.oldest(|pager| &mut pager.limbo_huge) {
                self.end_limbo(id);
            } else if let Some(id) = self.oldest(|pager| &mut pager.limbo_small) {
                self.end_limbo(id);
            } else if self.writing_pages > step {
                break;
            } else {
                match self.evict.victim().map(|unit| self.evict_unit(unit)) {
                    Some(Err(NotEvicted::FarFull(_))) | None => break,
                    _ => {}
                }
            }
        }
        let released = self.frames.release(step);
        self.uncharge(released);
    }

    /// True while this process lives on its own evicted pages although others have what is its due: alone it would go round in circles
    /// for ever, and a few MiB are not enough for any work.
    fn is_squeezed(&self) -> bool {
        let due = self.slot.charged_pages() + BLOCK_PAGES as u64 <= self.job.fair_share_pages();
        due && self.uncharged_room() < BLOCK_PAGES as u64 && self.aside.lives_on_limbo()
    }

    /// When threads wait and nothing is under way that could free a frame: tells the others, as when room is owed that only they
    /// have, and at last takes one frame beyond the budget rather than hang. The counter `over_budget_bytes` shows it.
    fn break_deadlock(&mut self) {
        let stuck = !self.starved.is_empty() && self.ops == 0;
        let starves = stuck || self.owes_in_vain() || self.is_squeezed();
        if starves != self.told_starving {
            self.told_starving = starves;
            self.job.set_starving(self.slot, starves);
        }
        if !stuck {
            return;
        }
        let hollow = std::mem::take(&mut self.hollow);
        self.uncharge(hollow);
        let alone = self.job.processes() <= 1;
        // What waits for space in far would need one frame after the other.
        if !alone && (self.waits_for_far || now_ns() - self.starved_since_ns < SHARE_WAIT_NS) {
            return;
        }
        if !alone {
            self.job.bury_dead();
        }
        let over = self.job.force_charge(self.slot, BLOCK_PAGES as u64);
        self.slot.raise(Counter::OverBudget, over * PAGE as u64);
        if let Some(addr) = self.populate_nursery() {
            self.frames.give_huge(addr);
            self.starved_since_ns = now_ns();
            self.retry_starved();
        }
    }
}

const _: () = assert!(BLOCK == BLOCK_PAGES * PAGE);

//! Objects that are never paged (flat and hybrid mode over paged far memory): their part of the near budget. The memory itself is
//! not `Memory`'s: it comes from heaps and mappings outside the arena.

use super::commit::Paging;
use super::{Memory, inner::Inner};
use crate::block::PageState;
use crate::job::Slot;
use crate::pager::LEAST_FRAMES;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, Extent, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::event::{now_ns, wait_readable};
use nearfar_sys::map;

/// The pager gave up nothing for so long: near is full of what cannot go.
const HOPELESS_NS: u64 = 2_000_000_000;
/// Asked again after that, it gets less time, until it has given something up.
const AGAIN_NS: u64 = 100_000_000;
/// So long nobody asks again, unless less of near is charged than then.
const REFUSED_NS: u64 = 1_000_000_000;

impl Memory {
    /// Charges `pages` for objects that stay in near, as long as placed objects of the job have no more than `most`. Waits for the
    /// pager to make room. Calls that come from inside nearfar are refused.
    pub fn charge_placed(&self, pages: u64, most: u64) -> bool {
        if Self::inside() {
            return false;
        }
        {
            let mut inner = self.enter();
            let near = inner.job.near_pages();
            let most = most.min(near.saturating_sub(LEAST_FRAMES.min(near / 2)));
            let job = inner.job;
            let fits = || job.sum_of(Counter::PlacedCharged) / PAGE as u64 + pages <= most;
            if !fits() {
                if job.processes() <= 1 {
                    return false;
                }
                // What a process had that has ended may not have been given back yet.
                job.bury_dead();
                if !fits() {
                    return false;
                }
            }
            match self.charge_now(&mut inner, pages) {
                Some(done) => return done,
                None => self.common.event.signal(),
            }
        }
        let has_room = self.await_room(pages);
        // Starving is over, either way.
        self.common.event.signal();
        has_room
    }

    /// Whether the charge could be made; `None` when the pager has been asked for room.
    fn charge_now(&self, inner: &mut Inner, pages: u64) -> Option<bool> {
        if !inner.is_active() {
            if inner.job.try_charge(inner.slot, pages) {
                inner.note_placed(pages);
                return Some(true);
            }
            inner.drain_cache();
            match inner.activate(0) {
                Paging::On => self.guard_fds(inner),
                Paging::NoSpace(_) => return Some(false),
                Paging::Never => {
                    inner.job.force_charge(inner.slot, pages);
                    inner.note_placed(pages);
                    return Some(true);
                }
            }
            self.start_thread_if_needed(inner);
        }
        if inner.try_charge_or_bury(pages) {
            inner.note_placed(pages);
            return Some(true);
        }
        if inner.hopeless.is_some_and(|(until_ns, charged)| now_ns() < until_ns && inner.job.charged_pages() >= charged) {
            return Some(false);
        }
        if let Some(pager) = &mut inner.pager {
            pager.ask_room(pages);
        }
        None
    }

    /// Waits for what `charge_now` asked for.
    fn await_room(&self, pages: u64) -> bool {
        let (mut found, mut since_ns, mut buried) = (0, now_ns(), false);
        let patience_ns = if self.enter().hopeless.is_some() { AGAIN_NS } else { HOPELESS_NS };
        loop {
            wait_readable(&[], 1, &mut []);
            let mut inner = self.enter();
            let inner = &mut *inner;
            // Where the kernel pages, there is no pager: the keeper brings the process down to what is left.
            let taken = match &mut inner.pager {
                Some(pager) => pager.take_room(pages),
                None => inner.try_charge_or_bury(pages),
            };
            if taken {
                inner.note_placed(pages);
                inner.hopeless = None;
                return true;
            }
            let now_found = match &inner.pager {
                Some(pager) => pager.room_found(),
                None => inner.job.charged_pages(),
            };
            if now_found != found {
                (found, since_ns) = (now_found, now_ns());
            } else if now_ns() - since_ns > patience_ns / 20 && inner.job.processes() > 1 && !buried {
                inner.job.bury_dead();
                buried = true;
            } else if now_ns() - since_ns > patience_ns {
                if let Some(pager) = &mut inner.pager {
                    pager.forget_room(pages);
                }
                inner.hopeless = Some((now_ns() + REFUSED_NS, inner.job.charged_pages()));
                return false;
            }
            self.common.event.signal();
        }
    }

    /// Gives back what `charge_placed` charged.
    pub fn uncharge_placed(&self, pages: u64) {
        self.enter().uncharge_placed(pages);
        self.common.event.signal();
    }

    /// Bytes of `range` that are in near, in far, and nowhere. Touches nothing.
    pub fn whereabouts(&self, range: Extent) -> [u64; 3] {
        let mut sum = [0u64; 3];
        let mut page = range.start & !(PAGE - 1);
        while page < range.end {
            let end = (page & !(BLOCK - 1)).saturating_add(BLOCK).min(range.end.next_multiple_of(PAGE));
            let pages = Extent { start: page, end };
            let mut present = [0u8; BLOCK_PAGES];
            // A part that is not mapped is nowhere.
            let known = map::mincore(pages, &mut present).is_ok();
            let inner = self.enter();
            for (index, start) in (pages.start..pages.end).step_by(PAGE).enumerate() {
                let bytes = start.saturating_add(PAGE).min(range.end) - start.max(range.start);
                let is_present = known && present[index] & 1 == 1;
                let tier = match inner.pager.as_ref().and_then(|pager| pager.state_of(start)) {
                    _ if is_present => 0,
                    Some(PageState::Resident | PageState::Held) => 0,
                    Some(PageState::Far) => 1,
                    Some(PageState::Empty) | None => 2,
                };
                sum[tier] += bytes as u64;
            }
            page = end;
        }
        sum
    }

    /// The counters of this process; another slot after a fork.
    pub fn slot(&self) -> &'static Slot {
        self.enter().slot
    }
}

impl Inner {
    /// Charges `pages`, if need be of what processes had that have ended: nobody else may give it back for long.
    fn try_charge_or_bury(&mut self, pages: u64) -> bool {
        if self.job.try_charge(self.slot, pages) {
            return true;
        }
        if self.job.processes() <= 1 {
            return false;
        }
        self.job.bury_dead();
        self.job.try_charge(self.slot, pages)
    }

    pub(super) fn uncharge_placed(&mut self, pages: u64) {
        let back = pages.min(self.placed);
        self.job.uncharge(self.slot, back);
        self.placed -= back;
        self.tell_placed();
    }

    pub(super) fn note_placed(&mut self, pages: u64) {
        self.placed += pages;
        self.tell_placed();
        self.publish_passive();
    }

    fn tell_placed(&mut self) {
        self.slot.set(Counter::PlacedCharged, self.placed * PAGE as u64);
        if let Some(pager) = &mut self.pager {
            pager.set_placed(self.placed);
        }
    }

    /// In the child of a fork: its copies of all placed objects become real as it or its parent writes.
    pub(super) fn charge_inherited(&mut self) {
        self.job.force_charge(self.slot, self.placed);
        self.hopeless = None;
        self.tell_placed();
    }
}

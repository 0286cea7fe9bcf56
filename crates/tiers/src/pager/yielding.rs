//! Room in near for objects that are never paged: the pager gives frames up for them, page by page, until there are enough.
//!
//! What is collected stays charged all the time, so the budget holds at every moment; only what it is charged for changes.

use super::Pager;
use crate::block::PageState;
use crate::pager::evict::NotEvicted;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, PAGE, block_of};

/// Frames that the pager keeps whatever is asked: below this it could not serve a fault.
pub const LEAST_FRAMES: u64 = 8 * BLOCK_PAGES as u64;
/// Units tried in one round.
const TRIES: u32 = 256;

/// Pages that were asked for, and how many of them have been found.
#[derive(Default)]
pub(super) struct Yielding {
    wanted: u64,
    saved: u64,
}

impl Pager {
    /// Pages of the budget that are not frames: placed objects, and what is collected for them.
    pub(super) fn not_frames(&self) -> u64 {
        self.placed + self.yielding.saved
    }

    /// Pages that eviction has yet to find for placed objects.
    pub(super) fn owed(&self) -> u64 {
        self.yielding.wanted.saturating_sub(self.yielding.saved)
    }

    /// What is known of the page at `addr`; `None` for blocks that nothing is known of.
    pub fn state_of(&self, addr: usize) -> Option<PageState> {
        self.blocks.get(&block_of(addr)).map(|block| block.state[addr % BLOCK / PAGE])
    }

    /// True when pages are owed and none of this process's frames may go for them: only others can help.
    pub(super) fn owes_in_vain(&self) -> bool {
        self.owed() > 0 && self.spare_frames() == 0
    }

    fn spare_frames(&self) -> u64 {
        self.slot.charged_pages().saturating_sub(self.not_frames() + LEAST_FRAMES)
    }

    /// Says how many pages of this process's charge are placed objects.
    pub fn set_placed(&mut self, pages: u64) {
        self.placed = pages;
    }

    /// Asks for `pages` more for placed objects.
    pub fn ask_room(&mut self, pages: u64) {
        self.yielding.wanted += pages;
    }

    /// Takes `pages` that were asked for, if so many have been found. They are charged.
    pub fn take_room(&mut self, pages: u64) -> bool {
        let found = self.yielding.saved >= pages;
        if found {
            self.yielding.saved -= pages;
            self.yielding.wanted = self.yielding.wanted.saturating_sub(pages);
        }
        found
    }

    /// Pages found so far; it grows while there is hope.
    pub fn room_found(&self) -> u64 {
        self.yielding.saved
    }

    /// Takes back what `ask_room` asked.
    pub fn forget_room(&mut self, pages: u64) {
        self.yielding.wanted = self.yielding.wanted.saturating_sub(pages);
        let spare = self.yielding.saved.saturating_sub(self.yielding.wanted);
        self.yielding.saved -= spare;
        self.uncharge(spare as usize);
    }

    /// In the child of a fork: whoever waited is not here.
    pub(super) fn forget_all_room(&mut self) {
        self.yielding = Yielding::default();
    }

    /// One round of collecting: from the budget, then from free frames, then by evicting.
    pub(super) fn collect_room(&mut self) {
        if self.owed() == 0 {
            return;
        }
        let free = self.uncharged_room().min(self.owed());
        if free > 0 && self.job.try_charge(self.slot, free) {
            self.yielding.saved += free;
        }
        let step = self.owed().min(self.spare_frames()).min(16 * BLOCK_PAGES as u64) as usize;
        if step == 0 {
            return;
        }
        let mut tries = 0;
        while self.frames.free_pages().0 + self.frames.free_pages().1 < step && tries < TRIES {
            tries += 1;
            if self.end_oldest_limbo() {
                continue;
            }
            if !self.can_write_more() {
                break;
            }
            match self.evict.victim().map(|unit| self.evict_unit(unit)) {
                Some(Err(NotEvicted::FarFull(_))) | None => break,
                _ => {}
            }
        }
        self.yielding.saved += self.frames.release(step) as u64;
    }
}

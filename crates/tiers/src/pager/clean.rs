//! The cleaner: makes room in far when no more space can be had there.
//!
//! First it forgets far copies of pages that are in near, which cost nothing but a write when they leave again. Then it moves
//! what is still needed of mostly unused places together, to the end of the log. It waits for far, which is not done
//! anywhere else while the program runs: the program would have to be stopped otherwise.
//!
//! A page is moved only while nothing is under way at its place, so that its far copy is what its hash says.

use super::Pager;
use crate::block::PageState;
use crate::far::{KEPT, Place};
use crate::hash_map::Map;
use crate::log::Slot;
use nearfar_core::addr::{BLOCK_PAGES, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;

/// Places that one go aims to free, beyond those kept.
const GOAL: u64 = 8;
/// Pages copied in one go at the most: about 20 ms.
const MOST_PAGES: usize = 8 * BLOCK_PAGES;
/// A place with more pages than this in need is not worth moving.
const WORTH: usize = BLOCK_PAGES - BLOCK_PAGES / 16;

/// After going in vain, not again for so long, unless a thread waits with no other hope.
const VAIN_NS: u64 = 10_000_000;

/// A place that is mostly unused.
#[derive(Clone, Copy)]
enum Loose {
    /// Of the log.
    Log(Place),
    /// Of this block.
    Block(usize),
}

impl Pager {
    /// Before an eviction: sees to it that a place can be had, as far as that is possible.
    pub(super) fn ready_place(&mut self) {
        if self.far.spare_places() <= KEPT && self.far.short().is_some() && now_ns() >= self.clean_after_ns {
            self.clean();
        }
    }

    /// Makes room in far. False when nothing could be gained.
    pub(super) fn clean(&mut self) -> bool {
        // Writes that are being put together are not yet under way.
        self.send_gathered();
        self.far.backend().flush();
        self.far.reap_forks();
        let before = self.far.spare_places();
        let goal = before.max(KEPT) + GOAL;
        self.forget_doubles(goal);
        if self.far.spare_places() < goal {
            self.move_together();
        }
        let gained = self.far.spare_places() > before;
        if !gained {
            self.clean_after_ns = now_ns() + VAIN_NS;
        }
        gained
    }

    /// Forgets far copies of pages that are in near, until `goal` places are free.
    fn forget_doubles(&mut self, goal: u64) {
        let numbers: Vec<usize> = self.blocks.keys().copied().collect();
        for number in numbers {
            if self.far.spare_places() >= goal {
                return;
            }
            let Some(block) = self.blocks.get(&number) else { continue };
            let doubles = block.pages_in(0..BLOCK_PAGES, PageState::Resident);
            if doubles.is_empty() {
                continue;
            }
            let in_place = block.in_place();
            let place_goes =
                block.place.is_some_and(|place| !self.far.is_frozen(place)) && in_place.iter().all(|page| doubles.get(page));
            let goes = |page: &usize| match block.log_slot(*page) {
                Some(slot) => !self.far.is_frozen(slot.place),
                None => place_goes && in_place.get(*page),
            };
            let going: Vec<usize> = doubles.iter().filter(goes).collect();
            going.into_iter().for_each(|page| self.forget_far(number, page));
            self.free_place_if_unused(number);
        }
    }

    /// Moves what is needed of mostly unused places to the log.
    fn move_together(&mut self) {
        let mut loose: Vec<(usize, Loose)> = Vec::new();
        for (place, live) in self.log.closed() {
            if live <= WORTH && !self.far.is_frozen(place) && !self.far.is_busy(place) {
                loose.push((live, Loose::Log(place)));
            }
        }
        for (&number, block) in &self.blocks {
            let Some(place) = block.place else { continue };
            let needed = block.in_place().iter().filter(|&page| block.state[page] != PageState::Resident).count();
            if (1..=WORTH).contains(&needed) && !self.far.is_frozen(place) && !self.far.is_busy(place) {
                loose.push((needed, Loose::Block(number)));
            }
        }
        loose.sort_unstable_by_key(|&(needed, _)| needed);
        let mut total = 0;
        let chosen: Vec<Loose> = loose
            .into_iter()
            .take_while(|&(needed, _)| {
                total += needed;
                total <= MOST_PAGES
            })
            .map(|(_, which)| which)
            .collect();
        let mut of_log: Map<Place, Vec<(usize, usize)>> = Map::default();
        for which in &chosen {
            if let Loose::Log(place) = which {
                of_log.insert(*place, Vec::new());
            }
        }
        if !of_log.is_empty() {
            self.find_live(&mut of_log);
        }
        for which in chosen {
            let pages = match which {
                Loose::Log(place) => of_log.remove(&place).unwrap_or_default(),
                Loose::Block(number) => self.needed_of(number),
            };
            if !self.save(&pages) {
                return;
            }
        }
    }

    /// The pages of a block's place that are nowhere else; what is in near too is forgotten.
    fn needed_of(&mut self, number: usize) -> Vec<(usize, usize)> {
        let in_place = self.block(number).in_place();
        let (doubles, needed): (Vec<usize>, Vec<usize>) =
            in_place.iter().partition(|&page| self.block(number).state[page] == PageState::Resident);
        doubles.into_iter().for_each(|page| self.forget_far(number, page));
        needed.into_iter().map(|page| (number, page)).collect()
    }

    /// The pages with their far copies in these places of the log.
    fn find_live(&self, of_log: &mut Map<Place, Vec<(usize, usize)>>) {
        for (&number, block) in self.blocks.iter().filter(|(_, block)| block.has_log_slots()) {
            for page in 0..BLOCK_PAGES {
                if let Some(slot) = block.log_slot(page)
                    && let Some(pages) = of_log.get_mut(&slot.place)
                {
                    pages.push((number, page));
                }
            }
        }
    }

    /// Copies the far copies of `pages` to the end of the log; where they were is free then. False when there is no room.
    fn save(&mut self, pages: &[(usize, usize)]) -> bool {
        // A page whose write has not ended has no far copy yet; its place is busy and was not chosen.
        let is_valid = |&(number, page): &(usize, usize)| self.blocks.get(&number).is_some_and(|block| block.far_valid.get(page));
        if !pages.iter().all(is_valid) {
            return true;
        }
        let mut rest = pages;
        while !rest.is_empty() {
            let room = self.log.room();
            let count = rest.len().min(if room > 0 { room } else { BLOCK_PAGES });
            let Ok(first) = self.log.append_saved(&mut self.far, count) else { return false };
            let (now, later) = rest.split_at(count);
            self.copy_far(now, first.place, first.page as usize);
            self.count(Counter::FarCleanedBytes, (count * PAGE) as u64);
            for (index, &(number, page)) in now.iter().enumerate() {
                let slot = Slot { place: first.place, page: first.page + index as u16 };
                if let Some(old) = self.with_tables(number, |block| block.set_log_slot(page, Some(slot))) {
                    self.log.drop_slot(&mut self.far, old);
                }
            }
            for &(number, _) in now {
                self.free_place_if_unused(number);
            }
            rest = later;
        }
        true
    }
}

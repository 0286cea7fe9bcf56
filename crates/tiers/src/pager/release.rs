//! Memory that leaves management for good, with what it holds: the program wants to page it itself.

use super::{Pager, page_addr, page_index};
use crate::block::PageState;
use nearfar_core::addr::{BLOCK_PAGES, Extent, block_extent};
use nearfar_core::policy::Arrival;
use nearfar_sys::errno::Errno;

impl Pager {
    /// An address in each page of `range` that has content and is not in view.
    pub fn out_of_view(&self, range: Extent) -> Vec<usize> {
        let mut found = Vec::new();
        for number in range.blocks() {
            let (Some(block), Some(part)) = (self.blocks.get(&number), block_extent(number).intersect(&range)) else { continue };
            let hidden = |page: &usize| matches!(block.state[*page], PageState::Far | PageState::Held);
            found.extend(
                (page_index(part.start)..page_index(part.end - 1) + 1).filter(hidden).map(|page| page_addr(number, page)),
            );
        }
        found
    }

    /// Keeps what `range` holds in near until it is released. False when that would leave less than half of near to page in.
    pub fn keep_content(&mut self, range: Extent) -> bool {
        let known: Vec<usize> = range.blocks().filter(|number| self.blocks.contains_key(number)).collect();
        let content = |number: &usize| BLOCK_PAGES - self.blocks[number].pages_in(0..BLOCK_PAGES, PageState::Empty).count();
        if known.iter().map(content).sum::<usize>() as u64 > self.capacity / 2 {
            return false;
        }
        known.iter().for_each(|&number| self.block(number).pinned = true);
        true
    }

    /// Forgets `range`, all of whose content is in view, and leaves it to the program. Returns its pages, which stay charged.
    pub fn release(&mut self, range: Extent) -> Result<u64, Errno> {
        self.uffd.unregister(range)?;
        self.hide_from_raw_forks(range, false);
        let mut pages = 0;
        for number in range.blocks() {
            if !self.blocks.contains_key(&number) {
                continue;
            }
            let Some(part) = block_extent(number).intersect(&range) else { continue };
            let within = page_index(part.start)..page_index(part.end - 1) + 1;
            self.split_huge(number);
            pages += self.block(number).pages_in(within.clone(), PageState::Resident).count() as u64;
            for page in within.clone() {
                self.block(number).state[page] = PageState::Empty;
                self.forget_far(number, page);
            }
            self.block(number).pinned = false;
            self.settle_units(number, within, Arrival::Touched);
            self.free_place_if_unused(number);
            self.forget_if_blank(number);
        }
        self.regions.remove(range);
        self.let_go(range);
        Ok(pages)
    }
}

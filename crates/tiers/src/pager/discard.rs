//! Follows what the program does to its own memory: discarding, moving, protecting and pinning ranges.

use super::{Pager, page_index, pages_extent};
use crate::bits::Bits;
use crate::block::PageState;
use crate::frame_bytes;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, Extent, block_extent, block_start};
use nearfar_core::policy::{Arrival, Unit};
use nearfar_sys::errno::Errno;
use nearfar_sys::map;
use std::ops::Range;

impl Pager {
    /// The program gives up the content of `range` (page aligned): it reads as zeros from now on, near or far.
    pub fn discard(&mut self, range: Extent) {
        self.record_gone(range);
        for number in range.blocks() {
            if !self.blocks.contains_key(&number) {
                continue;
            }
            let Some(part) = block_extent(number).intersect(&range) else { continue };
            self.discard_in_block(number, page_index(part.start)..page_index(part.end - 1) + 1);
        }
        // Threads that wait for what is gone must look again.
        self.let_go(range);
    }

    fn discard_in_block(&mut self, number: usize, pages: Range<usize>) {
        let whole = pages == (0..BLOCK_PAGES);
        if self.block(number).huge {
            if whole && self.take_back_huge(number) {
                self.block(number).state.fill(PageState::Empty);
            } else {
                self.split_huge(number);
            }
        }
        let resident = self.block(number).pages_in(pages.clone(), PageState::Resident);
        if !resident.is_empty() {
            // SAFETY: the program has just given this content up.
            let _ = unsafe { map::madvise(pages_extent(number, pages.clone()), libc::MADV_DONTNEED) };
            self.uncharge(resident.count());
        }
        let holds = self.block(number).holds.clone();
        for id in holds {
            let hold = self.hold(id);
            pages.clone().for_each(|page| {
                hold.mask.clear(page);
                hold.zeros.clear(page);
            });
            // With operations under way the hold stays until they end: the kernel uses its memory.
            if hold.mask.is_empty() && hold.ops == 0 {
                let (phase, count) = (hold.phase, hold.populated.count());
                self.count_phase(phase, count, false);
                let hold = self.end_hold(id);
                self.recycle(&hold);
            }
        }
        for page in pages.clone() {
            self.block(number).state[page] = PageState::Empty;
            self.forget_far(number, page);
        }
        self.with_tables(number, |block| pages.clone().for_each(|page| block.hashes.clear(page)));
        self.settle_units(number, pages, Arrival::Touched);
        self.free_place_if_unused(number);
        self.forget_if_blank(number);
    }

    /// Takes the huge page of a block, whose content nobody wants, into the free frames. Far quicker than giving it to the
    /// kernel and asking for another.
    fn take_back_huge(&mut self, number: usize) -> bool {
        let Some(slot) = self.frames.take_empty_huge() else { return false };
        frame_bytes::drop_table(Extent::new(slot, BLOCK));
        if !self.uffd.can_move() || self.hide(number, 0..BLOCK_PAGES, slot).is_err() {
            self.frames.give_empty_huge(slot);
            return false;
        }
        self.evict.remove(Unit::block(number));
        self.block(number).huge = false;
        let mut present = Bits::of(0..BLOCK_PAGES);
        super::absent_pages(Extent::new(slot, BLOCK), |page| present.clear(page));
        let count = present.count();
        self.uncharge(BLOCK_PAGES - count);
        match count {
            BLOCK_PAGES => self.frames.give_huge(slot),
            0 => self.frames.give_empty_huge(slot),
            _ => self.frames.break_partial(slot, &present),
        }
        true
    }

    /// From now on the block's chunks are units of their own.
    pub(super) fn split_huge(&mut self, number: usize) {
        if self.block(number).huge {
            self.block(number).huge = false;
            self.evict.remove(Unit::block(number));
            self.settle_units(number, 0..BLOCK_PAGES, Arrival::Touched);
        }
    }

    /// Books pages that should be visible and are not: somebody discarded them with a raw system call.
    pub(super) fn forget_absent(&mut self, number: usize) {
        self.split_huge(number);
        let mut absent = Bits::default();
        super::absent_pages(block_extent(number), |page| absent.set(page));
        let block = self.block(number);
        let lost: Vec<usize> = absent.iter().filter(|&page| block.state[page] == PageState::Resident).collect();
        for &page in &lost {
            self.block(number).state[page] = PageState::Empty;
            self.forget_far(number, page);
        }
        self.uncharge(lost.len());
        self.settle_units(number, 0..BLOCK_PAGES, Arrival::Touched);
        self.free_place_if_unused(number);
    }

    /// True when a page that should be in view is absent, and its neighbours in the block are not.
    pub(super) fn is_lone_hole(&mut self, number: usize, page: usize) -> bool {
        let mut hole = Bits::default();
        super::absent_pages(block_extent(number), |page| hole.set(page));
        let block = self.block(number);
        let resident = block.pages_in(0..BLOCK_PAGES, PageState::Resident);
        let missing = |page: usize| page < BLOCK_PAGES && hole.get(page) && resident.get(page);
        missing(page) && !missing(page + 1) && !(page > 0 && missing(page - 1))
    }

    /// Moves whole blocks from `from` to `to` (block aligned, `to` without content), near and far, without copying.
    /// Stops at the first block that cannot be moved; returns how many were.
    pub fn relocate(&mut self, from: usize, to: usize, blocks: usize) -> usize {
        for index in 0..blocks {
            let (old, new) = (from / BLOCK + index, to / BLOCK + index);
            if self.blocks.contains_key(&new) {
                return index;
            }
            let Some(block) = self.blocks.get(&old) else { continue };
            let (any, shared) = (block.state.contains(&PageState::Resident), block.shared);
            if any {
                let range = block_extent(old);
                if !self.uffd.can_move() || shared || !self.is_movable(old) || !self.is_movable(new) {
                    return index;
                }
                if let Err((done, _)) = self.uffd.move_pages(block_start(new), range.start, BLOCK, true) {
                    self.undo_hide(range.start, block_start(new), done);
                    return index;
                }
            }
            let huge = self.block(old).huge;
            let units = self.block(old).units;
            if huge {
                self.evict.remove(Unit::block(old));
            }
            (0..32).filter(|chunk| units >> chunk & 1 == 1).for_each(|chunk| self.evict.remove(Unit::chunk(old, chunk)));
            let Some(mut block) = self.blocks.remove(&old) else { continue };
            block.units = 0;
            for &id in &block.holds {
                self.hold(id).block = new;
            }
            self.blocks.insert(new, block);
            if huge {
                self.evict.insert(Unit::block(new), BLOCK_PAGES as u32, Arrival::Touched);
            } else {
                self.settle_units(new, 0..BLOCK_PAGES, Arrival::Touched);
            }
            self.record_gone(block_extent(old));
            self.let_go(block_extent(old));
        }
        blocks
    }

    /// The protection of `range` has changed: huge pages that it cuts are in pieces now.
    pub fn protect_changed(&mut self, range: Extent) {
        for edge in [range.start, range.end.saturating_sub(1)] {
            let number = edge / BLOCK;
            if self.blocks.contains_key(&number) && !range.contains_extent(block_extent(number)) {
                self.split_huge(number);
            }
        }
    }

    /// Pins or unpins the blocks of `range`. Pinning fails when less than half of near would stay free to page in.
    pub fn pin(&mut self, range: Extent, pinned: bool) -> Result<(), Errno> {
        if pinned {
            let is_pinned = |number: &usize| self.blocks.get(number).is_some_and(|block| block.pinned);
            let held = self.blocks.values().filter(|block| block.pinned).count();
            let more = range.blocks().filter(|number| !is_pinned(number)).count();
            if ((held + more) * BLOCK_PAGES) as u64 > self.capacity / 2 {
                return Err(Errno::ENOMEM);
            }
        }
        for number in range.blocks() {
            if pinned || self.blocks.contains_key(&number) {
                self.block(number).pinned = pinned;
                self.forget_if_blank(number);
            }
        }
        Ok(())
    }

    /// Notes that the pages of `number` in `bits` are there already, at the start of paging.
    pub(super) fn note_present(&mut self, number: usize, bits: &Bits) {
        let block = self.block(number);
        for page in bits.iter() {
            block.state[page] = PageState::Resident;
        }
        if bits.count() == BLOCK_PAGES && self.recorder.is_none() && self.is_movable(number) {
            self.block(number).huge = true;
            self.evict.insert(Unit::block(number), BLOCK_PAGES as u32, Arrival::Touched);
        } else {
            self.settle_units(number, 0..BLOCK_PAGES, Arrival::Touched);
        }
    }
}

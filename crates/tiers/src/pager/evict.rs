//! Takes units out of the program's view, finds out what of them far lacks, and writes that back.
//!
//! A page moved out cannot change any more, so one pass over it tells everything: all zero (nothing to keep), equal to its
//! far copy (nothing to write), or dirty. No write faults are needed, and stores that change nothing cost no I/O.

use super::{Pager, page_addr};
use crate::bits::Bits;
use crate::block::{Frames, HoldId, PageState, Phase};
use crate::far::Place;
use crate::frame_bytes;
use crate::log::Slot;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, CHUNK, CHUNK_PAGES, Extent, PAGE};
use nearfar_core::policy::{Arrival, Unit};
use nearfar_core::stats::Counter;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::uffd::Refused;
use std::ops::Range;

/// Clean pages between two dirty runs that are written with them, to make one operation of two: about what a device writes in
/// the time that one more operation costs (30 us at 2 GB/s).
const BRIDGE: usize = 16;

/// Why a unit stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NotEvicted {
    /// The kernel, mlock or a system call holds it: it goes back to the policy.
    Pinned,
    /// It is not there any more.
    Gone,
    /// Far has no space.
    FarFull(Errno),
}

impl Pager {
    /// Evicts `unit`, which the policy has given up.
    pub(super) fn evict_unit(&mut self, unit: Unit) -> Result<(), NotEvicted> {
        let number = unit.block_number();
        let pages = match unit.chunk_index() {
            None => 0..BLOCK_PAGES,
            Some(chunk) => chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES,
        };
        let Some(block) = self.blocks.get_mut(&number) else { return Err(NotEvicted::Gone) };
        let resident = block.pages_in(pages.clone(), PageState::Resident);
        if resident.is_empty() {
            block.units &= unit.chunk_index().map_or(u32::MAX, |chunk| !(1 << chunk));
            return Err(NotEvicted::Gone);
        }
        let pinned = block.pinned;
        if pinned || self.loans.overlap(&super::pages_extent(number, pages.clone())) || self.is_being_written(number, &pages) {
            self.keep(unit, resident.count());
            return Err(NotEvicted::Pinned);
        }
        self.ready_place();
        let huge = unit.chunk_index().is_none();
        let slot = if huge { self.frames.take_empty_huge() } else { self.frames.take_empty_chunk() };
        let Some(slot) = slot else {
            self.keep(unit, resident.count());
            return Err(NotEvicted::Pinned);
        };
        if huge {
            frame_bytes::drop_table(Extent::new(slot, BLOCK));
        }
        let (moved, sure) = match self.hide_parts(number, &pages, slot, resident, huge) {
            Ok(went) => went,
            Err(why) => {
                if huge {
                    self.frames.give_empty_huge(slot)
                } else {
                    self.frames.fill_chunk(slot, 0)
                }
                self.count(Counter::PinnedSkips, 1);
                if huge && matches!(why, Refused::Unfit | Refused::Busy) {
                    // It lies across a border between mappings, or a device holds a page: its chunks can go one by one.
                    self.split_huge(number);
                } else {
                    self.keep(unit, resident.count());
                }
                return Err(NotEvicted::Pinned);
            }
        };
        let present = self.take_stock(number, pages.clone(), slot, moved, huge, sure);
        if moved != resident {
            // What could not move is still a unit.
            self.settle_units(number, pages.clone(), Arrival::Rescued);
        }
        if present.is_empty() {
            return Err(NotEvicted::Gone);
        }
        let frames = Frames::Span { addr: slot, first: pages.start, huge };
        let id = self.new_hold(number, present, frames, Phase::Reading);
        for page in present.iter() {
            self.block(number).state[page] = PageState::Held;
        }
        self.set_phase(id, Phase::Writing);
        match self.write_back(id) {
            Ok(changed) => {
                self.count(Counter::EvictedBytes, (present.count() * PAGE) as u64);
                self.evict.left(unit, changed as u32);
                Ok(())
            }
            Err(errno) => {
                // Nowhere to put it: back into view.
                self.show_hold(id, Arrival::Rescued);
                Err(NotEvicted::FarFull(errno))
            }
        }
    }

    /// Takes the resident pages of a unit out of view, mapping by mapping: borders need not lie where chunks begin. Returns
    /// those that went, and whether it is sure that they all were there; refuses when none did.
    fn hide_parts(
        &mut self,
        number: usize,
        pages: &Range<usize>,
        slot: usize,
        resident: Bits,
        huge: bool,
    ) -> Result<(Bits, bool), Refused> {
        if huge {
            return self.hide(number, pages.clone(), slot).map(|()| (resident, false));
        }
        let view = super::pages_extent(number, pages.clone());
        let mut moved = Bits::default();
        let mut sure = true;
        let mut why = Refused::Unfit;
        for (part, _) in self.regions.parts(view) {
            let range = super::page_index(part.start)..super::page_index(part.end - 1) + 1;
            let here = resident.within(range.clone());
            if here.is_empty() {
                continue;
            }
            if self.hide_exactly(number, &here, slot - pages.start * PAGE) {
                moved.add(&here);
                continue;
            }
            sure = false;
            match self.hide(number, range.clone(), slot + (range.start - pages.start) * PAGE) {
                Ok(()) => moved.add(&here),
                Err(reason) => why = reason,
            }
        }
        if moved.is_empty() { Err(why) } else { Ok((moved, sure)) }
    }

    fn keep(&mut self, unit: Unit, pages: usize) {
        self.evict.insert(unit, pages as u32, Arrival::Rescued);
    }

    fn is_being_written(&mut self, number: usize, pages: &Range<usize>) -> bool {
        let wanted = Bits::of(pages.clone());
        let holds = self.block(number).holds.clone();
        holds.iter().any(|&id| self.hold(id).writing.iter().any(|page| wanted.get(page)))
    }

    /// After `hide`: asks the kernel which pages really came (the program may have discarded some with a raw system call),
    /// unless that is `sure`, and books the slot and the units accordingly.
    fn take_stock(&mut self, number: usize, pages: Range<usize>, slot: usize, resident: Bits, huge: bool, sure: bool) -> Bits {
        let mut present = resident;
        if !sure {
            let len = if huge { BLOCK } else { CHUNK };
            let mut stray = Bits::of(pages.clone());
            super::absent_pages(Extent::new(slot, len), |index| {
                present.clear(pages.start + index);
                stray.clear(pages.start + index);
            });
            if let Some(page) = stray.iter().find(|&page| !present.get(page)) {
                super::stop(&format!(
                    "internal error: the page at {:#x} came out of view and was not known to be there; please report this",
                    number * BLOCK + page * PAGE
                ));
            }
        }
        for page in resident.iter().filter(|&page| !present.get(page)) {
            self.block(number).state[page] = PageState::Empty;
            self.forget_far(number, page);
        }
        let block = self.block(number);
        let lost = resident.count() - present.count();
        if huge {
            block.huge = false;
            let merged = std::mem::take(&mut block.merged_ns);
            if merged != 0 {
                self.merging.left(now_ns().saturating_sub(merged));
            }
            if present.is_empty() {
                self.frames.give_empty_huge(slot);
            }
        } else {
            block.units &= !(1 << (pages.start / CHUNK_PAGES));
            let mask = present.iter().fold(0u16, |mask, page| mask | 1 << (page - pages.start));
            self.frames.fill_chunk(slot, mask);
        }
        self.uncharge(lost);
        present
    }

    /// Sorts the pages of a hold and starts the writes that far needs. Without any, the hold is clean at once. Returns how many
    /// pages differ from what far had of them.
    fn write_back(&mut self, id: HoldId) -> Result<usize, Errno> {
        let hold = self.hold(id);
        let (number, mask, frames) = (hold.block, hold.mask, hold.frames.clone());
        let (mut zeros, mut dirty) = (Bits::default(), Bits::default());
        let (mut clean, mut changed) = (0, 0);
        let mut fresh = [0u64; BLOCK_PAGES];
        let whole = frames.is_huge();
        let short = self.far.short().is_some();
        let block = self.block(number);
        for page in mask.iter() {
            let addr = frames.addr(page);
            // SAFETY: `take_stock` has seen that the page is there; it is in no view, so nobody changes it.
            let (zero, hash) =
                unsafe { if frame_bytes::is_zero(addr) { (true, 0) } else { (false, frame_bytes::page_hash(addr)) } };
            if zero {
                zeros.set(page);
                continue;
            }
            let known = block.far_valid.get(page);
            let equal = known && block.hashes.get(page) == hash;
            changed += usize::from(known && !equal);
            // A block that has come together leaves the log, so that it can be read in one piece.
            if equal && !(whole && !short && block.log_slot(page).is_some()) {
                clean += 1;
            } else {
                fresh[page] = hash;
                dirty.set(page);
            }
        }
        self.record_out(number, &mask, dirty.count() > 0);
        self.count(Counter::EvictedZeroBytes, (zeros.count() * PAGE) as u64);
        self.count(Counter::EvictedCleanBytes, (clean * PAGE) as u64);
        if dirty.count() > 0 {
            // A block whose place is spoilt moves when it leaves whole: other parts may be on their way to where it is.
            let place = self.block(number).place;
            let spoilt = place.is_some_and(|place| self.far.is_spoilt(place));
            // When space is short a place for a few pages would be waste.
            let thin = short && place.is_none() && dirty.count() < BLOCK_PAGES / 8 * 7;
            if thin || !whole && (dirty.count() < CHUNK_PAGES || spoilt) {
                self.write_to_log(id, number, dirty, &fresh, &frames)?;
            } else {
                self.write_in_place(id, number, dirty, &zeros, &fresh, &frames)?;
            }
        }
        self.hold(id).zeros = zeros;
        for page in zeros.iter() {
            self.forget_far(number, page);
        }
        self.free_place_if_unused(number);
        if self.hold(id).ops == 0 {
            self.enter_limbo(id);
        }
        Ok(changed)
    }

    /// Writes dirty pages to the end of the log, in one piece and with those of others.
    fn write_to_log(&mut self, id: HoldId, number: usize, dirty: Bits, fresh: &[u64], frames: &Frames) -> Result<(), Errno> {
        if !self.log.has_room(dirty.count()) {
            // What is gathered goes to a place that is about to be closed.
            self.send_gathered();
        }
        let first = self.log.append(&mut self.far, dirty.count())?;
        for (index, page) in dirty.iter().enumerate() {
            self.forget_far(number, page);
            let slot = Slot { place: first.place, page: first.page + index as u16 };
            self.with_tables(number, |block| {
                block.set_log_slot(page, Some(slot));
                block.hashes.set(page, fresh[page]);
            });
        }
        self.hold(id).writing = dirty;
        self.gather(id, first, dirty.iter(), frames);
        Ok(())
    }

    /// Writes dirty pages to the block's own place.
    fn write_in_place(
        &mut self,
        id: HoldId,
        number: usize,
        mut dirty: Bits,
        zeros: &Bits,
        fresh: &[u64],
        frames: &Frames,
    ) -> Result<(), Errno> {
        let mask = self.hold(id).mask;
        let place = self.place_for(number, &mut dirty, &mask, zeros)?;
        // Pages that had to join because their block moved were clean: their hashes hold.
        self.with_tables(number, |block| {
            dirty.iter().filter(|&page| fresh[page] != 0).for_each(|page| block.hashes.set(page, fresh[page]));
        });
        for page in dirty.iter() {
            self.forget_far(number, page);
        }
        // Clean pages between two runs may be written again where they are, and zeros where nobody reads them; not those of
        // the log, which are elsewhere.
        let block = self.block(number);
        let runs = dirty.runs(BRIDGE, |page| mask.get(page) && block.log_slot(page).is_none());
        // Bridged pages too: nothing else may write there until this has ended.
        let mut writing = Bits::default();
        runs.iter().cloned().flatten().for_each(|page| writing.set(page));
        self.hold(id).writing = writing;
        for run in runs {
            self.submit(id, true, (place, run.start), run, frames);
        }
        Ok(())
    }

    /// The place to write block `number` to. Where the present one is frozen by a fork, the block moves to a new one, with
    /// all of its far copies: those in the hold join `dirty`, the others are copied now.
    fn place_for(&mut self, number: usize, dirty: &mut Bits, held: &Bits, zeros: &Bits) -> Result<Place, Errno> {
        let old = self.block(number).place;
        if let Some(place) = old
            && !self.far.is_frozen(place)
        {
            return Ok(place);
        }
        let new = self.far.allocate()?;
        if let Some(old) = old {
            let mut others = Bits::default();
            let block = self.block(number);
            for page in block.in_place().iter() {
                if held.get(page) {
                    if !zeros.get(page) {
                        dirty.set(page);
                    }
                } else if block.state[page] == PageState::Resident {
                    // It is in near; it will be written when it leaves.
                    block.far_valid.clear(page);
                } else {
                    others.set(page);
                }
            }
            for run in others.runs(0, |_| false) {
                let first = run.start;
                let pages: Vec<(usize, usize)> = run.map(|page| (number, page)).collect();
                self.copy_far(&pages, new, first);
            }
            self.far.free(old);
        }
        self.block(number).place = Some(new);
        Ok(new)
    }

    pub(super) fn write_ended(&mut self, id: HoldId) {
        if self.hold(id).ops > 0 {
            return;
        }
        let writing = std::mem::take(&mut self.hold(id).writing);
        let hold = self.hold(id);
        let (number, mask, zeros, wanted) = (hold.block, hold.mask, hold.zeros, hold.wanted);
        let block = self.block(number);
        for page in writing.iter().filter(|&page| mask.get(page) && !zeros.get(page)) {
            block.far_valid.set(page);
        }
        if mask.is_empty() {
            self.set_phase(id, Phase::Reading);
            let hold = self.end_hold(id);
            self.recycle(&hold);
            self.free_place_if_unused(number);
            self.forget_if_blank(number);
        } else if wanted {
            self.show_hold(id, Arrival::Rescued);
        } else {
            self.enter_limbo(id);
            self.free_place_if_unused(number);
        }
    }

    fn enter_limbo(&mut self, id: HoldId) {
        self.set_phase(id, Phase::Clean);
        let entry = (id, self.hold(id).serial);
        if self.hold(id).frames.is_huge() { self.limbo_huge.push_back(entry) } else { self.limbo_small.push_back(entry) }
    }

    /// Ends a clean hold: its pages are in far (or nowhere, when zero) from now on, its frames free.
    pub(super) fn end_limbo(&mut self, id: HoldId) {
        let pages = self.hold(id).populated.count();
        let phase = self.hold(id).phase;
        self.count_phase(phase, pages, false);
        let hold = self.end_hold(id);
        let block = self.block(hold.block);
        for page in hold.mask.iter() {
            if !hold.zeros.get(page) && !block.far_valid.get(page) {
                super::stop("internal error: a page was to leave near that far does not have; please report this");
            }
            block.state[page] = if hold.zeros.get(page) { PageState::Empty } else { PageState::Far };
        }
        self.recycle(&hold);
        self.forget_if_blank(hold.block);
    }

    /// Gives up a prefetched hold that nobody asked for.
    pub(super) fn end_staged(&mut self, id: HoldId) {
        let pages = self.hold(id).populated.count();
        self.count_phase(Phase::Staged, pages, false);
        let hold = self.end_hold(id);
        let block = self.block(hold.block);
        for page in hold.mask.iter() {
            // A whole block is read with its never-touched pages, which are zeros in the frame.
            block.state[page] = if block.far_valid.get(page) { PageState::Far } else { PageState::Empty };
        }
        self.count(Counter::PrefetchWastedBytes, self.bytes_of_far(hold.block, &hold.mask));
        self.aside.wasted(hold.mask.count() as u64);
        let runs = hold.mask.runs(0, |_| false);
        self.recycle(&hold);
        for run in runs {
            let first = (page_addr(hold.block, run.start) / PAGE) as u64;
            self.fetch.on_wasted(nearfar_core::policy::Run { first, count: run.len() as u32 });
        }
    }

    /// Frees the place of a block of which far has nothing any more.
    pub(super) fn free_place_if_unused(&mut self, number: usize) {
        let Some(block) = self.blocks.get(&number) else { return };
        let Some(place) = block.place else { return };
        if !block.in_place().is_empty() {
            return;
        }
        // Writes of pages that are still held will make the place count again.
        let holds = block.holds.clone();
        let awaited = holds.iter().any(|&id| {
            let hold = self.hold(id);
            hold.place == Some(place) && hold.writing.iter().any(|page| hold.mask.get(page) && !hold.zeros.get(page))
        });
        if !awaited {
            self.block(number).place = None;
            self.far.free(place);
        }
    }

    pub(super) fn forget_if_blank(&mut self, number: usize) {
        if self.blocks.get(&number).is_some_and(|block| block.is_blank()) {
            self.table_bytes -= self.blocks.remove(&number).map_or(0, |block| block.table_bytes());
        }
    }
}

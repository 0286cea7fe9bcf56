//! Checks the whole page table: every state, hold, unit, frame, far place, transfer and charge against each other, and
//! against what the kernel says is there. Run by debug builds, and everywhere when NEARFAR_CHECK asks for it.
//!
//! Everything that is known twice is compared, so that a slip in the books is found where it happens, not days later as a
//! frame that is missing or a byte that is wrong. Costs milliseconds and more: it is for tests.

use super::{Pager, page_index};
use crate::bits::Bits;
use crate::block::{Block, Frames, Hold, PageState, Phase};
use crate::far::Place;
use crate::hash_map::Map;
use nearfar_core::addr::{BLOCK_CHUNKS, BLOCK_PAGES, block_extent};

/// Debug builds check in every so many rounds.
const DEBUG_ROUNDS: u32 = 64;

macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(format!($($what)+));
        }
    };
}

/// How many rounds of the pager thread have gone by without a check.
#[derive(Default)]
pub(super) struct Watch {
    rounds: u32,
}

impl Pager {
    /// At the end of a round: checks everything now and then, and stops the program if something is wrong.
    pub(super) fn check_now_and_then(&mut self) {
        let asked = self.job.settings().check_rounds;
        let every = if asked == 0 && cfg!(debug_assertions) { DEBUG_ROUNDS } else { asked };
        self.watch.rounds += 1;
        if every > 0 && self.watch.rounds >= every {
            self.watch.rounds = 0;
            self.count(nearfar_core::stats::Counter::Checks, 1);
            if let Err(what) = self.check() {
                super::stop(&format!("internal error: the page table contradicts itself: {what}; please report this"));
            }
        }
    }

    /// Checks every invariant of the page table. Only where the lock is about to be released: amid a step they do not hold.
    pub fn check(&self) -> Result<(), String> {
        let mut resident = 0;
        let mut units = 0;
        for (&number, block) in &self.blocks {
            let named = |what: String| format!("block {number:#x}: {what}");
            resident += self.check_block(number, block).map_err(named)?;
            units += check_units(block).map_err(named)?;
        }
        ensure!(units == self.evict.resident_pages(), "units have {units} pages, the policy {}", self.evict.resident_pages());
        let populated = self.check_holds()?;
        self.check_far()?;
        let tables: usize = self.blocks.values().map(|block| block.table_bytes()).sum();
        ensure!(tables == self.table_bytes, "tables of blocks have {tables} bytes, counted {}", self.table_bytes);
        let charged = (resident + populated + self.hollow + self.metadata_pages) as u64 + self.not_frames();
        ensure!(
            charged == self.slot.charged_pages(),
            "{} pages are charged, but there are {resident} in view, {populated} in frames, {} hollow, {} of tables",
            self.slot.charged_pages(),
            self.hollow,
            self.metadata_pages
        );
        Ok(())
    }

    /// One block, its holds, and the kernel's view of it; returns the pages in near at their own address.
    fn check_block(&self, number: usize, block: &Block) -> Result<usize, String> {
        let mut held = Bits::default();
        for &id in &block.holds {
            let Some(Some(hold)) = self.holds.get(id) else { return Err(format!("hold {id} is gone")) };
            ensure!(hold.block == number, "hold {id} is one of block {:#x}", hold.block);
            for page in hold.mask.iter() {
                ensure!(!held.get(page), "page {page} is held twice");
                held.set(page);
                let safe = match hold.phase {
                    Phase::Clean => hold.zeros.get(page) || block.far_valid.get(page),
                    Phase::Writing => hold.zeros.get(page) || block.far_valid.get(page) || hold.writing.get(page),
                    Phase::Reading | Phase::Staged => true,
                };
                ensure!(safe, "page {page} is evicted, and neither zero nor in far nor on its way ({:?})", hold.phase);
            }
        }
        block.check(&held)?;
        let mut ours = Bits::default();
        for (part, _) in self.regions.parts(block_extent(number)) {
            ours.add(&Bits::of(page_index(part.start)..page_index(part.end - 1) + 1));
        }
        // What is not in view must not be there: the program would see it without asking.
        let mut stray = Bits::of(0..BLOCK_PAGES);
        super::absent_pages(block_extent(number), |page| stray.clear(page));
        if let Some(page) = stray.iter().find(|&page| block.state[page] != PageState::Resident && ours.get(page)) {
            return Err(format!("page {page} is {:?}, and in view", block.state[page]));
        }
        if let Some(page) = (0..BLOCK_PAGES).find(|&page| block.state[page] != PageState::Empty && !ours.get(page)) {
            return Err(format!("page {page} is {:?} and belongs to no region", block.state[page]));
        }
        Ok(block.pages_in(0..BLOCK_PAGES, PageState::Resident).count())
    }

    /// Holds against blocks, transfers, lists and counts, and all frames; returns the populated pages.
    fn check_holds(&self) -> Result<usize, String> {
        let mut seen = vec![0u8; self.holds.len()];
        self.free_holds.iter().for_each(|&id| seen[id] += 1);
        ensure!(seen.iter().all(|&times| times <= 1), "a hold is free twice");
        let (mut staged, mut limbo, mut writing, mut ahead) = (0, 0, 0, 0);
        let mut staged_holds = 0;
        let mut frames = (Vec::new(), Vec::new());
        for (id, hold) in self.holds.iter().enumerate() {
            ensure!((seen[id] == 1) == hold.is_none(), "hold {id} is in use and free, or neither");
            let Some(hold) = hold else { continue };
            self.check_hold(id, hold)
                .map_err(|what| format!("hold {id}, {:?} of block {:#x}: {what}", hold.phase, hold.block))?;
            let pages = hold.populated.count();
            match hold.phase {
                Phase::Reading => ahead += if hold.prefetch { pages } else { 0 },
                Phase::Staged => (staged, staged_holds) = (staged + pages, staged_holds + 1),
                Phase::Writing => (limbo, writing) = (limbo + pages, writing + pages),
                Phase::Clean => limbo += pages,
            }
            match &hold.frames {
                Frames::Span { addr, huge: true, .. } => frames.0.push((*addr, hold.populated)),
                other => frames.1.extend(hold.populated.iter().map(|page| other.addr(page))),
            }
        }
        let counted = (self.staged_pages, self.staged_holds, self.limbo_pages, self.writing_pages, self.reading_ahead);
        let found = (staged, staged_holds, limbo, writing, ahead);
        ensure!(counted == found, "(staged, holds, limbo, writing, ahead) are {found:?}, counted {counted:?}");
        self.frames.check(&frames.0, &frames.1)
    }

    fn check_hold(&self, id: usize, hold: &Hold) -> Result<(), String> {
        let within = |few: &Bits, many: &Bits| few.iter().all(|page| many.get(page));
        ensure!(within(&hold.mask, &hold.populated), "it holds pages without frames");
        ensure!(within(&hold.zeros, &hold.mask), "it calls pages zero that it does not hold");
        let known = self.blocks.get(&hold.block).is_some_and(|block| block.holds.contains(&id));
        ensure!(known, "its block does not know it");
        let ops = self.transfers.ops_of(id, hold.serial);
        ensure!(ops == hold.ops, "it takes part in {ops} operations, not {}", hold.ops);
        let busy = matches!(hold.phase, Phase::Reading | Phase::Writing);
        ensure!(busy == (ops > 0), "{ops} operations are under way");
        ensure!(hold.writing.is_empty() || hold.phase == Phase::Writing, "it is not being written");
        let lists = match hold.phase {
            Phase::Reading | Phase::Writing => return Ok(()),
            Phase::Staged => [&self.staged, &self.staged],
            Phase::Clean => [&self.limbo_huge, &self.limbo_small],
        };
        ensure!(!hold.wanted, "somebody waits for it");
        ensure!(lists.iter().any(|list| list.contains(&(id, hold.serial))), "it is in no list, and would stay for ever");
        Ok(())
    }

    /// Places of blocks and of the log, and the operations under way there.
    fn check_far(&self) -> Result<(), String> {
        let mut slots: Map<Place, u16> = Map::default();
        let mut places: Map<Place, u32> = Map::default();
        for block in self.blocks.values() {
            block.place.into_iter().for_each(|place| *places.entry(place).or_insert(0) += 1);
            for page in (0..BLOCK_PAGES).filter_map(|page| block.log_slot(page)) {
                *slots.entry(page.place).or_insert(0) += 1;
            }
        }
        for place in self.log.check(&slots)? {
            *places.entry(place).or_insert(0) += 1;
        }
        if let Some((place, times)) = places.iter().find(|&(_, &times)| times > 1) {
            return Err(format!("{place:?} belongs to {times} owners"));
        }
        let under_way = self.transfers.places();
        let ops: u32 = under_way.values().sum();
        ensure!(ops == self.ops, "{ops} operations are under way, counted {}", self.ops);
        self.far.check(places.keys().copied(), &under_way)
    }
}

/// The units of a block against its states; returns their pages.
fn check_units(block: &Block) -> Result<u64, String> {
    if block.huge {
        let whole = block.all(0..BLOCK_PAGES, PageState::Resident) && block.units == 0 && block.holds.is_empty();
        ensure!(whole, "it is huge, but not all of it in view, or in pieces as well");
        return Ok(BLOCK_PAGES as u64);
    }
    let mut pages = 0;
    for chunk in 0..BLOCK_CHUNKS {
        let resident = block.count_in_chunk(chunk, PageState::Resident);
        let unit = block.units >> chunk & 1 == 1;
        ensure!(unit == (resident > 0), "chunk {chunk} has {resident} pages in view, unit: {unit}");
        pages += u64::from(resident);
    }
    Ok(pages)
}

//! What the pager knows of one 2 MiB block of the program's memory, and of the frames that hold parts of it.
//!
//! Invariant (`Block::check`): a page is `Held` exactly when one hold of the block has it in its mask; a `Far` page has a
//! valid far copy; a page is `Resident` when the program can see it. The first word on a page is always its state here;
//! frames, policies and far space follow from it.

use crate::backend::StoreId;
use crate::bits::Bits;
use crate::far::Place;
use crate::log::Slot;
use crate::page_map::PageMap;
use nearfar_core::addr::{BLOCK_PAGES, CHUNK_PAGES};
use std::ops::Range;

/// Where the content of a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageState {
    /// Nowhere: it reads as zeros.
    Empty,
    /// Only in far.
    Far,
    /// In near, at its own address.
    Resident,
    /// In a frame of the pager: being read, staged by prefetch, or in limbo.
    Held,
}

/// A slot in the log, in five bytes and a mark; `NONE` is no slot.
#[derive(Clone, Copy, Default)]
struct PackedSlot {
    // Place and page in one number, plus one.
    at: u32,
    store: StoreId,
}

impl PackedSlot {
    fn new(slot: Option<Slot>) -> Self {
        slot.map_or(Self::default(), |slot| Self {
            at: slot.place.index * BLOCK_PAGES as u32 + u32::from(slot.page) + 1,
            store: slot.place.store,
        })
    }

    fn unpack(self) -> Option<Slot> {
        let at = self.at.checked_sub(1)?;
        let place = Place { store: self.store, index: at / BLOCK_PAGES as u32 };
        Some(Slot { place, page: (at % BLOCK_PAGES as u32) as u16 })
    }
}

/// Index of a hold in the pager's table.
pub type HoldId = usize;

/// Of long reads one page in so many is compared with its hash.
pub const SAMPLED: usize = 8;

/// One block. About 700 bytes; more once parts of it have been in far (8 bytes for each page, few or all), and while parts of it are in the
/// log (8 bytes as well).
pub struct Block {
    /// State of each page.
    pub state: [PageState; BLOCK_PAGES],
    /// Pages whose far copy is what the page held when it was last written or read.
    pub far_valid: Bits,
    /// Hash of each valid far copy; 0 where none is known.
    pub hashes: PageMap<u64>,
    /// Far space of the block, laid out as in memory.
    pub place: Option<Place>,
    /// Pages whose far copy is in the log instead, and how many they are.
    scattered: PageMap<PackedSlot>,
    in_log: u16,
    /// Holds with pages of this block.
    pub holds: Vec<HoldId>,
    /// Resident as one huge page, and one unit for the policy.
    pub huge: bool,
    /// When small pages were made the huge page; 0: it came as one.
    pub merged_ns: u64,
    /// Chunks that are units of the policy.
    pub units: u32,
    /// Pages that must stay in near (mlock).
    pub pinned: bool,
    /// The kernel may have a page table for it. A huge page that is moved to where one is comes apart.
    pub table: bool,
    /// A fork may have left pages shared with another process: they must be made our own before they can move.
    pub shared: bool,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            state: [PageState::Empty; BLOCK_PAGES],
            far_valid: Bits::default(),
            hashes: PageMap::None,
            place: None,
            scattered: PageMap::None,
            in_log: 0,
            holds: Vec::new(),
            huge: false,
            merged_ns: 0,
            units: 0,
            pinned: false,
            table: true,
            shared: false,
        }
    }
}

impl Block {
    /// True when every page of `range` is in `state`.
    pub fn all(&self, range: Range<usize>, state: PageState) -> bool {
        self.state[range].iter().all(|&s| s == state)
    }

    /// Pages of `range` in `state`.
    pub fn pages_in(&self, range: Range<usize>, state: PageState) -> Bits {
        let mut bits = Bits::default();
        range.filter(|&page| self.state[page] == state).for_each(|page| bits.set(page));
        bits
    }

    /// Number of pages of chunk `chunk` in `state`.
    pub fn count_in_chunk(&self, chunk: usize, state: PageState) -> u32 {
        self.state[chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES].iter().filter(|&&s| s == state).count() as u32
    }

    /// The longest run of pages in `state` that contains `page` and stays in `limits`.
    pub fn run_around(&self, page: usize, limits: Range<usize>, state: PageState) -> Range<usize> {
        let mut run = page..page + 1;
        while run.start > limits.start && self.state[run.start - 1] == state {
            run.start -= 1;
        }
        while run.end < limits.end && self.state[run.end] == state {
            run.end += 1;
        }
        run
    }

    /// The hash that the far copy of `page` must have, if `found` is another one. 0 where none is known, which nothing is equal to.
    pub fn differs(&self, page: usize, found: u64) -> Option<u64> {
        let wanted = self.hashes.get(page);
        (wanted == 0 || wanted != found).then_some(wanted)
    }

    /// Whether `page` is one of the sample.
    pub const fn is_sampled(page: usize) -> bool {
        page % SAMPLED == 3
    }

    fn is_blank_but_for_holds(&self) -> bool {
        self.place.is_none() && !self.pinned && self.state.iter().all(|&s| s == PageState::Empty)
    }

    /// Where the far copy of `page` is: a place, and the page's index in it.
    pub fn far_at(&self, page: usize) -> Option<(Place, usize)> {
        match self.log_slot(page) {
            Some(slot) => Some((slot.place, slot.page as usize)),
            None => self.place.map(|place| (place, page)),
        }
    }

    /// The slot of `page` in the log.
    pub fn log_slot(&self, page: usize) -> Option<Slot> {
        self.scattered.get(page).unpack()
    }

    /// True when pages of it may be in the log.
    pub fn has_log_slots(&self) -> bool {
        self.in_log > 0
    }

    /// Sets or clears the slot of `page` in the log; returns the one before.
    pub fn set_log_slot(&mut self, page: usize, slot: Option<Slot>) -> Option<Slot> {
        let before = self.log_slot(page);
        match slot {
            Some(_) => self.scattered.set(page, PackedSlot::new(slot)),
            None => self.scattered.clear(page),
        }
        self.in_log = self.in_log + u16::from(slot.is_some()) - u16::from(before.is_some());
        if self.in_log == 0 {
            self.scattered = PageMap::None;
        }
        before
    }

    /// Bytes of the tables of far copies that the block has.
    pub fn table_bytes(&self) -> usize {
        self.hashes.bytes() + self.scattered.bytes()
    }

    /// Pages with a far copy in the block's own place.
    pub fn in_place(&self) -> Bits {
        let mut bits = self.far_valid;
        if self.in_log > 0 {
            (0..BLOCK_PAGES).filter(|&page| self.log_slot(page).is_some()).for_each(|page| bits.clear(page));
        }
        bits
    }

    /// True when nothing is known of the block: it can be forgotten.
    pub fn is_blank(&self) -> bool {
        self.holds.is_empty() && self.is_blank_but_for_holds()
    }

    /// Checks the invariant; `held` are the pages in masks of the block's holds.
    pub fn check(&self, held: &Bits) -> Result<(), String> {
        for page in 0..BLOCK_PAGES {
            let state = self.state[page];
            if (state == PageState::Held) != held.get(page) {
                return Err(format!("page {page} is {state:?}, held: {}", held.get(page)));
            }
            if state == PageState::Far && !self.far_valid.get(page) {
                return Err(format!("page {page} is Far without a far copy"));
            }
            if state == PageState::Empty && self.far_valid.get(page) {
                return Err(format!("page {page} is Empty with a far copy"));
            }
        }
        if self.far_valid.iter().any(|page| self.far_at(page).is_none()) {
            return Err("a far copy without a place".to_owned());
        }
        Ok(())
    }
}

/// Memory of the pager that holds pages of a block.
#[derive(Clone, Debug)]
pub enum Frames {
    /// Consecutive: page `first + i` of the block is at `addr + i * 4096`. A huge frame (2 MiB) or a slot (64 KiB).
    Span {
        /// Address of page `first`.
        addr: usize,
        /// Index in the block of the page at `addr`.
        first: usize,
        /// A 2 MiB frame.
        huge: bool,
    },
    /// Single pages: page `first + i` of the block is at `pages[i]`.
    Single {
        /// Index in the block of the first page.
        first: usize,
        /// Frame address of each page.
        pages: Vec<usize>,
    },
}

impl Frames {
    /// Frame address of page `page` of the block.
    pub fn addr(&self, page: usize) -> usize {
        match self {
            Frames::Span { addr, first, .. } => addr + (page - first) * nearfar_core::addr::PAGE,
            Frames::Single { first, pages } => pages[page - first],
        }
    }

    /// True for a 2 MiB frame.
    pub fn is_huge(&self) -> bool {
        matches!(self, Frames::Span { huge: true, .. })
    }
}

/// What is going on with a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reads from far are under way.
    Reading,
    /// Prefetched, and nobody has asked yet.
    Staged,
    /// Evicted; writes to far are under way.
    Writing,
    /// Evicted, and far has it (or it is zero): the frames can be reused at any time.
    Clean,
}

/// Pages of one block in frames of the pager.
pub struct Hold {
    /// Number of the block.
    pub block: usize,
    /// Pages that are held for the program. Pages leave when the program discards them; the frames stay until the end.
    pub mask: Bits,
    /// Pages with a populated frame (the mask at the start).
    pub populated: Bits,
    /// Evicted pages that are all zero.
    pub zeros: Bits,
    /// The memory.
    pub frames: Frames,
    /// What is going on.
    pub phase: Phase,
    /// A thread waits for it.
    pub wanted: bool,
    /// Read ahead of demand.
    pub prefetch: bool,
    /// Pages that had been read in all when it was begun, if it was read.
    pub begun: u64,
    /// When that was, ns.
    pub begun_ns: u64,
    /// How often parts came back wrong and were read again.
    pub again: u8,
    /// Operations under way.
    pub ops: u32,
    /// Pages of the running writes, so that their far copies become valid at the end.
    pub writing: Bits,
    /// Where the running operations read or write.
    pub place: Option<Place>,
    /// Tells this hold from an earlier one with the same index.
    pub serial: u64,
}

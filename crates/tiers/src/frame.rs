//! The pager's frames: near memory that is not in the program's view, and the address space where it lies.
//!
//! Two areas. The *pool* is registered with userfaultfd, since pages can be moved only into registered memory: evicted
//! pages come to lie there. The *nursery* is not registered: fresh memory is got there by touching it, in huge pages where
//! the kernel gives them. Physical memory goes round: nursery -> program -> pool -> program; address space is only a parking
//! place. A 2 MiB slot holds one huge frame, or 32 small slots of 64 KiB whose 16 pages come and go one by one.
//!
//! Invariant: `free_huge` and `free_pages` are populated; `empty_*` hold no page at all. Nothing else is in two lists.

use crate::bits::Bits;
use crate::hash_map::soon;
use nearfar_core::addr::{BLOCK, BLOCK_CHUNKS, CHUNK, Extent, PAGE, round_down};
use nearfar_sys::errno::Errno;
use nearfar_sys::map::{self, RW};
use nearfar_sys::pagemap;
use std::collections::HashMap;

const NURSERY_SLOTS: usize = 4096;
/// Empty slots of the nursery that a check looks at.
const LAST_USED: usize = 32;

/// Pages present in a 2 MiB slot that is used in small pieces.
#[derive(Default)]
struct SmallSlot {
    masks: [u16; BLOCK_CHUNKS],
    total: u16,
    // A huge frame that was broken up: its slot serves huge frames again once it is empty.
    broken: bool,
}

/// All frames.
pub struct FramePool {
    pool: Extent,
    next: usize,
    nursery: Extent,
    nursery_free: Vec<usize>,
    huge_pages: bool,
    free_huge: Vec<usize>,
    empty_huge: Vec<usize>,
    free_pages: Vec<usize>,
    empty_chunks: Vec<usize>,
    small: HashMap<usize, SmallSlot>,
}

impl FramePool {
    fn pool_bytes(near_pages: u64) -> usize {
        // The worst case is one page in each 64 KiB slot, so sixteen times near; limbo and free slots fit in as well.
        round_down((near_pages as usize).saturating_mul(PAGE * 17).clamp(1 << 30, 1 << 44), BLOCK)
    }

    /// Bytes of address space that the frames of a near memory of `near_pages` take.
    pub fn reserved_bytes(near_pages: u64) -> usize {
        Self::pool_bytes(near_pages) + NURSERY_SLOTS * BLOCK
    }

    /// Reserves address space for a near memory of `near_pages` pages. Uses no memory yet.
    pub fn new(near_pages: u64, huge_pages: bool) -> Result<Self, Errno> {
        let pool = Self::area(Self::pool_bytes(near_pages))?;
        let nursery = Self::area(NURSERY_SLOTS * BLOCK)?;
        Self::advise_huge(nursery, huge_pages);
        let mut nursery_free: Vec<usize> = (0..NURSERY_SLOTS).map(|slot| nursery.start + slot * BLOCK).collect();
        nursery_free.reverse();
        Ok(Self {
            pool,
            next: pool.start,
            nursery,
            nursery_free,
            huge_pages,
            free_huge: Vec::new(),
            empty_huge: Vec::new(),
            free_pages: Vec::new(),
            empty_chunks: Vec::new(),
            small: HashMap::new(),
        })
    }

    fn area(len: usize) -> Result<Extent, Errno> {
        let range = map::reserve(len)?;
        map::note_own(len);
        // SAFETY: our own fresh reservation, unknown to anybody else.
        unsafe { map::mprotect(range, RW)? };
        // SAFETY: as above. A core file has no use for parked pages.
        let _ = unsafe { map::madvise(range, libc::MADV_DONTDUMP) };
        Ok(range)
    }

    /// Whether the kernel may make huge pages in `range`, at a first touch and behind our back (khugepaged).
    fn advise_huge(range: Extent, on: bool) {
        let advice = if on { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: our own mapping; the advice only changes page sizes to come. Without huge pages all works, slower.
        let _ = unsafe { map::madvise(range, advice) };
    }

    /// The part that must be registered with userfaultfd.
    pub fn pool(&self) -> Extent {
        self.pool
    }

    /// The part that must not be registered.
    pub fn nursery(&self) -> Extent {
        self.nursery
    }

    /// A nursery slot that holds no page: touching it makes a fresh frame, which the caller has charged for.
    pub fn take_nursery(&mut self) -> Option<usize> {
        self.nursery_free.pop()
    }

    /// A populated huge frame that nobody uses.
    pub fn take_huge(&mut self) -> Option<usize> {
        self.free_huge.pop()
    }

    /// Gives a populated huge frame back for use.
    pub fn give_huge(&mut self, addr: usize) {
        self.free_huge.push(addr);
    }

    /// A populated page that nobody uses.
    pub fn take_page(&mut self) -> Option<usize> {
        self.free_pages.pop()
    }

    /// Gives a populated page back for use.
    pub fn give_page(&mut self, addr: usize) {
        self.free_pages.push(addr);
    }

    /// Free populated pages: in huge frames, and single.
    pub fn free_pages(&self) -> (usize, usize) {
        (self.free_huge.len() * (BLOCK / PAGE), self.free_pages.len())
    }

    /// Breaks a populated huge frame into 512 free pages; they come out in ascending order.
    pub fn break_huge(&mut self, addr: usize) {
        self.break_in_use(addr);
        self.free_pages.extend((0..BLOCK / PAGE).rev().map(|page| addr + page * PAGE));
    }

    /// Says that a populated huge frame is used in single pages from now on; none of them is free.
    pub fn break_in_use(&mut self, addr: usize) {
        if self.huge_pages && self.nursery.contains(addr) {
            // Once pages of it have left, khugepaged would fill the holes with memory that nobody has paid for. (In the pool
            // it does not: what is registered with userfaultfd is left alone.)
            Self::advise_huge(Extent::new(addr, BLOCK), false);
        }
        self.small.insert(addr, SmallSlot { masks: [u16::MAX; BLOCK_CHUNKS], total: 512, broken: true });
    }

    /// Breaks a huge frame of which only `pages` are populated into free pages.
    pub fn break_partial(&mut self, addr: usize, pages: &Bits) {
        self.break_in_use(addr);
        for page in (0..BLOCK / PAGE).rev() {
            if pages.get(page) {
                self.free_pages.push(addr + page * PAGE);
            } else {
                self.page_left(addr + page * PAGE);
            }
        }
    }

    /// A 2 MiB slot of the pool without pages, to move a huge page out to.
    pub fn take_empty_huge(&mut self) -> Option<usize> {
        self.empty_huge.pop().or_else(|| {
            let addr = self.next;
            (addr < self.pool.end).then(|| {
                self.next += BLOCK;
                addr
            })
        })
    }

    /// Returns a slot taken by `take_empty_huge` that is empty (again).
    pub fn give_empty_huge(&mut self, addr: usize) {
        self.empty_huge.push(addr);
    }

    /// A 64 KiB slot of the pool without pages, to move a chunk out to.
    pub fn take_empty_chunk(&mut self) -> Option<usize> {
        if self.empty_chunks.is_empty() {
            let slot = self.take_empty_huge()?;
            self.small.insert(slot, SmallSlot::default());
            self.empty_chunks.extend((0..BLOCK_CHUNKS).rev().map(|chunk| slot + chunk * CHUNK));
        }
        self.empty_chunks.pop()
    }

    /// Says that the pages of `mask` have come to lie in the slot `chunk` (or returns it, with an empty mask).
    pub fn fill_chunk(&mut self, chunk: usize, mask: u16) {
        if mask == 0 {
            self.empty_chunks.push(chunk);
        } else if let Some(slot) = self.small.get_mut(&round_down(chunk, BLOCK)) {
            slot.masks[chunk % BLOCK / CHUNK] = mask;
            slot.total += mask.count_ones() as u16;
        }
    }

    /// Says that a huge frame has been moved to the program: its slot is empty.
    pub fn huge_left(&mut self, addr: usize) {
        if self.nursery.contains(addr) {
            self.nursery_free.push(addr);
        } else {
            self.empty_huge.push(addr);
        }
    }

    /// Says that the page at `addr` has been moved to the program (or given to the kernel).
    pub fn page_left(&mut self, addr: usize) {
        let start = round_down(addr, BLOCK);
        let Some(slot) = self.small.get_mut(&start) else { return };
        let chunk = addr % BLOCK / CHUNK;
        slot.masks[chunk] &= !(1 << (addr % CHUNK / PAGE));
        slot.total -= 1;
        if slot.broken {
            if slot.total == 0 {
                self.small.remove(&start);
                if self.huge_pages && self.nursery.contains(start) {
                    Self::advise_huge(Extent::new(start, BLOCK), true);
                }
                self.huge_left(start);
            }
        } else if slot.masks[chunk] == 0 {
            self.empty_chunks.push(start + chunk * CHUNK);
        }
    }

    /// Gives up to `pages` free pages to the kernel; returns how many.
    pub fn release(&mut self, pages: usize) -> usize {
        let mut done = 0;
        while done < pages {
            if pages - done >= BLOCK / PAGE
                && let Some(addr) = self.free_huge.pop()
            {
                Self::drop_pages(Extent::new(addr, BLOCK));
                self.huge_left(addr);
                done += BLOCK / PAGE;
                continue;
            }
            break;
        }
        done += self.release_single(pages - done);
        if done < pages
            && pages - done > 0
            && let Some(addr) = self.free_huge.pop()
        {
            // Less than a huge frame is wanted, and nothing smaller is free.
            self.break_huge(addr);
            return done + self.release(pages - done);
        }
        done
    }

    /// Gives up to `pages` single free pages to the kernel; returns how many.
    pub fn release_single(&mut self, pages: usize) -> usize {
        let mut runs: Vec<Extent> = Vec::new();
        let mut done = 0;
        while done < pages
            && let Some(addr) = self.free_pages.pop()
        {
            match runs.last_mut() {
                // Neighbours usually lie next to each other in the list.
                Some(run) if run.end == addr => run.end += PAGE,
                _ => runs.push(Extent::new(addr, PAGE)),
            }
            done += 1;
        }
        // SAFETY: free frames: nobody uses their content, and they are populated again only by moves or through the nursery.
        unsafe { map::discard_many(&runs) };
        runs.iter().flat_map(|run| (run.start..run.end).step_by(PAGE)).for_each(|page| self.page_left(page));
        done
    }

    fn drop_pages(range: Extent) {
        // SAFETY: free frames: nobody uses their content, and they are populated again only by moves or through the nursery.
        let _ = unsafe { map::madvise(range, libc::MADV_DONTNEED) };
    }

    /// Checks the lists against each other, against the frames of holds (huge ones with what of them is populated, and single
    /// pages) and against the kernel; returns the populated pages.
    pub fn check(&self, huge: &[(usize, Bits)], pages: &[usize]) -> Result<usize, String> {
        let mut populated = 0;
        // Which pages of each 2 MiB slot must be there.
        let mut slots: HashMap<usize, Bits> = HashMap::new();
        let full = Bits::of(0..BLOCK / PAGE);
        let empty = self.empty_huge.iter().chain(&self.nursery_free).map(|&addr| (addr, Bits::default()));
        let free = self.free_huge.iter().map(|&addr| (addr, full));
        let small = self.small.keys().map(|&addr| (addr, Bits::default()));
        for (addr, bits) in empty.chain(free).chain(huge.iter().copied()).chain(small) {
            if slots.insert(addr, bits).is_some() {
                return Err(format!("slot {addr:#x} is used twice"));
            }
        }
        let mut all = (self.pool.start..self.next).step_by(BLOCK).chain((self.nursery.start..self.nursery.end).step_by(BLOCK));
        if let Some(addr) = all.find(|addr| !slots.contains_key(addr)) {
            return Err(format!("slot {addr:#x} is lost"));
        }
        for &page in self.free_pages.iter().chain(pages) {
            let (start, index) = (round_down(page, BLOCK), page % BLOCK / PAGE);
            let known =
                self.small.get(&start).is_some_and(|slot| slot.masks[page % BLOCK / CHUNK] >> (page % CHUNK / PAGE) & 1 == 1);
            let bits = slots.entry(start).or_default();
            if !known || bits.get(index) {
                return Err(format!("page {page:#x} is not of its slot, or used twice"));
            }
            bits.set(index);
        }
        for (start, slot) in &self.small {
            let total: u32 = slot.masks.iter().map(|mask| mask.count_ones()).sum();
            let used = slots.get(start).map_or(0, Bits::count);
            if total != u32::from(slot.total) || total as usize != used {
                return Err(format!(
                    "slot {start:#x} has {total} pages, counted {}, of which {used} are in use or free",
                    slot.total
                ));
            }
        }
        let chunks =
            self.small.values().filter(|slot| !slot.broken).flat_map(|slot| slot.masks).filter(|&mask| mask == 0).count();
        if chunks != self.empty_chunks.len() {
            return Err(format!("{chunks} chunks are empty, listed {}", self.empty_chunks.len()));
        }
        // Of the nursery's many empty slots only those that were used last: the others never were.
        let idle = self.nursery_free.len().saturating_sub(LAST_USED);
        self.nursery_free[..idle].iter().for_each(|addr| {
            slots.remove(addr);
        });
        for (&start, bits) in &slots {
            populated += bits.count();
            let mut there = full;
            pagemap::absent_pages(Extent::new(start, BLOCK), |page| there.clear(page))
                .map_err(|errno| format!("what is in memory cannot be known: {errno}"))?;
            if there != *bits {
                return Err(format!("slot {start:#x} has {} pages in memory, {} in the books", there.count(), bits.count()));
            }
        }
        Ok(populated)
    }

    /// Bytes of the pool's own tables.
    pub fn metadata_bytes(&self) -> usize {
        let lists = self.free_huge.capacity() + self.empty_huge.capacity() + self.free_pages.capacity();
        (lists + self.empty_chunks.capacity() + self.nursery_free.capacity()) * size_of::<usize>()
            + self.small.capacity() * (size_of::<SmallSlot>() + 16)
    }

    /// Bytes by which the largest of them will soon grow at once.
    pub fn metadata_step(&self) -> usize {
        soon(self.small.len(), self.small.capacity()) * (size_of::<SmallSlot>() + 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_when_their_last_page_leaves() {
        let mut frames = FramePool::new(1024, true).expect("address space");
        let chunk = frames.take_empty_chunk().expect("slot");
        frames.fill_chunk(chunk, 0b101);
        frames.page_left(chunk);
        frames.page_left(chunk + 2 * PAGE);
        assert_eq!(frames.take_empty_chunk(), Some(chunk));

        let fresh = frames.take_nursery().expect("slot");
        frames.break_huge(fresh);
        assert_eq!(frames.free_pages(), (0, 512));
        assert_eq!(frames.take_page(), Some(fresh));
        for page in 0..512 {
            frames.page_left(fresh + page * PAGE);
        }
        assert_eq!(frames.take_nursery(), Some(fresh));
    }

    #[test]
    fn release_gives_what_is_asked() {
        let mut frames = FramePool::new(1024, true).expect("address space");
        let fresh = frames.take_nursery().expect("slot");
        frames.give_huge(fresh);
        assert_eq!(frames.release(100), 100);
        assert_eq!(frames.free_pages(), (0, 412));
        assert_eq!(frames.release(1000), 412);
    }
}

//! Large allocations of the malloc family: blocks of the arena, grown by moving pages instead of copying.

use super::commit::Claim;
use super::{Memory, inner::Inner};
use crate::region::Attr;
use nearfar_core::addr::{BLOCK, Extent};
use nearfar_sys::errno::Errno;
use nearfar_sys::map::{self, RW};

/// Foreign mappings that an allocation goes around before it gives up.
const TRIES: u32 = 64;
const BLOCK_ATTR: Attr = Attr { prot: RW, arena: true, committed: true };

impl Memory {
    /// A block of at least `size` bytes aligned to `align` (a power of two), and whether it reads as zeros. `None`: no memory.
    /// The call that allocates it returns to `site`.
    pub fn alloc(&self, size: usize, align: usize, site: usize) -> Option<(usize, bool)> {
        self.hold_back();
        let mut inner = self.enter();
        let cached = inner.arena.take_cached(size, align);
        let range = match cached {
            Some(range) => range,
            None => self.new_block(&mut inner, size, (size, align), 0)?,
        };
        inner.slot.objects().begin(range, site);
        Some((range.start, cached.is_none()))
    }

    /// A block of fresh memory where `room.0` bytes are free, aligned to `room.1`, for the content of `moving` bytes that are free then.
    /// `None`: no memory.
    fn new_block(&self, inner: &mut Inner, size: usize, room: (usize, usize), moving: usize) -> Option<Extent> {
        for _ in 0..TRIES {
            let taken = inner.arena.take_block(room.0, room.1)?;
            if let Some(tail) = inner.arena.shrink_block(taken.start, size) {
                inner.arena.give_block(tail);
            }
            let range = inner.arena.block(taken.start)?;
            match self.open_block(inner, range, Claim::of(range.len()).in_place_of(moving)) {
                Ok(()) => return Some(range),
                Err(Errno::EEXIST) => inner.arena.forget_block(range.start),
                Err(_) => {
                    inner.arena.cancel_block(range);
                    return None;
                }
            }
        }
        None
    }

    /// Makes address space of the blocks half usable and counts it. `ENOMEM` when there is no memory; EEXIST when somebody else has
    /// mapped something there: the address space is theirs.
    fn open_block(&self, inner: &mut Inner, range: Extent, claim: Claim) -> Result<(), Errno> {
        self.commit(inner, claim)?;
        if inner.arena.is_reserved() && inner.regions().uniform(range) == Some(BLOCK_ATTR) {
            return Ok(());
        }
        let mut opened = inner.arena.open(range, RW);
        if opened == Err(Errno::ENOMEM) && inner.drain_cache() {
            opened = inner.arena.open(range, RW);
        }
        if let Err(errno) = opened {
            inner.decommit(claim.len());
            return Err(errno);
        }
        inner.manage(range, BLOCK_ATTR);
        Ok(())
    }

    /// Usable bytes of the block that starts at `addr`; `None` when `alloc` did not return that address.
    pub fn block_size(&self, addr: usize) -> Option<usize> {
        self.enter().arena.block(addr).map(|range| range.len())
    }

    /// Frees the block at `addr`; false when `alloc` did not return that address.
    pub fn free(&self, addr: usize) -> bool {
        let mut inner = self.enter();
        let Some(range) = inner.arena.block(addr) else { return false };
        inner.slot.objects().end(range);
        if inner.regions().uniform(range) != Some(BLOCK_ATTR) {
            // The program has put something else in it: nobody else gets that.
            inner.arena.forget_block(addr);
            Self::close_block(&mut inner, range);
            return true;
        }
        for range in inner.arena.end_block(addr) {
            Self::close_block(&mut inner, range);
        }
        true
    }

    fn close_block(inner: &mut Inner, range: Extent) {
        inner.unpin(range);
        inner.close_block(range);
    }

    /// Resizes the block at `addr` in place or by moving its pages (no copying); `None`: no memory, the block is unchanged.
    /// The call that does it returns to `site`.
    pub fn resize(&self, addr: usize, size: usize, site: usize) -> Option<usize> {
        let (old, new) = {
            let mut inner = self.enter();
            let old = inner.arena.block(addr)?;
            if size <= old.len() {
                if let Some(tail) = inner.arena.shrink_block(addr, size) {
                    inner.slot.objects().resized(old, Extent { end: tail.start, ..old }, site);
                    Self::close_block(&mut inner, tail);
                }
                return Some(addr);
            }
            if let Some(grown) = inner.arena.grow_block(addr, size) {
                let tail = Extent { start: old.end, end: grown.end };
                let opened = self.open_block(&mut inner, tail, Claim::of(tail.len()));
                if opened.is_ok() {
                    inner.slot.objects().resized(old, grown, site);
                    return Some(addr);
                }
                if let Some(tail) = inner.arena.shrink_block(addr, old.len())
                    && opened != Err(Errno::EEXIST)
                {
                    inner.arena.give_block(tail);
                }
                if opened != Err(Errno::EEXIST) {
                    return None;
                }
            }
            // Room to grow in place the next time: programs that grow by steps do it again and again.
            let ahead = size.checked_add(size / 2)?;
            (old, self.new_block(&mut inner, size, (ahead, BLOCK), old.len())?)
        };
        self.transfer(old, new.start, old.len());
        self.free_moved(old, new, site);
        Some(new.start)
    }

    fn free_moved(&self, old: Extent, new: Extent, site: usize) {
        let mut inner = self.enter();
        inner.slot.objects().resized(old, new, site);
        let ended = inner.arena.end_block(old.start);
        for range in ended {
            Self::close_block(&mut inner, range);
        }
    }

    /// Carries the content of `from` to `to` (both ours, both writable, `to` without content), without the lock where bytes
    /// must be copied: the copy may fault.
    pub(super) fn transfer(&self, from: Extent, to: usize, len: usize) {
        let mut done = 0;
        if from.start.is_multiple_of(BLOCK) && to.is_multiple_of(BLOCK) {
            let whole = len / BLOCK;
            let mut inner = self.enter();
            let managed = inner.regions().uniform(Extent::new(to, len)).is_some();
            let both_ours = [from.start, to].iter().all(|&start| inner.may_manage(Extent::new(start, whole * BLOCK)));
            let inner = &mut *inner;
            match (&mut inner.pager, &mut inner.mapped) {
                (None, Some(mapped)) if both_ours => done = mapped.relocate(from.start, to, whole) * BLOCK,
                (None, Some(_)) => {}
                // The target may be where nothing is paged.
                _ if !managed => {}
                (Some(pager), _) => done = pager.relocate(from.start, to, whole) * BLOCK,
                (None, None) => done = move_mapping(Extent::new(from.start, whole * BLOCK), to),
            }
        }
        // SAFETY: the program gave both ranges to us for this move; they do not overlap, and are readable and writable.
        unsafe { std::ptr::copy_nonoverlapping((from.start + done) as *const u8, (to + done) as *mut u8, len - done) };
    }
}

/// Ordinary memory: the kernel moves the page tables and leaves the old range mapped and empty. Returns the bytes moved.
fn move_mapping(from: Extent, to: usize) -> usize {
    if from.is_empty() {
        return 0;
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: both ranges are address space of ours; nobody uses the target yet, and the source stays mapped.
    match unsafe { map::mremap(from, from.len(), flags, to) } {
        Ok(_) => from.len(),
        Err(_) => 0,
    }
}

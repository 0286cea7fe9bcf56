//! Carries pages between the program's view and frames: by moving, else by copying and dropping the source.

use super::{Pager, page_addr, pages_extent};
use crate::bits::Bits;
use crate::frame_bytes;
use nearfar_core::addr::{BLOCK_PAGES, Extent, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::map;
use nearfar_sys::uffd::Refused;
use std::ops::Range;

/// Up to so many calls cost less than one for all that skips holes, and then looking what came.
const FEW_RUNS: usize = 4;

impl Pager {
    fn drop_range(range: Extent) {
        // SAFETY: the pages have just been copied elsewhere, and their copy is what counts from now on.
        let _ = unsafe { map::madvise(range, libc::MADV_DONTNEED) };
    }

    /// Brings `len` bytes of frames at `src` into the program's view at `dst` and wakes who waits there. Afterwards the
    /// frames hold nothing. On refusal the first `done` bytes are in place.
    pub(super) fn show(&mut self, dst: usize, src: usize, len: usize) -> Result<(), (usize, Refused)> {
        let first = if self.uffd.can_move() { self.uffd.move_pages(dst, src, len, false) } else { Err((0, Refused::Unfit)) };
        let (mut done, mut why) = match first {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        if why == Refused::Busy {
            // Frames that a fork left shared: a store makes them ours.
            // SAFETY: frames are populated, writable and used by nobody else.
            unsafe { frame_bytes::touch(Extent::new(src + done, len - done)) };
            match self.uffd.move_pages(dst + done, src + done, len - done, false) {
                Ok(()) => return Ok(()),
                Err((more, reason)) => (done, why) = (done + more, reason),
            }
        }
        if matches!(why, Refused::Unfit | Refused::Busy) {
            let (to, from) = (dst + done, src + done);
            let copied = self.uffd.copy(to, from, len - done);
            let ok = match copied {
                Ok(()) => len - done,
                Err((more, _)) => more,
            };
            Self::drop_range(Extent::new(from, ok));
            self.count(Counter::MoveFallbacks, (ok / PAGE) as u64);
            return copied.map_err(|(more, reason)| (done + more, reason));
        }
        Err((done, why))
    }

    /// Takes pages `pages` of block `number` out of the program's view, to the empty slot whose first page stands for page
    /// `pages.start`. Absent pages are skipped. On refusal nothing has changed.
    pub(super) fn hide(&mut self, number: usize, pages: Range<usize>, slot: usize) -> Result<(), Refused> {
        let view = Extent { start: page_addr(number, pages.start), end: page_addr(number, pages.end) };
        let Some(attr) = self.regions.uniform(view) else {
            return Err(Refused::Unfit);
        };
        if !attr.is_movable() || !self.uffd.can_move() {
            return if attr.prot & libc::PROT_READ == 0 || attr.prot & libc::PROT_EXEC != 0 {
                Err(Refused::Unfit)
            } else {
                self.hide_by_copy(number, pages, slot, attr.is_writable())
            };
        }
        let mut first = true;
        loop {
            match self.uffd.move_pages(slot, view.start, view.len(), true) {
                Ok(()) => return Ok(()),
                Err((done, why)) => {
                    // So that the caller sees all or nothing.
                    self.undo_hide(view.start, slot, done);
                    if why != Refused::Busy || !first {
                        return Err(why);
                    }
                    first = false;
                    self.make_own(number, pages.clone());
                    Self::split_folios(view);
                }
            }
        }
    }

    /// Brings the `len` bytes that went from `view` to `slot` back into view.
    pub(super) fn undo_hide(&mut self, view: usize, slot: usize, len: usize) {
        if len > 0
            && let Err((back, _)) = self.uffd.move_pages(view, slot, len, true)
        {
            self.put_back(view + back, slot + back, len - back);
        }
    }

    /// Brings `len` bytes at `slot` back into view page by page, by copying what the kernel refuses to move (it may hold a page
    /// for a moment).
    fn put_back(&mut self, view: usize, slot: usize, len: usize) {
        const TRIES: usize = 2000;
        let mut absent = Bits::default();
        super::absent_pages(Extent::new(slot, len), |page| absent.set(page));
        for page in (0..len / PAGE).filter(|&page| !absent.get(page)) {
            let mut tries = 0;
            while let Err((_, why)) = self.show(view + page * PAGE, slot + page * PAGE, PAGE) {
                tries += 1;
                if tries == TRIES || why == Refused::Exists {
                    super::stop(&format!("the kernel took pages out of view and refuses to put them back: {why:?}"));
                }
                nearfar_sys::thread::give_way();
            }
        }
    }

    /// As `hide`, for few pages of which each is known to be there: page `p` goes to `base + p` pages. The kernel tells when
    /// one is not, so nobody need look. True when all went; on false nothing has changed.
    pub(super) fn hide_exactly(&mut self, number: usize, pages: &Bits, base: usize) -> bool {
        let runs = pages.runs(0, |_| false);
        let attr = self.regions.uniform(pages_extent(number, runs[0].start..runs[runs.len() - 1].end));
        if !attr.is_some_and(|attr| attr.is_movable()) || !self.uffd.can_move() || runs.len() > FEW_RUNS {
            return false;
        }
        for (index, run) in runs.iter().enumerate() {
            let (from, to) = (page_addr(number, run.start), base + run.start * PAGE);
            let Err((done, _)) = self.uffd.move_pages(to, from, run.len() * PAGE, false) else { continue };
            self.undo_hide(from, to, done);
            for run in &runs[..index] {
                self.undo_hide(page_addr(number, run.start), base + run.start * PAGE, run.len() * PAGE);
            }
            return false;
        }
        true
    }

    /// After a fork: stores to each present page, so that the kernel gives this process pages of its own.
    fn make_own(&mut self, number: usize, pages: Range<usize>) {
        use crate::block::PageState;
        let mut present = self.block(number).pages_in(pages.clone(), PageState::Resident);
        let view = Extent { start: page_addr(number, pages.start), end: page_addr(number, pages.end) };
        super::absent_pages(view, |index| present.clear(pages.start + index));
        for run in present.runs(0, |_| false) {
            // SAFETY: present (asked just now, and only this process could take them away, under our lock), and writable.
            unsafe { frame_bytes::touch(Extent { start: page_addr(number, run.start), end: page_addr(number, run.end) }) };
        }
        if pages.len() == BLOCK_PAGES {
            self.block(number).shared = false;
        }
    }

    /// Makes small pages of the huge ones that lie in `view` only in part. MOVE asks the first page of a huge one whether all
    /// of it belongs to this process. Where that page was copied by a store after a fork, and the others were kept because the
    /// other process had gone by then, it refuses them for ever.
    fn split_folios(view: Extent) {
        // SAFETY: advice on which pages to reclaim first. It changes no content, and the kernel splits what it covers in part.
        let _ = unsafe { map::madvise(view, libc::MADV_COLD) };
    }

    /// Without MOVE, and for read-only memory: writers are held off, the pages copied, the originals dropped.
    fn hide_by_copy(&mut self, number: usize, pages: Range<usize>, slot: usize, writable: bool) -> Result<(), Refused> {
        use crate::block::PageState;
        let view = Extent { start: page_addr(number, pages.start), end: page_addr(number, pages.end) };
        if writable && (self.uffd.can_move() || self.uffd.write_protect(view, true).is_err()) {
            // Registered without write protection: a writer could change what was copied already.
            return Err(Refused::Unfit);
        }
        let mut present = self.block(number).pages_in(pages.clone(), PageState::Resident);
        super::absent_pages(view, |index| present.clear(pages.start + index));
        for run in present.runs(0, |_| false) {
            let (to, from) = (slot + (run.start - pages.start) * PAGE, page_addr(number, run.start));
            if let Err((_, why)) = self.uffd.copy(to, from, run.len() * PAGE) {
                Self::drop_range(Extent::new(slot, view.len()));
                if writable {
                    let _ = self.uffd.write_protect(view, false);
                }
                return Err(why);
            }
        }
        Self::drop_range(view);
        // Writers that waited for the protection to go find the page missing now, and ask again.
        self.uffd.wake(view);
        self.count(Counter::MoveFallbacks, present.count() as u64);
        Ok(())
    }
}

//! mremap: shrinks, grows and moves mappings; content moves by pages, not by copying, where it can.

use super::Memory;
use super::commit::Claim;
use crate::region::Attr;
use nearfar_core::addr::{Extent, PAGE, round_up};
use nearfar_sys::errno::Errno;
use nearfar_sys::map::{self, ANON, RW};

impl Memory {
    /// mremap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mremap(&self, addr: usize, old: usize, new: usize, flags: i32, to: usize) -> Result<usize, Errno> {
        let (old, new) = (round_up(old, PAGE).ok_or(Errno::EINVAL)?, round_up(new, PAGE).ok_or(Errno::EINVAL)?);
        let range = Extent::new(addr, old);
        let fixed = flags & libc::MREMAP_FIXED != 0;
        let (attr, managed) = {
            let mut inner = self.enter();
            let managed = !inner.regions().parts(range).is_empty();
            (inner.regions().uniform(range), managed)
        };
        if !managed && old > 0 && self.enter().has_gap(range) {
            return Err(Errno(libc::EFAULT));
        }
        if !managed || old == 0 {
            if fixed {
                // SAFETY: passed on to the caller.
                return unsafe { self.move_foreign(range, new, flags, to) };
            }
            // SAFETY: passed on to the caller.
            return unsafe { map::mremap(range, new, flags, to) };
        }
        // The kernel, too, refuses ranges that span several mappings.
        let attr = attr.ok_or(Errno(libc::EFAULT))?;
        if new == 0 || !addr.is_multiple_of(PAGE) || (fixed && flags & libc::MREMAP_MAYMOVE == 0) {
            return Err(Errno::EINVAL);
        }
        if fixed {
            let target = Extent::new(to, new);
            if target.overlaps(&range) || !to.is_multiple_of(PAGE) {
                return Err(Errno::EINVAL);
            }
            return self.move_to(range, new, attr, flags, Some(to));
        }
        if flags & libc::MREMAP_DONTUNMAP != 0 {
            return self.move_to(range, new, attr, flags, None);
        }
        if new <= old {
            if new < old {
                let mut inner = self.enter();
                self.unmap(&mut inner, Extent { start: addr + new, end: range.end })?;
            }
            return Ok(addr);
        }
        if attr.arena && self.grow_here(range, new, attr) {
            return Ok(addr);
        }
        if flags & libc::MREMAP_MAYMOVE == 0 {
            return Err(Errno::ENOMEM);
        }
        self.move_to(range, new, attr, flags, None)
    }

    /// mremap(2) with MREMAP_FIXED of what is not ours: what is replaced may be.
    ///
    /// # Safety
    /// As for the system call.
    unsafe fn move_foreign(&self, range: Extent, new: usize, flags: i32, to: usize) -> Result<usize, Errno> {
        let target = Extent { start: to, end: to.checked_add(new).ok_or(Errno::EINVAL)? };
        let sense = new > 0 && to.is_multiple_of(PAGE) && range.start.is_multiple_of(PAGE) && !target.overlaps(&range);
        let mut inner = self.enter();
        let parts = inner.regions().parts(target);
        if !sense || flags & libc::MREMAP_MAYMOVE == 0 || (parts.is_empty() && !target.overlaps(&inner.arena.whole())) {
            // SAFETY: passed on to the caller; the kernel refuses what makes no sense before it changes anything.
            return unsafe { map::mremap(range, new, flags, to) };
        }
        if target.overlaps(&inner.arena.blocks()) {
            inner.drain_cache();
        }
        // The kernel, too, unmaps the target before it looks whether the rest can be.
        inner.gone(target, &parts);
        // SAFETY: passed on to the caller.
        let result = unsafe { map::mremap(range, new, flags, to) };
        let Ok(start) = result else {
            // SAFETY: what is left of what was just given up.
            let _ = unsafe { map::munmap(target) };
            return result;
        };
        inner.arena.take_at(target);
        if flags & libc::MREMAP_DONTUNMAP == 0 {
            inner.arena.give_at(range);
        }
        Ok(start)
    }

    fn grow_here(&self, range: Extent, new: usize, attr: Attr) -> bool {
        let mut inner = self.enter();
        if !inner.arena.maps().contains_extent(range) || !inner.arena.grow_map(range, new) {
            return false;
        }
        let tail = Extent { start: range.end, end: range.start + new };
        if attr.committed && self.commit(&mut inner, Claim::of(tail.len())).is_err() {
            inner.arena.give_map(tail);
            return false;
        }
        if let Err(errno) = inner.arena.open(tail, attr.prot) {
            if attr.committed {
                inner.decommit(tail.len());
            }
            if errno != Errno::EEXIST {
                inner.arena.give_map(tail);
            }
            return false;
        }
        self.manage(&mut inner, tail, attr);
        true
    }

    /// Makes a new mapping of `new` bytes, carries the content over, and ends the old one (or leaves it empty).
    fn move_to(&self, range: Extent, new: usize, attr: Attr, flags: i32, to: Option<usize>) -> Result<usize, Errno> {
        let map_flags = ANON | if to.is_some() { libc::MAP_FIXED } else { 0 };
        // Content can be carried only between writable mappings; the wanted protection follows.
        // SAFETY: a fresh mapping, or one that the program asked to be replaced.
        let start = unsafe { self.mmap_moving(to.unwrap_or(0), new, map_flags, range.len())? };
        let restricted = attr.prot != RW;
        if restricted {
            // SAFETY: the program gave the range up to be moved.
            unsafe { self.mprotect(range.start, range.len(), RW)? };
        }
        self.transfer(range, start, range.len().min(new));
        if restricted {
            // SAFETY: the protection that the program had set.
            unsafe { self.mprotect(start, new, attr.prot)? };
        }
        let mut inner = self.enter();
        if flags & libc::MREMAP_DONTUNMAP != 0 {
            inner.discard(range);
        } else {
            self.unmap(&mut inner, range)?;
        }
        Ok(start)
    }
}

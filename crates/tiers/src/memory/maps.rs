//! The mmap family: what is anonymous, private and large enough is managed, everything else is the kernel's.

use super::Memory;
use super::commit::Claim;
use super::inner::{Inner, committed_bytes};
use crate::region::Attr;
use nearfar_core::addr::{CHUNK, Extent, PAGE, round_up};
use nearfar_sys::errno::Errno;
use nearfar_sys::{map, proc_maps};

/// Smaller mappings stay with the kernel: they are many, and hold little.
const SMALLEST: usize = CHUNK;

/// madvise(2), since 5.18; the name is not in the C library's headers everywhere.
const MADV_DONTNEED_LOCKED: i32 = 24;

/// madvise(2), since 6.13.
const MADV_GUARD_INSTALL: i32 = 102;

/// Flags of mappings that are not what they seem: special pages, stacks, or the program's own wish for huge TLB pages.
const FOREIGN: i32 = libc::MAP_HUGETLB | libc::MAP_GROWSDOWN | libc::MAP_STACK;

/// Pages that the kernel brings at once would be there without our knowing.
const POPULATING: i32 = libc::MAP_POPULATE | libc::MAP_LOCKED;

/// Wishes for an address below this are passed to the kernel: programs with compressed pointers depend on them. Higher ones
/// only spread or align mappings (mimalloc, our own small allocator, wishes for 2 to 30 TiB), and the arena aligns as well.
const HINT_LIMIT: usize = 1 << 40;

/// Nor are wishes for larger reservations without access mere wishes: Java's ZGC depends on where its heap lies. (mimalloc wishes for
/// no more than this at a time.)
const LARGE_WISH: usize = 1 << 30;

/// True when the program should get the address that it wishes for, from the kernel.
fn is_serious(addr: usize, len: usize, prot: i32) -> bool {
    (1..HINT_LIMIT).contains(&addr) || (addr != 0 && prot == libc::PROT_NONE && len > LARGE_WISH)
}

fn is_ours_to_manage(len: usize, prot: i32, flags: i32) -> bool {
    let private = flags & libc::MAP_TYPE == libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS != 0;
    private && flags & FOREIGN == 0 && prot & libc::PROT_EXEC == 0 && len >= SMALLEST
}

/// Where the address space of programs ends.
const USER_END: usize = if cfg!(target_arch = "x86_64") { (1 << 47) - PAGE + 1 } else { (1 << 48) + 1 };

fn is_writable(prot: i32) -> bool {
    prot & libc::PROT_WRITE != 0
}

impl Memory {
    /// mmap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mmap(&self, addr: usize, len: usize, prot: i32, flags: i32, fd: i32, off: i64) -> Result<usize, Errno> {
        // SAFETY: passed on to the caller.
        unsafe { self.map(addr, len, prot, flags, (fd, off), 0) }
    }

    /// A writable anonymous mapping for the content of another one of `old` bytes, which is free then.
    ///
    /// # Safety
    /// As for mmap(2) with these flags.
    pub(super) unsafe fn mmap_moving(&self, addr: usize, len: usize, flags: i32, old: usize) -> Result<usize, Errno> {
        // SAFETY: passed on to the caller.
        unsafe { self.map(addr, len, map::RW, flags & !libc::MAP_NORESERVE, (-1, 0), old) }
    }

    unsafe fn map(
        &self,
        addr: usize,
        len: usize,
        prot: i32,
        flags: i32,
        (fd, off): (i32, i64),
        moving: usize,
    ) -> Result<usize, Errno> {
        // SAFETY: passed on to the caller.
        let raw = |flags: i32| unsafe { map::mmap(addr, len, prot, flags, fd, off) };
        let Some(size) = round_up(len, PAGE).filter(|&size| size > 0) else { return raw(flags) };
        let ours = is_ours_to_manage(size, prot, flags);
        // Where system calls are caught, only the arena is watched.
        let elsewhere = !self.common.job.settings().user_only;
        let claim = Claim::of(if is_writable(prot) { size } else { 0 }).in_place_of(moving).with_flags(flags);
        if flags & libc::MAP_FIXED != 0 && flags & libc::MAP_FIXED_NOREPLACE != libc::MAP_FIXED_NOREPLACE {
            let quiet = if ours { flags & !POPULATING } else { flags };
            let ours = ours && (elsewhere || self.common.maps.contains_extent(Extent::new(addr, size)));
            let raw_flags = if ours { quiet } else { flags };
            return self.map_fixed(Extent::new(addr, size), prot, ours.then_some(claim), &|| raw(raw_flags));
        }
        if !ours {
            return raw(flags);
        }
        if !elsewhere && (is_serious(addr, size, prot) || flags & libc::MAP_FIXED_NOREPLACE == libc::MAP_FIXED_NOREPLACE) {
            return raw(flags);
        }
        self.hold_back();
        let mut inner = self.enter();
        if !is_serious(addr, size, prot) && flags & libc::MAP_FIXED_NOREPLACE != libc::MAP_FIXED_NOREPLACE {
            self.commit(&mut inner, claim)?;
            let mut opened = inner.arena.open_map(addr, size, prot);
            if opened == Err(Errno::ENOMEM) && inner.drain_cache() {
                opened = inner.arena.open_map(addr, size, prot);
            }
            return match opened {
                Ok(range) => {
                    self.manage(&mut inner, range, Attr { prot, arena: true, committed: is_writable(prot) });
                    Ok(range.start)
                }
                Err(errno) => {
                    inner.decommit(claim.len());
                    Err(errno)
                }
            };
        }
        // A wish for a certain place is the kernel's to grant; what comes of it is managed there.
        let start = raw(flags & !POPULATING)?;
        let range = Extent::new(start, size);
        let arena = inner.arena.whole().contains_extent(range);
        inner.arena.take_at(range);
        if !inner.may_manage(range) {
            return Ok(start);
        }
        if let Err(errno) = self.commit(&mut inner, claim) {
            // SAFETY: the kernel has just given us the range; nobody knows of it.
            let _ = unsafe { map::munmap(range) };
            inner.arena.give_at(range);
            return Err(errno);
        }
        self.manage(&mut inner, range, Attr { prot, arena, committed: is_writable(prot) });
        Ok(start)
    }

    /// A mapping at a fixed address replaces what is there; it is `ours` with a claim.
    fn map_fixed(
        &self,
        range: Extent,
        prot: i32,
        ours: Option<Claim>,
        raw: &dyn Fn() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let mut inner = self.enter();
        if range.overlaps(&inner.arena.blocks()) {
            // What is kept for the next allocation may be there.
            inner.drain_cache();
        }
        let parts = inner.regions().parts(range);
        let inside = inner.arena.whole().contains_extent(range);
        let all_ours = parts.iter().map(|(part, _)| part.len()).sum::<usize>() == range.len();
        let attr = Attr { prot, arena: inside, committed: is_writable(prot) };
        let ours = ours.filter(|_| inner.may_manage(range));
        let before = committed_bytes(&parts);
        let after = ours.map_or(0, |claim| claim.len());
        if let Some(claim) = ours
            && after > before
        {
            let claim = claim.less(before);
            // What is replaced counts already.
            self.commit(&mut inner, if all_ours { claim.of_mapped() } else { claim })?;
        }
        let result = if ours.is_some() && inside && all_ours {
            // The mapping stays, with other protection: no hole in the registration, no new mapping for the kernel.
            // SAFETY: the caller asked for this range to be replaced.
            unsafe { map::mprotect(range, prot) }
        } else {
            // The kernel first: when it refuses, everything is as it was.
            let result = match &inner.mapped {
                Some(mapped) if ours.is_some() && inside => mapped.put(range, prot),
                _ => raw().map(|_| ()),
            };
            if result.is_ok() {
                inner.arena.take_at(range);
                if ours.is_some() && inside {
                    inner.arena.advise(range);
                }
            }
            result
        };
        if let Err(errno) = result {
            inner.decommit(after.saturating_sub(before));
            return Err(errno);
        }
        inner.forget_wishes(range);
        inner.decommit(before.saturating_sub(after));
        for (part, _) in &parts {
            inner.discard(*part);
        }
        inner.regions().remove(range);
        if ours.is_some() {
            self.manage(&mut inner, range, attr);
        }
        Ok(range.start)
    }

    /// munmap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno> {
        let size = round_up(len, PAGE).unwrap_or(0);
        if addr.checked_add(size).is_none_or(|end| end > isize::MAX as usize) {
            return Err(Errno::EINVAL);
        }
        let range = Extent::new(addr, size);
        if size == 0 || !addr.is_multiple_of(PAGE) || range.end >= USER_END {
            // SAFETY: the kernel answers; what goes beyond the address space it refuses.
            return unsafe { map::munmap(range) };
        }
        let mut inner = self.enter();
        self.unmap(&mut inner, range)
    }

    pub(super) fn unmap(&self, inner: &mut Inner, range: Extent) -> Result<(), Errno> {
        if range.overlaps(&inner.arena.blocks()) {
            inner.drain_cache();
        }
        let parts = inner.regions().parts(range);
        let arena = inner.arena.whole();
        let Some(inside) = arena.intersect(&range).filter(|_| inner.arena.is_reserved()) else {
            // First of all: huge pages are taken back whole then, which is far quicker than to get new ones.
            inner.gone(range, &parts);
            // SAFETY: what the program asked for.
            return match unsafe { map::munmap(range) } {
                Err(errno) if !parts.is_empty() => crate::pager::stop(&format!(
                    "the kernel refuses to unmap {:#x}..{:#x} ({errno}); are there too many mappings (vm.max_map_count)?",
                    range.start, range.end
                )),
                result => result,
            };
        };
        let managed: usize = parts.iter().filter_map(|(part, _)| part.intersect(&inside)).map(|part| part.len()).sum();
        inner.gone(inside, &parts);
        if managed == inside.len() {
            // SAFETY: unmapped by the program: stray accesses shall trap.
            unsafe { map::mprotect(inside, libc::PROT_NONE)? };
        } else {
            // The program had something else mapped over our address space: put the reservation back.
            inner.reserve_again(inside)?;
        }
        for outside in [
            Extent { start: range.start, end: range.end.min(arena.start) },
            Extent { start: range.start.max(arena.end), end: range.end },
        ] {
            if !outside.is_empty() {
                // SAFETY: what the program asked for.
                unsafe { map::munmap(outside)? };
                inner.gone(outside, &[]);
            }
        }
        Ok(())
    }

    /// mprotect(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mprotect(&self, addr: usize, len: usize, prot: i32) -> Result<(), Errno> {
        let range = Extent::new(addr, round_up(len, PAGE).unwrap_or(len));
        self.hold_back();
        let mut inner = self.enter();
        if inner.has_gap(range) {
            return Err(Errno::ENOMEM);
        }
        let parts = inner.regions().parts(range);
        let known = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        if parts.is_empty() || prot & !known != 0 {
            // SAFETY: passed on to the caller.
            return unsafe { map::mprotect(range, prot) };
        }
        if prot & libc::PROT_EXEC != 0 && inner.mapped.is_some() {
            // The disk of the spill file may not be one to execute from.
            self.make_ordinary(&mut inner, &parts)?;
            // SAFETY: passed on to the caller.
            return unsafe { map::mprotect(range, prot) };
        }
        let before = committed_bytes(&parts);
        // What was writable may hold data, and counts until it is unmapped.
        let total: usize = parts.iter().map(|(part, _)| part.len()).sum();
        let more = if is_writable(prot) { total - before } else { 0 };
        if more > 0 {
            self.commit(&mut inner, Claim::of(more).of_mapped())?;
        }
        // SAFETY: passed on to the caller.
        if let Err(errno) = unsafe { map::mprotect(range, prot) } {
            // Up to where it refused, the kernel has done it.
            let done = self.protected(&mut inner, &parts);
            inner.decommit(more.saturating_sub(done));
            return Err(errno);
        }
        for (part, attr) in parts {
            Self::note_protection(&mut inner, part, prot, attr);
        }
        Ok(())
    }

    fn note_protection(inner: &mut Inner, part: Extent, prot: i32, attr: Attr) {
        inner.regions().insert(part, Attr { prot, committed: attr.committed || is_writable(prot), ..attr });
        if let Some(pager) = &mut inner.pager {
            pager.protect_changed(part);
        }
    }

    /// Takes over what protection `parts` have now; returns how many bytes of them became writable.
    fn protected(&self, inner: &mut Inner, parts: &[(Extent, Attr)]) -> usize {
        let mut writable = 0;
        for mapping in proc_maps::own() {
            for &(part, attr) in parts {
                let Some(piece) = mapping.range.intersect(&part).filter(|_| mapping.prot != attr.prot) else { continue };
                Self::note_protection(inner, piece, mapping.prot, attr);
                if is_writable(mapping.prot) && !attr.committed {
                    writable += piece.len();
                }
            }
        }
        writable
    }

    /// madvise(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn madvise(&self, addr: usize, len: usize, advice: i32) -> Result<(), Errno> {
        let range = Extent::new(addr, round_up(len, PAGE).unwrap_or(len));
        // SAFETY: passed on to the caller.
        let raw = |range| unsafe { map::madvise(range, advice) };
        let mut inner = self.enter();
        let parts = inner.regions().parts(range);
        let managed: usize = parts.iter().map(|(part, _)| part.len()).sum();
        let gap = inner.has_gap(range);
        if gap && managed == 0 {
            return Err(Errno::ENOMEM);
        }
        if managed == 0 || !addr.is_multiple_of(PAGE) {
            return raw(range);
        }
        match advice {
            libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => {
                // As the kernel does: all that is mapped is discarded, and a gap is told of at the end.
                let mut result = if gap { Err(Errno::ENOMEM) } else { Ok(()) };
                if inner.pager.is_none() && inner.mapped.is_none() {
                    return raw(range).and(result);
                }
                let mut rest = range.start;
                let end = Extent { start: range.end, end: range.end };
                for part in parts.into_iter().map(|(part, _)| part).chain([end]) {
                    if rest < part.start {
                        result = result.and(raw(Extent { start: rest, end: part.start }));
                    }
                    if !part.is_empty() {
                        inner.discard(part);
                    }
                    rest = part.end;
                }
                result
            }
            libc::MADV_WIPEONFORK | libc::MADV_KEEPONFORK => {
                inner.wiped.retain(|range_before| !range_before.overlaps(&range));
                if advice == libc::MADV_WIPEONFORK {
                    inner.wiped.push(range);
                }
                if inner.mapped.is_some() { Ok(()) } else { raw(range) }
            }
            libc::MADV_DOFORK | libc::MADV_DONTFORK => {
                inner.kept_back.retain(|range_before| !range_before.overlaps(&range));
                if advice == libc::MADV_DONTFORK {
                    inner.kept_back.push(range);
                }
                // While paging, the flag itself is ours: see `hide_from_raw_forks`.
                if inner.pager.is_some() || inner.mapped.is_some() { Ok(()) } else { raw(range) }
            }
            // To the kernel this memory is a file's; to the program it is private, where it refuses these.
            libc::MADV_REMOVE | MADV_GUARD_INSTALL if inner.mapped.is_some() => Err(Errno::EINVAL),
            // Page sizes, residence and order are the pager's business; what a fork inherits too, while it pages.
            libc::MADV_HUGEPAGE | libc::MADV_NOHUGEPAGE | libc::MADV_MERGEABLE | libc::MADV_UNMERGEABLE
                if managed == range.len() =>
            {
                Ok(())
            }
            libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL | libc::MADV_WILLNEED if managed == range.len() => {
                Ok(())
            }
            libc::MADV_COLD | libc::MADV_PAGEOUT | libc::MADV_COLLAPSE if managed == range.len() => Ok(()),
            MADV_GUARD_INSTALL if inner.pager.is_some() && !gap => {
                // What was there is gone, also when the guard is taken away again.
                parts.iter().for_each(|(part, _)| inner.discard(*part));
                drop(inner);
                raw(range)
            }
            _ => {
                // Some advice brings pages: the kernel then waits for the pager, and that for the lock.
                drop(inner);
                raw(range).and(if gap { Err(Errno::ENOMEM) } else { Ok(()) })
            }
        }
    }

    /// mlock(2) and mlock2(2): brings the range to near and keeps it there.
    pub fn mlock(&self, addr: usize, len: usize) -> Result<(), Errno> {
        let end = addr.checked_add(len).and_then(|end| round_up(end, PAGE)).ok_or(Errno::ENOMEM)?;
        let range = Extent { start: addr & !(PAGE - 1), end };
        let readable: Vec<Extent> = {
            let mut inner = self.enter();
            if inner.has_gap(range) {
                return Err(Errno::ENOMEM);
            }
            let parts = inner.regions().parts(range);
            if parts.iter().map(|(part, _)| part.len()).sum::<usize>() < range.len() {
                // The kernel tells of holes.
                let mut present = vec![0; 4096];
                for start in (range.start..range.end).step_by(present.len() * PAGE) {
                    let end = (start + present.len() * PAGE).min(range.end);
                    map::mincore(Extent { start, end }, &mut present)?;
                }
            }
            for (part, _) in &parts {
                match &mut inner.pager {
                    Some(pager) => pager.pin(*part, true)?,
                    None => inner.pin(*part)?,
                }
            }
            parts.into_iter().filter(|(_, attr)| attr.prot & libc::PROT_READ != 0).map(|(part, _)| part).collect()
        };
        for part in readable {
            for page in (part.start..part.end).step_by(PAGE) {
                // SAFETY: a readable page of the program, which asked for it to be brought to near.
                unsafe { std::ptr::read_volatile(page as *const u8) };
            }
        }
        Ok(())
    }

    /// mincore(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mincore(&self, addr: usize, len: usize, out: *mut u8) -> Result<(), Errno> {
        let range = Extent::new(addr, round_up(len, PAGE).unwrap_or(len));
        {
            if self.enter().has_gap(range) {
                return Err(Errno::ENOMEM);
            }
        }
        // SAFETY: passed on to the caller. Without the lock: the result may be written to paged memory.
        unsafe { nearfar_sys::errno::call(libc::SYS_mincore, [addr, len, out as usize, 0, 0, 0]) }.map(|_| ())
    }

    /// msync(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn msync(&self, addr: usize, len: usize, flags: i32) -> Result<(), Errno> {
        if self.enter().has_gap(Extent::new(addr, round_up(len, PAGE).unwrap_or(len))) {
            return Err(Errno::ENOMEM);
        }
        // SAFETY: passed on to the caller. Without the lock: it may take as long as a disk does.
        unsafe { nearfar_sys::errno::call(libc::SYS_msync, [addr, len, flags as usize, 0, 0, 0]) }.map(|_| ())
    }

    /// munlock(2).
    pub fn munlock(&self, addr: usize, len: usize) -> Result<(), Errno> {
        let end = addr.checked_add(len).and_then(|end| round_up(end, PAGE)).ok_or(Errno::ENOMEM)?;
        let range = Extent { start: addr & !(PAGE - 1), end };
        let mut inner = self.enter();
        inner.pins.retain(|pin| !pin.overlaps(&range));
        match &mut inner.pager {
            Some(pager) => pager.pin(range, false),
            None => Ok(()),
        }
    }
}

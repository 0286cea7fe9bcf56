//! Fork: the mapping is shared, so the child gets a copy of the file, made while the parent's thread waits.
//!
//! The child copies, after the kernel has copied everything else, and the parent's fork returns when the copy is done. So what
//! the forking thread wrote is in it, and all that is protected by locks which its fork handlers take. Pages are copied in
//! ascending order; what other threads change meanwhile without such a lock may or may not be in the copy (docs/reference/promises-and-limits.md).
//! Rejected: reflinks, which many file systems lack, and which turn a later write by direct I/O into one in place; private
//! mappings, which the kernel cannot page out without swap.

use super::{Mapped, create};
use crate::arena::Arena;
use crate::pager::stop;
use crate::region::Regions;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::errno::Errno;
use nearfar_sys::event::wait_readable;
use nearfar_sys::file::SpillFile;
use nearfar_sys::io::{Op, Piece};
use nearfar_sys::map::{self, OwnedMap};
use nearfar_sys::{page_cache, pipe};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Copied at a time.
const PIECE: usize = 1 << 20;
/// A copy larger than this does not stay in memory, nor does what had to be read for it.
const KEPT: u64 = 16 << 20;

impl Mapped {
    /// Before fork, under the lock, which is held until one of the next two.
    pub fn fork_prepare(&mut self) {
        match pipe::pipe() {
            Ok(pipe) => self.pipe = Some(pipe),
            // A child that cannot be waited for must not be: it finds no pipe and ends.
            Err(errno) => stop(&format!("no pipe could be opened for a fork: {errno}")),
        }
        self.hide_from_raw_forks(self.arena, false);
    }

    /// After fork, in the parent (also when fork failed): returns when the child has its copy, or is gone.
    pub fn fork_parent(&mut self) {
        self.hide_from_raw_forks(self.arena, true);
        if let Some((reader, writer)) = self.pipe.take() {
            drop(writer);
            while !pipe::is_hung_up(&reader) {
                wait_readable(&[reader.as_raw_fd()], -1, &mut [false]);
            }
        }
    }

    /// After fork, in the child: copies the file and maps the copy. The keeper, if there was one, starts afresh. Where there can
    /// be no copy (`ulimit -f`, disk full) the memory is ordinary from now on, and the reason is returned.
    pub fn fork_child(&mut self, arena: &Arena, regions: &Regions) -> Result<(), Errno> {
        let copy = create(&self.dir, self.len).and_then(|copy| self.copy_to(&copy, regions).map(|()| copy));
        match copy {
            Ok(copy) => self.file = Arc::new(copy),
            Err(why) => {
                if let Err(errno) = self.make_all_ordinary(arena, regions) {
                    stop(&format!("a forked child cannot get its memory, either in far ({why}) or in near ({errno})"));
                }
                self.pipe = None;
                return Err(why);
            }
        }
        self.page_alone = false;
        // What the program itself has mapped into our address space is neither free nor in a region, and stays.
        let free = arena.free_ranges().into_iter().map(|range| (range, libc::PROT_NONE));
        let used = regions.all().into_iter().filter(|(_, attr)| attr.arena).map(|(range, attr)| (range, attr.prot));
        for (range, prot) in free.chain(used) {
            if let Err(errno) = self.put(range, prot) {
                stop(&format!("a forked child cannot map its memory: {errno}"));
            }
        }
        self.hide_from_raw_forks(self.arena, true);
        self.pipe = None;
        Ok(())
    }

    /// Replaces the mappings of the file by private memory with the same content.
    fn make_all_ordinary(&self, arena: &Arena, regions: &Regions) -> Result<(), Errno> {
        for free in arena.free_ranges() {
            // SAFETY: address space of ours that nobody uses.
            unsafe { map::mmap(free.start, free.len(), libc::PROT_NONE, map::ANON | libc::MAP_FIXED, -1, 0)? };
        }
        for (range, attr) in regions.all().into_iter().filter(|(_, attr)| attr.arena) {
            // SAFETY: not fixed: the kernel picks free space.
            let fresh = unsafe { map::mmap(0, range.len(), map::RW, map::ANON, -1, 0)? };
            for (part, place) in self.parts(range) {
                self.read_data(place, place + part.len() as u64, fresh + (part.start - range.start))?;
            }
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            // SAFETY: what is replaced is a view of the file, whose content the fresh memory has.
            unsafe { map::mremap(Extent::new(fresh, range.len()), range.len(), flags, range.start)? };
            // SAFETY: the protection that the program had set.
            unsafe { map::mprotect(range, attr.prot)? };
        }
        Ok(())
    }

    /// Reads what is data of bytes `start..end` of the file to `to`, which has zeros.
    fn read_data(&self, start: u64, end: u64, to: usize) -> Result<(), Errno> {
        let mut at = start;
        while at < end {
            let (data, hole) = match self.file.data_from(at) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(()),
                Err(_) => (at, end),
            };
            at = data;
            while at < hole.min(end) {
                let len = PIECE.min((hole.min(end) - at) as usize);
                let pieces = vec![Piece { addr: to + (at - start) as usize, len }];
                Op { token: 0, write: false, fd: self.file.as_raw_fd(), offset: at, pieces }.finish()?;
                at += len as u64;
            }
        }
        Ok(())
    }

    fn copy_to(&self, copy: &SpillFile, regions: &Regions) -> Result<(), Errno> {
        let bounce = OwnedMap::new(PIECE)?;
        let mut copied = 0;
        for (range, _) in regions.all().into_iter().filter(|(_, attr)| attr.arena) {
            for (part, place) in self.parts(range) {
                self.copy_part(copy, place, place + part.len() as u64, bounce.range().start, &mut copied)?;
            }
        }
        Ok(())
    }

    fn copy_part(&self, copy: &SpillFile, start: u64, end: u64, bounce: usize, copied: &mut u64) -> Result<(), Errno> {
        let mut at = start;
        while at < end {
            // Where the file system cannot tell, all is data, and what is zero is left out below.
            let (data, hole) = match self.file.data_from(at) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(()),
                Err(_) => (at, end),
            };
            at = data;
            while at < hole.min(end) {
                let len = PIECE.min((hole.min(end) - at) as usize);
                copy_piece(&self.file, copy, at, bounce, len)?;
                *copied += len as u64;
                if *copied > KEPT {
                    // What is left of the piece before is written by now. What the parent has in view stays.
                    page_cache::let_go(&*self.file, at, len as u64);
                    page_cache::let_go(copy, at.saturating_sub(8 * PIECE as u64), 8 * PIECE as u64 + len as u64);
                }
                at += len as u64;
            }
        }
        Ok(())
    }
}

/// Copies `len` bytes at `at` by way of `bounce`, apart from runs of zero pages: those are holes already.
fn copy_piece(from: &SpillFile, to: &SpillFile, at: u64, bounce: usize, len: usize) -> Result<(), Errno> {
    let op = |write: bool, fd, range: Extent| {
        let pieces = vec![Piece { addr: bounce + range.start, len: range.len() }];
        Op { token: 0, write, fd, offset: at + range.start as u64, pieces }.finish()
    };
    op(false, from.as_raw_fd(), Extent::new(0, len))?;
    // SAFETY: the bounce buffer, which is ours alone and at least so long.
    let bytes = unsafe { std::slice::from_raw_parts(bounce as *const u8, len) };
    let mut run = Extent { start: 0, end: 0 };
    for (index, page) in bytes.chunks(PAGE).enumerate() {
        if page.iter().any(|&byte| byte != 0) {
            if run.end != index * PAGE {
                run.start = index * PAGE;
            }
            run.end = index * PAGE + page.len();
        } else if run.end == index * PAGE && !run.is_empty() {
            op(true, to.as_raw_fd(), run)?;
            run = Extent { start: 0, end: 0 };
        }
    }
    if !run.is_empty() {
        op(true, to.as_raw_fd(), run)?;
    }
    Ok(())
}

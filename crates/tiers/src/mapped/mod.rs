//! Where there is no userfaultfd: the arena is a shared mapping of the spill file, and the kernel pages it.
//!
//! From the start of the process on, since memory cannot change its kind while threads write to it. The file is sparse and as
//! long as the arena: what is touched takes space. A block of the arena has the block of the file at the same distance from
//! the start, unless it was moved (`relocate`). The kernel reads and writes as it sees fit; `keeper` sees to it that not more
//! than near stays in memory. To the program it is private anonymous memory: what is discarded becomes a hole in the file
//! and reads as zeros, and a forked child gets a copy (`fork`).
//!
//! Only the arena is mapped so: static arrays and mappings at places that the program chose stay ordinary memory. Nothing is
//! checked by hashes here; errors of the device are told by the kernel, see `keeper` and `sys::bus_error`.

mod chores;
mod fork;
mod keeper;

pub use chores::Chores;
pub use keeper::Keeper;

use crate::hash_map::Map;
use crate::pager::{EXIT_STOPPED, stop};
use nearfar_core::addr::{BLOCK, Extent, block_extent, block_of};
use nearfar_core::policy::read_around;
use nearfar_sys::bus_error;
use nearfar_sys::errno::Errno;
use nearfar_sys::file::SpillFile;
use nearfar_sys::io::{Op, Piece};
use nearfar_sys::map::{self, OwnedMap};
use nearfar_sys::page_cache;
use nearfar_sys::rlimit::{Limit, limit};
use nearfar_sys::spill_dir::SpillDir;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

/// File and address space tried first; halved until the file system agrees (16 TiB is just too much for ext4).
const LARGEST: usize = 8 << 40;
const SMALLEST: usize = 2 << 30;
/// Shared: what is written goes to the file.
const SHARED: i32 = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
/// Zeros written at a time where holes cannot be made.
const ZEROS: usize = 1 << 20;

/// The spill file and what of it is where in the arena.
pub struct Mapped {
    file: Arc<SpillFile>,
    dir: SpillDir,
    len: usize,
    arena: Extent,
    // Blocks of the arena that have another block of the file than the one at their own distance from the start.
    moved: Map<usize, usize>,
    // The disk has the kernel read much around a page that is missing.
    reads_much: bool,
    // It reads that page only.
    page_alone: bool,
    /// Keeps memory within near; from the moment on that the process may need more.
    pub keeper: Option<Keeper>,
    // During a fork: hangs up when the child has its copy.
    pipe: Option<(OwnedFd, OwnedFd)>,
}

fn create(dir: &SpillDir, len: usize) -> Result<SpillFile, Errno> {
    // Beyond the limit the kernel does not only refuse, it sends a signal that ends the program.
    if limit(Limit::FileSize).is_some_and(|most| len as u64 > most) {
        return Err(Errno(libc::EFBIG));
    }
    // Direct I/O and mappings of one file do not see each other's data.
    let file = SpillFile::create(dir, false)?;
    file.extend(len as u64)?;
    Ok(file)
}

impl Mapped {
    /// Creates the spill file in `dir`, as long as the file system and `ulimit -f` allow.
    pub fn new(dir: &Path) -> Result<Self, Errno> {
        let (mut len, dir) = (LARGEST, SpillDir::open(dir));
        loop {
            match create(&dir, len) {
                Ok(file) => {
                    let arena = Extent { start: 0, end: 0 };
                    return Ok(Self {
                        reads_much: page_cache::read_around(&file).is_none_or(|around| around.bytes > read_around::MUCH),
                        file: Arc::new(file),
                        dir,
                        len,
                        arena,
                        moved: Map::default(),
                        page_alone: false,
                        keeper: None,
                        pipe: None,
                    });
                }
                Err(errno) if len <= SMALLEST => return Err(errno),
                Err(_) => len /= 2,
            }
        }
    }

    /// Bytes that the arena can have at most.
    pub fn most(&self) -> usize {
        self.len
    }

    /// Puts the file under `arena`, address space without access that nobody uses yet.
    pub fn take_arena(&mut self, arena: Extent) -> Result<(), Errno> {
        debug_assert!(arena.len() <= self.len && arena.start.is_multiple_of(BLOCK));
        self.arena = arena;
        self.put(arena, libc::PROT_NONE)?;
        let far = self.dir.path().display();
        let message =
            format!("nearfar: stopped this process: far memory in {far} failed: the disk is full, or has an I/O error\n");
        bus_error::end_with(arena, message, EXIT_STOPPED);
        Ok(())
    }

    /// Address space that the file is under.
    pub fn arena(&self) -> Extent {
        self.arena
    }

    fn file_block(&self, block: usize) -> usize {
        self.moved.get(&block).copied().unwrap_or(block)
    }

    /// The parts of `range`, which lies in the arena, that are in one piece in the file too, each with its place there.
    fn parts(&self, range: Extent) -> Vec<(Extent, u64)> {
        let mut parts: Vec<(Extent, u64)> = Vec::new();
        if self.moved.is_empty() {
            return vec![(range, (range.start - self.arena.start) as u64)];
        }
        for block in range.blocks() {
            let Some(part) = block_extent(block).intersect(&range) else { continue };
            let place = (self.file_block(block) * BLOCK - self.arena.start + part.start % BLOCK) as u64;
            match parts.last_mut() {
                Some((last, its)) if *its + last.len() as u64 == place => last.end = part.end,
                _ => parts.push((part, place)),
            }
        }
        parts
    }

    /// Where block number `block` is in the file.
    fn place_of(&self, block: usize) -> u64 {
        (self.file_block(block) * BLOCK - self.arena.start) as u64
    }

    /// Maps the file at `range` of the arena, whatever was mapped there.
    pub fn put(&self, range: Extent, prot: i32) -> Result<(), Errno> {
        for (part, place) in self.parts(range) {
            // SAFETY: address space of ours; the callers replace only what nobody uses or what the program gave up.
            unsafe { map::mmap(part.start, part.len(), prot, SHARED, self.file.as_raw_fd(), place as i64)? };
        }
        self.hide_from_raw_forks(range, true);
        if self.page_alone {
            self.advise_reading(range);
        }
        // The kernel would write holes to a core dump as zeros: terabytes.
        // SAFETY: the advice changes only what a core dump holds.
        let _ = unsafe { map::madvise(range, libc::MADV_DONTDUMP) };
        Ok(())
    }

    /// A child of a raw fork would share this memory with its parent, and each would see what the other writes. Without it
    /// such a child is stopped by a fault instead.
    fn hide_from_raw_forks(&self, range: Extent, hidden: bool) {
        let advice = if hidden { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
        // SAFETY: the advice changes only what a later fork inherits.
        let _ = unsafe { map::madvise(range, advice) };
    }

    /// Whether a page that is missing is read with what is around it, as far as the disk's read-ahead goes.
    fn let_kernel_read_around(&mut self, wanted: bool) {
        if self.page_alone == wanted {
            self.page_alone = !wanted;
            self.advise_reading(self.arena);
        }
    }

    fn advise_reading(&self, range: Extent) {
        let advice = if self.page_alone { libc::MADV_RANDOM } else { libc::MADV_NORMAL };
        // SAFETY: the advice changes what is read ahead and, since Linux 6.3, which pages a full cgroup takes first; no content.
        let _ = unsafe { map::madvise(range, advice) };
    }

    /// Makes `range` of the arena read as zeros, and gives its space in far back.
    pub fn discard(&mut self, range: Extent) {
        if let Some(keeper) = &mut self.keeper {
            keeper.forget(range);
        }
        for (part, place) in self.parts(range) {
            if self.file.make_hole(place, part.len() as u64).is_err() {
                // No holes on this file system, or no room to note one.
                self.write_zeros(place, part.len());
            }
        }
    }

    fn write_zeros(&self, place: u64, len: usize) {
        let result = OwnedMap::new(ZEROS).and_then(|zeros| {
            for done in (0..len).step_by(ZEROS) {
                let pieces = vec![Piece { addr: zeros.range().start, len: ZEROS.min(len - done) }];
                Op { token: 0, write: true, fd: self.file.as_raw_fd(), offset: place + done as u64, pieces }.finish()?;
            }
            Ok(())
        });
        if let Err(errno) = result {
            stop(&format!(
                "memory cannot be discarded: the spill file in {} cannot be zeroed ({errno})",
                self.dir.path().display()
            ));
        }
    }

    /// Moves the content of `count` whole blocks, by exchanging which block of the file is where; `to` has no content. Both are
    /// readable and writable, and the program uses neither meanwhile. Returns how many were moved.
    pub fn relocate(&mut self, from: usize, to: usize, count: usize) -> usize {
        let (from, to) = (block_of(from), block_of(to));
        let mut done = 0;
        while done < count {
            // As many as are in one piece on both sides.
            let (source, target) = (self.file_block(from + done), self.file_block(to + done));
            let alike =
                |&n: &usize| self.file_block(from + done + n) == source + n && self.file_block(to + done + n) == target + n;
            let run = (1..count - done).take_while(alike).count() + 1;
            let old = Extent::new((from + done) * BLOCK, run * BLOCK);
            let new = (to + done) * BLOCK;
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
            // SAFETY: both ranges are ours, see above. The source stays mapped, so that nobody else is given its addresses.
            if unsafe { map::mremap(old, old.len(), flags, new) }.is_err() {
                break;
            }
            for n in 0..run {
                self.set_file_block(to + done + n, source + n);
                self.set_file_block(from + done + n, target + n);
                if let Some(keeper) = &mut self.keeper {
                    keeper.moved(from + done + n, to + done + n);
                }
            }
            if let Err(errno) = self.put(old, map::RW) {
                stop(&format!("memory cannot be moved: {errno}"));
            }
            done += run;
        }
        done
    }

    fn set_file_block(&mut self, block: usize, file_block: usize) {
        if block == file_block {
            self.moved.remove(&block);
        } else {
            self.moved.insert(block, file_block);
        }
    }

    /// Descriptors that the program must not close.
    pub fn own_fds(&self) -> Vec<RawFd> {
        let mut fds = vec![self.file.as_raw_fd()];
        fds.extend(self.keeper.iter().flat_map(Keeper::own_fds));
        fds.extend(self.dir.fd());
        fds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::addr::PAGE;

    fn word(addr: usize) -> &'static mut u64 {
        // SAFETY: the tests pass addresses in mappings of their own, readable and writable, that stay for the test's life.
        unsafe { &mut *(addr as *mut u64) }
    }

    /// Whether the kernel was told to read only the page that is missing at `addr`.
    fn is_alone(addr: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let mut inside = false;
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            if let Some((from, to)) = words.next().and_then(|first| first.split_once('-'))
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                inside = (from..to).contains(&addr);
            } else if inside && line.starts_with("VmFlags") {
                return words.any(|flag| flag == "rr");
            }
        }
        panic!("{addr:x} is not mapped");
    }

    #[test]
    fn pages_are_read_alone_when_told_so() {
        let mut mapped = Mapped::new(Path::new("/var/tmp")).expect("a spill file");
        let arena = map::reserve(16 * BLOCK).expect("address space");
        mapped.take_arena(arena).expect("mapped");
        let at = |block: usize| arena.start + block * BLOCK;
        assert!(!is_alone(at(1)));
        mapped.let_kernel_read_around(false);
        assert!(is_alone(at(0)) && is_alone(at(15)));
        // What is mapped anew, and what moves, too.
        mapped.put(Extent::new(at(4), BLOCK), map::RW).expect("mapped");
        // SAFETY: our own mapping.
        unsafe { map::mprotect(arena, map::RW) }.expect("access");
        assert_eq!(mapped.relocate(at(0), at(8), 2), 2);
        assert!([0, 1, 4, 8, 9].into_iter().all(|block| is_alone(at(block))));
        mapped.let_kernel_read_around(true);
        assert!((0..16).all(|block| !is_alone(at(block))));
    }

    #[test]
    fn moves_and_holes() {
        let mut mapped = Mapped::new(Path::new("/var/tmp")).expect("a spill file");
        let arena = map::reserve(16 * BLOCK).expect("address space");
        mapped.take_arena(arena).expect("mapped");
        let at = |block: usize| arena.start + block * BLOCK;
        // SAFETY: our own mapping.
        unsafe { map::mprotect(arena, map::RW) }.expect("access");
        for block in 0..4 {
            *word(at(block) + 8) = block as u64 + 1;
        }
        assert_eq!(mapped.relocate(at(0), at(8), 4), 4);
        for block in 0..4 {
            assert_eq!((*word(at(8 + block) + 8), *word(at(block) + 8)), (block as u64 + 1, 0));
        }
        // Again, from blocks that have others' places, to blocks of which some have.
        assert_eq!(mapped.relocate(at(9), at(2), 2), 2);
        assert_eq!((*word(at(2) + 8), *word(at(3) + 8), *word(at(8) + 8), *word(at(11) + 8)), (2, 3, 1, 4));
        *word(at(2) + PAGE) = 9;
        mapped.discard(Extent::new(at(2), PAGE));
        assert_eq!((*word(at(2) + 8), *word(at(2) + PAGE), *word(at(3) + 8), *word(at(8) + 8)), (0, 9, 3, 1));
        mapped.write_zeros(mapped.place_of(block_of(at(8))), PAGE);
        assert_eq!((*word(at(8) + 8), *word(at(11) + 8)), (0, 4));
    }
}

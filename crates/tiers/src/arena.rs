//! The arena: the addresses at which large allocations and anonymous mappings lie.
//!
//! Two halves, told apart by address alone: *blocks* (the malloc family) and *maps* (the mmap family). Where nothing is used nothing is
//! mapped: stray pointers trap, system calls answer, limits count and mappings at fixed addresses work as they would without us.
//! Nobody else is given addresses there, since it is far from where the kernel puts anything by itself; what is there all the same
//! (a raw system call with an address) is gone around.
//!
//! Where that place is not to be had, and where the kernel pages (the arena is a mapping of the spill file then), address space is
//! reserved instead, without access where nothing is used.

use nearfar_core::addr::{BLOCK, CHUNK, Extent, PAGE, round_up};
use nearfar_core::ranges::Ranges;
use nearfar_sys::errno::Errno;
use nearfar_sys::gate::WATCHED;
use nearfar_sys::map;
use std::collections::BTreeMap;

/// Address space asked for, for each half; halved until the kernel and `ulimit -v` agree.
const LARGEST: usize = 8 << 40;
const SMALLEST: usize = 1 << 30;
/// For the blocks half where it need not be reserved. The rest of the place makes the start a different one each time.
const OPEN_BLOCKS: usize = 4 << 40;

/// Freed blocks that keep their pages for the next allocation of the like size.
const CACHED_BLOCKS: usize = 16;
/// Foreign mappings that an allocation goes around before it gives up.
const TRIES: u32 = 64;

/// Address space and who has which part of it.
pub struct Arena {
    blocks: Extent,
    maps: Extent,
    free_blocks: Ranges,
    free_maps: Ranges,
    sizes: BTreeMap<usize, usize>,
    cache: Vec<Extent>,
    cache_limit: usize,
    /// Mapped without access where nothing is used.
    reserved: bool,
    huge_pages: bool,
}

/// Whether the kernel lets somebody map at the end of `range`, that is, whether its address space goes so far.
fn is_addressable(range: Extent) -> bool {
    let last = Extent { start: range.end - BLOCK, end: range.end };
    let flags = map::ANON | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing, by its flags.
    let mapped = unsafe { map::mmap(last.start, last.len(), libc::PROT_NONE, flags, -1, 0) };
    if let Ok(start) = mapped {
        // SAFETY: mapped just now.
        let _ = unsafe { map::munmap(Extent::new(start, last.len())) };
    }
    mapped == Ok(last.start)
}

/// Reserves `len` bytes at the start of the watched range.
fn reserve_watched(len: usize) -> Result<Extent, Errno> {
    let wanted = Extent::new(WATCHED.start, len.min(WATCHED.len()));
    let flags = map::ANON | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing, by its flags.
    let start = unsafe { map::mmap(wanted.start, wanted.len(), libc::PROT_NONE, flags, -1, 0)? };
    if start == wanted.start {
        return Ok(wanted);
    }
    // Kernels before 4.17 take the address for a wish.
    // SAFETY: mapped just now.
    unsafe { map::munmap(Extent::new(start, wanted.len()))? };
    Err(Errno::EEXIST)
}

/// How the arena is to be.
pub struct Shape {
    /// Bytes of freed blocks that keep their pages.
    pub cache_limit: usize,
    /// The kernel may make huge pages.
    pub huge_pages: bool,
    /// It must lie where the filter for system calls looks.
    pub watched: bool,
    /// All of it must be reserved, and be no longer than this.
    pub reserved: Option<usize>,
}

impl Arena {
    /// An arena with nothing in it.
    ///
    /// # Errors
    /// When address space would have to be reserved and there is not enough of it.
    pub fn new(shape: &Shape) -> Result<Self, Errno> {
        // A different place each time, so that nobody knows addresses beforehand.
        let slack = WATCHED.len() - LARGEST - OPEN_BLOCKS;
        let start = WATCHED.start + nearfar_sys::process::random() as usize % (slack / BLOCK) * BLOCK;
        let open = Extent::new(start, OPEN_BLOCKS + LARGEST);
        let (whole, half, reserved) = match shape.reserved {
            None if is_addressable(open) => (open, OPEN_BLOCKS, false),
            most => {
                let (range, half) = Self::reserve(shape.watched, most.unwrap_or(usize::MAX))?;
                (range, half, true)
            }
        };
        if reserved && shape.huge_pages {
            // SAFETY: our own fresh reservation; the advice only concerns page sizes.
            let _ = unsafe { map::madvise(whole, libc::MADV_HUGEPAGE) };
        }
        let (blocks, maps) = (Extent::new(whole.start, half), Extent { start: whole.start + half, end: whole.end });
        Ok(Self {
            blocks,
            maps,
            free_blocks: Ranges::new(blocks),
            free_maps: Ranges::new(maps),
            sizes: BTreeMap::new(),
            cache: Vec::new(),
            cache_limit: shape.cache_limit,
            reserved,
            huge_pages: shape.huge_pages,
        })
    }

    /// Reserves address space, `most` bytes at most; returns it and how much of it is for blocks.
    fn reserve(watched: bool, most: usize) -> Result<(Extent, usize), Errno> {
        let mut half = LARGEST.min(most / 2);
        loop {
            match if watched { reserve_watched(2 * half) } else { map::reserve(2 * half) } {
                Ok(range) => return Ok((range, half)),
                Err(errno) if half <= SMALLEST => return Err(errno),
                Err(_) => half /= 2,
            }
        }
    }

    /// Makes address space that was taken usable with protection `prot`.
    ///
    /// # Errors
    /// EEXIST: somebody has mapped something there past us; the address space is theirs. Else as of mmap(2).
    pub fn open(&self, range: Extent, prot: i32) -> Result<(), Errno> {
        if self.reserved {
            // SAFETY: address space of ours that nobody uses.
            return unsafe { map::mprotect(range, prot) };
        }
        // SAFETY: replaces nothing, by its flags.
        unsafe { map::mmap(range.start, range.len(), prot, map::ANON | libc::MAP_FIXED_NOREPLACE, -1, 0)? };
        self.advise(range);
        Ok(())
    }

    /// Allows huge pages in `range`, which has been mapped anew.
    pub fn advise(&self, range: Extent) {
        if self.huge_pages {
            // SAFETY: the advice only concerns page sizes.
            let _ = unsafe { map::madvise(range, libc::MADV_HUGEPAGE) };
        }
    }

    /// Bytes that are mapped whether used or not.
    pub fn reserved_bytes(&self) -> usize {
        if self.reserved { self.whole().len() } else { 0 }
    }

    /// True when what is not used is mapped without access.
    pub fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// The half for allocations.
    pub fn blocks(&self) -> Extent {
        self.blocks
    }

    /// All of it.
    pub fn whole(&self) -> Extent {
        Extent { start: self.blocks.start, end: self.maps.end }
    }

    /// Address space that nobody has, of both halves.
    pub fn free_ranges(&self) -> Vec<Extent> {
        self.free_blocks.iter().chain(self.free_maps.iter()).collect()
    }

    /// The half for mappings.
    pub fn maps(&self) -> Extent {
        self.maps
    }

    fn room_for(size: usize) -> Option<usize> {
        round_up(size.max(1), CHUNK)
    }

    /// Takes address space for an allocation.
    pub fn take_block(&mut self, size: usize, align: usize) -> Option<Extent> {
        let len = Self::room_for(size)?;
        let align = align.max(if len >= BLOCK { BLOCK } else { CHUNK });
        let start = self.free_blocks.take(len, align)?;
        self.sizes.insert(start, len);
        Some(Extent::new(start, len))
    }

    /// A freed block that kept its pages, large enough but not by much; its content is arbitrary.
    pub fn take_cached(&mut self, size: usize, align: usize) -> Option<Extent> {
        let len = Self::room_for(size)?;
        let fits = |range: &Extent| range.len() >= len && range.len() <= len + len / 8 && range.start.is_multiple_of(align);
        let index = self.cache.iter().rposition(fits)?;
        let range = self.cache.remove(index);
        self.sizes.insert(range.start, range.len());
        Some(range)
    }

    /// The allocation that starts at `addr`.
    pub fn block(&self, addr: usize) -> Option<Extent> {
        self.sizes.get(&addr).map(|&len| Extent::new(addr, len))
    }

    /// Ends the allocation at `addr`. The block may stay in the cache with its pages; what must be discarded and given back
    /// with `give_block` is returned.
    pub fn end_block(&mut self, addr: usize) -> Vec<Extent> {
        let Some(len) = self.sizes.remove(&addr) else { return Vec::new() };
        let range = Extent::new(addr, len);
        if len > self.cache_limit / 2 {
            return vec![range];
        }
        self.cache.push(range);
        let mut out = Vec::new();
        while self.cache.len() > CACHED_BLOCKS || self.cache.iter().map(Extent::len).sum::<usize>() > self.cache_limit {
            out.push(self.cache.remove(0));
        }
        out
    }

    /// Ends an allocation whose address space is somebody else's.
    pub fn forget_block(&mut self, addr: usize) {
        self.sizes.remove(&addr);
    }

    /// Takes an allocation back that was never used.
    pub fn cancel_block(&mut self, range: Extent) {
        self.sizes.remove(&range.start);
        self.give_block(range);
    }

    /// Everything in the cache, to be discarded and given back.
    pub fn drain_cache(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.cache)
    }

    /// Bytes of freed blocks that keep their pages may be at most this many from now on.
    pub fn limit_cache(&mut self, limit: usize) {
        self.cache_limit = limit;
    }

    /// Returns address space of an ended allocation.
    pub fn give_block(&mut self, range: Extent) {
        let given = self.free_blocks.give(range);
        debug_assert!(given.is_ok(), "address space given twice: {range:x?}");
    }

    /// Makes the allocation at `addr` `size` bytes long where it is, if what follows is free.
    pub fn grow_block(&mut self, addr: usize, size: usize) -> Option<Extent> {
        let (range, len) = (self.block(addr)?, Self::room_for(size)?);
        if len > range.len() && !self.free_blocks.grow(range, len) {
            return None;
        }
        let len = len.max(range.len());
        self.sizes.insert(addr, len);
        Some(Extent::new(addr, len))
    }

    /// Makes the allocation at `addr` shorter; returns the tail, to be discarded and given back with `give_block`.
    pub fn shrink_block(&mut self, addr: usize, size: usize) -> Option<Extent> {
        let (range, len) = (self.block(addr)?, Self::room_for(size)?);
        if len >= range.len() {
            return None;
        }
        self.sizes.insert(addr, len);
        Some(Extent { start: addr + len, end: range.end })
    }

    /// A mapping of `len` bytes (whole pages) with `prot`: at the address `wish`, if that is free, or anywhere.
    pub fn open_map(&mut self, wish: usize, len: usize, prot: i32) -> Result<Extent, Errno> {
        let wished = Extent { start: wish, end: wish.saturating_add(len) };
        if wish.is_multiple_of(PAGE) && self.free_maps.take_at(wished) && self.open(wished, prot).is_ok() {
            return Ok(wished);
        }
        let align = if len >= BLOCK { BLOCK } else { CHUNK };
        for _ in 0..TRIES {
            let range = Extent::new(self.free_maps.take(len, align).ok_or(Errno::ENOMEM)?, len);
            match self.open(range, prot) {
                Ok(()) => return Ok(range),
                // Theirs for good.
                Err(Errno::EEXIST) => {}
                Err(errno) => {
                    self.give_map(range);
                    return Err(errno);
                }
            }
        }
        Err(Errno::ENOMEM)
    }

    /// Takes what is still free of `range`, for a mapping at a fixed address that the program asks for.
    pub fn take_at(&mut self, range: Extent) {
        for half in [&mut self.free_blocks, &mut self.free_maps] {
            let Some(part) = half.whole().intersect(&range) else { continue };
            let taken = half.taken(&part);
            let mut from = part.start;
            for end in taken.iter().map(|taken| (taken.start, taken.end)).chain([(part.end, part.end)]) {
                if from < end.0 {
                    let _ = half.take_at(Extent { start: from, end: end.0 });
                }
                from = end.1;
            }
        }
    }

    /// Returns what is taken of `range` and is of no allocation: the program has unmapped it.
    pub fn give_at(&mut self, range: Extent) {
        if let Some(part) = self.maps.intersect(&range) {
            self.give_map(part);
        }
        let Some(part) = self.blocks.intersect(&range) else { return };
        let first = self.sizes.range(..=part.start).next_back().map_or(part.start, |(&start, _)| start);
        let blocks: Vec<_> = self.sizes.range(first..part.end).map(|(&start, &len)| Extent::new(start, len)).collect();
        let mut from = part.start;
        for block in blocks.into_iter().chain([Extent { start: part.end, end: part.end }]) {
            let outside = Extent { start: from, end: block.start.max(from) };
            if !outside.is_empty() {
                for taken in self.free_blocks.taken(&outside) {
                    let _ = self.free_blocks.give(taken);
                }
            }
            from = from.max(block.end);
        }
    }

    /// Makes a mapping longer where it is, if what follows is free.
    pub fn grow_map(&mut self, range: Extent, len: usize) -> bool {
        self.free_maps.grow(range, len)
    }

    /// True when the program has mapped nothing at some page of `range`, which lies in the part for mappings.
    pub fn has_gap(&self, range: &Extent) -> bool {
        self.free_maps.any_free(range)
    }

    /// Returns what is taken of `range` of the maps half.
    pub fn give_map(&mut self, range: Extent) {
        for taken in self.free_maps.taken(&range) {
            let _ = self.free_maps.give(taken);
        }
    }
}

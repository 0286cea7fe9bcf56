//! The arena: reserved address space from which large allocations and anonymous mappings come.
//!
//! Two halves, told apart by address alone: *blocks* (the malloc family, readable and writable once used, kept so when
//! freed) and *maps* (the mmap family, without access where nothing is mapped, so that stray pointers trap as they should).

use nearfar_core::addr::{BLOCK, CHUNK, Extent, PAGE, round_up};
use nearfar_core::ranges::Ranges;
use nearfar_sys::errno::Errno;
use nearfar_sys::gate::WATCHED;
use nearfar_sys::map;
use std::collections::BTreeMap;

/// Address space asked for, for each half; halved until the kernel and `ulimit -v` agree.
const LARGEST: usize = 8 << 40;
const SMALLEST: usize = 1 << 30;

/// Freed blocks that keep their pages for the next allocation of the like size.
const CACHED_BLOCKS: usize = 16;

/// Address space and who has which part of it.
pub struct Arena {
    blocks: Extent,
    maps: Extent,
    free_blocks: Ranges,
    free_maps: Ranges,
    sizes: BTreeMap<usize, usize>,
    cache: Vec<Extent>,
    cache_limit: usize,
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

impl Arena {
    /// Reserves address space, `most` bytes at most, with `watched` where the filter for system calls looks. `cache_limit` bounds
    /// the bytes of freed blocks that keep their pages.
    pub fn new(cache_limit: usize, huge_pages: bool, watched: bool, most: usize) -> Result<Self, Errno> {
        let mut half = LARGEST.min(most / 2);
        let whole = loop {
            let reserved = if watched { reserve_watched(2 * half) } else { map::reserve(2 * half) };
            match reserved {
                Ok(range) => break range,
                Err(errno) if half <= SMALLEST => return Err(errno),
                Err(_) => half /= 2,
            }
        };
        if huge_pages {
            // SAFETY: our own fresh reservation; the advice only concerns page sizes.
            let _ = unsafe { map::madvise(whole, libc::MADV_HUGEPAGE) };
        }
        let blocks = Extent::new(whole.start, half);
        let maps = Extent::new(whole.start + half, half);
        Ok(Self {
            blocks,
            maps,
            free_blocks: Ranges::new(blocks),
            free_maps: Ranges::new(maps),
            sizes: BTreeMap::new(),
            cache: Vec::new(),
            cache_limit,
        })
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

    /// Takes address space for a mapping of `len` bytes (whole pages).
    pub fn take_map(&mut self, len: usize) -> Option<Extent> {
        let align = if len >= BLOCK { BLOCK } else { CHUNK };
        self.free_maps.take(len, align).map(|start| Extent::new(start, len))
    }

    /// Takes what is still free of `range`, for a mapping at a fixed address.
    pub fn take_map_at(&mut self, range: Extent) {
        if self.free_maps.take_at(range) || !self.free_maps.any_free(&range) {
            return;
        }
        for start in (range.start..range.end).step_by(PAGE) {
            let _ = self.free_maps.take_at(Extent::new(start, PAGE));
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
        if self.free_maps.give(range).is_err() {
            for start in (range.start..range.end).step_by(PAGE) {
                let _ = self.free_maps.give(Extent::new(start, PAGE));
            }
        }
    }

    /// Bytes of the live allocations.
    pub fn block_bytes(&self) -> usize {
        self.sizes.values().sum()
    }
}

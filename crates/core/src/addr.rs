//! The only page arithmetic: pages (4 KiB), chunks (64 KiB) and blocks (2 MiB) of a process's address space.
//!
//! A *page* is the smallest thing that moves. A *chunk* is the smallest thing that is evicted. A *block* is what one huge
//! page can hold. Numbers of pages, chunks and blocks are absolute (address divided by size), so that no base is needed.

/// Bytes in a page, the smallest unit that moves between tiers.
pub const PAGE: usize = 4096;
/// Bytes in a chunk, the smallest unit of eviction.
pub const CHUNK: usize = 64 << 10;
/// Bytes in a block, the unit of huge pages, of far extents and of the block directory.
pub const BLOCK: usize = 2 << 20;
/// Pages in a block.
pub const BLOCK_PAGES: usize = BLOCK / PAGE;
/// Pages in a chunk.
pub const CHUNK_PAGES: usize = CHUNK / PAGE;
/// Chunks in a block.
pub const BLOCK_CHUNKS: usize = BLOCK / CHUNK;

/// A half-open range of bytes, `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Extent {
    /// The extent of `len` bytes from `start`; the end saturates instead of wrapping.
    pub const fn new(start: usize, len: usize) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// True when no byte is inside.
    pub const fn is_empty(&self) -> bool {
        self.end <= self.start
    }

    /// True when `addr` is inside.
    pub const fn contains(&self, addr: usize) -> bool {
        self.start <= addr && addr < self.end
    }

    /// True when every byte of `other` is inside.
    pub const fn contains_extent(&self, other: Extent) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// True when the two share a byte.
    pub const fn overlaps(&self, other: &Extent) -> bool {
        !self.is_empty() && !other.is_empty() && self.start < other.end && other.start < self.end
    }

    /// The part that both share; `None` when they share nothing.
    pub fn intersect(&self, other: &Extent) -> Option<Extent> {
        let both = Extent { start: self.start.max(other.start), end: self.end.min(other.end) };
        (!both.is_empty()).then_some(both)
    }

    /// The numbers of the blocks that the extent touches.
    pub const fn blocks(&self) -> std::ops::Range<usize> {
        if self.is_empty() { 0..0 } else { block_of(self.start)..block_of(self.end - 1) + 1 }
    }
}

/// `n` rounded down to a multiple of `unit`, a power of two.
pub const fn round_down(n: usize, unit: usize) -> usize {
    n & !(unit - 1)
}

/// `n` rounded up to a multiple of `unit`, a power of two; `None` when that overflows.
pub const fn round_up(n: usize, unit: usize) -> Option<usize> {
    match n.checked_add(unit - 1) {
        Some(sum) => Some(sum & !(unit - 1)),
        None => None,
    }
}

/// Number of the block that holds `addr`.
pub const fn block_of(addr: usize) -> usize {
    addr / BLOCK
}

/// Number of the page that holds `addr`.
pub const fn page_of(addr: usize) -> usize {
    addr / PAGE
}

/// First address of block number `block`.
pub const fn block_start(block: usize) -> usize {
    block * BLOCK
}

/// The bytes of block number `block`.
pub const fn block_extent(block: usize) -> Extent {
    Extent { start: block * BLOCK, end: block * BLOCK + BLOCK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_and_blocks() {
        assert_eq!(round_up(1, PAGE), Some(PAGE));
        assert_eq!(round_up(usize::MAX, PAGE), None);
        assert_eq!(round_down(BLOCK + 5, BLOCK), BLOCK);
        assert_eq!(Extent::new(BLOCK - 1, 2).blocks(), 0..2);
        assert_eq!(Extent::new(5, 0).blocks(), 0..0);
        assert_eq!(Extent::new(0, 10).intersect(&Extent::new(8, 10)), Some(Extent::new(8, 2)));
        assert_eq!(Extent::new(0, 8).intersect(&Extent::new(8, 10)), None);
    }
}

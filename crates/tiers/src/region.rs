//! The ranges of address space under management, with their protection: an interval map.
//!
//! Neighbours with the same attributes are one region, as the kernel merges its mappings.

use nearfar_core::addr::Extent;
use std::collections::BTreeMap;

/// What is the same for every byte of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attr {
    /// PROT_* bits.
    pub prot: i32,
    /// Lies in our arena (otherwise it was mapped elsewhere: by hint, fixed address, or as .bss).
    pub arena: bool,
    /// It is or was writable, so it may hold data: it counts in the ledger until it is unmapped, as in the kernel's.
    pub committed: bool,
}

impl Attr {
    /// Pages can be moved in and out (the kernel moves only between mappings of equal, writable protection).
    pub fn is_movable(self) -> bool {
        self.prot == nearfar_sys::map::RW
    }

    /// The program may write.
    pub fn is_writable(self) -> bool {
        self.prot & libc::PROT_WRITE != 0
    }
}

/// All regions of the process.
#[derive(Default)]
pub struct Regions {
    map: BTreeMap<usize, (usize, Attr)>,
}

impl Regions {
    /// The region that holds `addr`.
    pub fn find(&self, addr: usize) -> Option<(Extent, Attr)> {
        let (&start, &(end, attr)) = self.map.range(..=addr).next_back()?;
        (addr < end).then_some((Extent { start, end }, attr))
    }

    /// Attributes of the whole of `range`, when they are the same throughout and nothing in it is unmanaged.
    pub fn uniform(&self, range: Extent) -> Option<Attr> {
        self.find(range.start).filter(|(region, _)| region.end >= range.end).map(|(_, attr)| attr)
    }

    /// The managed parts of `range`, in ascending order.
    pub fn parts(&self, range: Extent) -> Vec<(Extent, Attr)> {
        if range.is_empty() {
            return Vec::new();
        }
        let first = self.find(range.start).map_or(range.start, |(region, _)| region.start);
        self.map
            .range(first..range.end)
            .filter_map(|(&start, &(end, attr))| Extent { start, end }.intersect(&range).map(|part| (part, attr)))
            .collect()
    }

    /// Every region.
    pub fn all(&self) -> Vec<(Extent, Attr)> {
        self.map.iter().map(|(&start, &(end, attr))| (Extent { start, end }, attr)).collect()
    }

    /// Takes `range` out.
    pub fn remove(&mut self, range: Extent) {
        for (part, attr) in self.parts(range) {
            // The region that holds this part, split around it.
            let Some((whole, _)) = self.find(part.start) else { continue };
            self.map.remove(&whole.start);
            if whole.start < part.start {
                self.map.insert(whole.start, (part.start, attr));
            }
            if part.end < whole.end {
                self.map.insert(part.end, (whole.end, attr));
            }
        }
    }

    /// Makes `range` a region with `attr`, replacing what was there, and merges it with equal neighbours.
    pub fn insert(&mut self, range: Extent, attr: Attr) {
        if range.is_empty() {
            return;
        }
        self.remove(range);
        let mut merged = range;
        if let Some((before, its)) = range.start.checked_sub(1).and_then(|addr| self.find(addr))
            && its == attr
        {
            self.map.remove(&before.start);
            merged.start = before.start;
        }
        if let Some((after, its)) = self.find(range.end)
            && its == attr
        {
            self.map.remove(&after.start);
            merged.end = after.end;
        }
        self.map.insert(merged.start, (merged.end, attr));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Attr = Attr { prot: 3, arena: true, committed: true };
    const B: Attr = Attr { prot: 0, arena: true, committed: false };

    #[test]
    fn split_merge_and_parts() {
        let mut regions = Regions::default();
        regions.insert(Extent { start: 0, end: 100 }, A);
        regions.insert(Extent { start: 40, end: 60 }, B);
        assert_eq!(regions.all().len(), 3);
        assert_eq!(regions.uniform(Extent { start: 0, end: 40 }), Some(A));
        assert_eq!(regions.uniform(Extent { start: 0, end: 41 }), None);
        regions.insert(Extent { start: 40, end: 60 }, A);
        assert_eq!(regions.all(), [(Extent { start: 0, end: 100 }, A)]);
        regions.remove(Extent { start: 10, end: 20 });
        assert_eq!(regions.find(15), None);
        assert_eq!(regions.parts(Extent { start: 5, end: 25 }).len(), 2);
    }
}

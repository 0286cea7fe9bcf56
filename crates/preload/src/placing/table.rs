//! The mappings that were placed near, so that their room can be given back when they end.

use nearfar_core::addr::Extent;
use nearfar_sys::thread;
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Placed mappings by address; they do not overlap.
pub struct Table {
    // No mutex: it must be possible to let go of it in the child of a fork.
    locked: AtomicBool,
    ranges: UnsafeCell<BTreeMap<usize, usize>>,
    count: AtomicUsize,
}

// SAFETY: the ranges are reached only through `with`, under the lock.
unsafe impl Sync for Table {}

impl Table {
    /// Without mappings.
    pub const fn new() -> Self {
        Self { locked: AtomicBool::new(false), ranges: UnsafeCell::new(BTreeMap::new()), count: AtomicUsize::new(0) }
    }

    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<usize, usize>) -> R) -> R {
        while self.locked.swap(true, Ordering::Acquire) {
            thread::give_way();
        }
        // SAFETY: the lock is held; `act` does not come back here.
        let ranges = unsafe { &mut *self.ranges.get() };
        let result = act(ranges);
        self.count.store(ranges.len(), Ordering::Relaxed);
        self.locked.store(false, Ordering::Release);
        result
    }

    /// True without mappings; no lock.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Notes a mapping that takes the place of nothing known.
    pub fn insert(&self, range: Extent) {
        self.with(|ranges| ranges.insert(range.start, range.end));
    }

    /// True when `addr` lies in a placed mapping.
    pub fn contains(&self, addr: usize) -> bool {
        !self.is_empty() && self.with(|ranges| ranges.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end))
    }

    /// Forgets `range`; returns how many bytes of it were placed.
    pub fn remove(&self, range: Extent) -> usize {
        if self.is_empty() {
            return 0;
        }
        self.with(|ranges| {
            let before = ranges.range(..range.start).next_back().map(|(&start, &end)| (start, end));
            let inside: Vec<(usize, usize)> = ranges.range(range.start..range.end).map(|(&start, &end)| (start, end)).collect();
            let mut bytes = 0;
            for (start, end) in before.into_iter().chain(inside) {
                let part = Extent { start: start.max(range.start), end: end.min(range.end) };
                if part.start >= part.end {
                    continue;
                }
                bytes += part.len();
                ranges.remove(&start);
                for (start, end) in [(start, part.start), (part.end, end)] {
                    if start < end {
                        ranges.insert(start, end);
                    }
                }
            }
            bytes
        })
    }

    /// Before fork: nobody else changes it until `release`.
    pub fn hold(&self) {
        while self.locked.swap(true, Ordering::Acquire) {
            thread::give_way();
        }
    }

    /// After fork, in parent and child.
    pub fn release(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_and_the_rest_stays() {
        let table = Table::new();
        let range = |start, end| Extent { start, end };
        assert_eq!((table.is_empty(), table.remove(range(0, 100))), (true, 0));
        table.insert(range(10, 50));
        table.insert(range(60, 70));
        assert!(table.contains(10) && table.contains(49) && !table.contains(50) && !table.contains(9));
        assert_eq!(table.remove(range(20, 30)), 10);
        assert!(table.contains(19) && !table.contains(25) && table.contains(30));
        assert_eq!(table.remove(range(0, 65)), 35);
        assert_eq!(table.remove(range(0, 1000)), 5);
        assert!(table.is_empty());
    }
}

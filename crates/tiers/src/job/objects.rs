//! The large objects of a process, as its slot shows them: where each lies, who allocated it, and how often threads waited for its
//! pages. For whoever looks from outside (`view`); nothing is decided by it.
//!
//! Only large blocks of the malloc family and static arrays are told apart; of more than there is room for, the largest. Written by one
//! thread at a time, the one that holds the lock of `Memory`, so plain loads and stores of the atomics are enough; a reader may see an
//! object in the middle of a change, which does no harm to figures that the next look replaces.

use nearfar_core::addr::Extent;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Objects that are told apart.
const MOST: usize = 32;
/// Smaller ones are not.
const LEAST: usize = 1 << 20;

#[derive(Default)]
#[repr(C)]
struct Entry {
    start: AtomicU64,
    /// 0: nothing is here.
    bytes: AtomicU64,
    site: AtomicU64,
    misses: AtomicU64,
    wait_ns: AtomicU64,
}

/// The table; zeros are an empty one.
#[derive(Default)]
#[repr(C)]
pub struct Objects {
    entries: [Entry; MOST],
}

/// An object at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its address.
    pub start: u64,
    /// Its size.
    pub bytes: u64,
    /// Where the call that allocated it returns to; of a static array the array's own address.
    pub site: u64,
    /// Page faults in it that waited for far.
    pub misses: u64,
    /// How long threads waited there for far, summed over threads, in ns.
    pub wait_ns: u64,
}

impl Entry {
    fn range(&self) -> Extent {
        Extent::new(self.start.load(Relaxed) as usize, self.bytes.load(Relaxed) as usize)
    }

    fn set(&self, object: &Object) {
        // Empty while it changes.
        self.bytes.store(0, Relaxed);
        self.start.store(object.start, Relaxed);
        self.site.store(object.site, Relaxed);
        self.misses.store(object.misses, Relaxed);
        self.wait_ns.store(object.wait_ns, Relaxed);
        self.bytes.store(object.bytes, Relaxed);
    }
}

impl Objects {
    /// Empties it.
    pub fn clear(&self) {
        self.entries.iter().for_each(|entry| entry.bytes.store(0, Relaxed));
    }

    /// An object begins, allocated by a call that returns to `site`.
    pub fn begin(&self, range: Extent, site: usize) {
        if range.len() < LEAST {
            return;
        }
        let smallest = self.entries.iter().min_by_key(|entry| entry.bytes.load(Relaxed));
        if let Some(entry) = smallest.filter(|entry| entry.bytes.load(Relaxed) < range.len() as u64) {
            let (start, bytes, site) = (range.start as u64, range.len() as u64, site as u64);
            entry.set(&Object { start, bytes, site, ..Object::default() });
        }
    }

    /// The object in `range` ends.
    pub fn end(&self, range: Extent) {
        if range.len() >= LEAST
            && let Some(entry) = self.at(range.start)
        {
            entry.bytes.store(0, Relaxed);
        }
    }

    /// The object in `old` lies in `new` now. One that has become large by it was allocated by the call that returns to `site`.
    pub fn resized(&self, old: Extent, new: Extent, site: usize) {
        match self.at(old.start).filter(|_| old.len() >= LEAST) {
            Some(entry) if new.len() >= LEAST => {
                entry.start.store(new.start as u64, Relaxed);
                entry.bytes.store(new.len() as u64, Relaxed);
            }
            Some(entry) => entry.bytes.store(0, Relaxed),
            None => self.begin(new, site),
        }
    }

    /// A thread begins to wait for the page at `addr`.
    pub fn missed(&self, addr: usize) {
        add(self.around(addr).map(|entry| &entry.misses), 1);
    }

    /// A thread has waited for the page at `addr`.
    pub fn waited(&self, addr: usize, ns: u64) {
        add(self.around(addr).map(|entry| &entry.wait_ns), ns);
    }

    /// In the child of a fork: takes over those of the parent that `are_ours` too, and counts anew.
    pub fn inherit(&self, parent: &Self, are_ours: impl Fn(Extent) -> bool) {
        let theirs = parent.entries.iter().map(|entry| (entry.range(), entry.site.load(Relaxed)));
        theirs.filter(|(range, _)| are_ours(*range)).for_each(|(range, site)| self.begin(range, site as usize));
    }

    fn at(&self, start: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            let range = entry.range();
            range.start == start && !range.is_empty()
        })
    }

    fn around(&self, addr: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.range().contains(addr))
    }

    /// What a table says that is read as bytes.
    pub fn in_bytes(bytes: &[u8]) -> Vec<Object> {
        let object = |entry: &[u8]| {
            let word = |at: usize| entry.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
            Object {
                start: word(offset_of!(Entry, start)),
                bytes: word(offset_of!(Entry, bytes)),
                site: word(offset_of!(Entry, site)),
                misses: word(offset_of!(Entry, misses)),
                wait_ns: word(offset_of!(Entry, wait_ns)),
            }
        };
        bytes.chunks_exact(size_of::<Entry>()).map(object).filter(|object| object.bytes > 0).collect()
    }
}

fn add(counter: Option<&AtomicU64>, n: u64) {
    if let Some(counter) = counter {
        counter.store(counter.load(Relaxed) + n, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn seen(objects: &Objects) -> Vec<Object> {
        // SAFETY: plain memory of this size, which nobody changes meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(objects).cast::<u8>(), size_of::<Objects>()) };
        Objects::in_bytes(bytes)
    }

    #[test]
    fn objects_come_move_and_go() {
        let objects = Objects::default();
        let (a, b) = (Extent::new(16 * MIB, 4 * MIB), Extent::new(64 * MIB, 2 * MIB));
        objects.begin(a, 7);
        objects.begin(b, 8);
        objects.begin(Extent::new(0, MIB - 1), 9);
        objects.missed(18 * MIB);
        objects.waited(18 * MIB, 50);
        objects.missed(20 * MIB);
        let first = Object { start: a.start as u64, bytes: a.len() as u64, site: 7, misses: 1, wait_ns: 50 };
        let second = Object { start: b.start as u64, bytes: b.len() as u64, site: 8, ..Object::default() };
        assert_eq!(seen(&objects), [first.clone(), second.clone()]);
        let child = Objects::default();
        child.inherit(&objects, |range| range == a);
        assert_eq!(seen(&child), [Object { misses: 0, wait_ns: 0, ..first.clone() }]);
        objects.resized(a, Extent::new(100 * MIB, 8 * MIB), 1);
        objects.end(b);
        objects.end(a);
        assert_eq!(seen(&objects), [Object { start: 100 << 20, bytes: 8 << 20, ..first }]);
        objects.resized(Extent::new(MIB, 4096), Extent::new(MIB, 2 * MIB), 11);
        objects.resized(Extent::new(100 * MIB, 8 * MIB), Extent::new(100 * MIB, 4096), 1);
        assert_eq!(seen(&objects), [Object { start: 1 << 20, site: 11, ..second }]);
        objects.clear();
        assert_eq!(seen(&objects), []);
    }

    #[test]
    fn of_many_the_largest_are_kept() {
        let objects = Objects::default();
        for number in 1..=3 * MOST {
            objects.begin(Extent::new(number * 1024 * MIB, number * MIB), number);
        }
        let mut sites: Vec<u64> = seen(&objects).iter().map(|object| object.site).collect();
        sites.sort_unstable();
        assert_eq!(sites, (2 * MOST as u64 + 1..=3 * MOST as u64).collect::<Vec<_>>());
    }
}

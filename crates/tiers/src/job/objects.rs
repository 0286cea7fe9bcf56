//! The large objects of a process, as its slot shows them: where each lies, who allocated it, and how often threads waited for its
//! pages. For whoever looks from outside (`view`); nothing is decided by it.
//!
//! Only large blocks of the malloc family and static arrays are told apart. Where there is no room for one more, a smaller one that was
//! never waited for makes room, else the smallest, if it is smaller: what was in it is counted nowhere from then on. Written by one thread
//! at a time, the one that holds the lock of `Memory`, so plain loads and stores of the atomics are enough; a reader may see an object in
//! the middle of a change, which does no harm to figures that the next look replaces.

use nearfar_core::addr::Extent;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Objects that are told apart.
const MOST: usize = 64;
/// Smaller ones are not.
const LEAST: usize = 1 << 20;

#[derive(Default)]
#[repr(C)]
struct Entry {
    start: AtomicU64,
    /// 0: nothing is here.
    bytes: AtomicU64,
    site: AtomicU64,
    number: AtomicU64,
    misses: AtomicU64,
    wait_ns: AtomicU64,
}

/// The table; zeros are an empty one.
#[repr(C)]
pub struct Objects {
    entries: [Entry; MOST],
    /// Objects that have been here so far.
    count: AtomicU64,
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
    /// No other object of the process has this number.
    pub number: u64,
    /// Page faults in it that waited for far.
    pub misses: u64,
    /// How long threads waited there for far, summed over threads, in ns.
    pub wait_ns: u64,
}

impl Object {
    /// Where it lies.
    pub fn range(&self) -> Extent {
        Extent::new(self.start as usize, self.bytes as usize)
    }
}

impl Entry {
    fn get(&self) -> Object {
        let [start, bytes, site, number, misses, wait_ns] =
            [&self.start, &self.bytes, &self.site, &self.number, &self.misses, &self.wait_ns].map(|word| word.load(Relaxed));
        Object { start, bytes, site, number, misses, wait_ns }
    }

    fn set(&self, object: &Object) {
        // Empty while it changes.
        self.bytes.store(0, Relaxed);
        self.start.store(object.start, Relaxed);
        self.site.store(object.site, Relaxed);
        self.number.store(object.number, Relaxed);
        self.misses.store(object.misses, Relaxed);
        self.wait_ns.store(object.wait_ns, Relaxed);
        self.bytes.store(object.bytes, Relaxed);
    }

    fn range(&self) -> Extent {
        Extent::new(self.start.load(Relaxed) as usize, self.bytes.load(Relaxed) as usize)
    }

    /// Those that make room first are least: nothing, then what was never waited for, then the smallest.
    fn rank(&self) -> (bool, u64) {
        let bytes = self.bytes.load(Relaxed);
        (bytes > 0 && self.misses.load(Relaxed) > 0, bytes)
    }
}

impl Default for Objects {
    fn default() -> Self {
        Self { entries: std::array::from_fn(|_| Entry::default()), count: AtomicU64::new(0) }
    }
}

impl Objects {
    /// Empties it.
    pub fn clear(&self) {
        self.entries.iter().for_each(|entry| entry.bytes.store(0, Relaxed));
    }

    /// Every object.
    pub fn list(&self) -> Vec<Object> {
        self.entries.iter().map(Entry::get).filter(|object| object.bytes > 0).collect()
    }

    /// An object begins, allocated by a call that returns to `site`.
    pub fn begin(&self, range: Extent, site: usize) {
        let bytes = range.len() as u64;
        if range.len() < LEAST {
            return;
        }
        let first = self.entries.iter().min_by_key(|entry| entry.rank());
        if let Some(entry) = first.filter(|entry| entry.bytes.load(Relaxed) < bytes) {
            let number = self.count.load(Relaxed) + 1;
            self.count.store(number, Relaxed);
            entry.set(&Object { start: range.start as u64, bytes, site: site as u64, number, ..Object::default() });
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
        if old.len() < LEAST {
            return self.begin(new, site);
        }
        match self.at(old.start) {
            Some(entry) if new.len() >= LEAST => {
                entry.set(&Object { start: new.start as u64, bytes: new.len() as u64, ..entry.get() });
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
                number: word(offset_of!(Entry, number)),
                misses: word(offset_of!(Entry, misses)),
                wait_ns: word(offset_of!(Entry, wait_ns)),
            }
        };
        let entries = bytes.get(offset_of!(Objects, entries)..).unwrap_or_default().chunks_exact(size_of::<Entry>()).take(MOST);
        entries.map(object).filter(|object| object.bytes > 0).collect()
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
        let first = Object { start: a.start as u64, bytes: a.len() as u64, site: 7, number: 1, misses: 1, wait_ns: 50 };
        let second = Object { start: b.start as u64, bytes: b.len() as u64, site: 8, number: 2, ..Object::default() };
        assert_eq!(objects.list(), [first.clone(), second.clone()]);
        objects.resized(a, Extent::new(100 * MIB, 8 * MIB), 1);
        objects.end(b);
        objects.end(a);
        let moved = Object { start: 100 << 20, bytes: 8 << 20, ..first };
        assert_eq!(objects.list(), std::slice::from_ref(&moved));
        // Another in the same place is another object.
        objects.end(moved.range());
        objects.begin(moved.range(), 7);
        assert_eq!(objects.list(), [Object { number: 3, misses: 0, wait_ns: 0, ..moved.clone() }]);
        objects.resized(Extent::new(MIB, 4096), Extent::new(MIB, 2 * MIB), 11);
        objects.resized(moved.range(), Extent::new(100 * MIB, 4096), 1);
        assert_eq!(objects.list(), [Object { start: 1 << 20, site: 11, number: 4, ..second }]);
        // SAFETY: plain memory of this size, which nobody changes meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(&objects).cast::<u8>(), size_of::<Objects>()) };
        assert_eq!(Objects::in_bytes(bytes), objects.list());
        objects.clear();
        assert_eq!(objects.list(), []);
    }

    #[test]
    fn what_is_never_waited_for_makes_room_and_then_the_smallest() {
        let objects = Objects::default();
        let of = |number: usize, mib: usize| Extent::new(number << 40, mib * MIB);
        (1..=MOST).for_each(|number| objects.begin(of(number, 10 + number), number));
        (1..MOST).for_each(|number| objects.missed(number << 40));
        let sites = || objects.list().iter().map(|object| object.site as usize).collect::<Vec<_>>();
        objects.begin(of(100, 5), 100);
        assert!(!sites().contains(&100), "smaller than the one that could make room");
        objects.begin(of(101, 500), 101);
        assert!(sites().contains(&101) && !sites().contains(&MOST), "the only one that was not waited for");
        objects.missed(101 << 40);
        objects.begin(of(102, 600), 102);
        assert!(sites().contains(&102) && !sites().contains(&1), "the smallest");
        assert_eq!(objects.list().len(), MOST);
    }
}

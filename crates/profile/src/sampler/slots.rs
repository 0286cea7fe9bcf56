//! The pages that are being looked at: a table of fixed size, found by address.

use nearfar_core::addr::{BLOCK, BLOCK_PAGES, Extent, PAGE};
use nearfar_core::profile::record::{Watch, WatchEnd};

/// Small pages at a time.
pub const SMALL: usize = 1024;
/// Huge pages at a time.
pub const HUGE: usize = 64;
const ALL: usize = SMALL + HUGE;
const BUCKETS: usize = 4096;
const NONE: u16 = u16::MAX;

/// Where a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nowhere: the slot is free.
    Free,
    /// The page is out of view, or on its way.
    Away,
    /// It is back, and the first write is waited for.
    Protected,
    /// It is back; only its registration is still to be ended.
    Back,
}

/// A page that is looked at.
#[derive(Clone, Copy)]
pub struct Slot {
    /// Where the look is.
    pub state: State,
    /// The page, or the huge page.
    pub range: Extent,
    /// Which pages of it are out of view, a bit each.
    away: [u64; BLOCK_PAGES / 64],
    /// To be put back at once: the program has done something to its mapping.
    pub restore: bool,
    /// When it is read first, it is watched on for whether the visit writes.
    pub follow: bool,
    /// There is content of no worth in the slot's place aside.
    pub spoilt: bool,
    /// How long threads had waited for us, all together, when it began, ns.
    pub stalled: u64,
    /// What will be told of it.
    pub watch: Watch,
}

const EMPTY: Slot = Slot {
    state: State::Free,
    range: Extent { start: 0, end: 0 },
    away: [0; BLOCK_PAGES / 64],
    restore: false,
    follow: false,
    spoilt: false,
    stalled: 0,
    watch: Watch {
        object: 0,
        page: 0,
        pages: 1,
        at: 0,
        waited: 0,
        stalled: 0,
        end: WatchEnd::Lost,
        touched: 0,
        ip: 0,
        tid: 0,
        wrote: None,
        lines: None,
    },
};

impl Slot {
    /// Sets whether the pages of `range` are out of view.
    pub fn set_away(&mut self, range: Extent, away: bool) {
        let Some(range) = self.range.intersect(&range) else { return };
        let first = (range.start - self.range.start) / PAGE;
        for page in first..first + range.len().div_ceil(PAGE) {
            let bit = 1 << (page % 64);
            if away { self.away[page / 64] |= bit } else { self.away[page / 64] &= !bit }
        }
    }

    /// True when the page with this number is out of view.
    pub fn is_away(&self, page: usize) -> bool {
        self.away[page / 64] >> (page % 64) & 1 == 1
    }

    /// The first run of pages that are out of view: number of the first, and how many.
    pub fn run(&self) -> Option<(usize, usize)> {
        let pages = self.range.len() / PAGE;
        let first = (0..pages).find(|&page| self.is_away(page))?;
        Some((first, (first..pages).take_while(|&page| self.is_away(page)).count()))
    }
}

/// All slots.
pub struct Slots {
    slots: Vec<Slot>,
    /// Those that are not free, a bit each: the slots themselves are too long to go through often.
    taken: [u64; ALL.div_ceil(64)],
    buckets: Vec<u16>,
    free_small: Vec<u16>,
    free_huge: Vec<u16>,
    /// Small ones that are free when their places are emptied.
    used: Vec<u16>,
}

/// What becomes of a slot after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It may be used at once.
    Free,
    /// There is content in its place that is to be cleared; small ones only.
    Used,
    /// It is not used any more.
    Retired,
}

/// So many places are emptied at once.
const TOGETHER: usize = 256;

impl Slots {
    /// All free. The last allocation.
    pub fn new() -> Self {
        Self {
            slots: vec![EMPTY; ALL],
            taken: [0; ALL.div_ceil(64)],
            buckets: vec![NONE; BUCKETS],
            free_small: (0..SMALL as u16).rev().collect(),
            free_huge: (SMALL as u16..ALL as u16).rev().collect(),
            used: Vec::with_capacity(SMALL),
        }
    }

    /// Huge pages that could be looked at beside those that are.
    pub fn free_huge(&self) -> usize {
        self.free_huge.len()
    }

    /// A huge page that is looked at: the first from number `from` of them on, going round.
    pub fn some_huge(&self, from: usize) -> Option<usize> {
        (0..HUGE).map(|step| SMALL + (from + step) % HUGE).find(|&slot| self.slots[slot].state == State::Away)
    }

    /// The memory that the table is in.
    pub fn memory(&self) -> [Extent; 5] {
        fn extent<T>(of: &Vec<T>) -> Extent {
            Extent::new(of.as_ptr().addr(), of.capacity() * size_of::<T>())
        }
        [extent(&self.slots), extent(&self.buckets), extent(&self.free_small), extent(&self.free_huge), extent(&self.used)]
    }

    /// How many looks are under way.
    pub fn in_use(&self) -> usize {
        ALL - self.free_small.len() - self.free_huge.len() - self.used.len()
    }

    /// A slot.
    pub fn get(&mut self, slot: usize) -> &mut Slot {
        &mut self.slots[slot]
    }

    /// Takes a slot for `range`, a small page or a huge one; `None` when there is none.
    pub fn claim(&mut self, range: Extent, watch: Watch) -> Option<usize> {
        let free = if range.len() == BLOCK { &mut self.free_huge } else { &mut self.free_small };
        let slot = free.pop()? as usize;
        self.slots[slot] = Slot { state: State::Away, range, watch, ..EMPTY };
        self.taken[slot / 64] |= 1 << (slot % 64);
        self.insert(slot);
        Some(slot)
    }

    /// Gives a slot back.
    pub fn free(&mut self, slot: usize, after: After) {
        self.remove(slot);
        self.slots[slot] = EMPTY;
        self.taken[slot / 64] &= !(1 << (slot % 64));
        match after {
            After::Free if slot < SMALL => self.free_small.push(slot as u16),
            After::Free => self.free_huge.push(slot as u16),
            After::Used => self.used.push(slot as u16),
            After::Retired => {}
        }
    }

    /// Frees the used slots when there are many, or no others, once `clear` has emptied the places of these (in ascending order).
    /// `false` from it: they cannot be used any more.
    pub fn reuse(&mut self, clear: impl FnOnce(&[u16]) -> bool) {
        let none_left = self.free_small.is_empty() && !self.used.is_empty();
        if self.used.len() < TOGETHER && !none_left {
            return;
        }
        self.used.sort_unstable();
        if clear(&self.used) {
            // Neighbours are used one after the other, and so cleared together.
            self.free_small.extend(self.used.iter().rev());
        }
        self.used.clear();
    }

    /// The look at what is at `addr`.
    pub fn find(&self, addr: usize) -> Option<usize> {
        self.lookup(addr & !(PAGE - 1)).or_else(|| self.lookup(addr & !(BLOCK - 1)).filter(|&slot| slot >= SMALL))
    }

    /// The first look from `from` on that has to do with `range`.
    pub fn overlapping(&self, range: Extent, mut from: usize) -> Option<usize> {
        loop {
            let slot = self.next(from)?;
            if self.slots[slot].range.overlaps(&range) {
                return Some(slot);
            }
            from = slot + 1;
        }
    }

    /// Any look from `from` on.
    pub fn next(&self, from: usize) -> Option<usize> {
        let mut bits = self.taken.get(from / 64)? & (u64::MAX << (from % 64));
        let mut part = from / 64;
        while bits == 0 {
            part += 1;
            bits = *self.taken.get(part)?;
        }
        Some(part * 64 + bits.trailing_zeros() as usize)
    }

    /// The program has moved the page.
    pub fn relocate(&mut self, slot: usize, start: usize) {
        self.remove(slot);
        self.slots[slot].range = Extent::new(start, self.slots[slot].range.len());
        self.insert(slot);
    }

    fn bucket(start: usize) -> usize {
        (start / PAGE).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS as usize - BUCKETS.trailing_zeros() as usize)
    }

    fn lookup(&self, start: usize) -> Option<usize> {
        let mut bucket = Self::bucket(start);
        loop {
            match self.buckets[bucket] {
                NONE => return None,
                slot if self.slots[slot as usize].range.start == start => return Some(slot as usize),
                _ => bucket = (bucket + 1) % BUCKETS,
            }
        }
    }

    fn insert(&mut self, slot: usize) {
        let mut bucket = Self::bucket(self.slots[slot].range.start);
        while self.buckets[bucket] != NONE {
            bucket = (bucket + 1) % BUCKETS;
        }
        self.buckets[bucket] = slot as u16;
    }

    fn remove(&mut self, slot: usize) {
        let mut hole = Self::bucket(self.slots[slot].range.start);
        while self.buckets[hole] != slot as u16 {
            hole = (hole + 1) % BUCKETS;
        }
        self.buckets[hole] = NONE;
        // What comes after the hole and belongs before it moves up.
        let mut next = (hole + 1) % BUCKETS;
        while self.buckets[next] != NONE {
            let home = Self::bucket(self.slots[self.buckets[next] as usize].range.start);
            if (next + BUCKETS - home) % BUCKETS >= (next + BUCKETS - hole) % BUCKETS {
                self.buckets[hole] = self.buckets[next];
                self.buckets[next] = NONE;
                hole = next;
            }
            next = (next + 1) % BUCKETS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn pages_are_found() {
        let mut slots = Slots::new();
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut random = 7u64;
        for _ in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let page = (random >> 40) as usize % 3000 * PAGE + (1 << 40);
            match known.remove(&page) {
                Some(slot) if slot % 3 > 0 => slots.free(slot, After::Used),
                Some(slot) => slots.free(slot, After::Free),
                None => {
                    slots.reuse(|used| used.is_sorted());
                    if let Some(slot) = slots.claim(Extent::new(page, PAGE), EMPTY.watch) {
                        known.insert(page, slot);
                    }
                }
            }
            assert_eq!(slots.in_use(), known.len());
            assert_eq!(slots.next(0).is_some(), !known.is_empty());
        }
        let mut from = 0;
        for _ in 0..known.len() {
            let slot = slots.next(from).unwrap();
            assert!(known.values().any(|&other| other == slot));
            from = slot + 1;
        }
        assert_eq!(slots.next(from), None);
        for page in (0..3000).map(|page| page * PAGE + (1 << 40)) {
            assert_eq!(slots.find(page + 17), known.get(&page).copied());
        }
    }

    #[test]
    fn huge_pages_and_what_is_away_of_them() {
        let mut slots = Slots::new();
        let block = Extent::new(5 * BLOCK, BLOCK);
        let slot = slots.claim(block, EMPTY.watch).unwrap();
        assert_eq!(slots.find(5 * BLOCK + 77 * PAGE + 3), Some(slot));
        assert_eq!(slots.find(6 * BLOCK), None);
        assert_eq!(slots.overlapping(Extent::new(5 * BLOCK + PAGE, PAGE), 0), Some(slot));
        let page = slots.get(slot);
        assert_eq!(page.run(), None);
        page.set_away(block, true);
        assert_eq!(page.run(), Some((0, 512)));
        page.set_away(Extent::new(4 * BLOCK, BLOCK + 3 * PAGE), false);
        page.set_away(Extent::new(5 * BLOCK + 100 * PAGE, PAGE), false);
        assert_eq!(page.run(), Some((3, 97)));
        slots.relocate(slot, 9 * BLOCK);
        assert_eq!((slots.find(5 * BLOCK), slots.find(9 * BLOCK + 1)), (None, Some(slot)));
        slots.free(slot, After::Free);
        assert_eq!(slots.in_use(), 0);
    }
}

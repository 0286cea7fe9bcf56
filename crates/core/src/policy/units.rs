//! Ordered lists of units with one index over all of them: the data structure under every eviction policy.
//!
//! A unit is in at most one of `N` lists. Every call is O(1); nodes are recycled, so that a policy whose number of units is
//! steady does not allocate. 40 bytes a unit and about 20 in the index. Decides nothing.

use crate::policy::Unit;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplicative hash of one integer (as in rustc's FxHash): units are not chosen by an adversary.
#[derive(Default)]
pub(crate) struct UnitHasher(u64);

impl Hasher for UnitHasher {
    fn finish(&self) -> u64 {
        // The table indexes by low bits and tags by high ones; the product is good in its high bits only.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

/// A map keyed by units.
pub(crate) type UnitMap<T> = HashMap<Unit, T, BuildHasherDefault<UnitHasher>>;

const NIL: u32 = u32::MAX;

/// A unit in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub unit: Unit,
    /// Policy's own time stamp.
    pub time: u64,
    /// When the policy says that it came; kept when it changes lists.
    pub born: u64,
    pub pages: u32,
    prev: u32,
    next: u32,
    list: u8,
    /// Policy's own marks.
    pub mark: u8,
    /// When the unit last left near, it had to be written. Stays with the unit as long as it is in some list.
    pub written: bool,
}

/// One list: newest at the front.
#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
    count: usize,
    pages: u64,
}

/// `N` lists over one pool of nodes.
#[derive(Debug)]
pub(crate) struct Lists<const N: usize> {
    nodes: Vec<Node>,
    spare: Vec<u32>,
    index: UnitMap<u32>,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    pub fn new() -> Self {
        let empty = Ends { front: NIL, back: NIL, count: 0, pages: 0 };
        Self { nodes: Vec::new(), spare: Vec::new(), index: UnitMap::default(), ends: [empty; N] }
    }

    /// The unit's node and list.
    pub fn find(&self, unit: Unit) -> Option<(usize, &Node)> {
        let node = &self.nodes[*self.index.get(&unit)? as usize];
        Some((usize::from(node.list), node))
    }

    /// Puts `unit` at the front of `list`, out of any list it was in.
    pub fn push(&mut self, list: usize, unit: Unit, pages: u32, mark: u8, time: u64) {
        let written = self.take(unit).is_some_and(|node| node.written);
        let node = Node { unit, time, born: 0, pages, prev: NIL, next: self.ends[list].front, list: list as u8, mark, written };
        let slot = match self.spare.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.index.insert(unit, slot);
        self.link(slot);
    }

    /// Notes when `unit` came.
    pub fn bear(&mut self, unit: Unit, born: u64) {
        if let Some(&slot) = self.index.get(&unit) {
            self.nodes[slot as usize].born = born;
        }
    }

    /// Takes `unit` out of its list.
    pub fn take(&mut self, unit: Unit) -> Option<Node> {
        let slot = self.index.remove(&unit)?;
        self.unlink(slot);
        self.spare.push(slot);
        Some(self.nodes[slot as usize])
    }

    /// The oldest of `list`.
    pub fn back(&self, list: usize) -> Option<&Node> {
        self.nodes.get(self.ends[list].back as usize)
    }

    /// Makes a random unit of `list` its oldest, where one is found in a few tries: lists are large parts of all nodes.
    pub fn draw(&mut self, list: usize, mut random: impl FnMut() -> u64) {
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            let slot = (random() >> 16) as usize % self.nodes.len().max(1);
            let Some(&Node { unit, list: is_in, pages, .. }) = self.nodes.get(slot) else { return };
            // Spare nodes are in no list, and the index knows them no more.
            if usize::from(is_in) != list || self.index.get(&unit) != Some(&(slot as u32)) {
                continue;
            }
            let slot = slot as u32;
            self.unlink(slot);
            let ends = &mut self.ends[list];
            let last = std::mem::replace(&mut ends.back, slot);
            ends.count += 1;
            ends.pages += u64::from(pages);
            match last {
                NIL => ends.front = slot,
                last => self.nodes[last as usize].next = slot,
            }
            let node = &mut self.nodes[slot as usize];
            (node.prev, node.next) = (last, NIL);
            return;
        }
    }

    /// Takes out the oldest of `list`.
    pub fn pop(&mut self, list: usize) -> Option<Node> {
        let unit = self.back(list)?.unit;
        self.take(unit)
    }

    /// Moves the oldest of `list` to the front of `to`, with a new mark and time; returns its unit.
    pub fn shift(&mut self, list: usize, to: usize, mark: u8, time: u64) -> Option<Unit> {
        let slot = self.ends[list].back;
        if slot == NIL {
            return None;
        }
        self.unlink(slot);
        let front = self.ends[to].front;
        let node = &mut self.nodes[slot as usize];
        (node.list, node.mark, node.time, node.prev, node.next) = (to as u8, mark, time, NIL, front);
        let unit = node.unit;
        self.link(slot);
        Some(unit)
    }

    /// Changes the size and the mark of `unit` in place; false when it is in no list.
    pub fn update(&mut self, unit: Unit, pages: u32, mark: impl FnOnce(u8) -> u8) -> bool {
        let Some(&slot) = self.index.get(&unit) else { return false };
        let node = &mut self.nodes[slot as usize];
        let ends = &mut self.ends[usize::from(node.list)];
        ends.pages = ends.pages - u64::from(node.pages) + u64::from(pages);
        node.pages = pages;
        node.mark = mark(node.mark);
        true
    }

    /// Notes whether `unit` had to be written when it left near.
    pub fn set_written(&mut self, unit: Unit, written: bool) {
        if let Some(&slot) = self.index.get(&unit) {
            self.nodes[slot as usize].written = written;
        }
    }

    /// Pages of all units in `list`.
    pub fn pages(&self, list: usize) -> u64 {
        self.ends[list].pages
    }

    /// Number of units in `list`.
    pub fn count(&self, list: usize) -> usize {
        self.ends[list].count
    }

    fn link(&mut self, slot: u32) {
        let Node { pages, next, list, .. } = self.nodes[slot as usize];
        let ends = &mut self.ends[usize::from(list)];
        ends.front = slot;
        ends.count += 1;
        ends.pages += u64::from(pages);
        match next {
            NIL => ends.back = slot,
            next => self.nodes[next as usize].prev = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Node { pages, prev, next, list, .. } = self.nodes[slot as usize];
        let ends = &mut self.ends[usize::from(list)];
        ends.count -= 1;
        ends.pages -= u64::from(pages);
        match prev {
            NIL => ends.front = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.ends[usize::from(list)].back = prev,
            next => self.nodes[next as usize].prev = prev,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_order_and_sums() {
        let mut lists = Lists::<2>::new();
        for block in 0..5 {
            lists.push(0, Unit::block(block), 10, 0, 0);
        }
        assert_eq!(lists.shift(0, 1, 3, 7), Some(Unit::block(0)));
        lists.take(Unit::block(2));
        assert!(lists.update(Unit::block(3), 1, |m| m + 1));
        assert_eq!((lists.pages(0), lists.count(0), lists.pages(1)), (21, 3, 10));
        assert_eq!(lists.find(Unit::block(0)).map(|(list, node)| (list, node.mark, node.time)), Some((1, 3, 7)));
        lists.push(0, Unit::block(1), 2, 0, 0);
        let order: Vec<_> = std::iter::from_fn(|| lists.pop(0)).map(|node| node.unit.block_number()).collect();
        assert_eq!(order, [3, 4, 1]);
        assert!(lists.back(0).is_none() && lists.shift(0, 1, 0, 0).is_none());
    }

    #[test]
    fn what_is_drawn_is_the_oldest_and_nothing_is_lost() {
        let mut lists = Lists::<2>::new();
        let mut state = 1;
        for block in 0..40 {
            lists.push(block % 2, Unit::block(block), 3, 0, 0);
        }
        lists.take(Unit::block(7));
        let mut firsts = std::collections::HashSet::new();
        for _ in 0..200 {
            lists.draw(1, || crate::random_numbers::xorshift(&mut state));
            firsts.insert(lists.back(1).map(|node| node.unit));
            assert_eq!((lists.count(1), lists.pages(1), lists.count(0)), (19, 57, 20));
        }
        assert!(firsts.len() > 15, "{firsts:?}");
        let rest: std::collections::HashSet<_> =
            std::iter::from_fn(|| lists.pop(1)).map(|node| node.unit.block_number()).collect();
        assert_eq!(rest, (0..40).filter(|n| n % 2 == 1 && *n != 7).collect());
        lists.push(1, Unit::block(1), 3, 0, 0);
        lists.draw(1, || crate::random_numbers::xorshift(&mut state));
        assert_eq!(lists.pop(1).map(|node| node.unit), Some(Unit::block(1)));
        lists.draw(1, || 0);
        assert!(lists.back(1).is_none());
    }

    #[test]
    fn neighbours_spread_in_the_index() {
        let low = |n: usize| {
            let mut hasher = UnitHasher::default();
            hasher.write_u64(n as u64 * 64 + 32);
            hasher.finish() & 1023
        };
        let buckets: std::collections::HashSet<_> = (0..1024).map(low).collect();
        assert!(buckets.len() > 550, "{}", buckets.len());
    }
}

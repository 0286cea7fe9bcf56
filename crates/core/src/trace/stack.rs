//! Stack distances: how many other pages were visited since a page's last visit. A memory that keeps the pages visited last hits if
//! it holds more pages than that, so one pass tells the misses of every size (Mattson, Gecsei, Slutz and Traiger 1970).

use crate::policy::units::UnitHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Pages on top that are searched one by one: loops visit the pages of a few arrays by turns, so that most visits end there.
const FRONT: usize = 16;
/// No page in this slot.
const EMPTY: u64 = u64::MAX;

/// Pages in order of their last visits.
///
/// Below the front they lie in slots, those visited later in later ones; a Fenwick tree counts the pages above a slot (the tree of
/// Bennett and Kruskal 1975). A page leaves its slot empty, and slots are renumbered when they run out.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The latest first.
    front: Vec<u64>,
    slot_of: HashMap<u64, usize, BuildHasherDefault<UnitHasher>>,
    slots: Vec<u64>,
    tree: Vec<u32>,
    next: usize,
}

impl Stack {
    /// Pages that were visited and are not gone.
    pub fn len(&self) -> usize {
        self.front.len() + self.slot_of.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.slot_of.is_empty()
    }

    /// Visits a page: how many others were visited since its last visit, `None` at its first.
    pub fn visit(&mut self, page: u64) -> Option<usize> {
        if let Some(at) = self.front.iter().position(|&other| other == page) {
            self.front[..=at].rotate_right(1);
            return Some(at);
        }
        let depth = self.take(page).map(|above| self.front.len() + above);
        self.front.insert(0, page);
        if self.front.len() > FRONT
            && let Some(last) = self.front.pop()
        {
            self.put(last);
        }
        depth
    }

    /// The page holds nothing any more: its next visit is a first one. Whether it had been visited.
    pub fn remove(&mut self, page: u64) -> bool {
        let before = self.front.len();
        self.front.retain(|&other| other != page);
        self.front.len() < before || self.take(page).is_some()
    }

    /// All pages, the one visited last first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.front.iter().chain(self.slots.iter().rev()).copied().filter(|&page| page != EMPTY)
    }

    /// Takes a page out of its slot: how many pages are in later slots.
    fn take(&mut self, page: u64) -> Option<usize> {
        let slot = self.slot_of.remove(&page)?;
        self.slots[slot] = EMPTY;
        self.add(slot, u32::MAX);
        Some(self.slot_of.len() - self.below(slot))
    }

    /// Puts a page on top of the slots.
    fn put(&mut self, page: u64) {
        if self.next == self.slots.len() {
            self.renumber();
        }
        self.slots[self.next] = page;
        self.slot_of.insert(page, self.next);
        self.add(self.next, 1);
        self.next += 1;
    }

    fn renumber(&mut self) {
        let pages: Vec<u64> = self.slots.iter().copied().filter(|&page| page != EMPTY).collect();
        let count = (4 * pages.len()).max(1024);
        (self.slots, self.tree, self.next) = (vec![EMPTY; count], vec![0; count + 1], 0);
        pages.into_iter().for_each(|page| self.put(page));
    }

    /// Adds to a slot's number of pages, modulo 2^32.
    fn add(&mut self, slot: usize, number: u32) {
        let mut at = slot + 1;
        while let Some(sum) = self.tree.get_mut(at) {
            *sum = sum.wrapping_add(number);
            at += at & at.wrapping_neg();
        }
    }

    /// Pages in earlier slots.
    fn below(&self, slot: usize) -> usize {
        let (mut at, mut sum) = (slot, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Share of the visits after the first of each page that an LRU memory of so many pages hits.
    fn hits(visits: impl IntoIterator<Item = u64>, capacity: usize) -> f64 {
        let mut stack = Stack::default();
        let depths: Vec<usize> = visits.into_iter().filter_map(|page| stack.visit(page)).collect();
        depths.iter().filter(|&&depth| depth < capacity).count() as f64 / depths.len() as f64
    }

    #[test]
    fn a_sweep_hits_nothing_until_all_of_it_fits() {
        const PAGES: u64 = 100;
        let sweeps = || (0..5).flat_map(|_| 0..PAGES);
        assert_eq!((hits(sweeps(), 1), hits(sweeps(), 99), hits(sweeps(), 100)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn to_and_fro_hits_what_fits() {
        // A page that lies k from the turn was left 2k visits ago, of k other pages.
        let turns = (0..50).flat_map(|_| (0..64).chain((0..64).rev()));
        let share = hits(turns, 16);
        assert!((share - 16.0 / 64.0).abs() < 0.01, "{share}");
    }

    #[test]
    fn what_is_gone_is_visited_first_again() {
        let mut stack = Stack::default();
        (0..40).for_each(|page| assert_eq!(stack.visit(page), None));
        for page in [3, 38] {
            stack.remove(page);
            assert_eq!(stack.visit(page), None);
        }
        assert_eq!((stack.len(), stack.visit(4)), (40, Some(36)), "3 and 38 came back after it");
    }

    proptest! {
        /// Beside a list that is searched from its latest page on.
        #[test]
        fn distances_are_those_of_a_list(steps in prop::collection::vec((0u64..80, 0u32..30), 1..3000)) {
            let (mut stack, mut list) = (Stack::default(), Vec::new());
            for (page, what) in steps {
                let at = list.iter().position(|&other| other == page);
                if let Some(at) = at { list.remove(at); }
                if what == 0 {
                    prop_assert_eq!(stack.remove(page), at.is_some());
                } else {
                    list.insert(0, page);
                    prop_assert_eq!(stack.visit(page), at);
                }
                prop_assert!(stack.iter().eq(list.iter().copied()));
                prop_assert_eq!(stack.len(), list.len());
                prop_assert_eq!(stack.is_empty(), list.is_empty());
            }
        }
    }
}

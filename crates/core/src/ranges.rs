//! Which parts of an address interval are free. Pure arithmetic on numbers: maps nothing, locks nothing.
//!
//! Invariant: free ranges are page-aligned, lie inside the interval, and neither overlap nor touch; the two indexes hold the
//! same ranges. Every call is O(log n) in the number of free ranges, except a `take` with a large alignment that finds
//! nothing by the quick way (see there).

use crate::addr::{Extent, PAGE, round_up};
use std::collections::{BTreeMap, BTreeSet};

/// A range was given back that is free already, in part or whole, or that the allocator does not own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("range {:#x}..{:#x} is not in use (bytes): it was freed twice or never belonged here", .0.start, .0.end)]
pub struct NotTaken(pub Extent);

/// The free ranges of one address interval.
#[derive(Clone, Debug)]
pub struct Ranges {
    whole: Extent,
    /// Start to length, in bytes.
    by_start: BTreeMap<usize, usize>,
    /// (length, start): best fit first, lowest address first among equals.
    by_len: BTreeSet<(usize, usize)>,
    free: usize,
}

impl Ranges {
    /// How many best-fitting ranges a `take` tries for its alignment before it takes one that is long enough for any alignment.
    const TRIES: usize = 8;

    /// All of `whole` is free, shrunk to whole pages.
    pub fn new(whole: Extent) -> Self {
        let start = round_up(whole.start, PAGE).unwrap_or(whole.end);
        let end = whole.end - whole.end % PAGE;
        let whole = Extent { start, end: end.max(start) };
        let mut ranges = Self { whole, by_start: BTreeMap::new(), by_len: BTreeSet::new(), free: 0 };
        ranges.put(whole);
        ranges
    }

    /// Takes `len` bytes whose start is a multiple of `align` (a power of two; less than a page counts as a page): the
    /// smallest free range that fits, the lowest address among equals. `None` when nothing fits, or when `len` is 0 or not a
    /// multiple of 4096.
    pub fn take(&mut self, len: usize, align: usize) -> Option<usize> {
        if len == 0 || !len.is_multiple_of(PAGE) || !align.is_power_of_two() {
            return None;
        }
        let align = align.max(PAGE);
        let fits = |&(length, start): &(usize, usize)| {
            let place = round_up(start, align)?;
            (place.checked_add(len)? <= start + length).then_some((start, length, place))
        };
        // A range this long fits wherever it starts, for starts are multiples of a page.
        let surely = (len.saturating_add(align - PAGE), 0);
        let quick = self.by_len.range((len, 0)..).take(Self::TRIES).find_map(fits);
        let long = || self.by_len.range(surely..).next().and_then(fits);
        // Only a nearly full interval gets here; refusing what would fit is worse than being slow once.
        let scan = || self.by_len.range((len, 0)..surely).skip(Self::TRIES).find_map(fits);
        let (start, length, place) = quick.or_else(long).or_else(scan)?;
        self.carve(Extent::new(start, length), Extent::new(place, len));
        Some(place)
    }

    /// Takes exactly `extent` if all of it is free; false when it is not, is empty, or is not made of whole pages.
    pub fn take_at(&mut self, extent: Extent) -> bool {
        if extent.is_empty() || !whole_pages(&extent) {
            return false;
        }
        let Some((&start, &length)) = self.by_start.range(..=extent.start).next_back() else { return false };
        let range = Extent::new(start, length);
        if extent.end > range.end {
            return false;
        }
        self.carve(range, extent);
        true
    }

    /// Gives `extent` back; it may be any part of what was taken, or several neighbours at once.
    ///
    /// # Errors
    /// [`NotTaken`], and nothing changes, when a part of it is free already or outside the interval, or when it is
    /// empty or not made of whole pages.
    pub fn give(&mut self, extent: Extent) -> Result<(), NotTaken> {
        let owned = self.whole.start <= extent.start && extent.end <= self.whole.end;
        if extent.is_empty() || !whole_pages(&extent) || !owned || self.any_free(&extent) {
            return Err(NotTaken(extent));
        }
        let mut merged = extent;
        if let Some((&start, &length)) = self.by_start.range(..extent.start).next_back()
            && start + length == extent.start
        {
            self.drop_range(Extent::new(start, length));
            merged.start = start;
        }
        if let Some(&length) = self.by_start.get(&extent.end) {
            self.drop_range(Extent::new(extent.end, length));
            merged.end += length;
        }
        self.put(merged);
        Ok(())
    }

    /// Makes the taken `extent` `new_len` bytes long in place if what follows it is free; false, and nothing changes, when it
    /// is not. A `new_len` that is not longer is false too: shrinking is `give` of the tail.
    pub fn grow(&mut self, extent: Extent, new_len: usize) -> bool {
        match extent.start.checked_add(new_len) {
            Some(end) if end > extent.end => self.take_at(Extent { start: extent.end, end }),
            _ => false,
        }
    }

    /// The interval, in whole pages.
    pub const fn whole(&self) -> Extent {
        self.whole
    }

    /// Bytes that are free.
    pub const fn free_bytes(&self) -> usize {
        self.free
    }

    /// Length in bytes of the longest free range, 0 when all is taken.
    pub fn largest(&self) -> usize {
        self.by_len.last().map_or(0, |&(length, _)| length)
    }

    /// True when a byte of `extent` is free.
    pub fn any_free(&self, extent: &Extent) -> bool {
        self.by_start.range(..extent.end).next_back().is_some_and(|(&start, &length)| start + length > extent.start)
    }

    /// The parts of `extent` that are taken.
    pub fn taken(&self, extent: &Extent) -> Vec<Extent> {
        let Some(extent) = self.whole.intersect(extent) else { return Vec::new() };
        let (mut from, mut out) = (extent.start, Vec::new());
        let first = self.by_start.range(..=extent.start).next_back().map_or(extent.start, |(&start, _)| start);
        for (&start, &length) in self.by_start.range(first..extent.end) {
            if start > from {
                out.push(Extent { start: from, end: start });
            }
            from = from.max(start + length);
        }
        if from < extent.end {
            out.push(Extent { start: from, end: extent.end });
        }
        out
    }

    /// Free ranges by address.
    pub fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.by_start.iter().map(|(&start, &length)| Extent::new(start, length))
    }

    /// Removes `part` from the free range `range` that contains it.
    fn carve(&mut self, range: Extent, part: Extent) {
        self.drop_range(range);
        self.put(Extent { start: range.start, end: part.start });
        self.put(Extent { start: part.end, end: range.end });
    }

    fn put(&mut self, range: Extent) {
        if !range.is_empty() {
            self.by_start.insert(range.start, range.len());
            self.by_len.insert((range.len(), range.start));
            self.free += range.len();
        }
    }

    fn drop_range(&mut self, range: Extent) {
        self.by_start.remove(&range.start);
        self.by_len.remove(&(range.len(), range.start));
        self.free -= range.len();
    }
}

const fn whole_pages(extent: &Extent) -> bool {
    extent.start.is_multiple_of(PAGE) && extent.end.is_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: usize = 7 * PAGE;
    const PAGES: usize = 64;

    fn pages(first: usize, count: usize) -> Extent {
        Extent::new(BASE + first * PAGE, count * PAGE)
    }

    #[test]
    fn takes_best_fit_and_coalesces() {
        let mut ranges = Ranges::new(pages(0, PAGES));
        assert!(ranges.take_at(pages(10, 2)));
        assert!(!ranges.take_at(pages(9, 2)));
        assert_eq!(ranges.take(10 * PAGE, PAGE), Some(BASE), "the gap of 10 fits best");
        assert_eq!(ranges.largest(), 52 * PAGE);
        ranges.give(pages(0, 12)).unwrap();
        assert_eq!((ranges.largest(), ranges.free_bytes()), (PAGES * PAGE, PAGES * PAGE));
        assert!(ranges.give(pages(0, 1)).is_err());
        assert!(ranges.give(pages(PAGES, 1)).is_err());
    }

    #[test]
    fn refuses_nonsense() {
        let mut ranges = Ranges::new(Extent::new(1, 3 * PAGE));
        assert_eq!(ranges.whole(), Extent { start: PAGE, end: 3 * PAGE });
        assert_eq!(ranges.take(0, PAGE), None);
        assert_eq!(ranges.take(1, PAGE), None);
        assert_eq!(ranges.take(PAGE, 3), None);
        assert_eq!(ranges.take(usize::MAX - usize::MAX % PAGE, 1 << 40), None);
        assert!(!ranges.grow(Extent::new(PAGE, PAGE), usize::MAX));
        assert_eq!(Ranges::new(Extent { start: usize::MAX - 5, end: usize::MAX }).free_bytes(), 0);
    }

    #[test]
    fn grows_in_place() {
        let mut ranges = Ranges::new(pages(0, PAGES));
        let start = ranges.take(4 * PAGE, PAGE).unwrap();
        assert!(ranges.grow(Extent::new(start, 4 * PAGE), 8 * PAGE));
        assert!(ranges.take_at(pages(8, 1)));
        assert!(!ranges.grow(Extent::new(start, 8 * PAGE), 9 * PAGE));
        assert!(!ranges.grow(Extent::new(start, 8 * PAGE), 8 * PAGE));
    }

    #[derive(Clone, Debug)]
    enum Act {
        Take(usize, u32),
        TakeAt(usize, usize),
        Give(usize, usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0usize..12, 0u32..5).prop_map(|(len, align)| Act::Take(len, align)),
            (0usize..PAGES, 0usize..12).prop_map(|(first, len)| Act::TakeAt(first, len)),
            (0usize..PAGES, 0usize..24).prop_map(|(first, len)| Act::Give(first, len)),
        ]
    }

    proptest! {
        /// Against a bitmap: the same calls succeed, and what is free stays the same.
        #[test]
        fn agrees_with_a_bitmap(acts in prop::collection::vec(act(), 1..120)) {
            let mut ranges = Ranges::new(pages(0, PAGES));
            let mut free = [true; PAGES];
            for act in acts {
                match act {
                    Act::Take(len, align) => {
                        let align = PAGE << align;
                        let fits = |first: usize| {
                            (BASE + first * PAGE).is_multiple_of(align) && first + len <= PAGES && free[first..first + len].iter().all(|&f| f)
                        };
                        let expected = len > 0 && (0..PAGES).any(fits);
                        let got = ranges.take(len * PAGE, align);
                        prop_assert_eq!(got.is_some(), expected);
                        if let Some(start) = got {
                            let first = (start - BASE) / PAGE;
                            prop_assert!(fits(first));
                            free[first..first + len].fill(false);
                        }
                    }
                    Act::TakeAt(first, len) => {
                        let expected = len > 0 && first + len <= PAGES && free[first..first + len].iter().all(|&f| f);
                        prop_assert_eq!(ranges.take_at(pages(first, len)), expected);
                        if expected {
                            free[first..first + len].fill(false);
                        }
                    }
                    Act::Give(first, len) => {
                        let expected = len > 0 && first + len <= PAGES && free[first..first + len].iter().all(|&f| !f);
                        prop_assert_eq!(ranges.give(pages(first, len)).is_ok(), expected);
                        if expected {
                            free[first..first + len].fill(true);
                        }
                    }
                }
                prop_assert_eq!(ranges.free_bytes(), free.iter().filter(|&&f| f).count() * PAGE);
                let longest = free.split(|&f| !f).map(<[bool]>::len).max().unwrap_or(0);
                prop_assert_eq!(ranges.largest(), longest * PAGE);
                prop_assert_eq!(ranges.iter().count(), free.split(|&f| !f).filter(|run| !run.is_empty()).count());
            }
        }
    }
}

//! A set of pages of one block: 512 bits.

use nearfar_core::addr::BLOCK_PAGES;

const WORDS: usize = BLOCK_PAGES / 64;

/// A set of page indices 0..512.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Bits([u64; WORDS]);

impl Bits {
    /// Every index in `range`.
    pub fn of(range: std::ops::Range<usize>) -> Self {
        let mut bits = Self::default();
        range.for_each(|index| bits.set(index));
        bits
    }

    /// True when `index` is in the set.
    pub fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    /// Adds `index`.
    pub fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Takes `index` out.
    pub fn clear(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    /// Adds every member of `other`.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// The members that lie in `range`.
    pub fn within(&self, range: std::ops::Range<usize>) -> Self {
        let mut bits = Self::default();
        self.iter().filter(|index| range.contains(index)).for_each(|index| bits.set(index));
        bits
    }

    /// The members around `index`, itself a member, without a gap and within `limits`.
    pub fn run_around(&self, index: usize, limits: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let start = (limits.start..index).rev().find(|&other| !self.get(other)).map_or(limits.start, |gap| gap + 1);
        let end = (index + 1..limits.end).find(|&other| !self.get(other)).unwrap_or(limits.end);
        start..end
    }

    /// Number of members.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Number of members that `other` has too.
    pub fn common(&self, other: &Self) -> usize {
        self.0.iter().zip(other.0).map(|(mine, theirs)| (mine & theirs).count_ones() as usize).sum()
    }

    /// True without members.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// Maximal runs of members, as ranges. Runs with at most `gap` missing indices between them are joined where `bridge`
    /// holds for every missing index.
    pub fn runs(&self, gap: usize, bridge: impl Fn(usize) -> bool) -> Vec<std::ops::Range<usize>> {
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        for index in self.iter() {
            match runs.last_mut() {
                Some(run) if index - run.end <= gap && (run.end..index).all(&bridge) => run.end = index + 1,
                _ => runs.push(index..index + 1),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_members() {
        let mut bits = Bits::of(3..6);
        bits.set(8);
        bits.set(511);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 4, 5, 8, 511]);
        assert_eq!(bits.runs(0, |_| true), [3..6, 8..9, 511..512]);
        assert_eq!(bits.runs(2, |_| true), [3..9, 511..512]);
        assert_eq!(bits.runs(2, |i| i != 7), [3..6, 8..9, 511..512]);
        bits.clear(8);
        assert_eq!((bits.count(), bits.get(8), bits.get(5)), (4, false, true));
        assert_eq!(bits.common(&Bits::of(5..512)), 2);
    }
}

//! The cycle of pointers that latency is measured on: every slot holds the address of the next one.
//!
//! Invariant: it is one cycle over all slots, because place p is followed by place p + 1 and places are mapped to slots by a bijection
//! that needs no table. So where a walk stands after h hops is known without the memory, and every run proves that it really followed
//! the pointers; that each pointer is the one it should be is checked as well.

use super::region::{Region, page_size};
use crate::permutation::Permutation;
use nearfar_core::node::Chase;
use nearfar_core::random_numbers::mix;
use std::ops::Range;

/// Bytes of a cache line (of what a prefetcher takes for one).
const LINE: usize = 64;
/// Bytes of a slot of a page-local cycle (multichase's stride): neighbouring lines, which some processors fetch in pairs, are not visited.
const SPARSE: usize = 256;
/// Pages that a page-local cycle visits before it goes on.
const GROUP_PAGES: usize = 64;

/// The order of visits over memory of some bytes.
#[derive(Clone, Debug)]
pub struct Ring {
    slot_bytes: usize,
    /// Slots of a group, a power of two unless there is one group.
    group: usize,
    groups: Permutation,
    inside: Permutation,
    slots: usize,
}

impl Ring {
    /// Over at most `bytes`: rounded down to whole groups, at least one slot.
    pub fn new(chase: Chase, bytes: usize) -> Self {
        let (slot_bytes, group) = match chase {
            Chase::Random => (LINE, bytes / LINE),
            Chase::PageLocal => (SPARSE, (GROUP_PAGES * page_size() / SPARSE).min(bytes / SPARSE)),
        };
        let group = group.max(1);
        let groups = (bytes / slot_bytes / group).max(1);
        // One group needs no shuffling of groups; several have a power of two of slots, which `turn` and `split` rely on. So has a
        // slot of lines.
        Self { slot_bytes, group, groups: Permutation::new(groups, 2), inside: Permutation::new(group, 3), slots: groups * group }
    }

    /// Slots: hops of one round.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Groups are not alike, lest a prefetcher learn one from another.
    fn turn(&self, group: usize) -> usize {
        if self.group.is_power_of_two() { mix(group as u64) as usize & (self.group - 1) } else { 0 }
    }

    /// The group of a slot or place and the number in it, without a division: there are millions of them.
    fn split(&self, number: usize) -> (usize, usize) {
        if self.slots == self.group { (0, number) } else { (number >> self.group.trailing_zeros(), number & (self.group - 1)) }
    }

    /// The slot at place `place` of the cycle, which is taken modulo its length.
    fn slot(&self, place: usize) -> usize {
        let (group, inside) = self.split(if place < self.slots { place } else { place % self.slots });
        let group = self.groups.apply(group);
        group * self.group + (self.inside.apply(inside) ^ self.turn(group))
    }

    /// The place of a slot.
    fn place(&self, slot: usize) -> usize {
        let (group, inside) = self.split(slot);
        self.groups.invert(group) * self.group + self.inside.invert(inside ^ self.turn(group))
    }

    /// Where in the memory a slot's pointer is: its line varies, or only some sets of the caches would be used.
    fn offset(&self, slot: usize) -> usize {
        let lines = self.slot_bytes / LINE;
        slot * self.slot_bytes + (mix(slot as u64 + 1) as usize & (lines - 1)) * LINE
    }

    /// The address that a walk from place 0 has reached after `hops`.
    pub fn at(&self, region: &Region, hops: usize) -> *const u8 {
        let offset = self.offset(self.slot(hops));
        assert!(offset + size_of::<usize>() <= region.len(), "the region holds the ring");
        // SAFETY: inside the region.
        unsafe { region.as_mut_ptr().add(offset) }
    }

    /// The slots of thread `index` of `threads`.
    pub fn share(&self, index: usize, threads: usize) -> Range<usize> {
        let at = |index: usize| (self.slots as u128 * index as u128 / threads as u128) as usize;
        at(index)..at(index + 1)
    }

    /// Writes the pointers of some slots, in the order of memory; with them, one word of every page that the ring spans.
    ///
    /// # Safety
    /// No other thread uses these slots meanwhile.
    pub unsafe fn link(&self, region: &Region, slots: Range<usize>) {
        let page = page_size();
        for slot in slots {
            let next = self.at(region, self.place(slot) + 1);
            let offset = self.offset(slot);
            assert!(offset + size_of::<usize>() <= region.len(), "the region holds the ring");
            // SAFETY: inside the region, in a slot that is the caller's alone; slots do not straddle pages.
            unsafe {
                if (slot * self.slot_bytes).is_multiple_of(page) {
                    region.as_mut_ptr().add(slot * self.slot_bytes).cast::<usize>().write(0);
                }
                region.as_mut_ptr().add(offset).cast::<*const u8>().write(next);
            }
        }
    }

    /// How many of some slots break the cycle: their pointer is not that to the next place, or their place is not theirs alone.
    ///
    /// # Safety
    /// No other thread writes to the region meanwhile, all of the ring was linked.
    pub unsafe fn broken(&self, region: &Region, slots: Range<usize>) -> usize {
        let is_broken = |&slot: &usize| {
            let place = self.place(slot);
            let offset = self.offset(slot);
            // SAFETY: inside the region, as `link` asserted for the same offset.
            let next = unsafe { region.as_mut_ptr().add(offset).cast::<*const u8>().read_volatile() };
            self.slot(place) != slot || next != self.at(region, place + 1)
        };
        slots.filter(is_broken).count()
    }
}

/// Follows `hops` pointers.
///
/// # Safety
/// `from` is a slot of a linked ring that nobody writes to meanwhile.
pub unsafe fn walk(mut from: *const u8, hops: usize) -> *const u8 {
    const UNROLLED: usize = 16;
    // SAFETY: each slot of a linked ring holds the address of another. Volatile: each load is done, and depends on the one before.
    let hop = |at: &mut *const u8| unsafe { *at = at.cast::<*const u8>().read_volatile() };
    for _ in 0..hops / UNROLLED {
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
        hop(&mut from);
    }
    (0..hops % UNROLLED).for_each(|_| hop(&mut from));
    from
}

/// Follows `hops` pointers from each of these, by turns.
///
/// # Safety
/// As for [`walk`].
#[inline(never)]
pub unsafe fn walk_together<const N: usize>(at: &mut [*const u8; N], hops: usize) {
    let mut now = *at;
    for _ in 0..hops {
        for one in &mut now {
            // SAFETY: passed on to the caller. Volatile: as in `walk`.
            *one = unsafe { one.cast::<*const u8>().read_volatile() };
        }
    }
    *at = now;
}

/// Loads the slots of `hops` places on each of 16 stretches that begin evenly spread over the second half of the cycle: whatever was
/// in the caches makes room for lines that a walk from place 0 does not reach soon.
///
/// # Safety
/// As for [`walk`].
pub unsafe fn drive_out(ring: &Ring, region: &Region, hops: usize) {
    const STRETCHES: usize = 16;
    let half = ring.slots() / 2;
    let mut walkers: [*const u8; STRETCHES] = std::array::from_fn(|index| ring.at(region, half + half * index / STRETCHES));
    for _ in 0..hops.min(half / STRETCHES) {
        for walker in &mut walkers {
            // SAFETY: passed on to the caller.
            *walker = unsafe { walk(*walker, 1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::Pages;

    #[test]
    fn a_walk_visits_every_slot_and_returns_after_exactly_one_round() {
        let group = GROUP_PAGES * page_size();
        for (chase, bytes) in [
            (Chase::Random, 64),
            (Chase::Random, 5000),
            (Chase::Random, 1 << 18),
            (Chase::PageLocal, 1000),
            (Chase::PageLocal, group),
            (Chase::PageLocal, 7 * group + 5000),
        ] {
            let region = Region::new(bytes, None, Pages::Small, u64::MAX).expect("memory");
            let ring = Ring::new(chase, bytes);
            // SAFETY: this thread alone.
            unsafe {
                (0..3).for_each(|index| ring.link(&region, ring.share(index, 3)));
                assert_eq!(ring.broken(&region, 0..ring.slots()), 0);
                let start = ring.at(&region, 0);
                let mut seen = std::collections::HashSet::new();
                let mut at = start;
                for hops in 0..ring.slots() {
                    assert_eq!(at, ring.at(&region, hops));
                    assert!(seen.insert(at), "{chase:?} {bytes}: came back after {hops} of {}", ring.slots());
                    at = walk(at, 1);
                }
                assert_eq!(at, start, "{chase:?} {bytes}");
                assert_eq!(walk(start, 37), ring.at(&region, 37));
                let begin = [0, 5, 1000].map(|place| ring.at(&region, place));
                let mut several = begin;
                walk_together(&mut several, 11);
                assert_eq!(several, [11, 16, 1011].map(|place| ring.at(&region, place)), "{chase:?} {bytes}");
                drive_out(&ring, &region, 100);
            }
        }
    }

    #[test]
    fn a_shorter_cycle_is_found() {
        let region = Region::new(1 << 16, None, Pages::Small, u64::MAX).expect("memory");
        let ring = Ring::new(Chase::Random, 1 << 16);
        // SAFETY: this thread alone; both addresses are slots.
        unsafe {
            ring.link(&region, 0..ring.slots());
            let (from, to) = (ring.at(&region, 99), ring.at(&region, 0));
            from.cast_mut().cast::<*const u8>().write(to);
            assert_eq!(ring.broken(&region, 0..ring.slots()), 1);
            assert_ne!(walk(to, 100), ring.at(&region, 100));
        }
    }

    #[test]
    fn page_local_walks_stay_within_their_group_and_leave_neighbours_out() {
        let group = GROUP_PAGES * page_size();
        let region = Region::new(4 * group, None, Pages::Small, u64::MAX).expect("memory");
        let ring = Ring::new(Chase::PageLocal, 4 * group);
        let per_group = group / SPARSE;
        let groups: Vec<usize> =
            (0..ring.slots()).map(|hops| (ring.at(&region, hops) as usize - region.as_mut_ptr() as usize) / group).collect();
        assert!(groups.chunks(per_group).all(|chunk| chunk.iter().all(|number| *number == chunk[0])));
        assert_eq!(ring.slots(), 4 * per_group);
    }
}

//! Which object to look at next. What is not known yet and may matter comes first; then more looks go where more bytes and more
//! traffic are.

use crate::random_numbers::Random;

/// What is known of the objects of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// Bytes that live now.
    pub bytes: u64,
    /// Looks so far.
    pub looks: u64,
    /// Those that saw a touch.
    pub touches: u64,
    /// How much it seems to matter in all, in any unit (bytes times visits a second); 0 while nothing is known.
    pub weight: f64,
}

/// Looks that every group that may matter should have soon.
const ENOUGH: f64 = 60.0;
/// A group below this share of all bytes may wait.
const MATTERS: f64 = 1.0 / 1000.0;
/// Shares of the looks that go by bytes, by weight, and to those with few looks.
const BY_BYTES: f64 = 0.35;
const BY_WEIGHT: f64 = 0.25;
const BY_NEED: f64 = 0.4;

/// How likely each group is to be looked at next, until something has changed by much.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    sums: Vec<f64>,
}

impl Choice {
    /// For these groups. Groups without bytes are never chosen.
    pub fn new(groups: &[Group]) -> Self {
        let mut choice = Self::default();
        choice.renew(groups);
        choice
    }

    /// As `new`, in the same memory.
    pub fn renew(&mut self, groups: &[Group]) {
        let sum = |part: &dyn Fn(&Group) -> f64| groups.iter().map(part).sum::<f64>().max(f64::MIN_POSITIVE);
        let bytes = sum(&|group| group.bytes as f64);
        let weight_of = |group: &Group| if group.bytes == 0 || !group.weight.is_finite() { 0.0 } else { group.weight.max(0.0) };
        let need_of = |group: &Group| need(group, bytes);
        // Less than one need in all is not worth its whole share.
        let (weights, needs) = (sum(&weight_of), sum(&need_of).max(1.0));
        self.sums.clear();
        let mut total = 0.0;
        self.sums.extend(groups.iter().map(|group| {
            total +=
                BY_BYTES * group.bytes as f64 / bytes + BY_WEIGHT * weight_of(group) / weights + BY_NEED * need_of(group) / needs;
            total
        }));
    }

    /// A group by chance; `None` when none has bytes.
    pub fn pick(&self, random: &mut Random) -> Option<usize> {
        let total = *self.sums.last()?;
        let at = random.unit() * total;
        let index = self.sums.partition_point(|&sum| sum <= at);
        (total > 0.0 && index < self.sums.len()).then_some(index)
    }
}

/// How much a group needs looks: the same for all that may matter and have none, little once they have enough, next to nothing for crumbs, however many. Touches count for
/// more than looks: an object that is seldom touched needs more looks for the same certainty, up to a limit.
/// Smaller groups are held by caches mostly, so that it matters little what they do.
const HELD: f64 = (4 << 20) as f64;

fn need(group: &Group, all_bytes: f64) -> f64 {
    let share = group.bytes as f64 / all_bytes;
    let beyond_caches = (group.bytes as f64 / HELD).min(1.0).powi(2);
    let known = (group.touches as f64 + 0.2 * group.looks as f64) / ENOUGH;
    beyond_caches * (share / MATTERS).min(1.0).powi(2) / (1.0 + known * known * known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks that each group has had after `count`.
    fn looks(groups: &mut [Group], count: usize, touched: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut random = Random::new(1);
        for _ in 0..count {
            let picked = Choice::new(groups).pick(&mut random).expect("one");
            groups[picked].looks += 1;
            groups[picked].touches += u64::from(touched(picked));
        }
        groups.iter().map(|group| group.looks).collect()
    }

    fn of_bytes(bytes: impl IntoIterator<Item = u64>) -> Vec<Group> {
        bytes.into_iter().map(|bytes| Group { bytes, ..Group::default() }).collect()
    }

    #[test]
    fn nothing_to_choose_from() {
        let mut random = Random::new(3);
        assert_eq!(Choice::new(&[]).pick(&mut random), None);
        assert_eq!(Choice::new(&of_bytes([0, 0])).pick(&mut random), None);
        let choice = Choice::new(&of_bytes([0, 7, 0]));
        assert!((0..1000).all(|_| choice.pick(&mut random) == Some(1)));
    }

    #[test]
    fn a_small_object_beside_a_huge_one_is_seen() {
        let seen = looks(&mut of_bytes([16 << 30, 64 << 20, 64 << 20]), 1000, |_| true);
        assert!(seen[1] > 60 && seen[2] > 60 && seen[0] > 500, "{seen:?}");
    }

    #[test]
    fn ten_groups_are_known_after_a_second_of_looks() {
        let seen = looks(&mut of_bytes((0..10).map(|group| 1 << (22 + group))), 900, |group| group % 2 == 0);
        assert!(seen.iter().all(|&count| count >= 30), "{seen:?}");
        assert!(seen[9] > 2 * seen[0], "the large one more: {seen:?}");
    }

    #[test]
    fn a_thousand_crumbs_do_not_take_the_looks_of_the_rest() {
        let crumbs = std::iter::repeat_n(4096, 1000);
        let seen = looks(&mut of_bytes([1 << 30, 1 << 30].into_iter().chain(crumbs)), 500, |_| true);
        assert!(seen[0] + seen[1] > 450, "{:?}", &seen[..4]);
    }

    #[test]
    fn what_matters_is_looked_at_more() {
        let mut groups = of_bytes([1 << 30, 1 << 30]);
        groups.iter_mut().for_each(|group| (group.looks, group.touches) = (1000, 1000));
        (groups[0].weight, groups[1].weight) = (9.0, 1.0);
        let seen = looks(&mut groups, 4000, |_| true);
        assert!(seen[0] > seen[1] + 300, "{seen:?}");
        groups[0].weight = f64::NAN;
        assert!(Choice::new(&groups).pick(&mut Random::new(1)).is_some());
    }

    #[test]
    fn random_numbers_are_even() {
        let mut random = Random::new(9);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}

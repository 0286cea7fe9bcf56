//! What misses in a cache of pages that several groups of objects share.
//!
//! What a group has in a cache whose pages leave some time after their last visit, and what share of its visits misses, follows from its
//! curve of misses (Denning's working sets: what is near grows with that time as fast as visits miss). Under least-recently-used all
//! groups have the same time; it is the one at which their sum fills the cache.
//!
//! The pager does better: it keeps what comes back soonest, and of loops that do not fit a part for good, while the rest passes
//! (`core::policy::evict_adaptive`). At its best that is near divided among the groups so that misses are fewest, each with the lower
//! convex hull of its curve (Beckmann and Sanchez, Talus, HPCA 2015).

use super::machine::PAGE;
use crate::profile::summary::Curve;

/// Ages at which a cache is looked at, beside those where something changes.
const STEPS: usize = 48;
/// Groups that have less than this share of the bytes and of the visits together are left out.
const SMALL: f64 = 0.01;
/// Of the hits that a small part of a loop could give, the pager has about so many: near is also what it learns with. Measured on loops of
/// 5 to 8 times a near of 32 MiB (`nearfar bench profile verify`, bytes from far).
const KEEPS: f64 = 0.15;
/// Of the cache so much holds what is kept: what is new passes through the rest.
const KEPT: f64 = 0.95;
/// Loops whose pages give hits so many times as seldom as others' are told from these; others compete as one loop. The pager takes for
/// better what comes back in a quarter of the time.
const ALIKE: f64 = 8.0;

/// What a cache makes of a group in one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cached {
    /// Share of its visits that miss.
    pub misses: f64,
    /// Bytes of it that are in the cache.
    pub held: f64,
}

impl Cached {
    /// Nothing of it is in the cache.
    pub const NOT: Self = Self { misses: 1.0, held: 0.0 };
}

/// If pages stay near for `age` seconds after their last visit, `bytes` of the group are near and `misses` of its visits miss.
#[derive(Clone, Copy, Debug)]
struct Age {
    age: f64,
    bytes: f64,
    misses: f64,
}

/// What is known of a group over its life.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Visits of its pages.
    pub visits: f64,
    /// Seconds in which there is any of it.
    pub seconds: f64,
    /// Pages that are new per second, beside visits of those that are there.
    pub new: f64,
    /// Bytes of it that are alive at most.
    pub most: f64,
    /// Bytes that are gone through before the first of them is visited again.
    pub swept: f64,
    /// While it is gone through so many times as many bytes of it are near as on average over its life; 1 at the least.
    pub more: f64,
}

/// A group by the age at which its pages leave.
#[derive(Clone, Debug)]
pub struct Ages(Vec<Age>);

impl Ages {
    /// From the curve of misses by bytes on average over its life. Where that is not known, as of one that is gone through in order,
    /// again and again, which misses until all of it fits.
    pub fn of(curve: &Curve, life: Life) -> Self {
        let Life { visits, seconds, new, most, swept, more } = life;
        let rate = if seconds > 0.0 { visits / seconds } else { 0.0 };
        let mut points = vec![Age { age: 0.0, bytes: 0.0, misses: 1.0 }];
        let mut curve: Vec<(f64, f64)> = curve.points.iter().copied().filter(|&(x, _)| x > 0.0).collect();
        if curve.is_empty() {
            curve = vec![(most * 0.999, 1.0), (most, 0.0)];
        }
        let (mut age, mut again, mut misses) = (0.0, 0.0, 1.0);
        // What is new and what is there to be visited again are the same pages while one sweep makes them and the next one reads them.
        let held = |again: f64, age: f64| (again + new * PAGE * age).max((again * more).min(swept)).min(most.max(again));
        for (bytes, then) in curve {
            let mean = ((misses + then) / 2.0_f64).max(1e-9);
            age += (bytes - again).max(0.0) / (PAGE * rate.max(1e-9) * mean);
            (again, misses) = (bytes.max(again), then.clamp(0.0, 1.0));
            points.push(Age { age, bytes: held(again, age), misses });
        }
        // What is not asked for again takes room too, until it goes or all of the group is near.
        let left = most - held(again, age);
        if new > 0.0 && left > 0.0 {
            points.push(Age { age: age + left / (new * PAGE), bytes: most, misses });
        }
        Self(points)
    }

    fn at(&self, age: f64) -> Age {
        let points = &self.0;
        let after = points.partition_point(|known| known.age <= age);
        match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
            (Some(a), Some(b)) if b.age.is_finite() => {
                let part = (age - a.age) / (b.age - a.age);
                let between = |a: f64, b: f64| a + (b - a) * part;
                Age { age, bytes: between(a.bytes, b.bytes), misses: between(a.misses, b.misses) }
            }
            (Some(a), _) => *a,
            (None, Some(b)) => *b,
            (None, None) => Age { age, bytes: 0.0, misses: 1.0 },
        }
    }

    /// Bytes near when pages stay for `age` seconds.
    pub fn held(&self, age: f64) -> f64 {
        self.at(age).bytes
    }

    /// Share of visits that miss then.
    pub fn misses(&self, age: f64) -> f64 {
        self.at(age).misses
    }
}

/// A group in the competition for a cache, in one stretch of time.
pub struct Sharer<'a> {
    /// Its pages by age.
    pub ages: &'a Ages,
    /// Share of it that is in the competition.
    pub part: f64,
    /// How much more often than on average over its life it is visited in this stretch.
    pub pace: f64,
    /// Visits in this stretch.
    pub visits: f64,
    /// Bytes of it that are alive at most.
    pub most: f64,
    /// Pages that are made in this stretch, used, and freed.
    pub passing: f64,
    /// It is visited without order: what part of it is there hits as often as any other.
    pub random: bool,
}

impl Sharer<'_> {
    fn held(&self, age: f64) -> f64 {
        if self.pace > 0.0 { self.part * self.ages.held(age * self.pace) } else { 0.0 }
    }
}

/// The ages that matter, ascending from 0, without those that hardly anybody has: where the groups change, and steps between.
fn ages(sharers: &[&Sharer<'_>]) -> Vec<f64> {
    let knots = sharers.iter().flat_map(|one| one.ages.0.iter().map(|known| known.age / one.pace));
    let mut ages: Vec<f64> = knots.filter(|age| age.is_finite() && *age > 0.0).collect();
    ages.sort_by(f64::total_cmp);
    if let (Some(&first), Some(&last)) = (ages.first(), ages.last()) {
        // Just before a cliff as well.
        let before: Vec<f64> = ages.iter().map(|age| age * (1.0 - 1e-9)).collect();
        ages.extend(before);
        let ratio = (last / first).max(1.0).powf(1.0 / STEPS as f64);
        ages.extend((1..STEPS).map(|step| first * ratio.powi(step as i32)));
    }
    ages.push(0.0);
    ages.sort_by(f64::total_cmp);
    ages.dedup();
    ages
}

/// The groups that matter.
fn large<'a, 'b>(sharers: &'b [Sharer<'a>]) -> Vec<&'b Sharer<'a>> {
    let mut active: Vec<&Sharer<'_>> = sharers.iter().filter(|one| one.pace > 0.0 && one.part > 0.0).collect();
    let bytes: f64 = active.iter().map(|one| one.held(f64::INFINITY)).sum();
    let visits: f64 = active.iter().map(|one| one.part * one.visits).sum();
    let weight = |one: &Sharer<'_>| one.held(f64::INFINITY) / bytes.max(1.0) + one.part * one.visits / visits.max(1.0);
    active.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    let mut left = 2.0;
    active.retain(|one| {
        let keep = left > SMALL;
        left -= weight(one);
        keep
    });
    active
}

/// Where the page visited longest ago leaves first, in a cache of `bytes`: in the order of `sharers`.
pub fn least_recent(bytes: f64, sharers: &[Sharer<'_>]) -> Vec<Cached> {
    let large = large(sharers);
    let held = |age: f64| -> f64 { large.iter().map(|one| one.held(age)).sum() };
    let ages = ages(&large);
    let over = ages.partition_point(|&age| held(age) <= bytes);
    let stay = match (over.checked_sub(1).map(|before| ages[before]), ages.get(over)) {
        (Some(before), Some(&age)) => {
            let (less, more) = (held(before), held(age));
            let part = if more > less { (bytes - less) / (more - less) } else { 0.0 };
            before + (age - before) * part.clamp(0.0, 1.0)
        }
        (None, Some(_)) => 0.0,
        (_, None) => f64::INFINITY,
    };
    sharers.iter().map(|one| Cached { misses: one.ages.misses(stay * one.pace), held: one.held(stay) }).collect()
}

/// A part of a group's hull: so many more bytes, so many fewer misses, and fewer pages that leave before they are freed.
struct Step {
    sharer: usize,
    bytes: f64,
    hits: f64,
    /// Pages that need not be fetched for it, or need not leave: these count alike.
    worth: f64,
}

/// The lower convex hull of a group's misses by bytes, as steps that give ever less.
fn steps(sharer: usize, one: &Sharer<'_>) -> Vec<Step> {
    let (most, visits) = (one.part * one.most, one.part * one.visits);
    if most <= 0.0 || (visits <= 0.0 && one.passing <= 0.0) {
        return Vec::new();
    }
    // What is visited in this stretch only has there what it has on average over its life in a part of the time.
    let more = one.pace.max(1.0);
    let points = one.ages.0.iter().map(|known| ((one.part * known.bytes * more).min(most), visits * known.misses));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points.chain([(most, 0.0)]) {
        while let [.., a, b] = hull.as_slice() {
            if (b.1 - a.1) * (point.0 - a.0) < (point.1 - a.1) * (b.0 - a.0) {
                break;
            }
            hull.pop();
        }
        match hull.last_mut() {
            Some(last) if last.0 >= point.0 => last.1 = last.1.min(point.1),
            _ => hull.push(point),
        }
    }
    // What was made just now stays before what nobody visited for long, though nobody asks for it again.
    let made = one.part * one.passing / most;
    let step = |pair: &[(f64, f64)]| {
        let (bytes, hits) = (pair[1].0 - pair[0].0, pair[0].1 - pair[1].1);
        Step { sharer, bytes, hits, worth: hits.max(made * bytes) }
    };
    hull.windows(2).map(step).collect()
}

/// As the pager keeps pages, in a cache of `bytes`: in the order of `sharers`.
pub fn keeping(bytes: f64, sharers: &[Sharer<'_>]) -> Vec<Cached> {
    let mut all: Vec<Step> = sharers.iter().enumerate().flat_map(|(at, one)| steps(at, one)).collect();
    all.sort_by(|one, other| (other.worth / other.bytes).total_cmp(&(one.worth / one.bytes)));
    let mut found: Vec<(f64, f64)> = vec![(0.0, 0.0); sharers.len()];
    let mut left = KEPT * bytes;
    let mut rest = all.as_slice();
    while let (Some(best), true) = (rest.first(), left > 0.0) {
        let alike = rest.partition_point(|step| step.worth * best.bytes * ALIKE >= best.worth * step.bytes);
        let (pool, after) = rest.split_at(alike.max(1));
        let pooled: f64 = pool.iter().map(|step| step.bytes).sum();
        let part = (left / pooled).clamp(0.0, 1.0);
        // Each has its part of the room, in which what gives most comes first. What nobody asks for again is no loop that may not fit.
        let (mut room, mut looped) = (vec![0.0; sharers.len()], vec![0.0; sharers.len()]);
        for step in pool {
            room[step.sharer] += part * step.bytes;
            looped[step.sharer] += if step.worth <= step.hits { step.bytes } else { 0.0 };
        }
        let fits: Vec<f64> =
            room.iter().zip(&looped).map(|(room, looped)| if room < looped { room / looped } else { 1.0 }).collect();
        for &Step { sharer, bytes, hits, .. } in pool {
            let taken = bytes.min(room[sharer]);
            room[sharer] -= taken;
            let kept = if sharers[sharer].random { 1.0 } else { KEEPS + (1.0 - KEEPS) * fits[sharer] };
            found[sharer].0 += hits * taken / bytes * kept;
            found[sharer].1 += taken;
        }
        left -= part * pooled;
        rest = after;
    }
    // What is not visited again stays where nobody needs the room.
    for ((_, held), one) in found.iter_mut().zip(sharers) {
        let more = (one.part * one.most - *held).clamp(0.0, left.max(0.0));
        *held += more;
        left -= more;
    }
    let cached = |(one, (hits, held)): (&Sharer<'_>, (f64, f64))| {
        let visits = one.part * one.visits;
        Cached { misses: if visits > 0.0 { (1.0 - hits / visits).clamp(0.0, 1.0) } else { 1.0 }, held }
    };
    sharers.iter().zip(found).map(cached).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loops(bytes: f64, rounds: f64, seconds: f64) -> Ages {
        let curve = Curve { points: vec![(0.0, 1.0), (bytes, 1.0), (bytes, 0.0)] };
        Ages::of(&curve, life(rounds * bytes / PAGE, seconds, 0.0, bytes))
    }

    fn life(visits: f64, seconds: f64, new: f64, most: f64) -> Life {
        Life { visits, seconds, new, most, swept: most, more: 1.0 }
    }

    fn sharer(ages: &Ages, bytes: f64, rounds: f64) -> Sharer<'_> {
        Sharer { ages, part: 1.0, pace: 1.0, visits: rounds * bytes / PAGE, most: bytes, passing: 0.0, random: false }
    }

    #[test]
    fn a_loop_keeps_a_part() {
        let ages = loops(1e9, 10.0, 10.0);
        let all = [sharer(&ages, 1e9, 10.0)];
        let misses = |bytes: f64| keeping(bytes, &all)[0].misses;
        assert!((least_recent(0.5e9, &all)[0].misses - 1.0).abs() < 1e-6, "the one visited longest ago is the one that is next");
        assert!((0.6..0.9).contains(&misses(0.5e9)), "{}", misses(0.5e9));
        assert!(misses(1.06e9) == 0.0 && least_recent(1.01e9, &all)[0].misses == 0.0 && misses(0.0) == 1.0);
    }

    #[test]
    fn what_comes_back_soon_stays_beside_streams() {
        let (table, stream) = (loops(8e6, 100.0, 10.0), loops(256e6, 10.0, 10.0));
        let all = [sharer(&stream, 256e6, 10.0), sharer(&table, 8e6, 100.0)];
        let found = keeping(20e6, &all);
        assert!(found[1].misses == 0.0 && found[0].misses > 0.9, "{found:?}");
        assert!((found[0].held + found[1].held - KEPT * 20e6).abs() < 1.0);
    }

    #[test]
    fn loops_of_about_the_same_rate_compete_as_one() {
        // Four times through one, then once through another, and room for one: both lose (measured: two thirds of the visits miss).
        let (often, once) = (loops(1e9, 40.0, 10.0), loops(1e9, 10.0, 10.0));
        let all = [sharer(&often, 1e9, 40.0), sharer(&once, 1e9, 10.0)];
        let found = keeping(1.05e9, &all);
        let missed = (40.0 * found[0].misses + 10.0 * found[1].misses) / 50.0;
        assert!((0.55..0.8).contains(&missed), "{found:?}");
        assert!(keeping(2.2e9, &all).iter().all(|one| one.misses == 0.0));
    }

    #[test]
    fn without_order_what_is_there_hits() {
        let ages = loops(1e9, 10.0, 10.0);
        let one = Sharer { random: true, ..sharer(&ages, 1e9, 10.0) };
        assert!((keeping(0.5e9 / KEPT, &[one])[0].misses - 0.5).abs() < 1e-9);
        // Nobody visits it, and there is room.
        let idle = Sharer { visits: 0.0, ..sharer(&ages, 1e9, 10.0) };
        assert_eq!(keeping(2e9, &[idle])[0].held, 1e9);
    }

    #[test]
    fn what_is_new_takes_room() {
        // 1 GB in 1 s is written, read once, and freed: 2 GB of it are alive. What is read again is 1 GB.
        let curve = Curve { points: vec![(0.0, 1.0), (5e8, 1.0), (5e8, 0.0)] };
        let (pages, seconds) = (1e9 / PAGE, 1.0);
        let with = Ages::of(&curve, life(pages, seconds, pages, 2e9));
        let without = Ages::of(&curve, life(pages, seconds, 0.0, 2e9));
        assert!((without.held(0.5) - 5e8).abs() < 1e6 && (with.held(0.5) - 1e9).abs() < 1e6, "{}", with.held(0.5));
        assert!((with.held(9.0) - 2e9).abs() < 1e6 && with.misses(9.0) == 0.0);
    }

    #[test]
    fn what_was_made_just_now_stays_before_what_is_seldom_visited() {
        // 0.4 GB/s is made and read again after 0.7 s, 1 GB alive; a fifth of another GB is visited once in 10 s.
        let curve = Curve { points: vec![(0.0, 1.0), (3e8, 1.0), (3e8, 0.0)] };
        let made = Ages::of(&curve, life(1e6, 10.0, 1e5, 1e9));
        let once = loops(1e9, 0.2, 10.0);
        let sharers = |passing: f64| {
            [
                Sharer { ages: &made, part: 1.0, pace: 1.0, visits: 1e6, most: 1e9, passing, random: false },
                sharer(&once, 1e9, 0.2),
            ]
        };
        let found = keeping(0.8e9, &sharers(1e6));
        assert!(found[0].misses < 0.01 && found[0].held > 0.75e9 && found[1].held < 0.05e9, "{found:?}");
        let made_only = Sharer { visits: 0.0, ..sharers(1e6)[0] };
        assert!(keeping(0.8e9, &[made_only, sharer(&once, 1e9, 0.2)])[0].held > 0.75e9, "and what is made and never read");
        let found = keeping(0.8e9, &sharers(0.0));
        assert!(found[0].held < 0.7e9, "who does not know that it is new gives the room to others: {found:?}");
    }

    #[test]
    fn what_is_made_and_read_again_is_there_once() {
        // 1 GB is made in half a second and read in the other half, again and again; a third of it waits to be read on average.
        let curve = Curve { points: vec![(0.0, 1.0), (3.3e8, 1.0), (3.3e8, 0.0)] };
        let pages = 1e9 / PAGE;
        let ages = Ages::of(&curve, Life { swept: 1e9, more: 3.0, ..life(pages, 1.0, pages, 2e9) });
        let (before, after) = (ages.0[1], ages.0[2]);
        assert!((before.age - 0.33).abs() < 0.01 && before.misses == 1.0 && after.misses == 0.0, "{ages:?}");
        assert!((0.95e9..1.02e9).contains(&after.bytes), "not 1 GB to be read again beside what is new: {ages:?}");
    }

    #[test]
    fn a_phase_needs_all_that_it_visits() {
        // Visited in half of its life: on average half of it is in a cache at a time.
        let curve = Curve { points: vec![(0.0, 1.0), (5e8, 1.0), (5e8, 0.0)] };
        let ages = Ages::of(&curve, life(1e6, 10.0, 0.0, 1e9));
        let misses = |pace: f64| {
            keeping(0.55e9, &[Sharer { ages: &ages, part: 1.0, pace, visits: 1e6, most: 1e9, passing: 0.0, random: false }])[0]
                .misses
        };
        assert!(misses(1.0) == 0.0 && misses(2.0) > 0.5, "{} {}", misses(1.0), misses(2.0));
    }

    proptest! {
        #[test]
        fn more_bytes_never_miss_more(
            sizes in prop::collection::vec((1e6..1e9_f64, 1.0..50.0_f64, 0.2..5.0_f64, 0.0..1.0_f64), 1..6),
            near in 1e5..3e9_f64
        ) {
            let all: Vec<Ages> = sizes.iter().map(|&(bytes, rounds, ..)| loops(bytes, rounds, 10.0)).collect();
            let sharers: Vec<_> = all.iter().zip(&sizes)
                .map(|(ages, &(bytes, rounds, pace, part))| Sharer { pace, part, ..sharer(ages, bytes, rounds) }).collect();
            let missed = |found: &[Cached]| -> f64 { found.iter().zip(&sharers).map(|(one, of)| one.misses * of.part * of.visits).sum() };
            let total: f64 = sharers.iter().map(|of| of.part * of.visits).sum();
            for way in [keeping, least_recent] {
                let (less, more) = (way(near, &sharers), way(near * 1.2, &sharers));
                prop_assert!(missed(&more) <= missed(&less) + 1e-6 * total, "{more:?} {less:?}");
                prop_assert!(less.iter().all(|one| (0.0..=1.0).contains(&one.misses)));
                // Groups that hardly matter are left out of the competition, and have some bytes all the same.
                prop_assert!(less.iter().map(|one| one.held).sum::<f64>() <= near * 1.1 + 1.0);
            }
        }
    }
}

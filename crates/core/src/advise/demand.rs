//! What each group of objects asks of the tier it lies in, per stretch of time: bytes alive, lines read and written, visits of pages,
//! and how many of these miss when near is a cache.

use super::machine::PAGE;
use super::shares::Shares;
use super::sharing::{Ages, Cached, Life, Sharer, keeping, least_recent};
use crate::profile::record::Kind;
use crate::profile::summary::{ALWAYS_MAPPED, Curve, ObjectGroup, Pattern, Summary};

/// Stretches of time that a run is looked at in: more only cost time.
pub const BINS: usize = 48;
/// Static arrays from this size on are paged: that is what `nearfar run` adopts.
const LARGE_ARRAY: u64 = 1 << 20;
/// Visits that touch so many lines of a page follow each other: the pager fetches ahead.
const DENSE_LINES: f64 = 16.0;
/// Where fewer visits than this miss, all of what is swept is near.
const SWEPT: f64 = 0.1;
/// At most so many take turns.
const MOST_IN_TURNS: f64 = 3.0;
/// Footprints may be so much larger than was seen.
const ROUGHLY: f64 = 1.25;
/// Groups with this share of the visits tell phases.
const LARGE_SHARE: f64 = 0.02;
/// Twice the gain in log-likelihood that a boundary of phases must bring, and that more for each group: the place is chosen among many.
const LIKELIER: (f64, f64) = (12.0, 3.0);
/// So many looks tell as much of when visits were as one: they come in batches.
const BATCH: f64 = 8.0;

/// One group.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Its number in the summary.
    pub group: usize,
    /// Most bytes alive at a time, per bin.
    pub live: Vec<f64>,
    /// Most bytes alive at a time.
    pub peak: f64,
    /// Bytes read from memory, per bin.
    pub read: Vec<f64>,
    /// Bytes written back, per bin.
    pub written: Vec<f64>,
    /// Visits of pages, per bin.
    pub visits: Vec<f64>,
    /// Pages that are touched for the first time, per bin.
    pub fresh: Vec<f64>,
    /// Share of the pages that leave a cache changed.
    pub changed: f64,
    /// No order: loads wait for memory, and pages cannot be fetched ahead.
    pub random: bool,
    /// CPU seconds at instructions that touch it; 0: not known.
    pub busy_s: f64,
    /// Bytes of lines that a visit of a page touches.
    pub visit_bytes: f64,
    /// Pages are visited in order, so that they can be fetched ahead.
    pub ahead: bool,
    /// Where near is a budget it may be paged; small static arrays and stacks never are.
    pub pageable: bool,
    /// Objects that are alive at a time, about; 1 at the least.
    pub objects: f64,
    /// Share of each bin's time in which routines work on it; those of all groups sum to 1 at most.
    pub at_work: Vec<f64>,
    /// How much more often than on average over its life it is visited, per bin, as far as that can be told from chance.
    pace: Vec<f64>,
    alive_s: f64,
    /// Its objects are mapped anew each time.
    anew: bool,
    /// Bytes of it that are used at a time, at most.
    most: f64,
    /// Looks or samples that its visits are known from.
    seen: f64,
    ages: Ages,
}

/// A run in stretches.
#[derive(Clone, Debug)]
pub struct Demands {
    /// Seconds of each bin.
    pub seconds: Vec<f64>,
    /// Groups in the order of the summary.
    pub groups: Vec<Demand>,
    /// The first bins of stretches in which the groups are visited as often all along, as far as can be told from chance.
    phases: Vec<usize>,
}

/// `values`, one for each of some fine bins, in `count` coarse ones.
fn coarse(values: &[f64], fine: usize, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    for (at, value) in values.iter().enumerate().take(fine) {
        out[at * count / fine] += value;
    }
    out
}

/// The largest of `values` in each of `count` coarse bins.
fn highest(values: &[f64], fine: usize, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    for (at, &value) in values.iter().enumerate().take(fine) {
        let most: &mut f64 = &mut out[at * count / fine];
        *most = most.max(value);
    }
    out
}

impl Demands {
    /// Those of `summary`.
    pub fn of(summary: &Summary) -> Self {
        let of_groups = summary.objects.iter().map(|group| group.live_bytes.len().max(group.traffic.len())).max().unwrap_or(0);
        let bin_s = if summary.bin_s > 0.0 { summary.bin_s } else { summary.wall_s };
        let of_time = if bin_s > 0.0 { (summary.wall_s / bin_s - 1e-9).ceil().max(1.0) as usize } else { 1 };
        let fine = of_groups.max(of_time).max(1);
        let count = fine.min(BINS);
        let mut seconds = vec![summary.wall_s / fine as f64; fine];
        if summary.bin_s > 0.0 && of_time == fine {
            seconds = vec![bin_s; fine];
            seconds[fine - 1] = (summary.wall_s - bin_s * (fine - 1) as f64).max(0.0);
        }
        let seconds = coarse(&seconds, fine, count);
        let groups = summary.objects.iter().enumerate();
        let groups = groups.map(|(at, group)| Demand::of(at, group, fine, &seconds)).collect();
        let mut demands = Self { phases: vec![0], seconds, groups };
        demands.find_work(summary);
        demands.find_phases();
        demands
    }

    /// When routines work on what.
    fn find_work(&mut self, summary: &Summary) {
        let visits: Vec<&[f64]> = self.groups.iter().map(|group| group.visits.as_slice()).collect();
        let at_work = if let Some(shares) = Shares::of(summary, &self.seconds) {
            shares.at_work(&visits)
        } else {
            // Nobody knows: all of the time, by visits.
            let sums: Vec<f64> = (0..self.seconds.len()).map(|bin| visits.iter().map(|of| of[bin]).sum()).collect();
            let share = |of: &&[f64]| of.iter().zip(&sums).map(|(one, sum)| if *sum > 0.0 { one / sum } else { 0.0 }).collect();
            visits.iter().map(share).collect()
        };
        self.groups.iter_mut().zip(at_work).for_each(|(group, at_work)| group.at_work = at_work);
    }

    /// Divides the run where visits change, and again, as long as chance is no explanation (a ratio of likelihoods).
    fn find_phases(&mut self) {
        let total: f64 = self.groups.iter().flat_map(|group| &group.visits).sum();
        let mut large: Vec<(f64, &Demand)> = self.groups.iter().map(|group| (group.visits.iter().sum(), group)).collect();
        large.retain(|(visits, group)| *visits > LARGE_SHARE * total && group.seen > 0.0);
        let likelier = |from: usize, at: usize, to: usize| -> f64 {
            let part = |values: &[f64]| {
                let all: f64 = values[from..to].iter().sum();
                (if all > 0.0 { values[from..at].iter().sum::<f64>() / all } else { 0.0 }, all)
            };
            let time = part(&self.seconds).0;
            let term = |p: f64, q: f64| if p > 0.0 && q > 0.0 { p * (p / q).ln() } else { 0.0 };
            let of = |(visits, group): &(f64, &Demand)| {
                let (share, here) = part(&group.visits);
                2.0 * group.seen * here / visits * (term(share, time) + term(1.0 - share, 1.0 - time))
            };
            large.iter().map(of).sum()
        };
        let least = LIKELIER.0 + LIKELIER.1 * large.len() as f64;
        let (mut open, mut phases) = (vec![(0, self.seconds.len())], vec![0]);
        while let Some((from, to)) = open.pop() {
            let splits = (from + 1..to).map(|at| (likelier(from, at, to), at));
            let best = splits.max_by(|one, other| one.0.total_cmp(&other.0)).filter(|(gain, _)| *gain > least);
            if let Some((_, at)) = best {
                phases.push(at);
                open.extend([(from, at), (at, to)]);
            }
        }
        phases.sort_unstable();
        for (at, &from) in phases.iter().enumerate() {
            let to = phases.get(at + 1).copied().unwrap_or(self.seconds.len());
            let seconds: f64 = self.seconds[from..to].iter().sum();
            for group in &mut self.groups {
                let here: f64 = group.visits[from..to].iter().sum();
                let mean = group.visits.iter().sum::<f64>() / group.alive_s.max(1e-9);
                let pace = if mean > 0.0 && seconds > 0.0 { here / seconds / mean } else { 0.0 };
                group.pace[from..to].iter_mut().for_each(|known| *known = pace);
            }
        }
        self.phases = phases;
    }

    /// What a cache of so many bytes in bins `from..to` makes of the groups, of each of which it holds what `shares` (one per group,
    /// 0..=1) says: with least recently used pages leaving first, or, `paged`, as the pager keeps them. For each bin, in the order of the
    /// groups.
    pub fn cached(&self, bytes: impl Fn(usize, usize) -> f64, shares: &[f64], paged: bool) -> Vec<Vec<Cached>> {
        let bins = self.seconds.len();
        let mut cached = Vec::with_capacity(bins);
        for (at, &from) in self.phases.iter().enumerate() {
            let to = self.phases.get(at + 1).copied().unwrap_or(bins);
            let part = |group: &Demand, share: f64| if group.pageable || !paged { share } else { 0.0 };
            let groups = self.groups.iter().zip(shares);
            let sharers: Vec<Sharer<'_>> = groups.map(|(group, &share)| group.sharer(part(group, share), from, to)).collect();
            let bytes = bytes(from, to);
            let found = if paged { keeping(bytes, &sharers) } else { least_recent(bytes, &sharers) };
            cached.extend(std::iter::repeat_n(found, to - from));
        }
        // What is made in one stretch and does not stay in a later one leaves then, if it is not freed before: of it there is as much as in
        // the least of these.
        for bin in (1..bins).rev() {
            let (before, after) = cached.split_at_mut(bin);
            let pairs = before[bin - 1].iter_mut().zip(&after[0]).zip(&self.groups);
            let stays = |group: &Demand| !group.anew && group.live[bin] > 0.0;
            pairs.filter(|(_, group)| stays(group)).for_each(|((one, next), _)| one.held = one.held.min(next.held));
        }
        cached
    }
}

/// Pages of a group that are touched for the first time in each bin: as many as it grows by, or, of temporaries that are mapped anew each
/// time, all of them while there are any. And whether they are such.
fn fresh(group: &ObjectGroup, live: &[f64]) -> (Vec<f64>, bool) {
    // Of what is allocated some is never used: as much as of what is alive at a time, which is known roughly.
    let used = (ROUGHLY * group.footprint.value / (group.peak_bytes as f64).max(1.0)).clamp(0.0, 1.0);
    let allocated = group.count as f64 * (group.least as f64 + group.most as f64) / 2.0;
    let anew = group.most >= ALWAYS_MAPPED || group.kind == Kind::Map;
    let sum: f64 = live.iter().sum();
    if anew && allocated > 1.5 * group.peak_bytes as f64 && sum > 0.0 {
        return (live.iter().map(|live| used * allocated / PAGE * live / sum).collect(), true);
    }
    let before = std::iter::once(&0.0).chain(live);
    (live.iter().zip(before).map(|(now, before)| used * (now - before).max(0.0) / PAGE).collect(), false)
}

/// How many times as many bytes of what is gone through in order are near at a time as the curve of misses says. Looks tell how much of
/// it is near on average over its life, which is less than all of it where it is visited in turns with others: but what is swept is
/// visited again when all of its `bytes` were.
fn of_sweeps(curve: &Curve, bytes: f64) -> f64 {
    let fits = curve.points.iter().find(|point| point.0 > 0.0 && point.1 <= SWEPT);
    fits.map_or(1.0, |&(fits, _)| (bytes / fits).clamp(1.0, MOST_IN_TURNS))
}

impl Demand {
    fn of(at: usize, group: &ObjectGroup, fine: usize, seconds: &[f64]) -> Self {
        let count = seconds.len();
        let flat = |values: &[f64]| if values.iter().any(|&value| value > 0.0) { values.to_vec() } else { vec![1.0; fine] };
        let live: Vec<f64> = if group.live_bytes.is_empty() {
            vec![group.peak_bytes as f64; count]
        } else {
            // A mean would let in what does not fit at some moment.
            highest(&group.live_bytes, fine, count)
        };
        let spread = |total: f64, over: &[f64]| -> Vec<f64> {
            let over = coarse(over, fine, count);
            let sum: f64 = over.iter().sum();
            over.iter().map(|part| if sum > 0.0 { total * part / sum } else { 0.0 }).collect()
        };
        let when = if group.traffic.iter().any(|&value| value > 0.0) { group.traffic.clone() } else { flat(&group.live_bytes) };
        let (read, written) = (group.read.value.max(0.0), group.written.value.max(0.0));
        let visits = group.page_visits.value.max(0.0);
        let alive: f64 = seconds.iter().zip(&live).filter(|(_, live)| **live > 0.0).map(|(seconds, _)| seconds).sum();
        let lines = group.lines_per_visit.value.clamp(1.0, 64.0);
        let random = group.pattern == Pattern::Random;
        let peak = (group.peak_bytes as f64).max(live.iter().copied().fold(0.0, f64::max));
        let (fresh, anew) = fresh(group, &live);
        let new = if anew && alive > 0.0 { fresh.iter().sum::<f64>() / alive } else { 0.0 };
        // What is written when it is new comes once.
        let again = written - fresh.iter().sum::<f64>() * PAGE;
        let footprint = group.footprint.value.max(PAGE);
        // Of what is mapped anew each time one is gone through, then the next.
        let swept = if anew { footprint.min(group.most as f64) } else { footprint };
        let more = if random { 1.0 } else { of_sweeps(&group.misses, swept) };
        Self {
            group: at,
            fresh,
            peak,
            live,
            read: spread(read, &when),
            written: spread(written, &when),
            visits: spread(visits, &when),
            changed: if read > 0.0 { (again / read).clamp(0.0, 1.0) } else { f64::from(again > 0.0) },
            random,
            busy_s: group.busy_s.max(0.0),
            visit_bytes: 64.0 * lines,
            ahead: !random && (group.pattern != Pattern::Unknown || lines >= DENSE_LINES),
            pageable: match group.kind {
                Kind::Heap | Kind::Map | Kind::SmallBlocks => true,
                Kind::Static => group.peak_bytes >= LARGE_ARRAY,
                Kind::MainStack | Kind::ThreadStack | Kind::ThreadLocal => false,
            },
            objects: (group.peak_bytes / group.most.max(1)).clamp(1, group.count.max(1)) as f64,
            at_work: vec![0.0; count],
            pace: vec![1.0; count],
            seen: group.touches as f64 / BATCH + group.samples as f64,
            alive_s: alive,
            anew,
            most: if anew { peak } else { footprint.min(peak) },
            ages: Ages::of(&group.misses, Life { visits, seconds: alive, new, most: footprint, swept, more }),
        }
    }

    /// Nothing of it ever comes from memory or far.
    pub fn is_idle(&self) -> bool {
        let zero = |values: &[f64]| values.iter().all(|&value| value <= 0.0);
        zero(&self.read) && zero(&self.written) && zero(&self.visits)
    }

    /// It in the competition for a cache in bins `from..to`, with `part` of it.
    fn sharer(&self, part: f64, from: usize, to: usize) -> Sharer<'_> {
        let visits = self.visits[from..to].iter().sum();
        let passing = if self.anew { self.fresh[from..to].iter().sum() } else { 0.0 };
        Sharer { ages: &self.ages, part, pace: self.pace[from], visits, most: self.most, passing, random: self.random }
    }

    /// Share of what is new that leaves a cache before it is freed, where `held` bytes of the `part` of it that competes are in one.
    pub fn passes(&self, held: f64, part: f64) -> f64 {
        let most = (part * self.most).max(1.0);
        let lacks = (1.0 - held / most).clamp(0.0, 1.0);
        // One is made before another is freed: what does not fit is that much of each.
        if self.anew { (lacks * self.objects).min(1.0) } else { lacks }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::record::Method;
    use crate::profile::summary::{Estimate, FORMAT, Routine};

    /// `sweeps` times through `bytes` in order, reading; all of it alive in all bins.
    pub fn swept(name: &str, bytes: f64, sweeps: f64, bins: usize) -> ObjectGroup {
        let traffic = bytes * sweeps;
        ObjectGroup {
            name: name.into(),
            count: 1,
            least: bytes as u64,
            most: bytes as u64,
            peak_bytes: bytes as u64,
            live_bytes: vec![bytes; bins],
            lifetime_s: 1.0,
            footprint: Estimate::exact(bytes),
            read: Estimate { value: traffic, low: 0.95 * traffic, high: 1.05 * traffic },
            traffic: vec![traffic / bins as f64; bins],
            lines_per_visit: Estimate::exact(64.0),
            pattern: Pattern::Stream,
            misses: Curve { points: vec![(0.0, 1.0), (bytes * 0.99, 1.0), (bytes, 0.0)] },
            page_visits: Estimate::exact(traffic / PAGE),
            routines: vec![("work".into(), 1.0)],
            looks: 100,
            touches: 90,
            ..ObjectGroup::default()
        }
    }

    pub fn summary(wall_s: f64, bins: usize, objects: Vec<ObjectGroup>) -> Summary {
        Summary {
            program: "/bin/app".into(),
            args: vec!["app".into()],
            processes: 1,
            host: "here".into(),
            method: Method::PageFaults,
            wall_s,
            cpu_s: wall_s,
            bin_s: wall_s / bins as f64,
            cache_bytes: 1 << 20,
            format: FORMAT,
            least: 4096,
            peak_bytes: objects.iter().map(|group| group.peak_bytes).sum(),
            objects,
            ..Summary::default()
        }
    }

    #[test]
    fn totals_stay_in_coarse_bins() {
        let summary = summary(10.0, 1000, vec![swept("a", 1e9, 20.0, 1000)]);
        let demands = Demands::of(&summary);
        let group = &demands.groups[0];
        assert_eq!(demands.seconds.len(), BINS);
        assert!((demands.seconds.iter().sum::<f64>() - 10.0).abs() < 1e-9);
        assert!((group.read.iter().sum::<f64>() - 20e9).abs() < 1.0 && group.live.iter().all(|&live| (live - 1e9).abs() < 1.0));
    }

    #[test]
    fn bytes_at_a_time_are_those_of_the_worst_moment() {
        // Two of 96 fine bins are one coarse one; the last bin is half as long as the others.
        let mut group = swept("a", 1e9, 20.0, 96);
        group.live_bytes = vec![0.0; 96];
        (group.live_bytes[4], group.live_bytes[95]) = (1e9, 5e8);
        let mut summary = summary(9.6, 96, vec![group]);
        summary.wall_s = 9.55;
        let demands = Demands::of(&summary);
        assert_eq!((demands.groups[0].live[2], demands.groups[0].live[47], demands.groups[0].live[0]), (1e9, 5e8, 0.0));
        assert!((demands.seconds[47] - 0.15).abs() < 1e-9 && (demands.seconds[0] - 0.2).abs() < 1e-9);
    }

    #[test]
    fn large_static_arrays_are_paged() {
        let pageable = |kind: Kind, bytes: f64| {
            let group = ObjectGroup { kind, ..swept("a", bytes, 1.0, 1) };
            Demands::of(&summary(1.0, 1, vec![group])).groups[0].pageable
        };
        assert!(pageable(Kind::Static, 2e6) && !pageable(Kind::Static, 5e5));
        assert!(!pageable(Kind::MainStack, 2e6) && !pageable(Kind::ThreadStack, 2e6) && pageable(Kind::Heap, 5e5));
    }

    #[test]
    fn a_cache_is_shared_by_age() {
        // 1 GB in a quarter of a second and 1 GB in 4 s: the former stays, and pages of the slow one have gone by the time they are asked for.
        let summary = summary(8.0, 8, vec![swept("fast", 1e9, 32.0, 8), swept("slow", 1e9, 2.0, 8)]);
        let demands = Demands::of(&summary);
        let misses = |bytes: f64, shares: &[f64], paged: bool| {
            let found = &demands.cached(|_, _| bytes, shares, paged)[0];
            [found[0].misses, found[1].misses]
        };
        let [fast, slow] = misses(1.5e9, &[1.0, 1.0], false);
        assert!(fast < 0.01 && slow > 0.99, "{fast} {slow}");
        let [fast, slow] = misses(1.5e9, &[1.0, 1.0], true);
        assert!(fast < 0.01 && (0.4..0.9).contains(&slow), "a part of the slow one is kept: {fast} {slow}");
        let [fast, _] = misses(0.4e9, &[1.0, 1.0], false);
        assert!(fast > 0.99);
        assert_eq!(misses(2.2e9, &[1.0, 1.0], true), [0.0, 0.0]);
        assert_eq!(misses(1.1e9, &[1.0, 0.0], true)[0], 0.0, "alone it fits");
    }

    #[test]
    fn phases_share_a_cache_one_after_the_other() {
        let mut groups = vec![swept("first", 1e9, 8.0, 8), swept("second", 1e9, 8.0, 8)];
        for (at, group) in groups.iter_mut().enumerate() {
            group.traffic = (0..8).map(|bin| if (bin < 4) == (at == 0) { 2e9 } else { 0.0 }).collect();
        }
        let phased = summary(8.0, 8, groups.clone());
        let demands = Demands::of(&phased);
        let cached = demands.cached(|_, _| 1.1e9, &[1.0, 1.0], true);
        assert!(cached[0][0].misses < 0.01 && cached[7][1].misses < 0.01, "each fits in its phase: {cached:?}");
        assert!(cached[0][0].held < 0.2e9 && cached[7][1].held > 0.9e9, "the first is displaced by the second: {cached:?}");
        let mut freed = groups.clone();
        freed[0].live_bytes = (0..8).map(|bin| if bin < 4 { 1e9 } else { 0.0 }).collect();
        let cached = Demands::of(&summary(8.0, 8, freed)).cached(|_, _| 1.1e9, &[1.0, 1.0], true);
        assert!(cached[0][0].held > 0.9e9, "what is freed before is not: {cached:?}");
        // Three looks each tell nothing: what may be chance is no phase.
        groups.iter_mut().for_each(|group| group.touches = 3);
        assert_eq!(Demands::of(&summary(8.0, 8, groups)).phases, [0]);
    }

    #[test]
    fn what_is_swept_in_turns_is_near_as_a_whole() {
        let points = vec![(0.0, 1.0), (3e8, 1.0), (3e8, 0.4), (5e8, 0.4), (5e8, 0.0)];
        let mut group = swept("a", 1e9, 8.0, 8);
        group.misses = Curve { points };
        let misses = |group: &ObjectGroup, bytes: f64| {
            Demands::of(&summary(8.0, 8, vec![group.clone()])).cached(|_, _| bytes, &[1.0], true)[0][0].misses
        };
        assert!(misses(&group, 0.6e9) > 0.1 && misses(&group, 1.1e9) == 0.0);
        group.pattern = Pattern::Random;
        assert!(misses(&group, 0.6e9) < 0.01, "where there is no order the mean is what is near");
    }

    #[test]
    fn temporaries_that_do_not_fit_pass() {
        // One of 1 GB is made before the last one is freed.
        let mut group = swept("temporary", 2e9, 4.0, 8);
        (group.count, group.least, group.most) = (8, 1_000_000_000, 1_000_000_000);
        let demands = Demands::of(&summary(8.0, 8, vec![group]));
        let temporary = &demands.groups[0];
        assert!(temporary.fresh.iter().sum::<f64>() * PAGE > 7.9e9 && temporary.changed == 0.0);
        assert!((temporary.passes(1.5e9, 1.0) - 0.5).abs() < 1e-9 && temporary.passes(2e9, 1.0) == 0.0);
        assert_eq!(temporary.passes(0.5e9, 1.0), 1.0);
    }

    #[test]
    fn routines_work_on_what_they_touch() {
        let mut groups = vec![swept("a", 1e9, 8.0, 8), swept("b", 1e9, 8.0, 8)];
        for (group, name) in groups.iter_mut().zip(["one", "two"]) {
            group.routines = vec![(name.into(), 1.0)];
        }
        let mut summary = summary(8.0, 8, groups);
        let routine = |function: &str, seconds: f64| Routine {
            function: function.into(),
            module: "app".into(),
            self_s: seconds,
            time: vec![seconds / 8.0; 8],
            ..Routine::default()
        };
        summary.routines = vec![routine("one", 2.0), routine("two", 1.0), routine("computes", 5.0)];
        let demands = Demands::of(&summary);
        let at_work = |at: usize| demands.groups[at].at_work[3];
        assert!((at_work(0) - 0.25).abs() < 1e-9 && (at_work(1) - 0.125).abs() < 1e-9, "{} {}", at_work(0), at_work(1));
        summary.routines.clear();
        let demands = Demands::of(&summary);
        assert!((demands.groups[0].at_work[3] - 0.5).abs() < 1e-9, "by visits");
    }
}

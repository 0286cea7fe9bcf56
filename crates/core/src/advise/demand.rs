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
/// Samples of where the program ran tell how many CPUs were busy if they have this share of its CPU time.
const SAMPLED: f64 = 0.7;
/// Share of the time in which as many CPUs are busy as the run is taken to have threads.
const WIDEST: f64 = 0.1;
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
    /// CPUs that were busy on average in each bin.
    pub busy: Vec<f64>,
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

/// CPUs that were busy on average in each stretch: as the samples have it, or where they miss most of the run, on average.
fn busy(summary: &Summary, seconds: &[f64]) -> Vec<f64> {
    let mean = if summary.wall_s > 0.0 { summary.cpu_s / summary.wall_s } else { 1.0 };
    let told: f64 = summary.routines.iter().flat_map(|routine| &routine.time).sum();
    if told < SAMPLED * summary.cpu_s || told <= 0.0 {
        return vec![mean; seconds.len()];
    }
    let mut ran = vec![0.0; seconds.len()];
    for routine in &summary.routines {
        let fine = routine.time.len().max(1);
        routine.time.iter().enumerate().for_each(|(from, part)| ran[from * seconds.len() / fine] += part);
    }
    // The kernel counts all CPU time. When samples were lost, nobody knows.
    let scale = (summary.cpu_s / told).max(1.0);
    ran.iter().zip(seconds).map(|(ran, seconds)| if *seconds > 0.0 { scale * ran / seconds } else { 0.0 }).collect()
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
        let busy = busy(summary, &seconds);
        let mut demands = Self { phases: vec![0], busy, seconds, groups };
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

    /// Threads of the run: CPUs that were busy in a tenth of the time at the least.
    pub fn threads(&self) -> f64 {
        let mut stretches: Vec<(f64, f64)> = self.busy.iter().copied().zip(self.seconds.iter().copied()).collect();
        stretches.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut left = WIDEST * self.seconds.iter().sum::<f64>();
        let at = stretches.iter().position(|(_, seconds)| {
            left -= seconds;
            left <= 0.0
        });
        at.map_or(1.0, |at| stretches[at].0).round().max(1.0)
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
            changed: group.changed.unwrap_or(if read > 0.0 { (again / read).clamp(0.0, 1.0) } else { f64::from(again > 0.0) }),
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
pub(crate) mod tests;

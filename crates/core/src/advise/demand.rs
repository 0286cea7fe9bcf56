//! What each group of objects asks of the tier it lies in, per stretch of time: bytes alive, lines read and written, visits of pages,
//! and how many of these miss when near is a cache.

use crate::profile::record::Kind;
use crate::profile::summary::{ALWAYS_MAPPED, Curve, ObjectGroup, Pattern, Summary};

/// Stretches of time that a run is looked at in: more only cost time.
pub const BINS: usize = 48;
/// Bytes of a page.
pub const PAGE: f64 = 4096.0;
/// Static arrays from this size on are paged: that is what `nearfar run` adopts.
const LARGE_ARRAY: u64 = 1 << 20;
/// Visits that touch so many lines of a page follow each other: the pager fetches ahead.
const DENSE_LINES: f64 = 16.0;

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
    /// Seconds that an object lives.
    pub lifetime_s: f64,
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
    ages: Vec<Age>,
}

/// If pages stay near for `age` seconds after their last visit, `bytes` of the group are near and `misses` of its visits miss.
#[derive(Clone, Copy, Debug)]
struct Age {
    age: f64,
    bytes: f64,
    misses: f64,
}

/// A run in stretches.
#[derive(Clone, Debug)]
pub struct Demands {
    /// Seconds of each bin.
    pub seconds: Vec<f64>,
    /// Groups in the order of the summary.
    pub groups: Vec<Demand>,
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
        Self { seconds, groups }
    }

    /// How long pages stay in a cache of `bytes` that holds what `shares` (one per group, 0..=1) says of each group, as with least
    /// recently used pages leaving first. Infinite where everything fits.
    pub fn stay(&self, bytes: f64, shares: &[f64]) -> f64 {
        let held = |age: f64| -> f64 { self.groups.iter().zip(shares).map(|(group, share)| share * group.held(age)).sum() };
        if held(f64::INFINITY) <= bytes {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while held(high) <= bytes && high < 1e9 {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if held(middle) <= bytes { low = middle } else { high = middle }
        }
        low
    }
}

/// Pages of a group that are touched for the first time in each bin: as many as it grows by, or, of temporaries that are mapped anew each
/// time, all of them while there are any.
fn fresh(group: &ObjectGroup, live: &[f64]) -> Vec<f64> {
    let allocated = group.count as f64 * (group.least as f64 + group.most as f64) / 2.0;
    let anew = group.most >= ALWAYS_MAPPED || group.kind == Kind::Map;
    let sum: f64 = live.iter().sum();
    if anew && allocated > 1.5 * group.peak_bytes as f64 && sum > 0.0 {
        return live.iter().map(|live| allocated / PAGE * live / sum).collect();
    }
    let before = std::iter::once(&0.0).chain(live);
    live.iter().zip(before).map(|(now, before)| (now - before).max(0.0) / PAGE).collect()
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
        let fresh = fresh(group, &live);
        Self {
            group: at,
            fresh,
            lifetime_s: group.lifetime_s,
            peak: (group.peak_bytes as f64).max(live.iter().copied().fold(0.0, f64::max)),
            live,
            read: spread(read, &when),
            written: spread(written, &when),
            visits: spread(visits, &when),
            changed: if read > 0.0 { (written / read).min(1.0) } else { f64::from(written > 0.0) },
            random,
            busy_s: group.busy_s.max(0.0),
            visit_bytes: 64.0 * lines,
            ahead: !random && (group.pattern != Pattern::Unknown || lines >= DENSE_LINES),
            pageable: match group.kind {
                Kind::Heap | Kind::Map | Kind::SmallBlocks => true,
                Kind::Static => group.peak_bytes >= LARGE_ARRAY,
                Kind::MainStack | Kind::ThreadStack => false,
            },
            objects: (group.peak_bytes / group.most.max(1)).clamp(1, group.count.max(1)) as f64,
            ages: ages(&group.misses, visits, alive, group.footprint.value.max(PAGE)),
        }
    }

    /// Nothing of it ever comes from memory or far.
    pub fn is_idle(&self) -> bool {
        let zero = |values: &[f64]| values.iter().all(|&value| value <= 0.0);
        zero(&self.read) && zero(&self.written) && zero(&self.visits)
    }

    /// Bytes near when pages stay for `age` seconds.
    pub fn held(&self, age: f64) -> f64 {
        self.at(age).bytes
    }

    /// Share of visits that miss then.
    pub fn misses(&self, age: f64) -> f64 {
        self.at(age).misses
    }

    fn at(&self, age: f64) -> Age {
        let after = self.ages.partition_point(|known| known.age <= age);
        match (after.checked_sub(1).and_then(|before| self.ages.get(before)), self.ages.get(after)) {
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
}

/// The curve of misses by bytes, as one by the age at which pages leave: in a cache whose pages stay for `age`, what is near grows with
/// `age` as fast as pages miss (the working set's derivative is its miss rate).
fn ages(curve: &Curve, visits: f64, seconds: f64, footprint: f64) -> Vec<Age> {
    let rate = if seconds > 0.0 { visits / seconds } else { 0.0 };
    let mut points = vec![Age { age: 0.0, bytes: 0.0, misses: 1.0 }];
    let mut curve: Vec<(f64, f64)> = curve.points.iter().copied().filter(|&(x, _)| x > 0.0).collect();
    if curve.is_empty() {
        // Nothing is known: as of one that is gone through in order, again and again, which misses until all of it fits.
        curve = vec![(footprint * 0.999, 1.0), (footprint, 0.0)];
    }
    for (bytes, misses) in curve {
        let Some(&before) = points.last() else { break };
        let mean = ((before.misses + misses) / 2.0).max(1e-9);
        let step = (bytes - before.bytes).max(0.0) / (PAGE * rate.max(1e-9) * mean);
        points.push(Age { age: before.age + step, bytes, misses: misses.clamp(0.0, 1.0) });
    }
    points
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::record::Method;
    use crate::profile::summary::{Estimate, FORMAT};

    /// `sweeps` times through `bytes` in order, reading; all of it alive in all bins.
    pub fn swept(name: &str, bytes: f64, sweeps: f64, bins: usize) -> ObjectGroup {
        let traffic = bytes * sweeps;
        ObjectGroup {
            name: name.into(),
            kind: Kind::Heap,
            symbol: String::new(),
            handed_on: Vec::new(),
            frames: Vec::new(),
            count: 1,
            least: bytes as u64,
            most: bytes as u64,
            peak_bytes: bytes as u64,
            live_bytes: vec![bytes; bins],
            lifetime_s: 1.0,
            footprint: Estimate::exact(bytes),
            read: Estimate { value: traffic, low: 0.95 * traffic, high: 1.05 * traffic },
            written: Estimate::exact(0.0),
            traffic: vec![traffic / bins as f64; bins],
            lines_per_visit: Estimate::exact(64.0),
            pattern: Pattern::Stream,
            misses: Curve { points: vec![(0.0, 1.0), (bytes * 0.99, 1.0), (bytes, 0.0)] },
            page_visits: Estimate::exact(traffic / PAGE),
            routines: vec![("work".into(), 1.0)],
            busy_s: 0.0,
            looks: 100,
            touches: 90,
            samples: 0,
            load_cycles: 0.0,
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
            routines: Vec::new(),
            misses: Curve::default(),
            overhead: 0.0,
            samples: 0,
            samples_lost: 0,
            notes: Vec::new(),
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
        // 1 GB in 1 s and 1 GB in 4 s: pages of 1 s stay, and those of the slow one have gone by the time they are asked for.
        let summary = summary(8.0, 8, vec![swept("fast", 1e9, 8.0, 8), swept("slow", 1e9, 2.0, 8)]);
        let demands = Demands::of(&summary);
        let stay = demands.stay(1.5e9, &[1.0, 1.0]);
        let misses: Vec<f64> = demands.groups.iter().map(|group| group.misses(stay)).collect();
        assert!(stay > 1.0 && stay < 4.0 && misses[0] < 0.01 && misses[1] > 0.99, "{stay} {misses:?}");
        assert!(demands.stay(0.4e9, &[1.0, 1.0]) < 1.0 && demands.stay(2.1e9, &[1.0, 1.0]).is_infinite());
        assert!((demands.stay(1e9, &[1.0, 0.0])).is_infinite(), "alone it fits");
    }
}

//! Looks at pages and memory samples of the processor to one estimate.
//!
//! Looks tell how many lines come from memory, by whatever way. Samples tell which *loads had to wait* for memory: a load whose line a
//! prefetcher brought counts as a hit, and the line of a store is not told. So the number of loads from memory is the number of lines
//! times a factor that nobody knows, but which is much the same for objects that are gone through alike: about 1 for gathers, which no
//! prefetcher foresees, and far below for streams. Hence:
//!
//! - Objects are compared with those of their sort (without order, or in order), by the logarithm of loads sampled over lines estimated
//!   from looks; its mean over *the others* of the sort is the factor of an object. What was learnt from an object is not used
//!   to judge it, so that the two estimates of it are independent. An object alone in its sort stays as the looks have it.
//! - How much the factor differs within a sort, beyond what chance explains, is found from the data (DerSimonian and Laird 1986) and is
//!   charged to the samples: looks have been compared with truth. It is not taken to be less than [`VARIES`].
//! - The two are then weighed by the inverses of their variances. With many looks and few samples the looks decide, with few looks and many
//!   samples the samples do.
//!
//! Where there are no looks, samples are all there is: loads from memory count as lines, and the notes say that streams come out too low.

use super::interval::finite;
use super::names::Names;
use super::record::WatchEnd;
use super::samples::{Samples, Sums, Weighed};
use super::study::Studied;
use super::summary::{Estimate, Pattern};
use super::visits::{Code, LINE, VisitPattern};

/// The least standard deviation of the logarithm of the factor, for visits without order and for others. Prefetchers follow some
/// streams to all but a tenth of their lines and lose others at each page: a factor of 2 to 3 from the middle to the extremes.
const VARIES: [f64; 2] = [0.1, 0.5];
/// Standard deviation of the logarithm of a guess about an object that no look saw.
const GUESSED: f64 = 2.0;
/// No estimate from looks is taken to be closer than this: the model has errors, too.
const CLOSEST: f64 = 0.03;
/// Half of an interval of 90 %, in standard deviations.
const HALF: f64 = 1.645;
/// Where stores bring most of the lines, samples of loads do not tell of them.
const LOADS: f64 = 0.5;

/// What both methods say of an object.
#[derive(Clone, Copy, Debug)]
struct Both {
    /// 0: without order, 1: others.
    sort: usize,
    /// Logarithm of the lines that loads bring, from looks, and its variance.
    looked: (f64, f64),
    /// Logarithm of the loads from memory, and the variance that chance gives.
    sampled: (f64, f64),
}

impl Both {
    /// `of` is what looks say of bytes read, of which loads bring the share `loads`. `None` where neither says anything.
    fn of(of: Estimate, loads: f64, is_guess: bool, memory: Weighed, each: f64, sort: usize) -> Option<Self> {
        let number = memory.number();
        // Nothing was seen, but it may be as much as this.
        let value = if of.value > 0.0 { of.value } else { of.high / 4.0 };
        if value <= 0.0 || loads < LOADS || (of.value <= 0.0 && number < 1.0) {
            return None;
        }
        let below = if of.low > 0.0 { (value / of.low).ln() } else { f64::INFINITY };
        let deviation = ((of.high / value).ln().max(below) / HALF).clamp(CLOSEST, GUESSED);
        let deviation = if is_guess { GUESSED } else { deviation };
        // Half a sample more than there are: none at all is a finding, too, if not an exact one.
        let each = if number > 0.0 { memory.events / number } else { each };
        let sampled = (((number + 0.5) * each).ln(), 1.0 / (number + 0.5));
        Some(Self { sort, looked: ((value * loads / LINE).ln(), deviation * deviation), sampled })
    }

    fn ratio(&self) -> f64 {
        self.sampled.0 - self.looked.0
    }

    /// Of the ratio, by chance.
    fn variance(&self) -> f64 {
        self.sampled.1 + self.looked.1
    }
}

/// By how much the factor varies within a sort beyond chance, as a variance (DerSimonian and Laird).
fn beyond_chance(all: &[Both]) -> f64 {
    let weights = || all.iter().map(|one| 1.0 / one.variance());
    let sum: f64 = weights().sum();
    let squares: f64 = weights().map(|weight| weight * weight).sum();
    let mean = all.iter().map(|one| one.ratio() / one.variance()).sum::<f64>() / sum;
    let spread: f64 = all.iter().map(|one| (one.ratio() - mean).powi(2) / one.variance()).sum();
    let scale = sum - squares / sum;
    if scale > 0.0 { ((spread - (all.len() as f64 - 1.0)) / scale).max(0.0) } else { 0.0 }
}

/// By what factor each estimate changes, and the standard deviation of its logarithm afterwards; and the variance of each sort.
fn weigh(all: &[Option<Both>]) -> (Vec<Option<(f64, f64)>>, [f64; 2]) {
    let of_sort = |sort: usize| all.iter().flatten().filter(move |one| one.sort == sort);
    let varies = [0, 1].map(|sort| {
        let members: Vec<Both> = of_sort(sort).copied().collect();
        beyond_chance(&members).max(VARIES[sort] * VARIES[sort])
    });
    let mut sums = [(0.0, 0.0); 2];
    let weight = |one: &Both| 1.0 / (one.variance() + varies[one.sort]);
    for one in all.iter().flatten() {
        sums[one.sort].0 += weight(one);
        sums[one.sort].1 += weight(one) * one.ratio();
    }
    let each = |one: &Both| {
        let others = sums[one.sort].0 - weight(one);
        if others <= 1e-9 * sums[one.sort].0 {
            return None;
        }
        let factor = (sums[one.sort].1 - weight(one) * one.ratio()) / others;
        let sampled = (one.sampled.0 - factor, one.sampled.1 + varies[one.sort] + 1.0 / others);
        let (by_looks, by_samples) = (1.0 / one.looked.1, 1.0 / sampled.1);
        let change = (sampled.0 - one.looked.0) * by_samples / (by_looks + by_samples);
        Some((change.exp(), (by_looks + by_samples).recip().sqrt()))
    };
    (all.iter().map(|one| one.as_ref().and_then(each)).collect(), varies)
}

/// Share of the lines read that loads bring, and whether most visits are without order; of objects that no look saw touched by samples.
fn visited<N: Names + ?Sized>(one: &Studied<'_>, code: &mut Code<'_, N>) -> (f64, bool) {
    let (mut all, mut loads, mut scattered) = (0.0, 0.0, 0.0);
    for (look, visit) in one.paced.looks.iter().zip(&one.visits) {
        if let Some(visit) = visit {
            let lines = look.weight * visit.lines * visit.reads;
            all += lines;
            loads += if look.watch.end == WatchEnd::Read { lines } else { 0.0 };
            scattered += if visit.way == VisitPattern::Scatter { lines } else { 0.0 };
        }
    }
    if all > 0.0 {
        return (loads / all, scattered > 0.5 * all);
    }
    let Sums { memory, stores, .. } = one.tally.all;
    let stores = stores.events * one.tally.all.memory_share().unwrap_or(1.0);
    let loads = if memory.events > 0.0 { memory.events / (memory.events + stores) } else { 0.0 };
    (loads, one.tally.pattern(code) == Pattern::Random)
}

/// Changes the estimates of all groups by what was sampled of them, which `studied` has.
pub fn with_looks<N: Names + ?Sized>(studied: &mut [Studied<'_>], samples: &Samples, code: &mut Code<'_, N>) {
    let number = samples.all.memory.number();
    let each = if number > 0.0 { samples.all.memory.events / number } else { return };
    let both: Vec<Option<Both>> = studied
        .iter()
        .map(|one| {
            let (loads, scattered) = visited(one, code);
            let is_guess = one.group.looks.is_empty();
            Both::of(one.read, loads, is_guess, one.tally.all.memory, each, usize::from(!scattered))
        })
        .collect();
    let (changes, varies) = weigh(&both);
    for ((one, both), change) in studied.iter_mut().zip(&both).zip(changes) {
        let (Some(both), Some((factor, deviation))) = (both, change) else { continue };
        let number = one.tally.all.memory.number();
        one.sampled = if number > 0.0 { 1.0 / (1.0 / number + varies[both.sort]) } else { 0.0 };
        let base = if one.read.value > 0.0 { one.read.value } else { one.read.high / 4.0 };
        let value = base * factor;
        one.read = finite(value, value * (-HALF * deviation).exp(), value * (HALF * deviation).exp());
        // What was looked at too often or too seldom was for what is written, too; memory's first write-back is no matter of visits.
        let first = one.fresh.min(one.written.value);
        let scaled = |bytes: f64| first.min(bytes) + (bytes - first).max(0.0) * factor;
        one.written = finite(scaled(one.written.value), scaled(one.written.low), scaled(one.written.high));
    }
}

/// Estimates from samples without any look; `lines` are those of the cache.
pub fn without_looks(studied: &mut [Studied<'_>], samples: &Samples, lines: f64) {
    let whole: f64 = studied.iter().map(|one| one.peak as f64).sum();
    let fits = whole <= lines * LINE;
    let everywhere = samples.all.memory_share().unwrap_or(0.0);
    let number = samples.all.memory.number();
    let each = if number > 0.0 { samples.all.memory.events / number } else { 0.0 };
    for one in studied.iter_mut() {
        let Sums { memory, cached, stores, .. } = one.tally.all;
        // Where the line of a store was is not told: as often in memory as those of loads are.
        let share = one.tally.all.memory_share().unwrap_or(everywhere);
        let by_stores = stores.events * share;
        // One more than there are: none were seen of what is rare.
        let chance = |of: Weighed| HALF * (of.squares + each * each).sqrt();
        let fresh = if fits { 0.0 } else { one.fresh };
        let read = memory.events + by_stores;
        // Any load that another cache held may have been of a line that a prefetcher had brought.
        let most = read + chance(memory) + cached.events + stores.events - by_stores;
        one.read = finite(read * LINE, (memory.events - chance(memory)).max(0.0) * LINE, most * LINE);
        let written = by_stores * LINE + fresh;
        let most = (stores.events + chance(stores)) * LINE + one.fresh;
        one.written = finite(written, (by_stores - chance(stores) * share).max(0.0) * LINE + 0.5 * fresh, most);
        one.sampled = memory.number();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `true_lines` of an object; looks see `looked` times that, to `error`; so many samples of `each` lines.
    fn object(sort: usize, lines: f64, looked: f64, error: f64, number: f64, each: f64) -> Option<Both> {
        let value = lines * LINE * looked;
        let of = finite(value, value * (-HALF * error).exp(), value * (HALF * error).exp());
        Both::of(of, 1.0, false, Weighed { events: number * each, squares: number * each * each }, each, sort)
    }

    fn changed(all: &[Option<Both>]) -> Vec<Option<f64>> {
        weigh(all).0.into_iter().map(|change| change.map(|change| change.0)).collect()
    }

    #[test]
    fn many_samples_decide_among_gathers() {
        // The second was overlooked by half; three others agree with the samples.
        let all = [(1.0, 1e6), (0.5, 4e6), (1.0, 2e6), (1.0, 2e6)].map(|(looked, lines)| {
            let error = if looked < 1.0 { 0.5 } else { 0.1 };
            object(0, lines, looked, error, lines / 1e3, 1e3)
        });
        let found = changed(&all);
        assert!((1.8..2.1).contains(&found[1].unwrap()), "{found:?}");
        assert!((0.93..1.07).contains(&found[0].unwrap()), "{found:?}");
        assert!(weigh(&all).0[1].unwrap().1 < 0.2, "the interval is narrower");
    }

    #[test]
    fn few_samples_and_lonely_objects_change_little() {
        let few = [(1.0, 3.0), (0.8, 5.0), (1.0, 4.0)].map(|(looked, number)| object(0, 1e6, looked, 0.1, number, 1e5));
        assert!(changed(&few).iter().all(|change| (0.93..1.07).contains(&change.unwrap())), "{:?}", changed(&few));
        // One of each sort: its factor is not known.
        let lonely = [object(0, 1e6, 1.0, 0.5, 500.0, 1e3), object(1, 1e6, 1.0, 0.5, 20.0, 1e3)];
        assert_eq!(changed(&lonely), [None, None]);
    }

    #[test]
    fn a_prefetcher_that_helps_all_alike_changes_nothing() {
        // A tenth of the lines of streams is waited for, all of gathers: were they one sort, streams would lose.
        let all = [(1, 4e6, 0.1), (1, 2e6, 0.1), (0, 1e6, 1.0), (0, 3e6, 1.0)]
            .map(|(sort, lines, share)| object(sort, lines, 1.0, 0.2, lines * share / 1e3, 1e3));
        let found = changed(&all);
        assert!(found.iter().all(|change| (0.98..1.02).contains(&change.unwrap())), "{found:?}");
    }

    #[test]
    fn samples_that_contradict_each_other_lose_their_weight() {
        let all = [1.0, 0.05, 0.6, 0.02].map(|share| object(0, 2e6, 1.0, 0.15, 2e6 * share / 1e3, 1e3));
        assert!(weigh(&all).1[0] > 1.0, "{:?}", weigh(&all).1);
        assert!(changed(&all).iter().all(|change| (0.9..1.1).contains(&change.unwrap())), "{:?}", changed(&all));
    }

    #[test]
    fn stores_are_not_told_by_loads() {
        let of = finite(1e9, 9e8, 1.1e9);
        let memory = Weighed { events: 0.0, squares: 0.0 };
        assert!(Both::of(of, 0.2, false, memory, 1e3, 1).is_none());
        assert!(Both::of(of, 1.0, false, memory, 1e3, 1).is_some());
        assert!(Both::of(Estimate::default(), 1.0, false, memory, 1e3, 1).is_none());
    }
}

//! Looks and visits of a group to lines held in a cache and lines brought from memory.

use super::groups::{Group, Look};
use super::record::WatchEnd;
use super::recurrence::{Outcome, Recurrence, Shape, Wait, stratum};
use super::visits::{LINES, Visit, VisitPattern, WAYS};

/// Seconds: less than a look takes to begin.
const AT_ONCE: f64 = 2e-6;

/// Visits of one way.
#[derive(Clone, Debug)]
struct Flow {
    way: VisitPattern,
    waits: Recurrence,
    /// Seconds of the waits of visits, in order, and sums over the visits before each.
    seconds: Vec<f64>,
    sums: Vec<Marks>,
    /// Means over all visits.
    mean: Marks,
}

/// Of a visit, or as a sum or mean of some: number, lines, lines read, lines written, share that is fresh.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    number: f64,
    lines: f64,
    reads: f64,
    writes: f64,
    fresh: f64,
}

impl Marks {
    fn of(visit: &Visit, weight: f64) -> Self {
        let lines = weight * visit.lines;
        Self { number: weight, lines, reads: lines * visit.reads, writes: lines * visit.writes, fresh: weight * visit.fresh }
    }

    fn plus(self, other: Self, factor: f64) -> Self {
        Self {
            number: self.number + factor * other.number,
            lines: self.lines + factor * other.lines,
            reads: self.reads + factor * other.reads,
            writes: self.writes + factor * other.writes,
            fresh: self.fresh + factor * other.fresh,
        }
    }

    fn mean(self) -> Self {
        let mean = Self::default().plus(self, 1.0 / self.number.max(f64::MIN_POSITIVE));
        Self { lines: mean.lines.max(1.0), ..mean }
    }
}

/// How a group's memory is visited.
#[derive(Clone, Debug)]
pub struct Flows {
    /// Page-seconds of pages that are present.
    pub page_seconds: f64,
    /// Share of pages that are present.
    pub present: f64,
    flows: Vec<Flow>,
}

/// Lines brought and written back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    /// From memory.
    pub read: f64,
    /// To memory.
    pub written: f64,
}

/// Seconds of the wait of one page that a look stands for. Of 512 pages at once, visits anywhere hit one of them 512 times as often.
pub fn wait_of(look: &Look, scattered: bool) -> f64 {
    if scattered { look.waited * f64::from(look.watch.pages.max(1)) } else { look.waited }
}

/// Looks in order of their waits: what all estimates of a group begin with.
pub fn order(group: &Group) -> Vec<usize> {
    let mut order: Vec<usize> = (0..group.looks.len()).collect();
    order.sort_by(|&one, &other| group.looks[one].waited.total_cmp(&group.looks[other].waited));
    order
}

/// How a look ended, for visits that `counts` names.
pub fn outcome(look: &Look, counts: bool) -> Outcome {
    match look.watch.end {
        WatchEnd::Read | WatchEnd::Write if counts => Outcome::Touched,
        WatchEnd::Lost if look.died => Outcome::Never,
        _ => Outcome::Unfinished,
    }
}

impl Flows {
    /// From the looks of a group in order of their waits, each with its weight times a factor.
    pub fn of(group: &Group, visits: &[Option<Visit>], order: &[usize], price: f64, factor: impl Fn(usize) -> f64) -> Self {
        let (mut all, mut present) = (0.0, 0.0);
        for (at, look) in group.looks.iter().enumerate() {
            let weight = look.weight * factor(at);
            all += weight;
            present += if look.watch.end == WatchEnd::Absent { 0.0 } else { weight };
        }
        let present = if all > 0.0 { present / all } else { 0.0 };
        let flows = WAYS.into_iter().filter_map(|way| flow(way, group, visits, order, price, &factor)).collect();
        Self { page_seconds: group.page_seconds * present, present, flows }
    }

    /// Lines of one page that are touched within `seconds`.
    pub fn touched(&self, seconds: f64) -> f64 {
        let untouched: f64 = self.flows.iter().map(|flow| 1.0 - flow.touched(seconds).clamp(0.0, 1.0)).product();
        LINES * (1.0 - untouched)
    }

    /// Lines brought to a cache that keeps a line for `kept` seconds.
    pub fn lines(&self, kept: f64) -> Lines {
        let mut lines = Lines::default();
        for flow in &self.flows {
            let visits = self.page_seconds * flow.misses(kept);
            let marks = flow.marks(flow.kept(kept));
            lines.read += visits * marks.reads;
            lines.written += visits * marks.writes;
        }
        lines
    }

    /// Of the lines that visits read, the share that they change: of visits that miss a cache that keeps a line for `kept` seconds, or of
    /// all where that holds everything. `None` without visits.
    pub fn changed(&self, kept: f64) -> Option<f64> {
        let share = |of: Lines| (of.read > 0.0).then(|| (of.written / of.read).min(1.0));
        let all = || {
            let seen = self.flows.iter().filter(|flow| !flow.seconds.is_empty());
            seen.fold(Lines::default(), |sum, flow| {
                let visits = flow.all();
                Lines { read: sum.read + visits * flow.mean.reads, written: sum.written + visits * flow.mean.writes }
            })
        };
        share(self.lines(kept)).or_else(|| share(all()))
    }

    /// The most that so many looks could have overlooked.
    pub fn most_lines(&self, kept: f64) -> Lines {
        let mut lines = Lines::default();
        for flow in &self.flows {
            let visits = self.page_seconds * flow.waits.most_density(flow.kept(kept));
            let marks = flow.marks(flow.kept(kept));
            lines.read += visits * marks.reads.max(0.05 * marks.lines);
            lines.written += visits * marks.writes.max(0.05 * marks.lines);
        }
        lines
    }

    /// Touches that the estimate rests on.
    pub fn touches(&self, kept: f64) -> f64 {
        self.flows.iter().map(|flow| flow.waits.touches(flow.kept(kept))).sum()
    }
}

impl Flow {
    /// Scattered lines are touched more seldom than their page.
    fn kept(&self, kept: f64) -> f64 {
        if self.way == VisitPattern::Scatter { kept * self.mean.lines / LINES } else { kept }
    }

    /// What visits after such a gap are like: those that follow long gaps may write where others read.
    fn marks(&self, kept: f64) -> Marks {
        let (start, end) = self.waits.around(kept);
        let (first, last) =
            (self.seconds.partition_point(|&wait| wait < start), self.seconds.partition_point(|&wait| wait <= end));
        let sum = self.sums[last].plus(self.sums[first.min(last)], -1.0);
        if sum.number > 1e-9 * self.sums[self.seconds.len()].number { sum.mean() } else { self.mean }
    }

    /// Rate of visits, in visits that miss in all their lines.
    fn misses(&self, kept: f64) -> f64 {
        let missing = self.waits.density(self.kept(kept));
        match self.way {
            VisitPattern::Column if kept.is_finite() && self.mean.fresh > 0.0 && self.round() > kept => {
                missing + self.mean.fresh * (self.all() - missing).max(0.0)
            }
            _ => missing,
        }
    }

    /// Rate of visits after gaps of any length that looks can tell: some end at once since the program waited for us, and a rate from
    /// those has no bound.
    fn all(&self) -> f64 {
        self.waits.density(AT_ONCE)
    }

    /// Seconds until visits that move on come back to the same line.
    fn round(&self) -> f64 {
        let visits = self.all() * self.mean.lines * self.mean.fresh;
        if visits > 0.0 { LINES / visits } else { f64::INFINITY }
    }

    /// Share of a page's lines that is touched within `seconds`.
    fn touched(&self, seconds: f64) -> f64 {
        match self.way {
            VisitPattern::Sweep => self.mean.lines / LINES * self.waits.cdf(seconds),
            VisitPattern::Scatter => self.waits.cdf(self.kept(seconds)),
            VisitPattern::Column => {
                let once = self.mean.lines / LINES * self.waits.cdf(seconds);
                if self.mean.fresh > 0.0 { once.max(seconds / self.round()) } else { once }
            }
        }
    }
}

/// `None` where no look saw such visits. With none of any way, looks still tell how rare sweeps must be.
fn flow(
    way: VisitPattern,
    group: &Group,
    visits: &[Option<Visit>],
    order: &[usize],
    price: f64,
    factor: &impl Fn(usize) -> f64,
) -> Option<Flow> {
    let of_way = |at: usize| visits[at].filter(|visit| visit.way == way);
    let any = order.iter().any(|&at| of_way(at).is_some());
    let nothing = way == VisitPattern::Sweep && !order.is_empty() && visits.iter().all(Option::is_none);
    if !any && !nothing {
        return None;
    }
    let mut waits = Vec::with_capacity(order.len());
    for &at in order {
        let look = &group.looks[at];
        if look.watch.end != WatchEnd::Absent {
            let visit = of_way(at);
            let weight = look.weight * factor(at);
            let wait = Wait {
                seconds: wait_of(look, way == VisitPattern::Scatter),
                weight,
                outcome: outcome(look, visit.is_some()),
                stratum: stratum(at, group.looks.len()),
            };
            waits.push((wait, visit));
        }
    }
    if way == VisitPattern::Scatter {
        waits.sort_by(|one, other| one.0.seconds.total_cmp(&other.0.seconds));
    }
    let (mut seconds, mut sums, mut sum) = (Vec::new(), vec![Marks::default()], Marks::default());
    for (wait, visit) in waits.iter().filter_map(|(wait, visit)| Some((wait, visit.as_ref()?))) {
        sum = sum.plus(Marks::of(visit, wait.weight), 1.0);
        seconds.push(wait.seconds);
        sums.push(sum);
    }
    let shape = if way == VisitPattern::Scatter { Shape::Memoryless } else { Shape::Even };
    let waits = Recurrence::of(&waits.into_iter().map(|(wait, _)| wait).collect::<Vec<_>>(), shape, price);
    let unseen = Marks { number: 1.0, lines: LINES, reads: LINES, writes: LINES / 2.0, fresh: 0.0 };
    let mean = if sum.number > 0.0 { sum.mean() } else { unseen };
    Some(Flow { way, waits, seconds, sums, mean })
}

#[cfg(test)]
mod tests {
    use super::super::recurrence::SIGNIFICANT;
    use super::*;

    #[test]
    fn looks_that_end_at_once_do_not_count_as_visits_of_columns() {
        let flow = |at_once: u32| {
            // Each page is visited every 10 ms.
            let even = (0..200).map(|at| 1e-2 * (f64::from(at) + 0.5) / 200.0);
            let seconds: Vec<f64> = (0..at_once).map(|_| 0.0).chain(even).collect();
            let wait = |&seconds: &f64| Wait { seconds, weight: 1.0, outcome: Outcome::Touched, stratum: 0 };
            let waits = Recurrence::of(&seconds.iter().map(wait).collect::<Vec<_>>(), Shape::Even, SIGNIFICANT);
            let mean = Marks { number: 1.0, lines: 1.0, reads: 1.0, writes: 0.0, fresh: 0.25 };
            Flow { way: VisitPattern::Column, waits, sums: vec![Marks::default(); seconds.len() + 1], seconds, mean }
        };
        for at_once in [0, 8, 40] {
            let (misses, round) = (flow(at_once).misses(0.02), flow(at_once).round());
            assert!((20.0..26.0).contains(&misses) && (2.5..3.2).contains(&round), "{at_once}: {misses} {round}");
        }
    }

    /// What fits into the processor's cache does not come from memory, and yet its pages must be written when they leave near.
    #[test]
    fn what_a_cache_holds_is_changed_too() {
        let wait = |at: u32| Wait { seconds: 1e-3 * (f64::from(at) + 0.5), weight: 1.0, outcome: Outcome::Touched, stratum: 0 };
        let waits: Vec<_> = (0..100).map(wait).collect();
        let mean = Marks { number: 1.0, lines: LINES, reads: LINES, writes: LINES / 4.0, fresh: 0.0 };
        let sums = (0..=100).map(|number| Marks::default().plus(mean, f64::from(number))).collect();
        let flow = Flow {
            way: VisitPattern::Sweep,
            waits: Recurrence::of(&waits, Shape::Even, SIGNIFICANT),
            seconds: waits.iter().map(|wait| wait.seconds).collect(),
            sums,
            mean,
        };
        let flows = Flows { page_seconds: 1.0, present: 1.0, flows: vec![flow] };
        for kept in [0.01, 10.0, f64::INFINITY] {
            assert_eq!(flows.changed(kept), Some(0.25), "{kept} s");
        }
        assert_eq!(flows.lines(f64::INFINITY).written, 0.0);
        assert_eq!(Flows { flows: vec![], ..flows }.changed(0.01), None);
    }
}

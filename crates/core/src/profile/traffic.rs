//! Looks and visits of a group to lines held in a cache and lines brought from memory.

use super::groups::{Group, Look};
use super::record::WatchEnd;
use super::recurrence::{Outcome, Recurrence, Shape, Wait};
use super::visits::{LINES, Visit, WAYS, Way};

/// Visits of one way.
#[derive(Clone, Debug)]
struct Flow {
    way: Way,
    waits: Recurrence,
    /// Means over visits: lines, lines read, lines written, share that is fresh.
    lines: f64,
    reads: f64,
    writes: f64,
    fresh: f64,
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
    pub fn of(group: &Group, visits: &[Option<Visit>], order: &[usize], factor: impl Fn(usize) -> f64) -> Self {
        let (mut all, mut present) = (0.0, 0.0);
        for (at, look) in group.looks.iter().enumerate() {
            let weight = look.weight * factor(at);
            all += weight;
            present += if look.watch.end == WatchEnd::Absent { 0.0 } else { weight };
        }
        let present = if all > 0.0 { present / all } else { 0.0 };
        let flows = WAYS.into_iter().filter_map(|way| flow(way, group, visits, order, &factor)).collect();
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
            lines.read += visits * flow.reads;
            lines.written += visits * flow.writes;
        }
        lines
    }

    /// The most that so many looks could have overlooked.
    pub fn most_lines(&self, kept: f64) -> Lines {
        let mut lines = Lines::default();
        for flow in &self.flows {
            let visits = self.page_seconds * flow.waits.most_density(flow.kept(kept));
            lines.read += visits * flow.reads.max(0.05 * flow.lines);
            lines.written += visits * flow.writes.max(0.05 * flow.lines);
        }
        if self.flows.is_empty() {
            return Lines::default();
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
        if self.way == Way::Scatter { kept * self.lines / LINES } else { kept }
    }

    /// Rate of visits, in visits that miss in all their lines.
    fn misses(&self, kept: f64) -> f64 {
        let missing = self.waits.density(self.kept(kept));
        match self.way {
            Way::Column if kept.is_finite() && self.fresh > 0.0 && self.round() > kept => {
                missing + self.fresh * (self.waits.density(0.0) - missing).max(0.0)
            }
            _ => missing,
        }
    }

    /// Seconds until visits that move on come back to the same line.
    fn round(&self) -> f64 {
        let visits = self.waits.density(0.0) * self.lines * self.fresh;
        if visits > 0.0 { LINES / visits } else { f64::INFINITY }
    }

    /// Share of a page's lines that is touched within `seconds`.
    fn touched(&self, seconds: f64) -> f64 {
        match self.way {
            Way::Sweep => self.lines / LINES * self.waits.cdf(seconds),
            Way::Scatter => self.waits.cdf(self.kept(seconds)),
            Way::Column => {
                let once = self.lines / LINES * self.waits.cdf(seconds);
                if self.fresh > 0.0 { once.max(seconds / self.round()) } else { once }
            }
        }
    }
}

fn flow(way: Way, group: &Group, visits: &[Option<Visit>], order: &[usize], factor: &impl Fn(usize) -> f64) -> Option<Flow> {
    let of_way = |at: usize| visits[at].filter(|visit| visit.way == way);
    let mut sums = [0.0; 5];
    let mut waits = Vec::with_capacity(order.len());
    // A look that nobody ended counts for all ways of the group; with no touch at all, for the first.
    for &at in order {
        let look = &group.looks[at];
        if look.watch.end == WatchEnd::Absent {
            continue;
        }
        let weight = look.weight * factor(at);
        let visit = of_way(at);
        if let Some(visit) = visit {
            let values = [1.0, visit.lines, visit.lines * visit.reads, visit.lines * visit.writes, visit.fresh];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
        waits.push(Wait { seconds: wait_of(look, way == Way::Scatter), weight, outcome: outcome(look, visit.is_some()) });
    }
    let shape = if way == Way::Scatter { Shape::Memoryless } else { Shape::Even };
    if sums[0] <= 0.0 {
        let nothing = way == Way::Sweep && !waits.is_empty() && visits.iter().all(Option::is_none);
        let waits = Recurrence::of(&waits, shape);
        return nothing.then_some(Flow { way, waits, lines: LINES, reads: LINES, writes: LINES / 2.0, fresh: 0.0 });
    }
    if way == Way::Scatter {
        waits.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    }
    let mean = |at: usize| sums[at] / sums[0];
    let waits = Recurrence::of(&waits, shape);
    Some(Flow { way, waits, lines: mean(1).max(1.0), reads: mean(2), writes: mean(3), fresh: mean(4) })
}

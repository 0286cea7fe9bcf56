//! Miss-ratio curves of pages: how many visits miss if so much memory is near and the pages visited last are there (LRU). Near memory
//! that pages stay in for t seconds holds what is touched within t, and misses the visits that follow a longer gap.

use super::cache::kept;
use super::groups::{Group, Look};
use super::record::WatchEnd;
use super::recurrence::{Recurrence, SIGNIFICANT, Shape, Wait, stratum};
use super::summary::Curve;
use super::timeline::PAGE;
use super::traffic::{outcome, wait_of};
use super::visits::{MID_VISIT, Visit, VisitPattern};

/// A huge page was taken away while a sweep went through it: the touch at once is of that visit, and when the next one comes is not
/// known. (It is in a huge page for 512 times as long as in a page.)
fn is_mid_visit(look: &Look, visit: &Visit) -> bool {
    look.watch.pages > 1 && visit.way == VisitPattern::Sweep && look.waited < MID_VISIT
}

/// Looks that must be left without those.
const LEAST_OTHERS: usize = 5;

/// Visits of a group's pages, of whatever way.
#[derive(Clone, Debug)]
pub struct PageVisits {
    waits: Recurrence,
    /// Pages that are present, as a mean over the time that any is.
    pub pages: f64,
    /// Page-seconds of pages that are present.
    pub page_seconds: f64,
}

impl PageVisits {
    /// From the looks of a group, each with its weight times a factor.
    pub fn of(group: &Group, visits: &[Option<Visit>], pages: f64, factor: impl Fn(usize) -> f64) -> Self {
        let weigh = |scattered: bool| -> f64 {
            let of = |visit: &Visit| (visit.way == VisitPattern::Scatter) == scattered;
            group.looks.iter().zip(visits).filter(|(_, visit)| visit.as_ref().is_some_and(of)).map(|(look, _)| look.weight).sum()
        };
        let scattered = weigh(true) > weigh(false);
        let mid_visit = |look: &Look, visit: &Option<Visit>| visit.is_some_and(|visit| is_mid_visit(look, &visit));
        let pairs = || group.looks.iter().zip(visits);
        let (mid, touched) =
            (pairs().filter(|(look, visit)| mid_visit(look, visit)).count(), pairs().filter(|pair| pair.1.is_some()).count());
        // Where a sweep is nearly always in it, that is all there is to know.
        let skips = touched - mid.min(touched) >= LEAST_OTHERS.max(touched / 20);
        let (mut all, mut there) = (0.0, 0.0);
        let mut waits = Vec::with_capacity(visits.len());
        for (at, (look, visit)) in group.looks.iter().zip(visits).enumerate() {
            let weight = look.weight * factor(at);
            all += weight;
            if look.watch.end == WatchEnd::Absent {
                continue;
            }
            there += weight;
            if skips && mid_visit(look, visit) {
                continue;
            }
            let far = visit.map_or(scattered, |visit| visit.way == VisitPattern::Scatter);
            waits.push(Wait {
                seconds: wait_of(look, far),
                weight,
                outcome: outcome(look, true),
                stratum: stratum(at, visits.len()),
            });
        }
        waits.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let present = if all > 0.0 { there / all } else { 0.0 };
        let shape = if scattered { Shape::Memoryless } else { Shape::Even };
        Self {
            waits: Recurrence::of(&waits, shape, SIGNIFICANT),
            pages: pages * present,
            page_seconds: group.page_seconds * present,
        }
    }

    /// In the competition with other objects over so many seconds: what lives half of the time counts half.
    pub fn sharing(&self, seconds: f64) -> Self {
        Self { pages: self.page_seconds / seconds, ..self.clone() }
    }

    /// Bytes of pages that are touched within `seconds`.
    fn bytes(&self, seconds: f64) -> f64 {
        self.pages * PAGE as f64 * self.waits.cdf(seconds)
    }

    /// Visits in all that follow a gap longer than `seconds`.
    fn missing(&self, seconds: f64) -> f64 {
        self.page_seconds * self.waits.density(seconds)
    }

    /// Which process and instruction makes how many of the visits that follow a gap longer than `seconds`: `group` and `visits`
    /// are what it was made of. Long gaps are seen more often than they are, so only waits of which one is as good a sample as the
    /// other count.
    pub fn places(&self, group: &Group, visits: &[Option<Visit>], seconds: f64) -> Vec<(usize, u64, f64)> {
        let end = self.waits.around(seconds).1;
        let touches = group.looks.iter().zip(visits).filter_map(|(look, visit)| {
            let wait = wait_of(look, visit.as_ref()?.way == VisitPattern::Scatter);
            (wait >= seconds && wait <= end).then_some((look.process, look.watch.ip, look.weight))
        });
        let mut touches: Vec<_> = touches.collect();
        let all: f64 = touches.iter().map(|touch| touch.2).sum();
        let each = if all > 0.0 { self.missing(seconds) / all } else { 0.0 };
        touches.iter_mut().for_each(|touch| touch.2 *= each);
        touches
    }
}

/// How long pages stay in the least memory that curves begin with.
pub fn least_kept(all: &[PageVisits]) -> f64 {
    let bytes = |seconds: f64| all.iter().map(|one| one.bytes(seconds)).sum::<f64>();
    kept(least_bytes(bytes(f64::MAX)), bytes)
}

/// Bytes of memory that is too little for any use, of something that has `most` bytes of touched pages: visits that it serves are
/// part of one visit, as touches of the lines of a page are. Curves are shares of the visits that it misses.
pub fn least_bytes(most: f64) -> f64 {
    (most / 128.0).clamp(0.0, 16.0 * PAGE as f64).max(most / 1024.0)
}

/// The curve of one group, or of all of a program, and the visits that it is a share of. `pages` of each: how many it has in near
/// memory's competition, as a mean over time.
pub fn curve(all: &[&PageVisits]) -> (Curve, f64) {
    let bytes = |seconds: f64| all.iter().map(|one| one.bytes(seconds)).sum::<f64>();
    let missing = |seconds: f64| all.iter().map(|one| one.missing(seconds)).sum::<f64>();
    let least = least_bytes(bytes(f64::MAX));
    let first = kept(least, bytes);
    let visits = if first.is_finite() { missing(first) } else { 0.0 };
    if visits <= 0.0 {
        return (Curve { points: vec![(0.0, 1.0), (least.max(1.0), 0.0)] }, 0.0);
    }
    let mut times: Vec<f64> = all.iter().flat_map(|one| one.waits.knots()).flat_map(|knot| [knot * (1.0 - 1e-9), knot]).collect();
    times.retain(|&time| time > first);
    times.sort_by(f64::total_cmp);
    let last = times.last().copied().unwrap_or(first).max(first);
    const STEPS: usize = 32;
    // Even steps in bytes would be dear to find; steps of equal ratio in time are close to them where curves bend.
    let ratio = (last / first).max(1.0).powf(1.0 / STEPS as f64);
    times.extend((1..STEPS).map(|step| first * ratio.powi(step as i32)));
    times.extend((1..STEPS).map(|step| first + (last - first) * step as f64 / STEPS as f64));
    times.sort_by(f64::total_cmp);
    let mut points = vec![(0.0, 1.0), (bytes(first).max(1.0), 1.0)];
    let mut lowest = 1.0_f64;
    for time in times {
        lowest = lowest.min(missing(time) / visits);
        let at = bytes(time).max(points.last().map_or(0.0, |&(at, _)| at));
        points.push((at, lowest));
    }
    let end = points.last().map_or(0.0, |&(at, _)| at);
    points.push((end, 0.0));
    (Curve { points: thin(points) }, visits)
}

/// Leaves out points that lie on the line of their neighbours.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for (at, &(x, y)) in points.iter().enumerate() {
        if let (Some(&(x0, y0)), Some(&(x1, y1))) = (kept.last(), points.get(at + 1)) {
            let on_line = x1 > x0 && (y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y).abs() < 1e-3;
            if on_line || (x <= x0 && x1 <= x && at > 1) {
                continue;
            }
        }
        kept.push((x, y));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_go_and_cliffs_stay() {
        let points = vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (3.0, 0.5), (3.0, 0.0)];
        assert_eq!(thin(points), [(0.0, 1.0), (3.0, 1.0), (3.0, 0.0)]);
    }

    #[test]
    fn nothing_seen_misses_nothing() {
        let (curve, visits) = curve(&[]);
        assert_eq!((visits, curve.at(0.0), curve.at(1e9)), (0.0, 1.0, 0.0));
    }
}

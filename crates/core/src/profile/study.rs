//! What is concluded of a group by itself, before the cache that it shares with others is known.

use super::groups::{self, Group, seconds};
use super::interval::finite;
use super::misses::PageVisits;
use super::names::Names;
use super::record::{Brief, Kind, WatchEnd};
use super::recurrence::SIGNIFICANT;
use super::samples::Tally;
use super::summary::{ALWAYS_MAPPED, Estimate, Pattern};
use super::timeline::{PAGE, Timeline};
use super::traffic::{Flows, order};
use super::visits::{Code, LINES, Visit, visits};

/// A group with what was concluded of its looks.
pub struct Studied<'a> {
    pub group: &'a Group,
    /// The same with times of the clock that goes by memory: what concerns caches is in those.
    pub paced: &'a Group,
    /// The same with times of the clock that goes by visits of pages: what concerns near memory is in those.
    pub paged: &'a Group,
    pub visits: Vec<Option<Visit>>,
    pub flows: Flows,
    pub page_visits: PageVisits,
    /// Most bytes at a time: at all, and per bin.
    pub peak: u64,
    pub live: Vec<f64>,
    /// Bytes that are first touched, in all.
    pub fresh: f64,
    pub read: Estimate,
    pub written: Estimate,
    pub page_visit_count: Estimate,
    /// What the processor sampled of it, and how many looks that is worth.
    pub tally: Tally,
    pub sampled: f64,
}

/// How many bytes more or less there are of objects, in order of time.
fn changes<'a>(items: impl Iterator<Item = &'a groups::Item>) -> Vec<(f64, i128)> {
    let mut changes = Vec::new();
    for item in items {
        for (from, to, len) in item.spans() {
            changes.extend([(from, i128::from(len)), (to, -i128::from(len))]);
        }
    }
    // What ends makes room before what begins at the same moment.
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    changes
}

/// Most bytes of objects at a time.
pub fn peak<'a>(items: impl Iterator<Item = &'a groups::Item>) -> u64 {
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes(items) {
        now += change;
        most = most.max(now);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Pages of a group, as a mean over the time that there are any.
fn mean_pages(group: &Group, (begin, end): (f64, f64)) -> f64 {
    let mut alive = Timeline::new(begin, end, 1024);
    group.items.iter().for_each(|item| alive.add(item.begin(), item.end, item.end - item.begin()));
    let width = (end - begin).max(1e-9) / 1024.0;
    let lived: f64 = alive.bins.iter().map(|seconds| seconds.min(width)).sum();
    if lived > 0.0 { group.page_seconds / lived } else { 0.0 }
}

/// What can be said of a group without the others.
pub fn study<'a, N: Names + ?Sized>(
    group: &'a Group,
    (paced, paged): (&'a Group, &'a Group),
    code: &mut Code<'_, N>,
    (begin, end, bin): (f64, f64, f64),
) -> Studied<'a> {
    let visits = visits(group, code);
    let flows = Flows::of(paced, &visits, &order(paced), SIGNIFICANT, |_| 1.0);
    let mut live = Timeline::highest(begin, end, bin, &changes(group.items.iter()));
    let mut brief_seconds = Timeline::with_bin(begin, end, bin);
    for (at, brief) in &group.briefs {
        brief_seconds.add((at - 0.25).max(begin), *at, groups::brief_page_seconds(brief) * PAGE as f64);
    }
    // When each was there is not recorded: their mean. The last bin may be shorter than the others.
    for (number, (live, brief)) in live.bins.iter_mut().zip(&brief_seconds.bins).enumerate() {
        *live += brief / (end - begin - number as f64 * bin).clamp(1e-3 * bin, bin);
    }
    let largest = group.briefs.iter().map(|(_, brief)| brief.largest).max().unwrap_or(0);
    let peak = peak(group.items.iter()).max(largest);
    let page_visits = PageVisits::of(paged, &visits, mean_pages(paged, (begin, end)), |_| 1.0);
    let fresh = fresh(group, flows.present, peak);
    let none = Estimate::default();
    Studied {
        group,
        paced,
        paged,
        visits,
        flows,
        page_visits,
        peak,
        live: live.bins,
        fresh,
        read: none,
        written: none,
        page_visit_count: none,
        tally: Tally::default(),
        sampled: 0.0,
    }
}

/// Bytes that the kernel gives as zeros when they are touched first. Blocks that take the place of freed ones are not given anew: then no
/// look finds a page absent.
fn fresh(group: &Group, present: f64, peak: u64) -> f64 {
    // Memory that was never looked at is taken to be touched.
    let present = if group.looks.is_empty() { 1.0 } else { present };
    let absent = group.looks.iter().any(|look| look.watch.end == WatchEnd::Absent);
    let anew = |most: u64| absent || group.key.kind == Kind::Map || most >= ALWAYS_MAPPED;
    let all: f64 = group.items.iter().map(groups::Item::most).filter(|&most| anew(most)).map(|most| most as f64).sum();
    // The share of time that pages are absent says little of how many never come if each lives shortly.
    let came = if group.items.len() > 1 { present.max(0.5).sqrt() } else { present };
    came * all.max(peak as f64)
}

/// The pattern that most lines were visited in.
pub fn pattern(one: &Studied<'_>) -> Pattern {
    let mut weights = [(Pattern::Stream, 0.0), (Pattern::Strided, 0.0), (Pattern::Random, 0.0), (Pattern::Unknown, 0.0)];
    for (look, visit) in one.group.looks.iter().zip(&one.visits) {
        if let Some(visit) = visit {
            let weight = weights.iter_mut().find(|(pattern, _)| *pattern == visit.pattern);
            weight.into_iter().for_each(|(_, sum)| *sum += look.weight);
        }
    }
    weights
        .into_iter()
        .filter(|&(_, weight)| weight > 0.0)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map_or(Pattern::Unknown, |it| it.0)
}

/// Lines of a page that a visit touches, as a mean.
pub fn lines_per_visit(one: &Studied<'_>) -> Estimate {
    let (mut all, mut sum, mut squares, mut number) = (0.0, 0.0, 0.0, 0.0);
    for (look, visit) in one.group.looks.iter().zip(&one.visits) {
        if let Some(visit) = visit {
            all += look.weight;
            sum += look.weight * visit.lines;
            squares += look.weight * visit.lines * visit.lines;
            number += 1.0;
        }
    }
    if all <= 0.0 {
        return Estimate { value: LINES / 2.0, low: 1.0, high: LINES };
    }
    let mean = sum / all;
    let error = 1.645 * ((squares / all - mean * mean).max(0.0) / number).sqrt() + mean * 0.3 / number;
    finite(mean, (mean - error).max(1.0), (mean + error).min(LINES))
}

/// Memory ever touched.
pub fn footprint(one: &Studied<'_>) -> Estimate {
    let looks = one.group.looks.len() as f64;
    let most = one.peak as f64;
    if looks == 0.0 {
        return finite(most, 0.0, most);
    }
    let present = one.flows.present;
    let error = 1.645 * (present * (1.0 - present) / looks).sqrt() + 1.5 / looks;
    // Looks are at random moments, so that memory that was filled slowly was often still absent: what is there in the end is more.
    let late = one.group.looks.iter().rev().take(looks as usize / 4 + 8);
    let (there, all) = late.fold((0.0, 0.0), |(there, all): (f64, f64), look| {
        (there + if look.watch.end == WatchEnd::Absent { 0.0 } else { look.weight }, all + look.weight)
    });
    let there = (there / all.max(f64::MIN_POSITIVE)).max(present);
    finite(most * there, most * (there - error).max(0.0), most * (there + error).min(1.0))
}

/// Name, sizes and times that need no estimate.
pub fn sizes(group: &Group) -> (u64, u64, u64, f64) {
    let brief = |of: fn(&Brief) -> u64| group.briefs.iter().map(move |(_, brief)| of(brief));
    let count = group.items.len() as u64 + brief(|brief| brief.count).fold(0, u64::saturating_add);
    let least = group.items.iter().map(groups::Item::most).chain(brief(|brief| brief.bytes / brief.count.max(1))).min();
    let most = group.items.iter().map(groups::Item::most).chain(brief(|brief| brief.largest)).max();
    let lived = group.items.iter().map(|item| item.end - item.begin()).sum::<f64>()
        + brief(|brief| brief.lifetime_ns).map(seconds).sum::<f64>();
    (count, least.unwrap_or(0), most.unwrap_or(0), lived / count.max(1) as f64)
}

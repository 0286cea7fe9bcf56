//! A group as people and other tools see it.

use super::groups::{Look, brief_page_seconds, pages};
use super::misses;
use super::names::Names;
use super::record::{Kind, WatchEnd};
use super::routines::Routines;
use super::samples::Sums;
use super::study::{self, Studied};
use super::summary::{NamedFrame, ObjectGroup};
use super::timeline::Timeline;
use super::title;
use super::traffic::wait_of;
use super::visits::{Code, LINES, Visit, VisitPattern};

/// So many objects that each live for less than this share of the run are temporary.
const MANY: u64 = 8;
const BRIEF: f64 = 0.1;

/// How many bytes from and to memory a look's visit is a sample of; only proportions matter.
pub fn amount(look: &Look, visit: &Visit, kept: f64) -> f64 {
    let scattered = visit.way == VisitPattern::Scatter;
    let kept = if scattered { kept * visit.lines / LINES } else { kept };
    let missed = if wait_of(look, scattered) >= kept { 1.0 } else { visit.fresh };
    look.weight * visit.lines * (visit.reads + visit.writes) * missed
}

/// Of the mean waiting in a bin: bins with less are drawn to the mean rate of visits.
const LEAST_WAITING: f64 = 0.3;
/// Looks count for so many times as long as a quarter of those that end in a touch wait: pages that are visited seldom wait for long, and
/// what ends when a phase begins is one visit of each page.
const WAITS: f64 = 8.0;

/// Seconds that looks count for; 0: none was touched.
fn counting(one: &Studied<'_>) -> f64 {
    let touched = one.group.looks.iter().zip(&one.visits).filter(|(_, visit)| visit.is_some());
    let mut waits: Vec<f64> = touched.map(|(look, _)| look.waited).collect();
    waits.sort_by(f64::total_cmp);
    waits.get(waits.len() / 4).map_or(0.0, |wait| WAITS * wait)
}

/// Page-seconds of the group in each bin.
fn page_seconds(one: &Studied<'_>, (begin, end, bin): (f64, f64, f64)) -> Timeline {
    let mut present = Timeline::with_bin(begin, end, bin);
    for (from, to, len) in one.group.items.iter().flat_map(|item| item.spans()) {
        present.add(from, to, pages(len) * (to - from).max(0.0));
    }
    for (at, brief) in &one.group.briefs {
        present.add((at - 0.25).max(begin), *at, brief_page_seconds(brief));
    }
    present
}

/// Traffic over time: each visit stands for those around it, while its object lives. What is seen in a stretch is held against how long
/// looks waited in it: when a page is visited again tells nothing of the moment that the look at it began.
fn timeline(one: &Studied<'_>, kept: f64, time @ (begin, end, bin): (f64, f64, f64)) -> Vec<f64> {
    let looks = &one.group.looks;
    let mut line = Timeline::with_bin(begin, end, bin);
    let total = one.read.value + one.written.value;
    let mut waiting = Timeline::with_bin(begin, end, bin);
    let most = counting(one);
    for (at, (look, visit)) in looks.iter().zip(&one.visits).enumerate() {
        if look.watch.end == WatchEnd::Absent {
            continue;
        }
        let (first, last) = (looks[at.saturating_sub(3)].at, looks[(at + 3).min(looks.len() - 1)].at);
        let (from, to) =
            one.group.items.get(look.item).map_or((first, last), |item| (first.max(item.begin()), last.min(item.end)));
        let (from, to, waited) = (from.min(look.at), to.max(look.at), look.waited.min(most));
        // Both in the same stretch, that of the looks around it, moved by the wait.
        waiting.add(from, to + waited, look.weight * waited);
        let amount = visit.map_or(0.0, |visit| amount(&one.paced.looks[at], &visit, kept));
        if amount > 0.0 && look.waited <= most {
            line.add(from + waited, to + waited, amount);
        }
    }
    let (seen, waited): (f64, f64) = (line.bins.iter().sum(), waiting.bins.iter().sum());
    if seen > 0.0 && waited > 0.0 {
        let least = LEAST_WAITING * waited / line.bins.len() as f64;
        for ((bin, waiting), present) in line.bins.iter_mut().zip(&waiting.bins).zip(&page_seconds(one, time).bins) {
            *bin = (*bin + least * seen / waited) / (waiting + least) * present;
        }
    }
    let sum: f64 = line.bins.iter().sum();
    let fresh = if kept.is_finite() { one.fresh.min(one.written.value) } else { 0.0 };
    let scale = |line: &mut Timeline, sum: f64, to: f64| {
        line.bins.iter_mut().for_each(|bin| *bin *= if sum > 0.0 { to / sum } else { 0.0 })
    };
    scale(&mut line, sum, total - fresh);
    // What no visit accounts for: first touches after the beginning of each object, and groups without looks while they live.
    let sampled: f64 = one.tally.bins.iter().sum();
    let is_sampled = sum <= 0.0 && sampled > 0.0 && one.tally.bins.len() == line.bins.len();
    if is_sampled {
        line.bins.iter_mut().zip(&one.tally.bins).for_each(|(bin, events)| *bin = (total - fresh) * events / sampled);
    }
    let rest = if sum > 0.0 || is_sampled { fresh } else { total };
    let mut other = Timeline::with_bin(begin, end, bin);
    for item in &one.group.items {
        let to = if one.group.looks.is_empty() { item.end } else { item.end.min(item.begin() + bin) };
        other.add(item.begin(), to, item.most() as f64);
    }
    for (at, brief) in &one.group.briefs {
        other.add((at - 0.25).max(begin), *at, brief.bytes as f64);
    }
    let sum = other.bins.iter().sum();
    scale(&mut other, sum, rest);
    line.bins.iter().zip(&other.bins).map(|(one, other)| one + other).collect()
}

/// Adds who touches it by samples to `visits`: each sample counts as much as a look that saw a touch, but no more than samples tell at all.
fn sampled(visits: &mut Vec<(usize, u64, f64)>, one: &Studied<'_>) {
    let (looks, all) = (visits.len() as f64, visits.iter().map(|visit| visit.2).sum::<f64>());
    let of = |sums: &Sums| sums.memory.events + sums.stores.events * one.tally.all.memory_share().unwrap_or(1.0);
    let events: f64 = one.tally.by_ip.values().map(of).sum();
    if one.sampled <= 0.0 || events <= 0.0 {
        return;
    }
    // The sum stays what it was, as it is compared with other objects'; without looks it is in bytes, as all are then.
    let (by_looks, by_samples) = match all > 0.0 {
        true => (looks / (looks + one.sampled), all * one.sampled / (looks + one.sampled)),
        false => (1.0, one.read.value + one.written.value),
    };
    visits.iter_mut().for_each(|visit| visit.2 *= by_looks);
    visits.extend(one.tally.by_ip.iter().map(|(&(process, ip), sums)| (process, ip, by_samples * of(sums) / events)));
}

/// The group number `at`.
pub(super) fn object<N: Names + ?Sized>(
    at: usize,
    one: &Studied<'_>,
    kept: f64,
    time: (f64, f64, f64),
    names: &N,
    routines: &mut Routines<'_, N>,
    code: &mut Code<'_, N>,
) -> ObjectGroup {
    let group = one.group;
    let (handed_on, frames) = match group.origin.1.is_empty() {
        true if group.key.kind == Kind::Static && !group.key.library.is_empty() => {
            (Vec::new(), vec![NamedFrame { module: group.key.library.clone(), ..NamedFrame::default() }])
        }
        true => (Vec::new(), Vec::new()),
        false => title::split_at_asker(names.frames(group.origin.0, &group.origin.1)),
    };
    let seen = || one.paced.looks.iter().zip(&one.visits).filter_map(|(look, visit)| Some((look, visit.as_ref()?)));
    let missing = seen().any(|(look, visit)| amount(look, visit, kept) > 0.0);
    let mut visits: Vec<_> = seen()
        .map(|(look, visit)| {
            let amount = if missing { amount(look, visit, kept) } else { look.weight * visit.lines };
            (look.process, look.watch.ip, amount)
        })
        .collect();
    sampled(&mut visits, one);
    let shares = routines.visits(at, one.read + one.written, &visits, code);
    let (count, least, most, lifetime_s) = study::sizes(group);
    let (misses, _) = misses::curve(&[&one.page_visits]);
    let symbol = names.spoken(&group.key.symbol);
    let known = title::Known {
        kind: group.key.kind,
        symbol: &symbol,
        library: &group.key.library,
        script: &group.script,
        handed_on: &handed_on,
        frames: &frames,
        brief: count >= MANY && lifetime_s < BRIEF * (time.1 - time.0),
    };
    ObjectGroup {
        name: title::title(&known),
        kind: group.key.kind,
        symbol: if group.key.kind == Kind::Static { group.key.symbol.clone() } else { String::new() },
        handed_on,
        frames,
        count,
        least,
        most,
        peak_bytes: one.peak,
        live_bytes: one.live.clone(),
        lifetime_s,
        footprint: study::footprint(one),
        read: one.read,
        written: one.written,
        changed: one.flows.changed(kept),
        traffic: timeline(one, kept, time),
        lines_per_visit: study::lines_per_visit(one),
        pattern: if one.visits.iter().any(Option::is_some) { study::pattern(one) } else { one.tally.pattern(code) },
        misses,
        page_visits: one.page_visit_count,
        routines: shares,
        busy_s: 0.0,
        looks: group.looks.len() as u64,
        touches: one.visits.iter().flatten().count() as u64,
        samples: one.tally.all.samples,
        load_cycles: one.tally.all.load_cycles(),
    }
}

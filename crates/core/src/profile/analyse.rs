//! Records to conclusions: a whole profile, or several of one job, as a [`Summary`].

use super::file::Content;
use super::groups::{self, Group, seconds};
use super::interval::{REPLICATES, finite, interval};
use super::memory_clock::Phases;
use super::misses::{self, PageVisits};
use super::names::Names;
use super::process::{Process, split};
use super::record::{Cost, Method, Record, Start};
use super::recurrence::{POSSIBLE, SIGNIFICANT};
use super::routines::Routines;
use super::study::{Studied, peak, study};
use super::summary::{Estimate, FORMAT, Summary};
use super::timeline::bin_seconds;
use super::traffic::{Flows, order};
use super::visits::{Code, LINE, VisitPattern, visits};
use super::{cache, combine, describe, fine, notes, samples, title};
use crate::random_numbers::Random;
use std::collections::HashSet;

/// A cache that most machines have more than, and few programs need less than.
const USUAL_CACHE: u64 = 32 << 20;

/// What the reader of a profile may know better.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Bytes of the last-level cache; `None`: as recorded.
    pub cache_bytes: Option<u64>,
}

/// How long a cache keeps lines, if groups' pages are visited so.
fn kept<'a>(lines: f64, wall: f64, all: impl Iterator<Item = &'a Flows> + Clone) -> f64 {
    // Objects that do not live all the time take their share of the cache as a mean.
    cache::kept(lines, |time| all.clone().map(|flows| flows.page_seconds / wall * flows.touched(time)).sum())
}

/// The whole of a profile. `names` answers for the processes of `content` in the order of [`split`].
pub fn analyse(content: &Content, names: &dyn Names, options: &Options) -> Summary {
    let processes = split(content);
    let starts: Vec<&Start> = processes.iter().filter_map(|process| process.start).collect();
    let (begin, end) = groups::period(&processes);
    let wall = (end - begin).max(1e-9);
    let bin_s = bin_seconds(wall);
    let recorded = starts.iter().map(|start| start.cache_bytes).max().unwrap_or(0);
    let cache_bytes = options.cache_bytes.unwrap_or(if recorded > 0 { recorded } else { USUAL_CACHE });
    let hosts = starts.iter().map(|start| &start.host).collect::<HashSet<_>>().len().max(1);
    let mut groups = groups::collect(&processes);
    let mut code = Code::new(names);
    groups.iter_mut().for_each(|group| fine::prefer(group, &mut code));
    let lines = cache_bytes as f64 / LINE * hosts as f64;
    let mut phases = Phases::of(&processes, names);
    let paced = paced(&groups, &mut phases, names, &mut code, lines, (begin, end, bin_s));
    let paged = paged(&groups, &mut phases, names, &mut code, (begin, end));
    let study = |(group, clocks)| study(group, clocks, &mut code, (begin, end, bin_s));
    let mut studied: Vec<_> = groups.iter().zip(paced.iter().zip(&paged)).map(study).collect();
    let kept = traffic(&mut studied, lines, wall);
    let mut sampled = samples::tally(&processes, &groups, (begin, end, bin_s));
    let method = method(&starts, groups.iter().any(|group| !group.looks.is_empty()), sampled.tell());
    for (one, tally) in studied.iter_mut().zip(&mut sampled.tallies) {
        one.tally = std::mem::take(tally);
    }
    match method {
        Method::Both => combine::with_looks(&mut studied, &sampled, &mut code),
        Method::Hardware => combine::without_looks(&mut studied, &sampled, lines),
        _ => {}
    }
    let mut routines = Routines::new(names, (begin, end, bin_s));
    let times: Vec<f64> = processes.iter().enumerate().map(|(at, process)| routines.time(at, process, &mut code)).collect();
    let mut objects: Vec<_> = studied
        .iter()
        .enumerate()
        .map(|(at, one)| describe::object(at, one, kept, (begin, end, bin_s), names, &mut routines, &mut code))
        .collect();
    for (object, busy) in objects.iter_mut().zip(routines.busy(studied.len())) {
        object.busy_s = busy;
    }
    objects.sort_by(|one, other| {
        let by_size = || other.peak_bytes.cmp(&one.peak_bytes).then_with(|| one.name.cmp(&other.name));
        other.total().value.total_cmp(&one.total().value).then_with(by_size)
    });
    title::distinguish(objects.iter_mut().map(|object| &mut object.name));
    let (cpu_s, overhead) = cost(&processes, &times);
    // In the competition for memory, objects that live half of the time count half.
    let shared: Vec<_> = studied.iter().map(|one| one.page_visits.sharing(wall)).collect();
    let first = starts.first();
    let mut summary = Summary {
        format: FORMAT,
        program: first.map(|start| start.program.clone()).unwrap_or_default(),
        args: first.map(|start| start.args.clone()).unwrap_or_default(),
        processes: processes.len() as u32,
        host: first.map(|start| start.host.clone()).unwrap_or_default(),
        method,
        wall_s: end - begin,
        cpu_s,
        bin_s,
        cache_bytes,
        least: starts.iter().map(|start| start.least).filter(|&least| least > 0).min().unwrap_or(0),
        peak_bytes: peak(groups.iter().flat_map(|group| &group.items)),
        objects,
        routines: routines.finish(),
        misses: misses::curve(&shared.iter().collect::<Vec<_>>()).0,
        overhead,
        samples: sampled.all.samples,
        samples_lost: sampled.lost,
        notes: Vec::new(),
    };
    summary.notes = notes::notes(content, &processes, &summary, recorded == 0 && options.cache_bytes.is_none());
    summary
}

/// What the estimates rest on: what was tried, less what has nothing to say.
fn method(starts: &[&Start], looked: bool, sampled: bool) -> Method {
    let tried = starts.iter().map(|start| start.method).find(|&method| method != Method::None).unwrap_or_default();
    match (looked, sampled) {
        (true, true) => Method::Both,
        (false, true) => Method::Hardware,
        // Looks that were tried and saw nothing, of programs that end at once.
        (_, false) if tried == Method::Both => Method::PageFaults,
        (_, false) => tried,
    }
}

/// A cache of this part of the size decides what counts as moved: the real size needs the clock that is being made. What the rest of
/// the cache holds counts, too. A clock made anew from what the first one says leaves that out, but runs away where few looks saw a
/// phase: an estimate too low gives them less weight, and so a lower one. Three rounds were further from the truth in four of four
/// rounds of programs (docs/explanation/how-profile-works.md).
const PART_OF_CACHE: f64 = 64.0;

/// The groups with times of the clock that goes by memory.
fn paced<N: Names + ?Sized>(
    groups: &[Group],
    phases: &mut Phases,
    names: &N,
    code: &mut Code<'_, N>,
    lines: f64,
    (begin, end, bin): (f64, f64, f64),
) -> Vec<Group> {
    if phases.is_empty() {
        return groups.to_vec();
    }
    let studied: Vec<_> = groups.iter().map(|group| study(group, (group, group), code, (begin, end, bin))).collect();
    let kept = kept(lines / PART_OF_CACHE, (end - begin).max(1e-9), studied.iter().map(|one| &one.flows));
    let moved =
        studied.iter().flat_map(|one| {
            let lines = one.flows.lines(kept);
            let amounts =
                one.paced.looks.iter().zip(&one.visits).filter_map(|(look, visit)| {
                    Some((look.process, look.watch.ip, describe::amount(look, visit.as_ref()?, kept)))
                });
            let amounts: Vec<_> = amounts.collect();
            let sum: f64 = amounts.iter().map(|one| one.2).sum();
            let scale = if sum > 0.0 { (lines.read + lines.written) / sum } else { 0.0 };
            amounts.into_iter().map(move |(process, ip, amount)| (process, ip, amount * scale))
        });
    let pace = phases.pace(moved.collect::<Vec<_>>().into_iter(), names, (begin, end));
    groups.iter().map(|group| pace.group(group)).collect()
}

/// How often the clock by visits is made anew from what it says.
const ROUNDS: usize = 3;

/// The groups with times of a clock that goes by visits of pages: how long a page stays near depends on how many others are visited
/// meanwhile, which a walk at random does at every line and a sweep at every 64th.
fn paged<N: Names + ?Sized>(
    groups: &[Group],
    phases: &mut Phases,
    names: &N,
    code: &mut Code<'_, N>,
    (begin, end): (f64, f64),
) -> Vec<Group> {
    let mut paged = groups.to_vec();
    if phases.is_empty() {
        return paged;
    }
    let visits: Vec<_> = groups.iter().map(|group| visits(group, code)).collect();
    for _ in 0..ROUNDS {
        let wall = (end - begin).max(1e-9);
        let of = |(group, visits): (&Group, &Vec<_>)| PageVisits::of(group, visits, 0.0, |_| 1.0).sharing(wall);
        let all: Vec<_> = paged.iter().zip(&visits).map(of).collect();
        let least = misses::least_kept(&all);
        let mut visited = Vec::new();
        for ((group, visits), page_visits) in paged.iter().zip(&visits).zip(&all) {
            visited.extend(page_visits.places(group, visits, least));
        }
        let pace = phases.pace(visited.into_iter(), names, (begin, end));
        paged = groups.iter().map(|group| pace.group(group)).collect();
    }
    paged
}

/// Estimates the traffic of all groups; returns for how long the cache keeps a line.
fn traffic(studied: &mut [Studied<'_>], lines: f64, wall: f64) -> f64 {
    let time = kept(lines, wall, studied.iter().map(|one| &one.flows));
    let orders: Vec<_> = studied.iter().map(|one| order(one.paced)).collect();
    let mut again = vec![[const { Vec::new() }; 3]; studied.len()];
    for replicate in 0..REPLICATES {
        // Every other time with what may be there but is not sure, so that intervals cover it.
        let price = if replicate % 2 == 0 { SIGNIFICANT } else { POSSIBLE };
        let mut drawn = Vec::with_capacity(studied.len());
        for (at, one) in studied.iter().enumerate() {
            let mut random = Random::new((replicate * 1_000_003 + at + 1) as u64);
            let factors: Vec<f64> = one.group.looks.iter().map(|_| random.exponential()).collect();
            let flows = Flows::of(one.paced, &one.visits, &orders[at], price, |look| factors[look]);
            let page_visits = PageVisits::of(one.paged, &one.visits, one.page_visits.pages, |look| factors[look]);
            drawn.push((flows, page_visits));
        }
        let time = kept(lines, wall, drawn.iter().map(|(flows, _)| flows));
        for ((flows, page_visits), again) in drawn.iter().zip(&mut again) {
            let lines = flows.lines(time);
            again[0].push(lines.read * LINE);
            again[1].push(lines.written * LINE);
            again[2].push(misses::curve(&[page_visits]).1);
        }
    }
    for (one, [reads, writes, page_visits]) in studied.iter_mut().zip(&mut again) {
        // The mean of the middle half of the replicates, not the estimate from the looks as they are: where a curve has its knots
        // changes with single looks, and what changes so is worse than its mean (Breiman's bagging). The outer ones are far off.
        let (read, above) = (middle(reads), middle(writes));
        // Memory that is touched first is written back once, if the cache does not hold everything.
        let base = if time.is_finite() { one.fresh } else { 0.0 };
        let most = one.flows.most_lines(time);
        let touches = one.flows.touches(time);
        let model = model_error(one);
        one.read = widened(interval(read, reads, touches, most.read * LINE), model);
        let written = base + above;
        let above = interval(above, writes, touches, most.written * LINE);
        let above = widened(above, model);
        // What fits the cache may never be written back.
        let surely = if one.peak as f64 > lines * LINE { 0.5 * base } else { 0.0 };
        one.written = finite(written, above.low + surely, above.high + 1.1 * base);
        let seen = one.visits.iter().flatten().count() as f64;
        one.page_visit_count = interval(misses::curve(&[&one.page_visits]).1, page_visits, seen, most.read.max(most.written));
    }
    unseen(studied, time);
    time
}

/// The mean of the middle half of some, which it puts in order; 0 of none.
fn middle(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    let inner = &all[all.len() / 4..all.len() - all.len() / 4];
    inner.iter().sum::<f64>() / inner.len().max(1) as f64
}

/// What the estimate of a group may be off beside chance, as a share of it: programs whose traffic is known came out so (`nearfar bench
/// profile truth`), those with gaps in their lines worse than those that go through all.
fn model_error(one: &Studied<'_>) -> f64 {
    const WHOLE: f64 = 0.08;
    const PARTS: f64 = 0.3;
    let (mut all, mut parts) = (0.0, 0.0);
    for (look, visit) in one.paced.looks.iter().zip(&one.visits) {
        if let Some(visit) = visit {
            all += look.weight;
            parts += if visit.way == VisitPattern::Sweep { 0.0 } else { look.weight };
        }
    }
    let share = if all > 0.0 { parts / all } else { 1.0 };
    WHOLE + (PARTS - WHOLE) * share
}

/// An interval with an error of the model added to that of chance, which has nothing to do with it.
fn widened(of: Estimate, model: f64) -> Estimate {
    let error = 1.645 * model * of.value;
    finite(of.value, of.value - (of.value - of.low).hypot(error), of.value + (of.high - of.value).hypot(error))
}

/// Groups that were never looked at: as if their memory were visited as the mean of the others is, or not at all.
fn unseen(studied: &mut [Studied<'_>], kept: f64) {
    let seen = |one: &&Studied<'_>| !one.group.looks.is_empty();
    let sum: f64 = studied.iter().filter(seen).map(|one| one.group.page_seconds).sum();
    let read: f64 = studied.iter().filter(seen).map(|one| one.read.value).sum();
    let written: f64 = studied.iter().filter(seen).map(|one| one.written.value).sum();
    for one in studied.iter_mut().filter(|one| one.group.looks.is_empty()) {
        let share = if sum > 0.0 { one.group.page_seconds / sum } else { 0.0 };
        // Whoever allocates memory writes it, once at least.
        let brief: f64 = one.group.briefs.iter().map(|(_, brief)| brief.bytes as f64).sum();
        let base = if kept.is_finite() { one.fresh.max(brief) } else { 0.0 };
        one.read = finite(read * share, 0.0, 3.0 * read * share + base);
        one.written = finite(written * share, 0.0, 3.0 * written * share + base);
    }
}

/// CPU seconds of the program, and the share of it that observing took. A process that did not end by exit is known by the samples of
/// its time; what it had taken when it executed another is in what that one says at its end.
fn cost(processes: &[Process<'_>], sampled: &[f64]) -> (f64, f64) {
    let (mut cpu, mut spent) = (0.0, 0.0);
    let mut before = vec![(0.0, 0.0); processes.len()];
    for (at, process) in processes.iter().enumerate() {
        let (mut last, mut end) = (Cost::default(), None);
        for record in &process.records {
            match record {
                Record::Cost(cost) => last = *cost,
                Record::End { cpu_user_ns, cpu_system_ns, .. } => end = Some(seconds(*cpu_user_ns) + seconds(*cpu_system_ns)),
                _ => {}
            }
        }
        spent += seconds(last.cpu_ns) + seconds(last.stall_ns) + seconds(last.hooks_ns);
        let (ours, samples) = (before[at].0 + seconds(last.cpu_ns), before[at].1 + sampled[at]);
        if let Some((next, _)) = process.became {
            before[next] = (ours, samples);
            continue;
        }
        cpu += end.map(|all| all - ours).filter(|&own| own > 0.0).unwrap_or(samples);
    }
    (cpu, if cpu > 0.0 { spent / cpu } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::super::file::Batch;
    use super::super::names::NoNames;
    use super::super::record::{Kind, Object, TimeSamples};
    use super::*;

    const S: u64 = 1_000_000_000;

    fn start(at: u64) -> Record {
        Record::Start(Start { at: at * S, least: 65536, ..Start::default() })
    }

    /// So many seconds of CPU time by samples.
    fn ran(at: u64, seconds: u32) -> Record {
        Record::Time(TimeSamples { at: at * S, period_ns: S, samples: vec![(1, 1, seconds)], ..TimeSamples::default() })
    }

    fn end(at: u64, cpu: u64) -> Record {
        Record::End { at: at * S, cpu_user_ns: cpu * S, cpu_system_ns: 0, peak_resident: 0 }
    }

    fn of(batches: Vec<(u32, Vec<Record>)>) -> Summary {
        let batches = batches.into_iter().map(|(pid, records)| Batch { pid, records }).collect();
        analyse(&Content { batches, lost_bytes: 0 }, &NoNames, &Options::default())
    }

    #[test]
    fn the_middle_of_replicates() {
        assert_eq!((middle(&mut []), middle(&mut [7.0])), (0.0, 7.0));
        assert_eq!((middle(&mut [9.0, 1.0]), middle(&mut [3.0, 100.0, 1.0, 2.0])), (5.0, 2.5));
        let mut all: Vec<f64> = (0..60).map(f64::from).chain([1e9]).collect();
        assert_eq!(middle(&mut all), 30.0);
    }

    #[test]
    fn time_of_processes_that_were_killed_counts() {
        let ended = (1, vec![start(0), ran(5, 4), end(9, 5)]);
        let killed = (2, vec![start(0), ran(5, 7)]);
        let summary = of(vec![ended, killed]);
        assert_eq!((summary.cpu_s, summary.least), (12.0, 65536));
        assert!(summary.notes.iter().any(|note| note.starts_with("1 of 2 processes")));
    }

    #[test]
    fn a_process_ends_where_it_executes_another() {
        let block = Object { id: 1, kind: Kind::Heap, addr: 4096, len: 1 << 20, site: 0, name: String::new(), at: S };
        let summary = of(vec![(1, vec![start(0), Record::Object(block), ran(2, 2), start(6), ran(9, 3), end(10, 6)])]);
        assert_eq!(summary.cpu_s, 6.0, "the time of a process goes on through exec");
        assert!((summary.objects[0].lifetime_s - 5.0).abs() < 1e-9, "until the exec");
        assert!(!summary.notes.iter().any(|note| note.contains("did not exit")), "{:?}", summary.notes);
    }

    #[test]
    fn bytes_of_a_bin_are_the_most_in_it() {
        // A second in 64: as a mean of its bin it would be half as large.
        let block = Object { id: 1, kind: Kind::Map, addr: 4096, len: 1 << 20, site: 0, name: String::new(), at: 20 * S };
        let summary = of(vec![(1, vec![start(0), Record::Object(block), Record::Gone { id: 1, at: 21 * S }, end(100, 1)])]);
        let live = &summary.objects[0].live_bytes;
        assert_eq!((summary.bin_s, live.iter().copied().fold(0.0, f64::max)), (2.0, f64::from(1 << 20)));
        assert_eq!(live.iter().filter(|&&bytes| bytes > 0.0).count(), 1);
    }
}

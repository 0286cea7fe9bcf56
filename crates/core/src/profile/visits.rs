//! What a visit of a page brings: how many of its lines, in which order, read or written. From the machine code where it is known,
//! else from breakpoints, else from where in the page the first touches lie: a stream enters at one end, a gather anywhere.

use super::groups::{Group, Look};
use super::names::{Access, Names, Step};
use super::record::WatchEnd;
use super::summary::Pattern;
use super::timeline::PAGE;
use std::collections::HashMap;

/// Lines of a page.
pub const LINES: f64 = 64.0;
/// Bytes of a line.
pub const LINE: f64 = 64.0;
/// Waits below are of looks that began in the middle of a visit, so that their first touch is anywhere.
pub const MID_VISIT: f64 = 20e-6;

/// How visits go through a page: what decides whether its lines are still in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VisitPattern {
    /// The whole page, or always the same part of it: its lines are as old as the last visit.
    Sweep,
    /// Some lines, other ones at the next visit, which lie beside them: columns of a matrix stored by rows.
    Column,
    /// Some lines anywhere: a line is touched more seldom than its page.
    Scatter,
}

/// All of them.
pub const WAYS: [VisitPattern; 3] = [VisitPattern::Sweep, VisitPattern::Column, VisitPattern::Scatter];

/// What a visit brings.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// How it goes.
    pub way: VisitPattern,
    /// Lines of a page.
    pub lines: f64,
    /// 1 or 0: whether lines that the caches do not hold are read from memory.
    pub reads: f64,
    /// How likely it writes, 0..=1.
    pub writes: f64,
    /// Share of its lines that are new although the page was just visited: of columns.
    pub fresh: f64,
    /// For people.
    pub pattern: Pattern,
}

/// Visits with something in common, of which one thing is concluded from all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Sort {
    Unknown,
    Varies,
    Step(i64),
}

fn sort(access: Option<Access>) -> Sort {
    match access.map(|access| access.step) {
        Some(Step::Varies) => Sort::Varies,
        Some(Step::Constant(step)) if step != 0 => Sort::Step(step),
        _ => Sort::Unknown,
    }
}

/// Whether a look ended by a touch.
pub fn touched(look: &Look) -> bool {
    matches!(look.watch.end, WatchEnd::Read | WatchEnd::Write)
}

/// Bytes of the region that a look took away, and where in it the first touch was.
fn place(look: &Look) -> Option<(f64, f64)> {
    let region = f64::from(look.watch.pages.max(1)) * PAGE as f64;
    let offset = look.watch.touched.checked_sub(look.watch.page).filter(|_| look.watch.touched != 0)?;
    ((offset as f64) < region).then_some((region, offset as f64))
}

/// Share of a region that a run of touches through it covers, from where first touches lie. Runs of r bytes that begin anywhere enter a
/// region of R at the zone of its beginning in (r/R + z) / (1 + r/R) of the visits, z being the zone's share.
fn covered(looks: &[&Look], zone: f64, backward: bool) -> Option<f64> {
    let late: Vec<_> = looks.iter().filter(|look| look.waited >= MID_VISIT).copied().collect();
    let looks = if late.is_empty() { looks } else { &late };
    let (mut all, mut leading, mut share) = (0.0, 0.0, 0.0);
    for (region, offset) in looks.iter().filter_map(|look| place(look)) {
        all += 1.0;
        share += (zone / region).min(0.9);
        let in_zone = if backward { offset >= region - zone } else { offset < zone };
        leading += f64::from(u8::from(in_zone));
    }
    if all == 0.0 {
        return None;
    }
    let (leading, share) = (leading / all, share / all);
    Some(((leading - share) / (1.0 - share)).clamp(0.0, 1.0))
}

/// What a sort of visits is concluded to be.
#[derive(Clone, Copy, Debug)]
struct Finding {
    way: VisitPattern,
    lines: f64,
    pattern: Pattern,
    /// Steps leave lines out, and which lines moves from visit to visit: by so many bytes. 0: they are the same.
    moves: f64,
}

const SWEEP: Finding = Finding { way: VisitPattern::Sweep, lines: LINES, pattern: Pattern::Stream, moves: 0.0 };
const SCATTER: Finding = Finding { way: VisitPattern::Scatter, lines: 1.0, pattern: Pattern::Random, moves: 0.0 };

/// Runs that cover only part of a page begin anywhere, so that they are scattered.
fn runs(covered: f64, whole: f64, pattern: Pattern) -> Finding {
    match covered {
        covered if covered > 0.7 => Finding { lines: whole, pattern, ..SWEEP },
        covered if covered > 0.25 => Finding { lines: (whole * covered).max(1.0), pattern, ..SWEEP },
        covered => Finding { lines: (whole * covered).max(1.0), ..SCATTER },
    }
}

fn conclude(sort: Sort, looks: &[&Look]) -> Finding {
    match sort {
        Sort::Step(step) if step.unsigned_abs() >= PAGE => {
            // The first touch after a long gap is nearly always in the first column, so where touches lie does not tell whether
            // columns move on; visits that follow each other soon do, and without those it makes no difference.
            Finding {
                way: VisitPattern::Column,
                lines: 1.0,
                pattern: Pattern::Strided,
                moves: between(looks, step.unsigned_abs()).max(1.0),
            }
        }
        Sort::Step(step) => {
            let size = step.unsigned_abs() as f64;
            let whole = (PAGE as f64 / size.max(LINE)).max(1.0);
            let zone = size.max(LINE);
            let pattern = if size > LINE { Pattern::Strided } else { Pattern::Stream };
            let found = runs(covered(looks, zone, step < 0).unwrap_or(1.0), whole, pattern);
            match size > LINE && found.way == VisitPattern::Sweep {
                true if moves(looks, step.unsigned_abs()) => {
                    Finding { way: VisitPattern::Column, moves: between(looks, step.unsigned_abs()).max(1.0), ..found }
                }
                true => Finding { way: VisitPattern::Column, ..found },
                false => found,
            }
        }
        // A gather through an index that is nearly in order is a sweep, though the code does not know.
        Sort::Varies => {
            match covered(looks, 8.0 * LINE, false).into_iter().chain(covered(looks, 8.0 * LINE, true)).reduce(f64::max) {
                Some(share) if share > 0.3 => runs(share, LINES, Pattern::Stream),
                _ => SCATTER,
            }
        }
        Sort::Unknown => {
            let (mut seen, mut of) = (0.0, 0.0);
            for (looked, touched) in looks.iter().filter_map(|look| look.watch.lines) {
                of += f64::from(looked);
                seen += f64::from(touched.min(looked));
            }
            if of >= 8.0 {
                let share = seen / of;
                return if share > 0.06 { Finding { lines: LINES * share, ..SWEEP } } else { SCATTER };
            }
            let share = covered(looks, LINE, false).into_iter().chain(covered(looks, LINE, true)).reduce(f64::max);
            share.map_or(Finding { pattern: Pattern::Unknown, ..SWEEP }, |share| runs(share, LINES, Pattern::Stream))
        }
    }
}

/// Bytes between the columns that visits go through: what all distances of first touches are multiples of. 0: all are in one column.
fn between(looks: &[&Look], step: u64) -> f64 {
    let mut offsets = looks.iter().filter(|look| look.watch.touched != 0).map(|look| look.watch.touched % step);
    let Some(first) = offsets.next() else { return 0.0 };
    offsets.fold(0, |all, offset| gcd(all, offset.abs_diff(first))) as f64
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Whether a stride starts elsewhere from visit to visit: columns do, fields of records do not.
fn moves(looks: &[&Look], step: u64) -> bool {
    let mut lines: Vec<_> =
        looks.iter().filter(|look| look.watch.touched != 0).map(|look| look.watch.touched % step / 8).collect();
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    lines.len() * 4 > all && lines.len() > 2
}

/// What is known of the code at an instruction, asked once.
pub struct Code<'a, N: Names + ?Sized> {
    names: &'a N,
    known: HashMap<(usize, u64), Option<Access>>,
}

impl<'a, N: Names + ?Sized> Code<'a, N> {
    /// Nothing was asked yet.
    pub fn new(names: &'a N) -> Self {
        Self { names, known: HashMap::new() }
    }

    /// What an instruction does.
    pub fn access(&mut self, process: usize, ip: u64) -> Option<Access> {
        if ip == 0 {
            return None;
        }
        let names = self.names;
        *self.known.entry((process, ip)).or_insert_with(|| names.access(process, ip))
    }
}

/// The visits that looks of a group saw, one per look; `None` where there was none.
pub fn visits<N: Names + ?Sized>(group: &Group, code: &mut Code<'_, N>) -> Vec<Option<Visit>> {
    let seen: Vec<_> = group.looks.iter().map(|look| touched(look).then(|| code.access(look.process, look.watch.ip))).collect();
    let mut sorts: HashMap<Sort, Vec<&Look>> = HashMap::new();
    for (look, access) in group.looks.iter().zip(&seen) {
        if let Some(access) = access {
            sorts.entry(sort(*access)).or_default().push(look);
        }
    }
    let followed = followed(group);
    let found: HashMap<Sort, Finding> = sorts.into_iter().map(|(sort, looks)| (sort, conclude(sort, &looks))).collect();
    group
        .looks
        .iter()
        .zip(seen)
        .map(|(look, access)| {
            let access = access?;
            let found = found.get(&sort(access)).copied().unwrap_or(SWEEP);
            // What was seen of other visits by this instruction counts for those that nobody followed.
            let writes = match look.watch.wrote {
                _ if look.watch.end == WatchEnd::Write => 1.0,
                Some(wrote) => f64::from(u8::from(wrote)),
                None => match followed.get(&(look.process, look.watch.ip)) {
                    Some(&(seen, wrote)) if seen >= 3.0 => wrote / seen,
                    _ => access.map_or(0.0, |access| f64::from(u8::from(access.also_writes))),
                },
            };
            let past_caches = access.is_some_and(|access| access.non_temporal);
            let size = access.map_or(8.0, |access| f64::from(access.size.max(1)));
            Some(Visit {
                way: found.way,
                lines: found.lines.clamp(1.0, LINES),
                reads: if past_caches { 0.0 } else { 1.0 },
                writes,
                fresh: if found.moves > 0.0 { (found.moves.max(size) / LINE).min(1.0) } else { 0.0 },
                pattern: found.pattern,
            })
        })
        .collect()
}

/// Visits that begin with a read by each instruction, of which it is known whether they write: how many, and how many do.
fn followed(group: &Group) -> HashMap<(usize, u64), (f64, f64)> {
    let mut followed: HashMap<_, (f64, f64)> = HashMap::new();
    for look in group.looks.iter().filter(|look| look.watch.end == WatchEnd::Read) {
        if let Some(wrote) = look.watch.wrote {
            let count = followed.entry((look.process, look.watch.ip)).or_default();
            *count = (count.0 + 1.0, count.1 + f64::from(u8::from(wrote)));
        }
    }
    followed
}

//! One stream of faults: where it is, which way it goes, how far ahead was issued. Knows nothing of other streams.
//!
//! Positions are *forward pages*: a stream that goes down is stored mirrored, so that every stream goes up. The mirror keeps
//! the alignment of blocks. Invariant: `origin <= run_first < run_end`, and `frontier >= run_end` while anything is issued.
//!
//! What lies between `run_end` and `frontier` was either issued and is `due`, or was in near when the frontier passed it. Such
//! holes, which retention leaves, do not count as far as the stream is ahead.

use super::limits::{Clock, Fit, Limits};
use super::stride_grid::StrideGrid;
use crate::addr::{BLOCK_PAGES, CHUNK_PAGES};
use crate::policy::{Found, Run, View};
use std::collections::VecDeque;
mod steps;

/// Page numbers stay below this (57-bit addresses have 45 bits of page); a multiple of a block, so mirroring keeps alignment.
pub(super) const LIMIT: u64 = 1 << 53;
const BLOCK: u64 = BLOCK_PAGES as u64;
const CHUNK: u64 = CHUNK_PAGES as u64;
const CONF_MAX: u8 = 8;
/// Advances after which a stream of whole units may prefetch.
const CONF_AHEAD: u8 = 2;
/// Advances after which a jump over resident data, or back to the start, is believed.
const CONF_JUMP: u8 = 4;
/// Faults of one thread after which a silent stream is stale, and the same once it has shown that it is slow.
const SPAN: u64 = 64;
const SPAN_PATIENT: u64 = 4096;
/// Pages that a stream may skip where it enters what follows; more, and random faults nearby pass for it.
const SLACK: u64 = 4;
/// What has left of a run comes back in order when at most so many pages between two pieces did not leave.
const HOLES: u64 = 2 * CHUNK;
/// Jumps over resident data are followed this far.
const JUMP: u64 = 256 * BLOCK;
/// Units that are looked at per fault to find what is in far.
const LOOK: u32 = 1024;
/// Steps of a strided stream for the same.
const LOOK_STEPS: u64 = 256;
/// Steps that a strided stream prefetches at first and at most.
const STEPS_START: u32 = 4;
const STEPS_MAX: u32 = 64;
/// Units that a sequential stream prefetches at first.
const UNITS_START: u32 = 2;
/// After a jump so small a part of a unit is shown; the rest waits to be asked for.
const PROBE: u64 = 8;
/// A strided stream's pieces grow to this many pages; a longer one is a stream in its own right.
const WIDTH_MAX: u32 = 16;
/// Pieces of a walk by columns grow to this many pages, while those of all its rows take at most this share of near.
const WALK_MAX: u64 = 64;
const WALK_SHARE: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sequential,
    Strided,
}

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Track {
    kind: Kind,
    flip: bool,
    owner: u32,
    /// Strided only: the grid.
    pace: Option<StrideGrid>,
    run_first: u64,
    run_end: u64,
    origin: u64,
    /// Where the stream ended the last time it came by; nothing is issued beyond until it gets there.
    bound: u64,
    /// Sequential: pages of the next run, a power of two. Strided: pages brought at each step.
    size: u64,
    /// One past the last page issued ahead, or seen in near.
    frontier: u64,
    /// First page and number of pages of what was issued beyond `run_end`, in order.
    due: VecDeque<(u64, u32)>,
    /// Units or steps to stay ahead.
    depth: u32,
    conf: u8,
    wasted: u8,
    /// Advances to go until it may prefetch again.
    muted: u8,
    patient: bool,
    /// It jumped here and has not gone on yet.
    trial: bool,
    /// Its next run is one page.
    timid: bool,
    /// Strided: pages from end to end of the longest column so far.
    longest: u64,
    /// Pages that a sequential stream may leave out between runs.
    slack: u64,
    /// End and size of the piece that was brought anew last, because it had left since the stream came by.
    anew: (u64, u64),
    seen_all: u64,
    seen_own: u64,
}

pub(super) fn mirror(flip: bool, page: u64) -> u64 {
    if flip { LIMIT - 1 - page } else { page }
}

/// End of a piece of `size` pages, which does not reach beyond the block.
fn piece_end(at: u64, size: u64) -> u64 {
    (at + size).min(at - at % BLOCK + BLOCK)
}

impl Track {
    /// A stream that was seen to go on right behind `before` (first, end; real pages), upwards or, when `flip`, downwards.
    pub fn sequential(flip: bool, before: (u64, u64), clock: &Clock) -> Self {
        let (first, end) = if flip { (mirror(true, before.1 - 1), mirror(true, before.0) + 1) } else { before };
        let size = (end - first).next_power_of_two().min(BLOCK);
        Self::new(Kind::Sequential, flip, (first, end), size, clock)
    }

    /// A stream that was seen at three places with equal distance, the last of them `page`, which brought `run` (real pages);
    /// `both` is the distance of the first and the last.
    pub fn strided(flip: bool, page: u64, both: u64, run: (u64, u64), clock: &Clock) -> Self {
        let (first, end) = if flip { (mirror(true, run.1 - 1), mirror(true, run.0) + 1) } else { run };
        let mut track = Self::new(Kind::Strided, flip, (first, end), 1, clock);
        let x = mirror(flip, page);
        track.pace = Some(StrideGrid::new(x, both));
        track.origin = x.saturating_sub(both).min(first);
        track.conf = 1;
        track.depth = STEPS_START;
        track
    }

    fn new(kind: Kind, flip: bool, (run_first, run_end): (u64, u64), size: u64, clock: &Clock) -> Self {
        Self {
            kind,
            flip,
            owner: clock.thread,
            pace: None,
            run_first,
            run_end,
            origin: run_first,
            bound: LIMIT,
            size,
            frontier: run_end,
            due: VecDeque::new(),
            depth: UNITS_START,
            conf: 0,
            wasted: 0,
            muted: 0,
            patient: false,
            trial: false,
            timid: false,
            longest: 0,
            slack: 0,
            anew: (LIMIT, 0),
            seen_all: clock.all,
            seen_own: clock.own,
        }
    }

    /// Pages (real, inclusive) outside of which [`Track::fit`] is `None`: a cheap first filter.
    pub fn window(&self) -> (u64, u64) {
        let low = self.origin.saturating_sub(if self.kind == Kind::Strided { CHUNK } else { 0 });
        let high = match self.kind {
            Kind::Sequential if self.conf >= CONF_JUMP => self.frontier.max(self.run_end) + JUMP,
            Kind::Sequential => self.frontier.max(self.run_end) + self.size,
            Kind::Strided => self.frontier.max(self.run_end) + 3 * self.step(),
        }
        .min(LIMIT - 1);
        if self.flip { (mirror(true, high), mirror(true, low)) } else { (low, high) }
    }

    /// True when the stream is worth more than a guess.
    pub fn confirmed(&self) -> bool {
        self.conf >= CONF_AHEAD
    }

    /// When the stream was last followed, in faults of all threads.
    pub fn last_seen(&self) -> u64 {
        self.seen_all
    }

    /// Pages between two steps; 0 for a sequential stream.
    pub fn step(&self) -> u64 {
        self.pace.as_ref().map_or(0, StrideGrid::length)
    }

    /// True while the stream prefetches whole units.
    pub fn prefetches(&self) -> bool {
        self.confirmed() && self.frontier > self.run_end
    }

    /// Distance of `page` from where the stream is expected; a stream of another thread counts as further away.
    pub fn distance(&self, page: u64, clock: &Clock) -> u64 {
        let stale = if self.live(clock) { 0 } else { 1 << 59 };
        let off = mirror(self.flip, page).abs_diff(self.run_end);
        off * 2 + u64::from(clock.thread != self.owner) + stale
    }

    /// The stream as it would be after a jump to `page`; `None` when `fit` is no jump of a sequential stream. The less `trust`
    /// (0 to 4) in jumps, the less is brought until the stream goes on from there.
    pub fn branch(&self, page: u64, fit: Fit, trust: u8, clock: &Clock) -> Option<Self> {
        if self.kind != Kind::Sequential || !matches!(fit, Fit::Jump | Fit::Restart) {
            return None;
        }
        let x = mirror(self.flip, page);
        let mut branch = self.clone();
        (branch.seen_all, branch.seen_own, branch.owner) = (clock.all, clock.own, clock.thread);
        (branch.run_first, branch.run_end, branch.frontier) = (x, x, x);
        branch.due.clear();
        branch.origin = branch.origin.min(x);
        branch.conf = if trust >= 2 { CONF_AHEAD } else { 0 };
        branch.bound = if fit == Fit::Restart { self.run_end } else { self.bound };
        (branch.trial, branch.timid) = (true, trust == 0);
        (branch.wasted, branch.muted) = (0, 0);
        Some(branch)
    }

    /// True once when a stream goes on from where it had jumped.
    pub fn proves(&mut self, fit: Fit) -> bool {
        let proven = self.trial && fit == Fit::Next;
        self.trial &= !proven;
        proven
    }

    /// True when `page` shows that a jump was chance: what comes right behind was brought, and the same thread passes over it, since it
    /// takes large steps there. The stream is worth nothing then.
    pub fn disproved(&mut self, page: u64, fit: Fit, thread: u32) -> bool {
        let beyond = matches!(fit, Fit::Entry | Fit::Inside) && mirror(self.flip, page) > self.run_end + self.slack;
        // Where threads share the work, another one may be further on.
        let disproved =
            self.trial && thread == self.owner && beyond && self.due.front().is_some_and(|&(first, _)| first == self.run_end);
        if disproved {
            (self.conf, self.muted, self.trial, self.frontier) = (0, 8, false, self.run_end);
            self.due.clear();
        }
        disproved
    }

    /// Whether the columns of a walk lie within a block and are a small part of near, and this one has come further than its first steps.
    fn is_short(&self, near: u64) -> bool {
        let column = self.run_end.saturating_sub(self.origin);
        column >= u64::from(CONF_JUMP) * self.step() && self.longest.max(column) <= BLOCK.min(near / WALK_SHARE)
    }

    /// Faults since the stream was last followed: of its thread, or of all when another one asks.
    fn silent(&self, clock: &Clock) -> u64 {
        let (now, seen) = if clock.thread == self.owner { (clock.own, self.seen_own) } else { (clock.all, self.seen_all) };
        now.saturating_sub(seen)
    }

    fn live(&self, clock: &Clock) -> bool {
        self.silent(clock) <= if self.patient { SPAN_PATIENT } else { SPAN }
    }

    /// How a fault on `page` relates to this stream; `None` when it does not.
    pub fn fit(&self, page: u64, found: Found, clock: &Clock, limits: &Limits) -> Option<Fit> {
        let x = mirror(self.flip, page);
        let live = self.live(clock);
        // A guess that nothing followed up is worth nothing; kept for ever, guesses would match random faults by chance.
        if !live && self.conf < 3 {
            return None;
        }
        match self.kind {
            Kind::Sequential => self.fit_sequential(x, found, live, limits),
            Kind::Strided => self.fit_strided(x, live),
        }
    }

    fn fit_sequential(&self, x: u64, found: Found, live: bool, limits: &Limits) -> Option<Fit> {
        let brought = matches!(found, Found::Staged | Found::Late);
        let slack = self.slack.max(if live { ((self.run_end - self.run_first) / 8).min(SLACK) } else { 0 });
        let edge = x % limits.unit;
        if (self.run_first..self.run_end).contains(&x) {
            return (brought || live).then_some(Fit::Again);
        }
        if (self.run_end..=self.run_end + slack).contains(&x) {
            return Some(Fit::Next);
        }
        if (self.run_end..self.frontier).contains(&x) {
            // Parts of blocks are due in order. In a block with many holes anything might be the start of some part.
            let awaited = self.due.iter().find(|&&(first, _)| first >= self.run_end).is_some_and(|&(first, _)| first == x);
            let entry = if live { edge < (limits.unit / 8).min(slack + SLACK).max(1) } else { edge == 0 && brought };
            let entry = entry || live && awaited;
            return if entry { Some(Fit::Entry) } else { brought.then_some(Fit::Inside) };
        }
        if !live || self.conf < CONF_JUMP || self.size < limits.unit || edge != 0 {
            return None;
        }
        if x > self.run_end && x - self.run_end < JUMP {
            return Some(Fit::Jump);
        }
        (self.origin..self.run_first).contains(&x).then_some(Fit::Restart)
    }

    /// Takes in a fault on `page`, which fits as `fit`. Returns the run to bring (`None`: the page alone); pushes what to bring ahead.
    #[allow(clippy::too_many_arguments, reason = "all of it differs from fault to fault, and a struct would be built on each")]
    pub fn follow(
        &mut self,
        page: u64,
        fit: Fit,
        found: Found,
        clock: &Clock,
        limits: &Limits,
        view: &dyn View,
        ahead: &mut Vec<Run>,
    ) -> Option<Run> {
        match fit {
            Fit::Again => {
                let x = mirror(self.flip, page);
                let end = match found {
                    Found::Zero => x - x % limits.unit + limits.unit,
                    Found::Far | Found::Limbo => {
                        // Whatever is asked for in any order there would else keep the stream alive for ever.
                        let in_order = (self.anew.0..self.anew.0 + HOLES).contains(&x);
                        if x == self.run_first || in_order && self.silent(clock) <= SPAN {
                            self.seen_all = clock.all;
                            self.seen_own = if clock.thread == self.owner { clock.own } else { self.seen_own };
                        }
                        self.again(x, limits.unit)
                    }
                    _ => return None,
                };
                return Some(self.real(x, end.min(self.run_end) - x));
            }
            Fit::Inside => {
                self.conf = self.conf.saturating_sub(2);
                return None;
            }
            _ => {}
        }
        let x = mirror(self.flip, page);
        let stale = !self.live(clock);
        self.patient |= stale;
        (self.owner, self.seen_all, self.seen_own) = (clock.thread, clock.all, clock.own);
        if fit != Fit::Widen {
            self.conf = (self.conf + 1).min(CONF_MAX);
            self.muted = self.muted.saturating_sub(1);
        }
        let issued = x < self.frontier;
        if issued && found == Found::Late {
            self.depth = self.depth.saturating_mul(2);
        }
        if issued && found == Found::Staged {
            self.wasted = 0;
        }
        // A short walk that comes by again beside itself works through all that it spans.
        let again = fit == Fit::Restart && self.is_short(limits.near);
        if self.kind == Kind::Strided && self.confirmed() && (self.step() < limits.span || again) {
            // From here on what lies between is read as well.
            self.kind = Kind::Sequential;
            (self.size, self.slack) = (self.step().next_power_of_two().max(4), self.step());
            if again {
                (self.size, self.slack, self.bound) = (limits.unit, 0, self.run_end);
                (self.origin, self.run_first, self.run_end) = (x - x % limits.unit, x, x);
            }
            self.pace = None;
            self.depth = UNITS_START;
            self.frontier = self.run_end;
            self.due.clear();
        }
        if fit == Fit::Restart
            && let Some(pace) = &mut self.pace
        {
            let steps = (self.run_end - self.origin).div_ceil(pace.length());
            let (part, brought) = (limits.near / WALK_SHARE, self.origin..piece_end(self.origin, self.size));
            if x == brought.end && 2 * self.size <= WALK_MAX && steps * 2 * self.size <= part {
                self.size *= 2;
            } else if brought.contains(&x) || steps * self.size > part {
                self.size = (self.size / 2).max(1);
            }
            pace.restart(x);
            self.bound = (self.run_end + x).saturating_sub(self.origin).min(LIMIT);
            (self.origin, self.frontier, self.run_end) = (x, x, x);
            self.due.clear();
        } else if x >= self.bound {
            self.bound = LIMIT;
        }
        match self.kind {
            Kind::Sequential => self.go_on(x, fit, found, stale, limits, view, ahead),
            Kind::Strided => self.step_on(x, fit, found, limits, view, ahead),
        }
    }

    /// End of what to bring of the last run, which has left near in part or altogether, when `x` of it is asked for: all when a
    /// stream comes by again, from the start; otherwise a chunk, and more each time when the next piece is asked for.
    fn again(&mut self, x: u64, unit: u64) -> u64 {
        if x == self.run_first && x.is_multiple_of(unit) && self.conf >= CONF_JUMP && self.size >= unit {
            return self.run_end;
        }
        let (end, size) = self.anew;
        let size = if x == end { (4 * size).min(unit) } else { CHUNK };
        self.anew = (x - x % CHUNK + size.max(CHUNK), size);
        self.anew.0
    }

    #[allow(clippy::too_many_arguments)]
    fn go_on(
        &mut self,
        x: u64,
        fit: Fit,
        found: Found,
        stale: bool,
        limits: &Limits,
        view: &dyn View,
        ahead: &mut Vec<Run>,
    ) -> Option<Run> {
        let unit = limits.unit;
        let enters_block = x / BLOCK != (self.run_end - 1) / BLOCK;
        self.size = match fit {
            Fit::Next if self.confirmed() && (enters_block || found == Found::Zero) => unit,
            // 4 KiB, 16 KiB, 64 KiB, 256 KiB, then whole units.
            Fit::Next if self.size < 64 => (self.size * 4).max(limits.floor).min(unit),
            _ => unit,
        };
        // A stale stream that goes on exactly where it stopped may be chance: a small run settles it.
        let size = match fit {
            Fit::Next if stale => self.size.min(limits.floor.max(4)),
            _ if std::mem::take(&mut self.timid) => limits.floor,
            Fit::Jump | Fit::Restart if found == Found::Far => (unit / PROBE).max(limits.floor),
            _ => self.size,
        };
        let unit_first = x - x % size;
        let whole = size == unit && unit_first >= self.run_end;
        let first = if whole || fit == Fit::Entry { unit_first } else { x };
        (self.run_first, self.run_end) = (first, unit_first + size);
        self.frontier = self.frontier.max(self.run_end);
        let may =
            (size == unit || self.trial && self.size == unit) && self.confirmed() && self.muted == 0 && found != Found::Zero;
        if may {
            self.depth = self.depth.clamp(1, limits.units_ahead.max(1));
            let wanted = u64::from(self.depth) * unit;
            self.go_ahead(wanted, limits, view, ahead);
        }
        Some(self.real(first, unit_first + size - first))
    }

    /// Issues what is in far beyond the frontier until `wanted` pages are due.
    fn go_ahead(&mut self, wanted: u64, limits: &Limits, view: &dyn View, ahead: &mut Vec<Run>) {
        self.pass_due();
        let mut due: u64 = self.due.iter().map(|&(_, count)| u64::from(count)).sum();
        let end = self.bound.min(self.run_end + limits.near + wanted).min(LIMIT);
        let (mut budget, mut look) = (limits.budget, LOOK);
        while due < wanted && self.frontier < end && look > 0 {
            look -= 1;
            let count = limits.unit - self.frontier % limits.unit;
            let Some(run) = view.in_far(self.real(self.frontier, count), self.flip) else {
                self.frontier += count;
                continue;
            };
            if u64::from(run.count) > budget {
                break;
            }
            let first = self.forward_first(run);
            self.frontier = first + u64::from(run.count);
            self.due.push_back((first, run.count));
            ahead.push(run);
            due += u64::from(run.count);
            budget -= u64::from(run.count);
        }
    }

    fn pass_due(&mut self) {
        while self.due.front().is_some_and(|&(first, _)| first < self.run_end) {
            self.due.pop_front();
        }
    }

    /// End of the piece brought at a step: `size` pages, within the block.
    fn piece_end(&self, at: u64) -> u64 {
        piece_end(at, self.size)
    }

    fn real(&self, first: u64, count: u64) -> Run {
        let first = if self.flip { LIMIT - first - count } else { first };
        Run { first, count: count as u32 }
    }

    /// Whether `run` may have been issued by this stream: `Some(true)` when it is due, `Some(false)` when passed over. What lies
    /// ahead and is not due was not issued by this stream.
    pub fn issued(&self, run: Run) -> Option<bool> {
        let x = self.forward_first(run);
        let grid = self.pace.as_ref().is_none_or(|pace| pace.is_on_grid(x));
        if !(self.origin..self.frontier).contains(&x) || !grid {
            return None;
        }
        let due = self.due.iter().any(|&(first, count)| (first..first + u64::from(count)).contains(&x));
        if due { Some(true) } else { (x < self.run_end).then_some(false) }
    }

    fn forward_first(&self, run: Run) -> u64 {
        mirror(self.flip, if self.flip { run.first + u64::from(run.count) - 1 } else { run.first })
    }

    /// A run that it issued was not asked for: go less far, and stop for a while when it happens again.
    pub fn waste(&mut self) {
        self.wasted = self.wasted.saturating_add(1);
        self.depth = (self.depth / 2).max(1);
        if self.wasted >= 2 {
            self.muted = 8;
            self.conf = self.conf.min(CONF_AHEAD);
            self.frontier = self.run_end;
            self.due.clear();
        }
    }
}

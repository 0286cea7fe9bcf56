//! The prefetch policy: streams per thread in both directions and with strides, crowds, and the size of each transfer.
//!
//! Owns a fixed pool of streams and short histories of the faults that belonged to none. A fault is matched against the pool
//! first (own streams win over those of other threads, so that stolen work keeps its stream), then against the histories.
//! One fault costs a scan of at most 256 windows and 96 history entries (0.2 us in a stream, 0.6 us at random) and allocates only when it returns
//! something to bring ahead. It never sees hits, only faults; see [`crate::policy::Found`] for what a fault may find.

mod history;
mod limits;
mod stride_grid;
mod track;
#[cfg(test)]
mod tests;

use crate::addr::{BLOCK_PAGES, CHUNK_PAGES, PAGE};
use crate::policy::{Fault, Fetch, Found, Prefetch, Room, Run, View};
use history::{History, Span};
use limits::{Clock, Fit, Limits};
use track::{LIMIT, Track};

const BLOCK: u64 = BLOCK_PAGES as u64;
const CHUNK: u64 = CHUNK_PAGES as u64;
const TRACKS: usize = 256;
const THREADS: usize = 64;
/// Faults of one thread in which a progression is looked for.
const OWN: usize = 16;
/// Faults of all threads in which crowds are looked for.
const ALL: usize = 64;
/// Newest faults of all threads that may be the start of a stream that another thread goes on with.
const SHARED: usize = 16;
/// A unit is at most this share of near, so that small budgets are not swept out by one run.
const UNIT_SHARE: u64 = 16;
/// What was prefetched, or is on its way, has at most this share of near.
const STAGED_SHARE: u64 = 8;
/// So many times that may be asked for: what finds no room yet is under way as soon as something else has come, and far has no
/// rest in which threads must ask first.
const ASKED: u64 = 2;
/// Time that data ahead of a stream should cover.
const AHEAD_NS: u64 = 8_000_000;
/// A jump costs one, a jump that the stream went on from earns two.
const TRUST_START: u8 = 2;
const TRUST_MAX: u8 = 4;
/// Strides shorter than this (pages) are read with what lies between. Devices read a page alone, many at a time, in the time
/// of about four pages of a long read; and what lies between takes near from what is used.
const SPAN: u64 = 4;
/// Units ahead that are always allowed, and what is assumed while the speed of far is unknown.
const UNITS_MIN: u64 = 4;
const UNITS_UNKNOWN: u64 = 8;

/// What is known of one thread.
struct ThreadLog {
    thread: u32,
    faults: u64,
    used: u64,
    history: History<OWN>,
}

/// A stream's window, flat for a quick scan.
#[derive(Clone, Copy)]
struct Window {
    low: u64,
    high: u64,
}

/// The granularity and stream prefetcher.
pub struct StreamFetch {
    tracks: Vec<Track>,
    windows: Vec<Window>,
    threads: Vec<ThreadLog>,
    /// Slot of the thread that asked last.
    hot: usize,
    recent: History<ALL>,
    clock: u64,
    /// How well jumps of streams turned out lately: at 0 a jump brings one page until the stream goes on from there.
    trust: u8,
    /// Streams that prefetched lately; they share what may be staged.
    active: u64,
}

impl Default for StreamFetch {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamFetch {
    /// A prefetcher that has seen nothing.
    pub fn new() -> Self {
        Self {
            tracks: Vec::with_capacity(TRACKS),
            windows: Vec::with_capacity(TRACKS),
            threads: Vec::with_capacity(THREADS),
            hot: 0,
            recent: History::new(),
            clock: 0,
            trust: TRUST_START,
            active: 1,
        }
    }

    fn limits(&self, room: &Room, found: Found) -> Limits {
        let share = (room.near_pages / UNIT_SHARE).clamp(1, BLOCK);
        let unit = 1 << share.ilog2();
        let staged_max = (room.near_pages / STAGED_SHARE).min(room.staging_pages);
        let bytes = u128::from(room.far_bytes_per_s) * u128::from(AHEAD_NS) / 1_000_000_000;
        let covering = match room.far_bytes_per_s {
            0 => UNITS_UNKNOWN,
            _ => (bytes / (u128::from(unit) * PAGE as u128)).min(1 << 16) as u64,
        };
        let fair = ASKED * staged_max / (unit * self.active.max(1));
        // Fresh memory costs no transfer, and a whole block at once can be a huge page; only its room is scarce.
        let floor = match found {
            Found::Zero if room.free_pages >= (room.near_pages / 8).max(1) => unit,
            Found::Zero => CHUNK.min(unit),
            _ => 1,
        };
        Limits {
            unit,
            floor,
            units_ahead: covering.max(UNITS_MIN).min(fair) as u32,
            budget: (ASKED * staged_max).saturating_sub(room.staged_pages),
            near: room.near_pages,
            span: SPAN,
        }
    }

    /// Slot of `thread`'s log; the thread that was silent longest makes room for a new one.
    fn log_of(&mut self, thread: u32) -> usize {
        if self.threads.get(self.hot).is_some_and(|log| log.thread == thread) {
            return self.hot;
        }
        if let Some(slot) = self.threads.iter().position(|log| log.thread == thread) {
            return slot;
        }
        let log = ThreadLog { thread, faults: 0, used: 0, history: History::new() };
        if self.threads.len() < THREADS {
            self.threads.push(log);
            return self.threads.len() - 1;
        }
        let slot = (0..THREADS).min_by_key(|&slot| self.threads[slot].used).unwrap_or(0);
        self.threads[slot] = log;
        slot
    }

    fn matching(&self, page: u64, found: Found, clock: &Clock, limits: &Limits) -> Option<(usize, Fit)> {
        let mut best: Option<(u64, usize, Fit)> = None;
        for (slot, window) in self.windows.iter().enumerate() {
            if page < window.low || page > window.high {
                continue;
            }
            let track = &self.tracks[slot];
            let Some(fit) = track.fit(page, found, clock, limits) else { continue };
            let weak = match fit {
                Fit::Next => 0,
                Fit::Entry | Fit::Again | Fit::Widen => 1 << 60,
                Fit::Jump | Fit::Restart => 2 << 60,
                Fit::Inside => 3 << 60,
            };
            let score = weak + track.distance(page, clock);
            if best.is_none_or(|(least, ..)| score < least) {
                best = Some((score, slot, fit));
            }
        }
        best.map(|(_, slot, fit)| (slot, fit))
    }

    /// Puts a new stream in place of the least valuable: guesses first, then the one silent longest.
    fn add(&mut self, track: Track) -> usize {
        let window = Window::of(&track);
        if self.tracks.len() < TRACKS {
            self.tracks.push(track);
            self.windows.push(window);
            return self.tracks.len() - 1;
        }
        let worth = |slot: &usize| (self.tracks[*slot].confirmed(), self.tracks[*slot].last_seen());
        let slot = (0..TRACKS).min_by_key(worth).unwrap_or(0);
        self.tracks[slot] = track;
        self.windows[slot] = window;
        slot
    }

    fn follow(&mut self, slot: usize, fit: Fit, fault: &Fault, clock: &Clock, limits: &Limits, view: &dyn View) -> Fetch {
        let mut slot = slot;
        if let Some(branch) = self.tracks[slot].branch(fault.page, fit, self.trust, clock) {
            // The stream stays where it is as well: the jump may be chance.
            self.trust = self.trust.saturating_sub(1);
            slot = self.add(branch);
        }
        let mut ahead = Vec::new();
        let track = &mut self.tracks[slot];
        if track.disproved(fault.page, fit, fault.thread) {
            self.trust = 0;
            self.windows[slot] = Window::of(track);
            return Fetch::default();
        }
        if track.proves(fit) {
            self.trust = (self.trust + 2).min(TRUST_MAX);
        }
        let run = track.follow(fault.page, fit, fault.found, clock, limits, view, &mut ahead);
        self.windows[slot] = Window::of(track);
        Fetch { run, ahead, show: track.sure() }
    }

    /// A fault that belongs to no known stream: it may start one, or lie in a crowd.
    fn unknown(&mut self, fault: &Fault, clock: &Clock, log: usize, room: &Room, limits: &Limits, view: &dyn View) -> Fetch {
        let page = fault.page;
        let own = &self.threads[log].history;
        let before = own.neighbour(page, OWN).or_else(|| self.recent.neighbour(page, SHARED));
        if let Some((flip, span)) = before {
            let slot = self.add(Track::sequential(flip, span, clock));
            return self.follow(slot, Fit::Next, fault, clock, limits, view);
        }
        let progression = own.progression(page);
        let run = match fault.found {
            Found::Zero | Found::Staged | Found::Late => None,
            Found::Far | Found::Limbo => self.crowded(page, room, limits),
        };
        let run = if fault.found == Found::Zero { Some(aligned(page, limits.floor)) } else { run };
        let span = run.map_or((page, page + 1), |run| (run.first, run.first + u64::from(run.count)));
        if let Some(both) = progression {
            self.add(Track::strided(both < 0, page, both.unsigned_abs(), span, clock));
        }
        self.note(page, span, log);
        Fetch { run, ..Fetch::default() }
    }

    fn note(&mut self, page: u64, span: Span, log: usize) {
        self.threads[log].history.push(page, span, self.clock);
        self.recent.push(page, span, self.clock);
    }

    /// The block or chunk around `page` if recent faults crowd there more than chance explains.
    fn crowded(&self, page: u64, room: &Room, limits: &Limits) -> Option<Run> {
        let data = room.data_pages.max(BLOCK) as f64;
        // Stream faults are not in the history; where they prevail, it reaches far back, and what is old is no crowd.
        let since = self.clock.saturating_sub(4 * ALL as u64);
        // Five standard deviations above the mean of a Poisson count; `least` covers means near zero. A wrong block costs
        // 511 pages, a wrong chunk 15, hence the different floors.
        let crowd = |pages: u64, least: f64| {
            let mean = (ALL as u64 * pages) as f64 / data;
            let enough = (mean + 5.0 * mean.sqrt() + least).ceil() as usize;
            let count = self.recent.crowd(page, pages.ilog2(), since) + 1;
            (count >= enough).then_some(count)
        };
        // Random order changes direction two times in three; a walk never does, and may step over most of what it passes.
        let turns = |count: &usize| 4 * self.recent.turns(page, BLOCK.ilog2(), since) >= *count;
        if crowd(BLOCK, 5.0).filter(turns).is_some() {
            Some(aligned(page, limits.unit))
        } else {
            crowd(CHUNK, 3.0).map(|_| aligned(page, CHUNK.min(limits.unit)))
        }
    }
}

impl Window {
    fn of(track: &Track) -> Self {
        let (low, high) = track.window();
        Self { low, high }
    }
}

/// The aligned group of `pages` (a power of two) that holds `page`.
fn aligned(page: u64, pages: u64) -> Run {
    Run { first: page - page % pages, count: pages as u32 }
}

impl Prefetch for StreamFetch {
    fn on_fault(&mut self, fault: &Fault, room: &Room, view: &dyn View) -> Fetch {
        if fault.page >= LIMIT / 2 {
            return Fetch::default();
        }
        self.clock += 1;
        if self.clock.is_multiple_of(64) {
            let since = self.clock.saturating_sub(256);
            self.active = self.tracks.iter().filter(|t| t.last_seen() > since && t.prefetches()).count().max(1) as u64;
        }
        let limits = self.limits(room, fault.found);
        let log = self.log_of(fault.thread);
        self.hot = log;
        let entry = &mut self.threads[log];
        entry.faults += 1;
        entry.used = self.clock;
        let clock = Clock { thread: fault.thread, all: self.clock, own: entry.faults };
        let matching = self.matching(fault.page, fault.found, &clock, &limits);
        match matching {
            Some((slot, fit)) => {
                let fetch = self.follow(slot, fit, fault, &clock, &limits, view);
                if self.tracks.get(slot).is_some_and(|track| !track.confirmed()) {
                    // The guess may be wrong; the true stream may still be found in the history.
                    let span =
                        fetch.run.map_or((fault.page, fault.page + 1), |run| (run.first, run.first + u64::from(run.count)));
                    self.note(fault.page, span, log);
                }
                fetch
            }
            None => self.unknown(fault, &clock, log, room, &limits, view),
        }
    }

    fn on_wasted(&mut self, run: Run) {
        if run.count == 0 || run.first.saturating_add(u64::from(run.count)) > LIMIT / 2 {
            return;
        }
        let worth = |(slot, track): (usize, &Track)| Some((track.issued(run)?, track.last_seen(), slot));
        if let Some((_, _, slot)) = self.tracks.iter().enumerate().filter_map(worth).max() {
            self.tracks[slot].waste();
            self.windows[slot] = Window::of(&self.tracks[slot]);
        }
    }

    fn name(&self) -> &'static str {
        "stream"
    }
}

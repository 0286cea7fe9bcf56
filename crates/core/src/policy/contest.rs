//! Streams or one of the simplest rules, whichever lets the program run most: found out by trying (`--grain contest`).
//!
//! No measure of what was brought (how much of it was used, how soon) told over many programs which rule serves them best. How much
//! CPU time the program gets outside of the kernel does; how long its threads wait does not, since faults cost CPU time beside that.
//! So one rule is the champion, streams at first. Now and then another one is tried for 0.3 s or more, and takes its place if the
//! program then ran 1.1 times as much of the time. A trial ends as soon as it has cost more than a small part of the time since the
//! one before, trials that lost have a sixteenth of all time, and a rule that lost is tried again later and later. Only rules that
//! bring pieces of not too different a size are tried: what brings 2 MiB for each page of a random walk would empty near before it
//! is seen to be wrong.
//!
//! What is wrong with it: a program that does something else during the trial is misjudged until the next one, and threads that
//! spin while they wait for each other pass for running. docs/policies.md has figures.

use crate::policy::fetch_grain::GrainFetch;
use crate::policy::stream::StreamFetch;
use crate::policy::{Fault, Fetch, Prefetch, Progress, Room, Run, View};

/// Pages of the simplest rules.
const GRAINS: [u32; 5] = [1, 4, 16, 64, 512];
/// A rule is measured for so long: CPU time is counted in ticks of milliseconds.
const MEASURED_NS: u64 = 250_000_000;
/// Before that it is settled: so long, and until this part of near was replaced, so that what was there before is felt less.
const SETTLED_NS: u64 = 50_000_000;
const SETTLED_SHARE: u64 = 8;
/// Fewer faults tell nothing.
const LEAST_FAULTS: u64 = 16;
/// CPU time that a trial may cost: this part of the time since the last one, and at least that.
const COST_SHARE: u64 = 50;
const LEAST_COST_NS: f64 = 20e6;
/// Trials that lost have this part of all time.
const TRIAL_SHARE: u64 = 16;
/// A rule that brings pieces of more than so many times those of the champion is not tried, nor one of less than such a part.
const REACH: f64 = 10.0;
/// It wins when the program runs so much more of the time, and by so much, in CPUs: where next to nothing runs, differences are chance.
const BETTER: f64 = 1.1;
const LEAST_GAIN: f64 = 0.02;
/// Periods of the champion until a rule that lost is tried again: at first, and at most.
const REST: u32 = 2;
const REST_MAX: u32 = 64;

/// A rule's record.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// 0: streams.
    pages: u32,
    /// Periods of the champion until it may be tried.
    rests: u32,
    /// The same after its next loss.
    rest: u32,
}

/// The rules, and which of them holds.
pub struct Contest {
    streams: StreamFetch,
    rules: [Rule; GRAINS.len() + 1],
    champion: usize,
    /// The rule that is tried, if one is.
    trial: Option<usize>,
    settled: bool,
    /// Where the period began that is measured or settled, and faults since then.
    since: Progress,
    faults: u64,
    /// CPU time of the program for each time that passes, and pages of a piece, under the champion.
    rate: f64,
    width: f64,
    began_ns: u64,
    trial_began_ns: u64,
    trial_ended_ns: u64,
    /// Time of the trials that lost.
    lost_ns: u64,
}

impl Default for Contest {
    fn default() -> Self {
        Self::new()
    }
}

impl Contest {
    /// A contest that begins with streams.
    pub fn new() -> Self {
        let mut rules = [Rule { pages: 0, rests: 0, rest: REST }; GRAINS.len() + 1];
        GRAINS.iter().zip(&mut rules[1..]).for_each(|(&pages, rule)| rule.pages = pages);
        Self {
            streams: StreamFetch::new(),
            rules,
            champion: 0,
            trial: None,
            settled: false,
            since: Progress::default(),
            faults: 0,
            rate: 0.0,
            width: 1.0,
            began_ns: 0,
            trial_began_ns: 0,
            trial_ended_ns: 0,
            lost_ns: 0,
        }
    }

    /// Pages of the rule that holds now, 0 for streams.
    fn current(&self) -> u32 {
        self.rules[self.trial.unwrap_or(self.champion)].pages
    }

    fn begin(&mut self, progress: &Progress, settled: bool) {
        (self.since, self.faults, self.settled) = (*progress, 0, settled);
    }

    /// A period of the champion has ended: the challenger that is to be tried, the one of the largest pieces if there are several.
    fn challenger(&mut self, now_ns: u64) -> Option<usize> {
        let width = self.width;
        let in_reach = |pages: u32| pages == 0 || (1.0 / REACH..=REACH).contains(&(f64::from(pages) / width));
        for rule in &mut self.rules {
            rule.rests = rule.rests.saturating_sub(1);
        }
        if self.lost_ns + MEASURED_NS + SETTLED_NS > now_ns.saturating_sub(self.began_ns) / TRIAL_SHARE {
            return None;
        }
        let may = |index: &usize| *index != self.champion && self.rules[*index].rests == 0 && in_reach(self.rules[*index].pages);
        (0..self.rules.len()).rev().find(may)
    }

    fn end_trial(&mut self, index: usize, won: bool, progress: &Progress) {
        if won {
            // The one that is beaten may try again, but not at once.
            let beaten = &mut self.rules[self.champion];
            beaten.rests = beaten.rest;
            self.rules[index].rest = REST;
            self.champion = index;
        } else {
            let rule = &mut self.rules[index];
            (rule.rests, rule.rest) = (rule.rest, (2 * rule.rest).min(REST_MAX));
            self.lost_ns += progress.now_ns - self.trial_began_ns;
        }
        (self.trial, self.trial_ended_ns) = (None, progress.now_ns);
        self.begin(progress, false);
    }
}

impl Prefetch for Contest {
    fn on_fault(&mut self, fault: &Fault, room: &Room, view: &dyn View) -> Fetch {
        self.faults += 1;
        match self.current() {
            0 => self.streams.on_fault(fault, room, view),
            pages => GrainFetch::new(pages).on_fault(fault, room, view),
        }
    }

    fn on_wasted(&mut self, run: Run) {
        self.streams.on_wasted(run);
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn on_progress(&mut self, progress: &Progress, near_pages: u64) {
        if self.began_ns == 0 {
            self.began_ns = progress.now_ns;
            (self.trial_ended_ns, self.since) = (progress.now_ns, *progress);
        }
        if progress.user_ns < self.since.user_ns {
            // The child of a fork: what was measured before is the parent's.
            self.trial = None;
            self.begin(progress, false);
        }
        let ns = progress.now_ns.saturating_sub(self.since.now_ns);
        let pages = progress.pages.saturating_sub(self.since.pages);
        if ns < SETTLED_NS || self.faults < LEAST_FAULTS && ns < MEASURED_NS {
            return;
        }
        let rate = progress.user_ns.saturating_sub(self.since.user_ns) as f64 / ns as f64;
        if let Some(index) = self.trial {
            let cost = (self.rate - rate) * ns as f64;
            let affordable = self.trial_began_ns.saturating_sub(self.trial_ended_ns) / COST_SHARE;
            if cost > LEAST_COST_NS.max(affordable as f64) {
                self.end_trial(index, false, progress);
                return;
            }
        }
        if !self.settled {
            if pages >= near_pages / SETTLED_SHARE || ns >= MEASURED_NS {
                self.begin(progress, true);
            }
            return;
        }
        if ns < MEASURED_NS {
            return;
        }
        if let Some(index) = self.trial {
            self.end_trial(index, rate > (BETTER * self.rate).max(self.rate + LEAST_GAIN), progress);
            return;
        }
        let pieces = progress.pieces.saturating_sub(self.since.pieces).max(1);
        (self.rate, self.width) = (rate, pages as f64 / pieces as f64);
        self.trial = if pages > 0 { self.challenger(progress.now_ns) } else { None };
        self.trial_began_ns = progress.now_ns;
        self.begin(progress, self.trial.is_none());
    }

    fn name(&self) -> &'static str {
        "contest"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Found;

    const NEAR: u64 = 10_000;
    const ROOM: Room =
        Room { near_pages: NEAR, free_pages: 0, data_pages: 1 << 16, staging_pages: 0, staged_pages: 0, far_bytes_per_s: 0 };

    /// Ten milliseconds at a time for `seconds`: how long each rule held, streams first, where `rate` tells how much a program runs
    /// under a rule of so many pages, at a time in seconds. Streams bring pieces of `width` pages.
    fn held(seconds: u64, width: u64, rate: impl Fn(u32, f64) -> f64) -> (Contest, Vec<f64>) {
        const STEP_NS: u64 = 10_000_000;
        let mut contest = Contest::new();
        let mut progress = Progress { now_ns: STEP_NS, ..Progress::default() };
        let mut held = vec![0.0; GRAINS.len() + 1];
        for step in 0..seconds * 100 {
            let now = contest.current();
            held[GRAINS.iter().position(|&pages| pages == now).map_or(0, |at| at + 1)] += 0.01;
            for at in 0..4 {
                let page = 512 * 512 + step * 7919 % 4096 * 16 + at * 4096;
                let fault = Fault { page, thread: 1, found: Found::Far, write: false, now_ns: progress.now_ns };
                contest.on_fault(&fault, &ROOM, &());
                progress.pages += if now == 0 { width } else { u64::from(now) };
                progress.pieces += 1;
            }
            progress.now_ns += STEP_NS;
            progress.user_ns += (rate(now, step as f64 / 100.0) * STEP_NS as f64) as u64;
            contest.on_progress(&progress, NEAR);
        }
        (contest, held)
    }

    #[test]
    fn the_rule_under_which_the_program_runs_most_holds() {
        // As MKL's LU: the more comes together the better, and the largest is out of reach at first.
        let (contest, held) = held(60, 2, |pages, _| 0.4 + 0.1 * f64::from(pages).ln_1p());
        assert_eq!(contest.rules[contest.champion].pages, 512);
        assert!(held[5] > 30.0, "{held:?}");
    }

    #[test]
    fn what_wins_nothing_takes_little_time() {
        let (contest, held) = held(120, 16, |pages, _| if pages == 0 { 0.8 } else { 0.5 });
        assert_eq!(contest.champion, 0);
        assert!(held[0] > 120.0 * (1.0 - 1.2 / TRIAL_SHARE as f64), "{held:?}");
        assert!(held[1..].iter().sum::<f64>() > 0.5, "something was tried: {held:?}");
    }

    #[test]
    fn where_nothing_runs_chance_does_not_win() {
        let (_, held) = held(120, 16, |pages, _| if pages == 0 { 0.01 } else { 0.02 });
        assert!(held[0] > 120.0 * (1.0 - 1.2 / TRIAL_SHARE as f64), "{held:?}");
    }

    #[test]
    fn a_trial_that_a_fork_interrupts_decides_nothing() {
        let (mut contest, _) = held(5, 16, |_, _| 0.5);
        contest.trial = Some(4);
        let child = Progress { now_ns: contest.since.now_ns + 10_000_000, ..Progress::default() };
        contest.on_progress(&child, NEAR);
        assert_eq!((contest.trial, contest.champion, contest.lost_ns), (None, 0, 0));
    }

    #[test]
    fn short_runs_are_left_alone() {
        let (_, held) = held(4, 16, |pages, _| if pages == 0 { 0.5 } else { 1.0 });
        assert!(held[0] > 3.99, "{held:?}");
    }

    #[test]
    fn what_is_out_of_reach_is_not_tried() {
        let (_, held) = held(120, 1, |pages, _| if pages == 0 { 0.8 } else { 0.5 });
        assert_eq!((held[3], held[4], held[5]), (0.0, 0.0, 0.0), "16 pages and more");
    }

    #[test]
    fn a_new_phase_is_found_out() {
        // 64 KiB serve best for a minute, streams from then on.
        let best = |at: f64| if at < 60.0 { 16 } else { 0 };
        let (contest, held) = held(180, 8, |pages, at| if pages == best(at) { 0.9 } else { 0.3 });
        assert_eq!(contest.champion, 0, "{held:?}");
        assert!(held[3] > 30.0 && held[0] > 80.0, "{held:?}");
    }
}

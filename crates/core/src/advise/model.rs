//! The time of a placement. In each stretch of time the program computes, waits for loads that it needs before it can go on, and moves
//! lines; computing and moving overlap more or less. What a run takes on other tiers follows from what it took on the machine of the
//! profile: the rest of its time, beside what memory explains there, is computing.
//!
//! Behind page faults the lines come from near memory in any case; what is added is the transfer of pages that miss, and the wait for
//! those that nobody could fetch ahead.

use super::demand::{Demand, Demands};
use super::machine::{Far, Machine, PAGE, Paged, Tier};
use super::overlap::{together, without};
use super::sharing::Cached;
use super::unknowns::Unknowns;
use crate::policy::headroom;
use crate::profile::summary::Summary;
use std::ops::Range;

/// Of what a cache keeps: less makes no difference that could be told.
const LITTLE: f64 = 0.01;

/// Loads that a core has under way where nobody measured it: line buffers of the last ten years' cores are 10 to 20 and more.
const USUAL_PARALLEL_LOADS: f64 = 16.0;

/// What is asked of the tiers in one stretch of time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Use {
    pub(super) near: f64,
    pub(super) far: f64,
    pub(super) near_stall: f64,
    pub(super) far_stall: f64,
    /// Time of the program's threads for pages that were fetched ahead or are new.
    pub(super) handling: f64,
    /// Share of the computing that goes on beside transfers of pages.
    pub(super) beside: f64,
}

impl Use {
    /// `self + part x of`.
    pub fn plus(self, part: f64, of: &Self) -> Self {
        Self {
            near: self.near + part * of.near,
            far: self.far + part * of.far,
            near_stall: self.near_stall + part * of.near_stall,
            far_stall: self.far_stall + part * of.far_stall,
            handling: self.handling + part * of.handling,
            beside: self.beside + part * of.beside,
        }
    }

    /// Moving and waiting together, as if one came after the other.
    pub fn seconds(&self) -> f64 {
        self.near + self.far + self.near_stall + self.far_stall + self.handling
    }
}

/// Pages on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paging {
    /// From far.
    pub fetched: f64,
    /// To far again: they came from there, and were changed.
    pub back: f64,
    /// To far for the first time.
    pub new: f64,
}

/// One program on one machine.
pub struct Model<'a> {
    machine: &'a Machine,
    demands: &'a Demands,
    guess: Unknowns,
    /// Threads that are busy on average, in the profile, per bin.
    threads: Vec<f64>,
    /// The same of the predicted run.
    then: Vec<f64>,
    /// Seconds of each bin at home that memory does not explain; over a paged far, all of it.
    at_home: Vec<f64>,
    /// The same with the threads and cores of the predicted run.
    compute: Vec<f64>,
    /// Share of the waits that loads could cause which there is time for.
    waits: Vec<f64>,
}

/// Waits for loads at home.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Lines loaded.
    pub lines: f64,
    /// Of each.
    pub latency_ns: f64,
    /// Loads that a thread has under way.
    pub at_once: f64,
    /// Seconds that the code took which loads them: no more can be waits.
    pub most: f64,
    /// The share of the waits for which there is time in the stretch.
    pub room: f64,
}

impl Waiting {
    /// Wall seconds of so many threads.
    pub fn wall(&self, threads: f64) -> f64 {
        (self.lines * self.latency_ns * 1e-9 / self.at_once).min(self.most) / threads * self.room
    }
}

impl<'a> Model<'a> {
    /// `demands` are those of `summary`.
    pub fn new(summary: &Summary, demands: &'a Demands, machine: &'a Machine, guess: Unknowns) -> Self {
        let mean = if summary.wall_s > 0.0 { (summary.cpu_s / summary.wall_s).max(1.0) } else { 1.0 };
        let bins = demands.seconds.len();
        let scaling = &machine.scaling;
        // Where nothing is scaled, one number for all is surer than samples of each stretch.
        let threads: Vec<f64> = demands.busy.iter().map(|busy| if scaling.is_same() { mean } else { busy.max(1.0) }).collect();
        let then = threads.iter().map(|&busy| scaling.busy(busy)).collect();
        let (at_home, compute, waits) = (Vec::new(), Vec::new(), vec![1.0; bins]);
        let mut model = Self { machine, demands, guess, threads, then, at_home, compute, waits };
        let explained: Vec<(f64, f64)> =
            demands.seconds.iter().enumerate().map(|(bin, seconds)| model.computing(bin, *seconds)).collect();
        (model.at_home, model.waits) = explained.into_iter().unzip();
        model.compute = match scaling.is_same() {
            true => model.at_home.clone(),
            false => (0..bins).map(|bin| model.scaled(bin)).collect(),
        };
        model
    }

    /// What of `seconds` at home is computing, and what share of the waits that loads could cause there is room for.
    fn computing(&self, bin: usize, seconds: f64) -> (f64, f64) {
        let seconds = seconds * self.guess.unobserved;
        if matches!(self.machine.far, Far::Paged(_)) {
            return (seconds, 1.0);
        }
        let home = &self.machine.home;
        let (mut moved, mut stalls) = (0.0, 0.0);
        for group in &self.demands.groups {
            moved += self.moved_at_home(group, bin);
            stalls += self.stall_at_home(group, bin);
        }
        // All are estimates: together they explain at most what there is.
        let busy = without(seconds, moved.min(0.98 * seconds), self.guess.overlap);
        let stalls = stalls * home.slowdown(moved / seconds.max(1e-12));
        let share = if stalls > 0.9 * busy { 0.9 * busy / stalls } else { 1.0 };
        (busy - stalls * share, share)
    }

    /// What is computed in `bin` with the threads and cores of the predicted run. Behind page faults that is all but paging, with near
    /// memory as it is: shared with other ranks, filled by more threads.
    fn scaled(&self, bin: usize) -> f64 {
        let factor = self.machine.scaling.computing(self.threads[bin]) * self.guess.scaled;
        let whole = self.at_home[bin];
        match &self.machine.far {
            Far::Memory(_) => whole * factor,
            Far::Paged(_) => {
                let groups = || self.demands.groups.iter();
                let before: f64 = groups().map(|group| self.moved_at_home(group, bin)).sum();
                let moved: f64 = groups().map(|group| self.moved(group, bin, &self.machine.near)).sum();
                let computing = without(whole, before.min(0.98 * whole), self.guess.overlap);
                together(computing * factor, moved, self.guess.overlap)
            }
        }
    }

    /// Seconds of `bin` at home, and those of them that are computing.
    pub fn at_home(&self, bin: usize) -> (f64, f64) {
        (self.demands.seconds[bin] * self.guess.unobserved, self.at_home[bin])
    }

    /// Threads that are busy on average in `bin` at home.
    pub fn threads_at_home(&self, bin: usize) -> f64 {
        self.threads[bin]
    }

    /// Threads that are busy on average in `bin` of the predicted run.
    pub fn threads(&self, bin: usize) -> f64 {
        self.then[bin]
    }

    /// Seconds of computing in `bin` with the threads and cores of the predicted run.
    pub fn computes(&self, bin: usize) -> f64 {
        self.compute[bin]
    }

    /// What `group` asked for in `bin` at home; behind page faults the measured time has it.
    pub fn home(&self, group: &Demand, bin: usize) -> Use {
        match &self.machine.far {
            Far::Memory(_) => {
                Use { near: self.moved_at_home(group, bin), near_stall: self.stall_at_home(group, bin), ..Use::default() }
            }
            Far::Paged(_) => Use::default(),
        }
    }

    /// What all groups ask for in `bin` with these shares near and what a cache makes of the rest, one by one.
    pub fn asked<'b>(&'b self, bin: usize, shares: &'b [f64], cached: Option<&'b [Cached]>) -> impl Iterator<Item = Use> + 'b {
        self.demands.groups.iter().zip(shares).enumerate().map(move |(at, (group, &share))| {
            let cached = cached.map(|cached| (cached[at], 1.0 - share));
            let asked = Use::default();
            let asked = if share > 0.0 { asked.plus(share, &self.near(group, bin)) } else { asked };
            if share < 1.0 { asked.plus(1.0 - share, &self.far(group, bin, cached)) } else { asked }
        })
    }

    fn traffic(&self, group: &Demand) -> f64 {
        self.guess.traffic.get(group.group).copied().unwrap_or(1.0)
    }

    fn moved_at_home(&self, group: &Demand, bin: usize) -> f64 {
        self.traffic(group) * self.machine.home.seconds(group.read[bin], group.written[bin], self.threads[bin])
    }

    fn moved(&self, group: &Demand, bin: usize, tier: &Tier) -> f64 {
        let more = self.machine.scaling.traffic();
        more * self.traffic(group) * tier.seconds(group.read[bin], group.written[bin], self.then[bin])
    }

    /// Wall seconds that threads wait for loads of `group` from an idle `tier`.
    fn stall(&self, group: &Demand, bin: usize, tier: &Tier) -> f64 {
        let home = &self.machine.home;
        let slower =
            (tier.latency_ns / self.at_once(tier)) / (home.latency_ns / self.at_once(home)) * self.machine.scaling.traffic();
        self.stall_at_home(group, bin) * slower * self.threads[bin] / self.then[bin]
    }

    /// Loads without order that a core has under way on `tier` at the most, and whether that was measured. Where it was not on each of
    /// the memories, they are taken to be alike.
    pub fn most_at_once(&self, tier: &Tier) -> (f64, bool) {
        let (home, near) = (&self.machine.home, &self.machine.near);
        let far = if let Far::Memory(far) = &self.machine.far { far } else { home };
        let all = [home, near, far].map(|tier| tier.parallel_loads);
        match tier.parallel_loads {
            Some(most) if all.iter().all(Option::is_some) => (most, true),
            _ => (all.into_iter().flatten().next().unwrap_or(USUAL_PARALLEL_LOADS), false),
        }
    }

    /// Loads without order that a thread has under way on `tier`.
    pub fn at_once(&self, tier: &Tier) -> f64 {
        self.most_at_once(tier).0.max(1.0).powf(self.guess.parallelism)
    }

    fn stall_at_home(&self, group: &Demand, bin: usize) -> f64 {
        self.waiting(group, bin).map_or(0.0, |waiting| waiting.wall(self.threads[bin]))
    }

    /// What `stall_at_home` comes from; `None` where nothing waits, since lines are fetched ahead.
    pub fn waiting(&self, group: &Demand, bin: usize) -> Option<Waiting> {
        let total: f64 = group.read.iter().sum();
        if !group.random || total <= 0.0 {
            return None;
        }
        let share = group.read[bin] / total;
        Some(Waiting {
            lines: total / 64.0 * self.traffic(group) * share,
            latency_ns: self.machine.home.latency_ns,
            at_once: self.at_once(&self.machine.home),
            most: if group.busy_s > 0.0 { group.busy_s * share } else { f64::INFINITY },
            room: self.waits[bin],
        })
    }

    /// What `group` asks for in `bin` when it is near.
    pub fn near(&self, group: &Demand, bin: usize) -> Use {
        let near = &self.machine.near;
        match &self.machine.far {
            Far::Memory(_) => Use {
                near: self.moved(group, bin, near) / self.guess.rates.0,
                near_stall: self.stall(group, bin, near),
                ..Use::default()
            },
            // The measured time has it.
            Far::Paged(_) => Use::default(),
        }
    }

    /// What it asks for when it is far, behind a cache in near that makes this of the given part of it; `None`: no cache.
    pub fn far(&self, group: &Demand, bin: usize, cached: Option<(Cached, f64)>) -> Use {
        match &self.machine.far {
            Far::Memory(far) => self.far_memory(group, bin, far, cached),
            Far::Paged(paged) => self.far_paged(group, bin, paged, cached.unwrap_or((Cached::NOT, 1.0))),
        }
    }

    fn far_memory(&self, group: &Demand, bin: usize, far: &Tier, cached: Option<(Cached, f64)>) -> Use {
        let far_all = self.moved(group, bin, far) / self.guess.rates.1;
        let far_stall = self.stall(group, bin, far);
        let Some((cached, _)) = cached else { return Use { far: far_all, far_stall, ..Use::default() } };
        // Lines that come from far: of visits that miss, not more than what misses the processor's caches.
        let (asked, missed) = (group.read[bin], group.visits[bin] * cached.misses * group.visit_bytes);
        let share = if asked > 0.0 { (missed / asked).min(1.0) } else { 0.0 };
        let near = &self.machine.near;
        Use {
            // What is fetched from far is written into near as well.
            near: (self.moved(group, bin, near)
                + share * self.traffic(group) * self.machine.scaling.traffic() * near.seconds(0.0, asked, self.then[bin]))
                / self.guess.rates.0,
            far: share * far_all,
            near_stall: self.stall(group, bin, near),
            far_stall: share * far_stall,
            ..Use::default()
        }
    }

    /// Pages of `group` that go from and to far in `bin` when a cache makes this of the part that is far.
    fn paging(&self, group: &Demand, bin: usize, (cached, part): (Cached, f64)) -> Paging {
        if !group.pageable {
            return Paging::default();
        }
        let fetched = group.visits[bin] * cached.misses * self.traffic(group) * self.machine.scaling.traffic();
        // What is new was never far, but goes there if it does not fit until it is freed.
        let new = group.fresh[bin] * group.passes(cached.held, part);
        Paging { fetched, back: fetched * group.changed, new }
    }

    /// What passes between near and far in a run with these shares of the groups near and `cache` bytes of near as a cache, in pages;
    /// `None` where nothing is paged.
    pub fn paged(&self, shares: &[f64], cache: f64) -> Option<Paging> {
        if !matches!(self.machine.far, Far::Paged(_)) {
            return None;
        }
        let cached = self.cached(cache, shares);
        let mut sum = Paging::default();
        for (at, (group, share)) in self.demands.groups.iter().zip(shares).enumerate() {
            for bin in 0..self.compute.len() {
                let in_cache = cached.as_ref().map_or(Cached::NOT, |cached| cached[bin][at]);
                let Paging { fetched, back, new } = self.paging(group, bin, (in_cache, 1.0 - share));
                sum.fetched += (1.0 - share) * fetched;
                sum.back += (1.0 - share) * back;
                sum.new += (1.0 - share) * new;
            }
        }
        Some(sum)
    }

    fn far_paged(&self, group: &Demand, bin: usize, far: &Paged, cached: (Cached, f64)) -> Use {
        let Paging { fetched: pages, back, new } = self.paging(group, bin, cached);
        if pages <= 0.0 && back <= 0.0 && new <= 0.0 {
            return Use::default();
        }
        let (fetched, back) = (pages * PAGE / far.read, (back + new) * PAGE / far.write);
        let channel = |fetched: f64, back: f64| if far.one_channel { fetched + back } else { fetched.max(back) };
        let (rate, made) = (self.guess.rates.1, new * far.new_ns);
        if group.ahead {
            let handling = (pages * far.page_ns + made) * 1e-9 / self.then[bin];
            let far = channel(fetched, back) / rate;
            return Use { far, handling, beside: self.beside(group, bin, far + handling), ..Use::default() };
        }
        let stall = (pages * far.fault_ns * 1e-9 / self.then[bin]).max(fetched / rate);
        let (far, handling) = (channel(0.0, back) / rate, made * 1e-9 / self.then[bin]);
        Use { far, handling, far_stall: stall, beside: self.beside(group, bin, far), ..Use::default() }
    }

    /// Share of the computing in `bin` that `transfer` seconds of paging of `group` can go on beside: that of the routines at work on it,
    /// and not more than there is to hide.
    fn beside(&self, group: &Demand, bin: usize, transfer: f64) -> f64 {
        let compute = self.compute[bin];
        if compute > 0.0 { group.at_work[bin].min(transfer / compute) } else { 0.0 }
    }

    /// Seconds of `bin` in which so much is asked for.
    pub fn seconds(&self, bin: usize, asked: &Use) -> f64 {
        let compute = self.compute[bin];
        let Far::Memory(far) = &self.machine.far else {
            // While routines work on what is near, nothing is fetched: only beside those that ask for far pages computing hides transfers.
            let beside = compute * asked.beside.clamp(0.0, 1.0);
            return compute - beside + together(beside + asked.handling, asked.far, self.guess.paged_overlap) + asked.far_stall;
        };
        let moved = asked.near.max(asked.far);
        let at = |slow_near: f64, slow_far: f64| {
            together(compute + asked.near_stall * slow_near + asked.far_stall * slow_far, moved, self.guess.overlap)
        };
        let mut time = at(1.0, 1.0);
        if asked.near_stall + asked.far_stall > 0.0 {
            // Loads take longer under load, and load is less when the run takes longer.
            for _ in 0..3 {
                let slow = |tier: &Tier, moved: f64| tier.slowdown(moved / time.max(1e-12));
                let next = at(slow(&self.machine.near, asked.near), slow(far, asked.far));
                time = (time + next) / 2.0;
            }
        }
        time
    }

    /// What a cache of so many bytes of near makes of the groups, with these shares of them near: for each bin, in their order; `None`:
    /// there is no cache.
    pub fn cached(&self, cache: f64, shares: &[f64]) -> Option<Vec<Vec<Cached>>> {
        let far: Vec<f64> = shares.iter().map(|share| 1.0 - share).collect();
        let paged = match &self.machine.far {
            _ if cache <= 0.0 => return None,
            Far::Memory(_) => return Some(self.demands.cached(|_, _| cache, &far, false)),
            Far::Paged(paged) => paged,
        };
        let (pages, rate) = ((cache / PAGE) as u64, paged.read as u64);
        let streaming = headroom::kept_pages(pages, rate) as f64 * PAGE;
        let more = headroom::kept_pages_at_rest(pages, rate) as f64 * PAGE - streaming;
        let cached = self.demands.cached(|_, _| streaming, &far, true);
        if more < LITTLE * streaming {
            return Some(cached);
        }
        // The less of the time something is read, the less is set aside for that.
        let kept = |from: usize, to: usize| {
            let reading = PAGE / paged.read * self.fetched(&far, &cached, from..to);
            let compute: f64 = self.compute[from..to].iter().sum();
            streaming + more * compute / (reading + compute).max(1e-9)
        };
        Some(self.demands.cached(kept, &far, true))
    }

    /// Pages that come from far in those bins with these parts of the groups far, behind such a cache.
    fn fetched(&self, far: &[f64], cached: &[Vec<Cached>], bins: Range<usize>) -> f64 {
        let groups = self.demands.groups.iter().zip(far).enumerate().filter(|(_, (group, _))| group.pageable);
        let missed =
            |at: usize, group: &Demand| -> f64 { bins.clone().map(|bin| group.visits[bin] * cached[bin][at].misses).sum() };
        groups.map(|(at, (group, part))| part * missed(at, group)).sum()
    }

    /// Seconds of the run with these shares of the groups near (one per group, 0..=1) and `cache` bytes of near as a cache of far.
    pub fn time(&self, shares: &[f64], cache: f64) -> f64 {
        self.time_cached(shares, self.cached(cache, shares).as_deref())
    }

    /// The same where the cache makes this of the groups, which is the same for all guesses.
    pub fn time_cached(&self, shares: &[f64], cached: Option<&[Vec<Cached>]>) -> f64 {
        (0..self.compute.len())
            .map(|bin| {
                let cached = cached.map(|cached| cached[bin].as_slice());
                let asked = self.asked(bin, shares, cached).fold(Use::default(), |asked, one| asked.plus(1.0, &one));
                self.seconds(bin, &asked)
            })
            .sum()
    }

    /// Bytes of near that are a cache of far in flat mode at the least.
    pub fn flat_cache(&self) -> f64 {
        match &self.machine.far {
            Far::Memory(_) => 0.0,
            Far::Paged(paged) => paged.cache_bytes,
        }
    }

    /// Bytes of near that objects take at most, with these shares of the groups near. What is never paged is no part of a budget.
    pub fn placed(&self, shares: &[f64]) -> f64 {
        let paged = matches!(self.machine.far, Far::Paged(_));
        let counted = || self.demands.groups.iter().zip(shares).filter(|(group, _)| group.pageable || !paged);
        let live = |bin: usize| -> f64 { counted().map(|(group, share)| share * group.live[bin]).sum() };
        (0..self.compute.len()).map(live).fold(0.0, f64::max)
    }

    /// Bytes of `near` that are a cache in flat mode: behind page faults, what objects leave free of it.
    pub fn left(&self, shares: &[f64], near: f64) -> f64 {
        match &self.machine.far {
            Far::Memory(_) => 0.0,
            Far::Paged(paged) => (near - self.placed(shares)).max(paged.cache_bytes),
        }
    }

    /// Seconds of the run in flat mode with `near` bytes of near.
    pub fn flat_time(&self, shares: &[f64], near: f64) -> f64 {
        self.time(shares, self.left(shares, near))
    }

    /// The demands it is made of.
    pub fn demands(&self) -> &'a Demands {
        self.demands
    }
}

#[cfg(test)]
mod tests;

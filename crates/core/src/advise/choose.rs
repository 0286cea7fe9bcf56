//! Which groups go near. Greedy by seconds gained per byte, with the time of the whole run looked at after each step (what one object
//! gains depends on the others), then exchanges; for few groups every set is looked at. Capacity counts at each moment: objects that do
//! not live at the same time share bytes.
//!
//! Behind page faults the search takes the cache for what it is with everything far, which is cheap; what it finds is then improved by
//! the time that is printed, in which near that objects leave free is a cache.

use super::model::{Model, Use};

/// Up to so many groups every set is looked at.
pub const EXACT: usize = 16;
/// And up to so many where each set's time must be computed anew, since the cache depends on the set.
const EXACT_PAGED: usize = 8;
/// Candidates that such sets are improved by, and rounds of that.
const POLISHED: (usize, usize) = (40, 3);
/// Groups that are looked at one by one; the rest stays far.
const MOST: usize = 200;
/// Rounds of exchanges.
const ROUNDS: usize = 6;
/// Printed times that differ by a smaller share are alike: they depend on what the cache makes of the program.
const ALIKE: f64 = 0.03;
/// What makes the run longer by less than this share when it is left out is not worth a rule, as long as all that is left out
/// together costs less than this.
const LEAST_WORTH: (f64, f64) = (2e-3, 0.01);
/// What gains less than this share of the run is not worth a rule.
const LEAST_GAIN: f64 = 1e-4;

/// By so much another set may be better than the one that was chosen among all, as a share of the run: where sets are about alike, fewer
/// objects and less need of a cache count.
pub fn within(has_cache: bool) -> f64 {
    (1.0 + LEAST_WORTH.1) * if has_cache { 1.0 + ALIKE } else { 1.0 } - 1.0
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Share of each group that is near, in the order of the summary.
    pub shares: Vec<f64>,
    /// Predicted seconds.
    pub seconds: f64,
    /// Every set was looked at: nothing that is better by more than [`within`] is possible under the model.
    pub exact: bool,
}

/// The time of a placement: shares of the groups near to seconds.
pub type Seconds<'a> = dyn Fn(&[f64]) -> f64 + 'a;

/// What is asked: how much goes where, of what.
pub struct Room<'a> {
    /// Groups that go near together, by number; what is in none stays far.
    pub sets: &'a [Vec<usize>],
    /// Bytes of near for them.
    pub bytes: f64,
    /// A part of a group's objects may be near.
    pub fractions: bool,
    /// The seconds that are printed, where the cache depends on what is placed; `None`: there is no cache.
    pub printed: Option<&'a Seconds<'a>>,
}

/// Groups that may go near, together.
struct Candidate<'a> {
    groups: &'a [usize],
    /// Most bytes alive at a time, per bin and at all.
    live: Vec<f64>,
    peak: f64,
    /// Objects at a time; 1 where it is no single group.
    objects: f64,
    /// What changes when it goes near, per bin.
    near: Vec<Use>,
}

/// A set under way.
#[derive(Clone)]
struct State {
    asked: Vec<Use>,
    live: Vec<f64>,
    taken: Vec<f64>,
    seconds: f64,
}

struct Search<'a> {
    model: &'a Model<'a>,
    candidates: Vec<Candidate<'a>>,
    start: State,
    room: &'a Room<'a>,
}

/// The best placement of whole sets into `room`; with fractions the part of one that does not fit as a whole as well.
pub fn choose(model: &Model<'_>, room: &Room<'_>) -> Chosen {
    let search = Search::new(model, room);
    let count = search.candidates.len();
    let exact = count <= if room.printed.is_some() { EXACT_PAGED } else { EXACT };
    let mut best = match room.printed {
        Some(printed) if exact => search.every_printed(printed),
        Some(printed) => {
            let found = search.exchanged(search.greedy(search.start.clone()));
            let better = [&found, &search.start].map(|state| search.polished(state.clone(), printed));
            search.least(better.into_iter().chain([found]).collect(), printed)
        }
        None if exact => search.every_set(),
        None => search.exchanged(search.greedy(search.start.clone())),
    };
    best = search.pruned(best);
    if room.fractions {
        best = search.with_fractions(best);
    }
    let shares = search.shares(&best);
    let seconds = room.printed.map_or(best.seconds, |printed| printed(&shares));
    Chosen { shares, seconds, exact: exact && !room.fractions }
}

/// The heuristic alone, to be compared.
#[cfg(test)]
pub fn heuristic(model: &Model<'_>, room: &Room<'_>) -> f64 {
    let search = Search::new(model, room);
    search.exchanged(search.greedy(search.start.clone())).seconds
}

impl<'a> Search<'a> {
    fn new(model: &'a Model<'a>, room: &'a Room<'a>) -> Self {
        let demands = model.demands();
        let bins = 0..demands.seconds.len();
        // What a small cache makes of a group depends on the set, but little: it is taken for everything far.
        let cached = model.cached(model.flat_cache(), &vec![0.0; demands.groups.len()]);
        let mut asked = vec![Use::default(); bins.len()];
        let mut changes = Vec::new();
        for (at, demand) in demands.groups.iter().enumerate() {
            let in_cache = |bin: usize| cached.as_ref().map(|cached| (cached[bin][at], 1.0));
            let far: Vec<Use> = bins.clone().map(|bin| model.far(demand, bin, in_cache(bin))).collect();
            for (sum, far) in asked.iter_mut().zip(&far) {
                *sum = sum.plus(1.0, far);
            }
            changes.push(bins.clone().map(|bin| model.near(demand, bin).plus(-1.0, &far[bin])).collect::<Vec<_>>());
        }
        let candidate = |groups: &'a Vec<usize>| {
            let each = || groups.iter().map(|&at| &demands.groups[at]);
            let live: Vec<f64> = bins.clone().map(|bin| each().map(|demand| demand.live[bin]).sum()).collect();
            let near = bins.clone().map(|bin| groups.iter().fold(Use::default(), |sum, &at| sum.plus(1.0, &changes[at][bin])));
            let peak = match groups.as_slice() {
                [one] => demands.groups[*one].peak,
                _ => live.iter().copied().fold(0.0, f64::max),
            };
            let objects = if let [one] = groups.as_slice() { demands.groups[*one].objects } else { 1.0 };
            let is_used = each().any(|demand| !demand.is_idle()) && peak > 0.0;
            is_used.then(|| Candidate { groups, peak, objects, near: near.collect(), live })
        };
        let candidates: Vec<_> = room.sets.iter().filter_map(candidate).collect();
        let mut start = State { asked, live: vec![0.0; bins.len()], taken: Vec::new(), seconds: 0.0 };
        start.seconds = bins.clone().map(|bin| model.seconds(bin, &start.asked[bin])).sum();
        let mut search = Self { model, candidates, start, room };
        search.drop_hopeless();
        search.start.taken = vec![0.0; search.candidates.len()];
        search
    }

    /// Leaves out what gains nothing even alone and with all others near.
    fn drop_hopeless(&mut self) {
        let all = self.candidates.iter().fold(self.start.clone(), |state, candidate| self.moved(&state, candidate, 1.0));
        let gains: Vec<f64> = self
            .candidates
            .iter()
            .map(|candidate| {
                let alone = self.start.seconds - self.moved(&self.start, candidate, 1.0).seconds;
                let last = self.moved(&all, candidate, -1.0).seconds - all.seconds;
                alone.max(last)
            })
            .collect();
        let mut order: Vec<usize> = (0..gains.len()).filter(|&at| gains[at] > LEAST_GAIN * self.start.seconds).collect();
        order.sort_by(|&a, &b| (gains[b] / self.candidates[b].peak).total_cmp(&(gains[a] / self.candidates[a].peak)));
        order.truncate(MOST);
        let mut keep: Vec<Option<Candidate<'a>>> = std::mem::take(&mut self.candidates).into_iter().map(Some).collect();
        self.candidates = order.into_iter().filter_map(|at| keep[at].take()).collect();
    }

    /// `state` with `part` more of `candidate` near (less where negative), without its `taken`.
    fn moved(&self, state: &State, candidate: &Candidate<'_>, part: f64) -> State {
        let mut next = state.clone();
        for (bin, change) in candidate.near.iter().enumerate() {
            if *change != Use::default() {
                let before = self.model.seconds(bin, &next.asked[bin]);
                next.asked[bin] = next.asked[bin].plus(part, change);
                next.seconds += self.model.seconds(bin, &next.asked[bin]) - before;
            }
            next.live[bin] += part * candidate.live[bin];
        }
        next
    }

    fn with(&self, state: &State, at: usize, part: f64) -> State {
        let mut next = self.moved(state, &self.candidates[at], part);
        next.taken[at] += part;
        next
    }

    /// True when `at` fits beside what is near, at every moment. A byte in a million more is no matter of arithmetic.
    fn fits(&self, live: &[f64], at: usize) -> bool {
        live.iter().zip(&self.candidates[at].live).all(|(a, b)| a + b <= self.room.bytes * (1.0 + 1e-6) || *b <= 0.0)
    }

    fn shares(&self, state: &State) -> Vec<f64> {
        let mut shares = vec![0.0; self.model.demands().groups.len()];
        for (candidate, &taken) in self.candidates.iter().zip(&state.taken) {
            candidate.groups.iter().for_each(|&at| shares[at] = taken);
        }
        shares
    }

    fn printed(&self, state: &State, printed: &Seconds<'_>) -> f64 {
        printed(&self.shares(state))
    }

    /// The best of all sets by the time that is printed.
    fn every_printed(&self, printed: &Seconds<'_>) -> State {
        let mut all = Vec::new();
        for set in 0..1u32 << self.candidates.len() {
            let mut chosen = (0..self.candidates.len()).filter(|at| set >> at & 1 == 1);
            let state =
                chosen.try_fold(self.start.clone(), |state, at| self.fits(&state.live, at).then(|| self.with(&state, at, 1.0)));
            all.extend(state);
        }
        self.least(all, printed)
    }

    /// The best of `all` by the time that is printed, of which there is one at least. Of those that take about as long, the one that takes
    /// least with a small cache: it depends less on what the cache makes of the program.
    fn least(&self, all: Vec<State>, printed: &Seconds<'_>) -> State {
        let all: Vec<(f64, State)> = all.into_iter().map(|state| (self.printed(&state, printed), state)).collect();
        let best = all.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let mut chosen = self.start.clone();
        let mut is_first = self.printed(&chosen, printed) > best * (1.0 + ALIKE);
        for (_, state) in all.into_iter().filter(|(seconds, _)| *seconds <= best * (1.0 + ALIKE)) {
            if is_first || state.seconds < chosen.seconds * (1.0 - 1e-9) {
                (chosen, is_first) = (state, false);
            }
        }
        chosen
    }

    /// Puts near, or takes away, one candidate at a time as long as the time that is printed becomes less.
    fn polished(&self, mut best: State, printed: &Seconds<'_>) -> State {
        let mut seconds = self.printed(&best, printed);
        for _ in 0..POLISHED.1 {
            let before = seconds;
            for at in 0..self.candidates.len().min(POLISHED.0) {
                let next = match best.taken[at] > 0.0 {
                    true => self.with(&best, at, -1.0),
                    false if self.fits(&best.live, at) => self.with(&best, at, 1.0),
                    false => continue,
                };
                let then = self.printed(&next, printed);
                if then < seconds * (1.0 - 1e-9) {
                    (best, seconds) = (next, then);
                }
            }
            if seconds >= before {
                break;
            }
        }
        best
    }

    /// Without what hardly matters: the more rules, the less can be understood of a plan, and what is near for little is room lost.
    fn pruned(&self, mut best: State) -> State {
        // With a small cache and as it is printed.
        let times =
            |state: &State| [state.seconds, self.room.printed.map_or(state.seconds, |printed| self.printed(state, printed))];
        let first = times(&best);
        let mut now = first;
        let mut order: Vec<usize> = (0..self.candidates.len()).filter(|&at| best.taken[at] > 0.0).collect();
        order.sort_by(|&a, &b| self.candidates[b].peak.total_cmp(&self.candidates[a].peak));
        for at in order {
            let next = self.with(&best, at, -best.taken[at]);
            let then = times(&next);
            let is_alike =
                |of: usize, most: f64| then[of] <= now[of] * (1.0 + LEAST_WORTH.0) && then[of] <= first[of] * (1.0 + most);
            // With a small cache more may go: it is not what is asked about.
            if is_alike(0, ALIKE) && is_alike(1, LEAST_WORTH.1) {
                (best, now) = (next, then);
            }
        }
        best
    }

    fn greedy(&self, mut state: State) -> State {
        loop {
            let free = (0..self.candidates.len()).filter(|&at| state.taken[at] == 0.0 && self.fits(&state.live, at));
            let gains = free.map(|at| {
                let next = self.with(&state, at, 1.0);
                ((state.seconds - next.seconds) / self.candidates[at].peak, next)
            });
            let best = gains.max_by(|a, b| a.0.total_cmp(&b.0));
            match best {
                Some((gain, next)) if gain > 0.0 => state = next,
                _ => return state,
            }
        }
    }

    /// Puts something near for one or two things that leave it, and fills up, as long as that helps.
    fn exchanged(&self, mut best: State) -> State {
        for _ in 0..ROUNDS {
            let before = best.seconds;
            for come in 0..self.candidates.len() {
                if best.taken[come] > 0.0 {
                    continue;
                }
                let near: Vec<usize> = (0..self.candidates.len()).filter(|&at| best.taken[at] > 0.0).collect();
                let mut leavers: Vec<Vec<usize>> = near.iter().map(|&at| vec![at]).collect();
                if near.len() <= 24 {
                    leavers.extend(near.iter().enumerate().flat_map(|(i, &a)| near[..i].iter().map(move |&b| vec![a, b])));
                }
                for leave in leavers {
                    let less = leave.iter().fold(best.clone(), |state, &at| self.with(&state, at, -1.0));
                    if self.fits(&less.live, come) {
                        let next = self.greedy(self.with(&less, come, 1.0));
                        if next.seconds < best.seconds * (1.0 - 1e-9) {
                            best = next;
                            break;
                        }
                    }
                }
            }
            if before - best.seconds <= 1e-6 * before {
                break;
            }
        }
        best
    }

    fn every_set(&self) -> State {
        let mut best = self.start.clone();
        self.deeper(0, &self.start, &mut best);
        best
    }

    fn deeper(&self, at: usize, state: &State, best: &mut State) {
        if at == self.candidates.len() {
            // Of equals the smaller: what is near for nothing is room lost.
            if state.seconds < best.seconds * (1.0 - 1e-9) {
                *best = state.clone();
            }
            return;
        }
        if self.fits(&state.live, at) {
            self.deeper(at + 1, &self.with(state, at, 1.0), best);
        }
        self.deeper(at + 1, state, best);
    }

    /// Fills what room is left with some of the objects of what does not fit as a whole. An object is near as a whole or not.
    fn with_fractions(&self, mut state: State) -> State {
        let seconds = |state: &State| self.room.printed.map_or(state.seconds, |printed| self.printed(state, printed));
        loop {
            let options = (0..self.candidates.len()).filter(|&at| state.taken[at] == 0.0).filter_map(|at| {
                let Candidate { live, objects, .. } = &self.candidates[at];
                let parts = state.live.iter().zip(live).filter(|(_, own)| **own > 0.0);
                let part = parts.map(|(used, own)| (self.room.bytes - used) / own).fold(1.0, f64::min);
                let part = (part * objects * (1.0 + 1e-9)).floor() / objects;
                (part > 0.01).then(|| self.with(&state, at, part))
            });
            let best = options.map(|next| (seconds(&next), next)).min_by(|a, b| a.0.total_cmp(&b.0));
            match best {
                Some((then, next)) if then < seconds(&state) * (1.0 - LEAST_GAIN) => state = next,
                _ => return state,
            }
        }
    }
}

#[cfg(test)]
mod tests;

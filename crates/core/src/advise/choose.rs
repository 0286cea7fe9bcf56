//! Which groups go near. Greedy by seconds gained per byte, with the time of the whole run looked at after each step (what one object
//! gains depends on the others), then exchanges; for few groups every set is looked at. Capacity counts at each moment: objects that do
//! not live at the same time share bytes.

use super::demand::Demand;
use super::model::{Model, Use};

/// Up to so many groups every set is looked at.
pub const EXACT: usize = 16;
/// Groups that are looked at one by one; the rest stays far.
const MOST: usize = 200;
/// Rounds of exchanges.
const ROUNDS: usize = 6;
/// What gains less than this share of the run is not worth a rule.
const LEAST_GAIN: f64 = 1e-4;

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Share of each group that is near, in the order of the summary.
    pub shares: Vec<f64>,
    /// Predicted seconds.
    pub seconds: f64,
    /// Every set was looked at: nothing better is possible under the model.
    pub exact: bool,
}

/// A group that may go near.
struct Candidate<'a> {
    demand: &'a Demand,
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
    bytes: f64,
}

/// The best placement of whole groups into `bytes` of near; with `fractions` the part of one that does not fit as a whole as well.
pub fn choose(model: &Model<'_>, bytes: f64, fractions: bool) -> Chosen {
    let search = Search::new(model, bytes);
    let exact = search.candidates.len() <= EXACT;
    let mut best = if exact { search.every_set() } else { search.exchanged(search.greedy(search.start.clone())) };
    if fractions {
        best = search.with_fractions(best);
    }
    let mut shares = vec![0.0; model.demands().groups.len()];
    for (candidate, taken) in search.candidates.iter().zip(&best.taken) {
        shares[candidate.demand.group] = *taken;
    }
    Chosen { shares, seconds: best.seconds, exact: exact && !fractions }
}

/// The heuristic alone, to be compared.
#[cfg(test)]
pub fn heuristic(model: &Model<'_>, bytes: f64) -> f64 {
    let search = Search::new(model, bytes);
    search.exchanged(search.greedy(search.start.clone())).seconds
}

impl<'a> Search<'a> {
    fn new(model: &'a Model<'a>, bytes: f64) -> Self {
        let demands = model.demands();
        let bins = 0..demands.seconds.len();
        // How long pages stay in a small cache depends on the set, but little: it is taken for everything far.
        let stay = model.stay(model.flat_cache(), &vec![0.0; demands.groups.len()]);
        let mut asked = vec![Use::default(); bins.len()];
        let mut candidates = Vec::new();
        for demand in &demands.groups {
            let far: Vec<Use> = bins.clone().map(|bin| model.far(demand, bin, stay)).collect();
            for (sum, far) in asked.iter_mut().zip(&far) {
                *sum = sum.plus(1.0, far);
            }
            let fits = demand.live.iter().all(|&live| live <= bytes);
            if !demand.is_idle() && demand.peak > 0.0 && (fits || demand.live.iter().any(|&live| live > 0.0)) {
                let near = bins.clone().map(|bin| model.near(demand, bin).plus(-1.0, &far[bin])).collect();
                candidates.push(Candidate { demand, near });
            }
        }
        let mut start = State { asked, live: vec![0.0; bins.len()], taken: Vec::new(), seconds: 0.0 };
        start.seconds = bins.clone().map(|bin| model.seconds(bin, &start.asked[bin])).sum();
        let mut search = Self { model, candidates, start, bytes };
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
        order.sort_by(|&a, &b| {
            (gains[b] / self.candidates[b].demand.peak).total_cmp(&(gains[a] / self.candidates[a].demand.peak))
        });
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
            next.live[bin] += part * candidate.demand.live[bin];
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
        live.iter().zip(&self.candidates[at].demand.live).all(|(a, b)| a + b <= self.bytes * (1.0 + 1e-6) || *b <= 0.0)
    }

    fn greedy(&self, mut state: State) -> State {
        loop {
            let free = (0..self.candidates.len()).filter(|&at| state.taken[at] == 0.0 && self.fits(&state.live, at));
            let gains = free.map(|at| {
                let next = self.with(&state, at, 1.0);
                ((state.seconds - next.seconds) / self.candidates[at].demand.peak, next)
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

    /// Fills what room is left with a part of what does not fit as a whole.
    fn with_fractions(&self, mut state: State) -> State {
        loop {
            let options = (0..self.candidates.len()).filter(|&at| state.taken[at] == 0.0).filter_map(|at| {
                let live = &self.candidates[at].demand.live;
                let parts = state.live.iter().zip(live).filter(|(_, own)| **own > 0.0);
                let part = parts.map(|(used, own)| (self.bytes - used) / own).fold(1.0, f64::min);
                (part > 0.01).then(|| self.with(&state, at, part))
            });
            match options.min_by(|a, b| a.seconds.total_cmp(&b.seconds)) {
                Some(next) if next.seconds < state.seconds * (1.0 - LEAST_GAIN) => state = next,
                _ => return state,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::demand::Demands;
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::{Far, Machine, Tier};
    use super::super::model::Guess;
    use super::*;
    use crate::profile::summary::{Pattern, Summary};

    fn machine() -> Machine {
        let tier = |rate: f64, latency: f64| Tier::plain("t", rate, latency, 1e12);
        let (near, far) = (tier(80e9, 120.0), tier(10e9, 100.0));
        Machine { name: "m".into(), near, home: far.clone(), far: Far::Memory(far), cores: 1, notes: Vec::new() }
    }

    fn random(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Groups of all sorts, some alive only for a part of the run.
    fn some(seed: &mut u64, count: usize) -> Summary {
        let objects = (0..count).map(|at| {
            let mut group = swept(&format!("g{at}"), 1e8 * (0.2 + 3.0 * random(seed)), 20.0 * random(seed).powi(2), 8);
            let (from, to) = ((8.0 * random(seed)) as usize, 8);
            if random(seed) < 0.4 {
                for bin in (0..8).filter(|&bin| bin < from || bin >= to) {
                    (group.live_bytes[bin], group.traffic[bin]) = (0.0, 0.0);
                }
            }
            if random(seed) < 0.3 {
                group.pattern = Pattern::Random;
            }
            group
        });
        summary(4.0, 8, objects.collect())
    }

    #[test]
    fn nothing_is_better_than_every_set_and_exchange_is_close() {
        let machine = machine();
        let (mut seed, mut worst, mut within) = (7, 0f64, 0);
        const CASES: usize = 40;
        for case in 0..CASES {
            let summary = some(&mut seed, 3 + case % 8);
            let demands = Demands::of(&summary);
            let model = Model::new(&summary, &demands, &machine, Guess::middle(&summary));
            let bytes = 1e8 * (1.0 + 5.0 * random(&mut seed));
            let chosen = choose(&model, bytes, false);
            let count = summary.objects.len();
            let best = (0..1u32 << count)
                .filter_map(|set| {
                    let shares: Vec<f64> = (0..count).map(|at| f64::from(set >> at & 1)).collect();
                    let fits = (0..8).all(|bin| {
                        let live: f64 = shares.iter().zip(&demands.groups).map(|(share, group)| share * group.live[bin]).sum();
                        live <= bytes
                    });
                    fits.then(|| model.time(&shares, 0.0))
                })
                .fold(f64::INFINITY, f64::min);
            assert!(chosen.exact && chosen.seconds <= best * 1.01 && chosen.seconds >= best * 0.999, "{} {best}", chosen.seconds);
            assert!((model.time(&chosen.shares, 0.0) - chosen.seconds).abs() < 1e-6 * best, "what is said is what is chosen");
            let over = heuristic(&model, bytes) / best - 1.0;
            worst = worst.max(over);
            within += usize::from(over <= 0.01);
        }
        assert!(worst <= 0.05 && within >= CASES * 9 / 10, "{worst} {within}");
    }

    #[test]
    fn objects_of_different_times_share_bytes() {
        let machine = machine();
        let mut groups = vec![swept("early", 1e9, 10.0, 8), swept("late", 1e9, 10.0, 8)];
        for bin in 0..4 {
            (groups[1].live_bytes[bin], groups[1].traffic[bin]) = (0.0, 0.0);
            (groups[0].live_bytes[bin + 4], groups[0].traffic[bin + 4]) = (0.0, 0.0);
        }
        let summary = summary(4.0, 8, groups);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Guess::middle(&summary));
        assert_eq!(choose(&model, 1.1e9, false).shares, [1.0, 1.0]);
        assert_eq!(choose(&model, 0.9e9, false).shares, [0.0, 0.0]);
        assert!(choose(&model, 0.9e9, true).shares.iter().all(|&share| share > 0.8));
    }

    #[test]
    fn many_groups_are_chosen_in_good_time() {
        let machine = machine();
        let summary = some(&mut 3, 300);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Guess::middle(&summary));
        let start = std::time::Instant::now();
        let chosen = choose(&model, 5e9, false);
        assert!(!chosen.exact && chosen.seconds < model.time(&vec![0.0; 300], 0.0));
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}

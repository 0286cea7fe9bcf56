//! All of it for one question: so much near memory on this machine, what is put there, what does it give, and how does the run time go
//! with the bytes of near?

use super::by_routine::{ByRoutine, by_routine};
use super::choose::{Chosen, Room, Seconds, choose, within};
use super::demand::{Demand, Demands};
use super::heuristic::{self, Case};
use super::interval::{draws, estimate};
use super::machine::{Far, Machine, PAGE};
use super::model::Model;
use super::reason::{Context, NO_GAIN, WORTH_A_RULE, why};
use super::rules;
use super::unknowns::Unknowns;
use crate::placement::plan::Place;
use crate::profile::summary::{Estimate, Pattern, Summary};
use serde::{Deserialize, Serialize};

/// So many of what would gain most are also looked at alone, where the plan has them far.
const MOST_ALONE: usize = 12;
/// Sizes of near that the curve has.
const POINTS: usize = 16;
/// Share of near that hybrid mode uses as cache.
pub const HYBRID: f64 = 0.25;
/// Bytes of near that everything far is predicted with behind page faults, and verified with: the least that `nearfar run` takes.
pub const LEAST_NEAR: f64 = 32.0 * 1_048_576.0;

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Bytes of near.
    pub near: f64,
    /// Some objects of a group may be near, and others not.
    pub fractions: bool,
}

/// What is said of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// Its name in the profile.
    pub name: String,
    /// Its number in the summary.
    pub group: usize,
    /// Most bytes at a time.
    pub bytes: u64,
    /// Share that is near.
    pub near: f64,
    /// Seconds that it takes off the run when it is near and the others are where the plan has them.
    pub gain: Estimate,
    /// Seconds of the run with it alone near; of what the plan leaves far and gains little, with everything far.
    pub alone: Estimate,
    /// Why.
    pub why: String,
    /// It would gain, but stays far, since no rule can name it: its call site or symbol is not known.
    pub nameless: bool,
    /// `alone` by routine.
    #[serde(skip)]
    pub alone_by_routine: Option<ByRoutine>,
    /// Other objects that no rule can tell from it: they are near together or not at all, and `gain` is of all.
    pub with: Vec<String>,
}

/// Predicted seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// Everything far; behind page faults, with [`LEAST_NEAR`] as a cache.
    pub all_far: Estimate,
    /// The plan.
    pub plan: Estimate,
    /// Everything near, whether it fits or not.
    pub all_near: Estimate,
    /// Near as a cache that the program does not see.
    pub cache: Estimate,
    /// A quarter of near as cache, objects in the rest.
    pub hybrid: Estimate,
}

/// Bytes that pages bring from far and take there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// From far.
    pub read: f64,
    /// To far.
    pub written: f64,
}

/// The same of the three placements that are verified.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moves {
    /// Everything far.
    pub all_far: Moved,
    /// The plan.
    pub plan: Moved,
    /// Everything near.
    pub all_near: Moved,
}

/// The same by routine.
#[derive(Clone, Debug, Serialize)]
pub struct Routines {
    /// Everything far.
    pub all_far: ByRoutine,
    /// The plan.
    pub plan: ByRoutine,
    /// Everything near.
    pub all_near: ByRoutine,
}

/// One size of near.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Bytes of near.
    pub near: f64,
    /// Predicted seconds under the best plan.
    pub plan: f64,
    /// And in cache mode.
    pub cache: f64,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Groups that gain something or are near, the largest gain first.
    pub items: Vec<Item>,
    /// Predictions.
    pub times: Times,
    /// What is predicted to pass between near and far; `None` where nothing is paged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// Predictions by routine; `None`: the profile has no times of routines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routines: Option<Routines>,
    /// Bytes near at most.
    pub planned: f64,
    /// Every set of groups was looked at.
    pub exact: bool,
    /// If so, by what share of the run another one may be better.
    pub within: f64,
    /// Run time by bytes of near.
    pub curve: Vec<Point>,
    /// What practice says.
    pub words: Vec<String>,
    /// The whole program fits in near.
    pub fits: bool,
    /// Rules and their reasons, in the order of the plan.
    #[serde(skip)]
    pub rules: Vec<(Place, String)>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAdvice {
    /// No objects.
    #[error("the profile has no objects large enough to be recorded: the program allocates nothing large")]
    NoObjects,
    /// Objects, but nothing was seen of their use.
    #[error(
        "the profile has {0} groups of objects and saw no use of any of them, so it cannot tell what near would gain: the program ended too \
         soon, or pages could not be watched (see nearfar doctor)"
    )]
    NoTraffic(usize),
    /// No time.
    #[error("the profile covers no time at all: the program ended before anything was seen")]
    NoTime,
}

/// Answers `question` about the program of `summary` on `machine`.
///
/// # Errors
/// The profile says nothing that an answer could be made of.
pub fn advice(summary: &Summary, machine: &Machine, question: Question) -> Result<Advice, NoAdvice> {
    let demands = Demands::of(summary);
    if summary.objects.is_empty() {
        return Err(NoAdvice::NoObjects);
    }
    if demands.groups.iter().all(Demand::is_idle) {
        return Err(NoAdvice::NoTraffic(summary.objects.len()));
    }
    // Also where it is not a number.
    if summary.wall_s.is_nan() || summary.wall_s <= 0.0 {
        return Err(NoAdvice::NoTime);
    }
    let middle = Model::new(summary, &demands, machine, Unknowns::middle(summary));
    let drawn = draws(summary, &demands, machine);
    // What a cache makes of the groups is the same for all that was drawn.
    let ask = |shares: &[f64], cache: f64| {
        let cached = middle.cached(cache, shares);
        let seconds = |model: &Model<'_>| model.time_cached(shares, cached.as_deref());
        estimate(seconds(&middle), drawn.iter().map(seconds).collect())
    };
    let cache = middle.flat_cache();
    let fits = summary.peak_bytes as f64 <= question.near - cache;
    let none = vec![0.0; demands.groups.len()];
    let all = vec![1.0; demands.groups.len()];
    let sets = rules::sets(&summary.objects, least_recorded(summary));
    let set_of = |group: usize| sets.iter().find(|set| set.contains(&group));
    let chosen = if fits {
        // Near is not better for all of them on every machine: nothing is claimed of other sets.
        let shares: Vec<f64> = (0..all.len()).map(|group| f64::from(u8::from(set_of(group).is_some()))).collect();
        Chosen { seconds: middle.flat_time(&shares, question.near), shares, exact: false }
    } else {
        flat(&middle, &sets, question.near, question.fractions)
    };
    let hybrid = {
        let (bytes, cache) = (question.near * (1.0 - HYBRID), question.near * HYBRID);
        let printed = |shares: &[f64]| middle.time(shares, cache);
        choose(&middle, &Room { sets: &sets, bytes, fractions: question.fractions, printed: Some(&printed) })
    };
    let least = if cache > 0.0 { LEAST_NEAR } else { 0.0 };
    let times = Times {
        all_far: ask(&none, least),
        plan: ask(&chosen.shares, middle.left(&chosen.shares, question.near)),
        all_near: ask(&all, cache),
        cache: ask(&none, question.near),
        hybrid: ask(&hybrid.shares, question.near * HYBRID),
    };
    let moved = |shares: &[f64], cache: f64| {
        middle.paged(shares, cache).map(|pages| Moved { read: pages.fetched * PAGE, written: (pages.back + pages.new) * PAGE })
    };
    let left = middle.left(&chosen.shares, question.near);
    let moves = match (moved(&none, least), moved(&chosen.shares, left), moved(&all, cache)) {
        (Some(all_far), Some(plan), Some(all_near)) => Some(Moves { all_far, plan, all_near }),
        _ => None,
    };
    let divided = |shares: &[f64], cache: f64| by_routine(summary, &middle, shares, cache);
    let divided_flat = |shares: &[f64]| divided(shares, middle.left(shares, question.near));
    let routines = match (divided(&none, least), divided_flat(&chosen.shares), divided(&all, cache)) {
        (Some(all_far), Some(plan), Some(all_near)) => Some(Routines { all_far, plan, all_near }),
        _ => None,
    };
    let gain = |group: usize| {
        let with = |share: f64| {
            let mut shares = chosen.shares.clone();
            match set_of(group) {
                Some(set) => set.iter().for_each(|&at| shares[at] = share),
                None => shares[group] = share,
            }
            shares
        };
        let (near, far) = (with(1.0), with(0.0));
        // Without what a cache would make of the room: what is free may be taken by others tomorrow.
        let cached = [&far, &near].map(|shares| middle.cached(cache, shares));
        let seconds =
            |model: &Model<'_>| model.time_cached(&far, cached[0].as_deref()) - model.time_cached(&near, cached[1].as_deref());
        estimate(seconds(&middle), drawn.iter().map(seconds).collect())
    };
    let alone = |group: usize| {
        let mut shares = none.clone();
        set_of(group).into_iter().flatten().for_each(|&at| shares[at] = chosen.shares[at]);
        (ask(&shares, middle.left(&shares, question.near)), divided_flat(&shares))
    };
    let total: f64 = summary.objects.iter().map(|group| group.total().value).sum();
    let mut items: Vec<Item> = Vec::new();
    for (at, group) in summary.objects.iter().enumerate() {
        let share = chosen.shares[at];
        let others: Vec<usize> = set_of(at).into_iter().flatten().copied().filter(|&other| other != at).collect();
        let is_idle = demands.groups[at].is_idle() && others.iter().all(|&other| demands.groups[other].is_idle());
        let gain = if is_idle { Estimate::default() } else { gain(at) };
        let room = question.near - cache;
        let with: Vec<String> = others.iter().map(|&other| summary.objects[other].name.clone()).collect();
        let context = Context { fits, total, all_far: times.all_far.value, machine, named: set_of(at).is_some(), with: &with };
        let why = why(group, &demands.groups[at], share, &gain, room, &context);
        let (alone, alone_by_routine) = if share > 0.0 { alone(at) } else { (times.all_far, None) };
        items.push(Item {
            name: group.name.clone(),
            group: at,
            bytes: group.peak_bytes,
            near: share,
            gain,
            alone,
            alone_by_routine,
            why,
            nameless: set_of(at).is_none() && gain.value >= NO_GAIN * times.all_far.value && gain.value > 0.0,
            with,
        });
    }
    items.sort_by(|a, b| b.gain.value.total_cmp(&a.gain.value));
    for item in items.iter_mut().filter(|item| item.gain.value > 0.0).take(MOST_ALONE).filter(|item| item.near <= 0.0) {
        let Some(set) = set_of(item.group) else { continue };
        let mut shares = none.clone();
        set.iter().for_each(|&at| shares[at] = 1.0);
        if middle.placed(&shares) > question.near - cache {
            continue;
        }
        item.alone = ask(&shares, middle.left(&shares, question.near));
    }
    // Least gain last: when near turns out to be smaller than was thought, that is what spills.
    let mut found = Vec::new();
    for item in items.iter().filter(|item| item.near > WORTH_A_RULE) {
        let place = rules::place(&summary.objects[item.group], &summary.objects, least_recorded(summary));
        found.extend(place.map(|place| (place, item.why.clone())));
    }
    found.sort_by_key(|(place, _)| usize::from(place.frame.is_empty() && place.symbol.is_none()));
    let live =
        |bin: usize| -> f64 { demands.groups.iter().zip(&chosen.shares).map(|(group, share)| share * group.live[bin]).sum() };
    let planned = (0..demands.seconds.len()).map(live).fold(0.0, f64::max);
    let words = heuristic::advice(&Case {
        near: question.near - cache,
        peak: summary.peak_bytes as f64,
        all_far: times.all_far.value,
        plan: times.plan.value,
        all_near: times.all_near.value,
        cache: Some(times.cache.value),
        planned,
        random: of_pattern(summary, Pattern::Random) / total.max(1.0),
        near_waits_longer: matches!(&machine.far, Far::Memory(far) if far.latency_ns < machine.near.latency_ns),
        touches: summary.objects.iter().map(|group| group.touches).sum(),
    });
    let curve = curve(&middle, &sets, summary.peak_bytes as f64, question);
    Ok(Advice {
        items,
        times,
        moves,
        routines,
        planned,
        exact: chosen.exact,
        within: within(cache > 0.0),
        curve,
        words,
        fits,
        rules: found,
    })
}

/// The best placement in flat mode, by the time that is printed.
fn flat(model: &Model<'_>, sets: &[Vec<usize>], near: f64, fractions: bool) -> Chosen {
    let cache = model.flat_cache();
    let printed = |shares: &[f64]| model.flat_time(shares, near);
    // Without a cache the search's own time is that.
    let printed: Option<&Seconds<'_>> = if cache > 0.0 { Some(&printed) } else { None };
    choose(model, &Room { sets, bytes: (near - cache).max(0.0), fractions, printed })
}

/// Blocks below this size are no objects of their own.
fn least_recorded(summary: &Summary) -> u64 {
    if summary.least > 0 {
        return summary.least;
    }
    let heap = summary.objects.iter().filter(|group| group.kind == crate::profile::record::Kind::Heap);
    heap.map(|group| group.least).filter(|&least| least > 0).min().unwrap_or(4096).min(4096)
}

fn of_pattern(summary: &Summary, pattern: Pattern) -> f64 {
    summary.objects.iter().filter(|group| group.pattern == pattern).map(|group| group.total().value).sum()
}

/// Run time by bytes of near: from nothing to everything.
fn curve(model: &Model<'_>, sets: &[Vec<usize>], peak: f64, question: Question) -> Vec<Point> {
    let cache = model.flat_cache();
    let none = vec![0.0; model.demands().groups.len()];
    let most = peak.max(1.0) + cache;
    let mut sizes: Vec<f64> = (0..=POINTS).map(|step| most * step as f64 / POINTS as f64).collect();
    if question.near < most {
        sizes.push(question.near);
    }
    sizes.sort_by(f64::total_cmp);
    let point = |near: f64| {
        let chosen = flat(model, sets, near, question.fractions);
        Point { near, plan: model.flat_time(&chosen.shares, near), cache: model.time(&none, near.max(cache)) }
    };
    sizes.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::{Paged, Tier};
    use super::*;
    use crate::profile::record::Kind;
    use crate::profile::summary::{NamedFrame, ObjectGroup};

    fn machine() -> Machine {
        let tier = |rate: f64| Tier::plain("t", rate, 100.0, 1e12);
        Machine {
            name: "m".into(),
            near: tier(80e9),
            far: Far::Memory(tier(10e9)),
            home: tier(10e9),
            cores: 1,
            cpus: 1,
            scaling: Default::default(),
            notes: Vec::new(),
        }
    }

    fn at(symbol: &str, mut group: ObjectGroup) -> ObjectGroup {
        group.frames = vec![NamedFrame {
            module: "app".into(),
            symbol: symbol.into(),
            function: symbol.into(),
            offset: 4,
            ..NamedFrame::default()
        }];
        group
    }

    #[test]
    fn the_hot_object_goes_near() {
        let objects = vec![
            at("hot", swept("hot", 1e9, 42.0, 8)),
            at("warm", swept("warm", 2e9, 3.0, 8)),
            at("cold", swept("cold", 3e9, 0.0, 8)),
        ];
        let summary = summary(5.0, 8, objects);
        let advice = advice(&summary, &machine(), Question { near: 1.5e9, fractions: false }).unwrap();
        assert_eq!((advice.items[0].name.as_str(), advice.items[0].near), ("hot", 1.0));
        assert!(advice.items[0].gain.value > 1.0 && advice.items[0].gain.low < advice.items[0].gain.value);
        let times = &advice.times;
        assert!(times.all_far.value > times.plan.value && times.all_far.value > times.all_near.value);
        assert_eq!(advice.rules.len(), 1);
        assert!(advice.exact);
        assert!(advice.curve.windows(2).all(|pair| pair[1].plan <= pair[0].plan * 1.000_001), "more near is never slower");
        let everything = super::advice(&summary, &machine(), Question { near: 7e9, fractions: false }).unwrap();
        assert!(everything.fits && everything.rules.len() == 3 && everything.words[0].contains("everything fits"));
    }

    #[test]
    fn what_no_rule_can_name_stays_far_in_what_is_predicted() {
        let objects = vec![swept("unknown", 1e9, 42.0, 8), at("named", swept("named", 1e9, 20.0, 8))];
        let summary = summary(5.0, 8, objects);
        for near in [1.5e9, 3e9] {
            let advice = advice(&summary, &machine(), Question { near, fractions: false }).unwrap();
            let item = |name: &str| advice.items.iter().find(|item| item.name == name).unwrap();
            let (unknown, named) = (item("unknown"), item("named"));
            assert_eq!((unknown.near, unknown.nameless), (0.0, true));
            assert!(unknown.why.contains("no rule can name it"), "{}", unknown.why);
            assert_eq!((named.near, named.nameless, advice.rules.len()), (1.0, false, 1));
            assert!(advice.times.plan.value > advice.times.all_near.value * 1.2, "{:?}", advice.times);
        }
    }

    #[test]
    fn what_no_rule_tells_apart_is_one() {
        let objects = ["a.py:1", "a.py:2"].map(|name| at("PyArray_New", swept(name, 1e9, 20.0, 8)));
        let summary = summary(5.0, 8, objects.to_vec());
        let ask = |near: f64| advice(&summary, &machine(), Question { near, fractions: true }).unwrap();
        assert!(ask(1.5e9).items.iter().all(|item| item.near == 0.0), "one alone cannot be");
        let both = ask(2.5e9);
        assert!(both.items.iter().all(|item| item.near == 1.0 && item.with.len() == 1));
        assert!(both.rules[0].1.contains("no rule can tell it from a.py:"), "{}", both.rules[0].1);
    }

    #[test]
    fn small_blocks_are_below_what_was_recorded() {
        let mut small = swept("small blocks", 1e9, 42.0, 8);
        small.kind = Kind::SmallBlocks;
        let mut summary = summary(5.0, 8, vec![small, at("big", swept("big", 1e9, 0.0, 8))]);
        summary.least = 65536;
        let advice = advice(&summary, &machine(), Question { near: 1.5e9, fractions: false }).unwrap();
        assert_eq!(advice.rules[0].0.most.as_deref(), Some("65535"));
    }

    #[test]
    fn everything_far_is_predicted_as_it_is_verified() {
        let far = Paged::example(64.0 * LEAST_NEAR);
        let machine = Machine::paged("here", Tier::plain("m", 20e9, 100.0, 1e12), far);
        // Fits into the cache that so much near has, and not into what the run with everything far is given.
        let objects = vec![at("a", swept("a", 1e9, 20.0, 8)), at("b", swept("b", 200e9, 0.0, 8))];
        let summary = summary(5.0, 8, objects);
        let advice = advice(&summary, &machine, Question { near: 128.0 * LEAST_NEAR, fractions: false }).unwrap();
        assert!(advice.times.all_far.value > advice.times.cache.value * 1.01, "{:?}", advice.times);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        assert_eq!(advice.times.all_far.value, model.time(&[0.0, 0.0], LEAST_NEAR));
    }

    #[test]
    fn profiles_that_say_nothing() {
        let ask = |summary: &Summary| advice(summary, &machine(), Question { near: 1e9, fractions: false }).unwrap_err();
        assert_eq!(ask(&summary(1.0, 1, Vec::new())), NoAdvice::NoObjects);
        assert_eq!(ask(&summary(1.0, 1, vec![swept("a", 1e6, 0.0, 1)])), NoAdvice::NoTraffic(1));
        assert_eq!(ask(&summary(0.0, 1, vec![swept("a", 1e6, 1.0, 1)])), NoAdvice::NoTime);
    }
}

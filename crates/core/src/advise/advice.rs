//! All of it for one question: so much near memory on this machine, what is put there, what does it give, and how does the run time go
//! with the bytes of near?

use super::choose::{Chosen, choose};
use super::demand::{Demand, Demands};
use super::heuristic::{self, Case};
use super::interval::{draws, estimate};
use super::machine::{Far, Machine};
use super::model::{Guess, Model};
use super::rules;
use crate::placement::plan::Place;
use crate::profile::summary::{Estimate, ObjectGroup, Pattern, Summary};
use crate::units::Bytes;
use serde::Serialize;

/// Sizes of near that the curve has.
const POINTS: usize = 16;
/// Share of near that hybrid mode uses as cache.
pub const HYBRID: f64 = 0.25;
/// From this share on a group has a rule.
const WORTH_A_RULE: f64 = 0.02;

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Bytes of near.
    pub near: f64,
    /// Parts of groups may be near.
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
    /// Why.
    pub why: String,
    /// Near is said, but no rule can name it: its call site is not known.
    pub nameless: bool,
}

/// Predicted seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Times {
    /// Everything far.
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
    /// Bytes near at most.
    pub planned: f64,
    /// Every set of groups was looked at.
    pub exact: bool,
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
    #[error("the profile has no objects of the size that is recorded: the program allocates nothing large")]
    NoObjects,
    /// Objects, but nothing was seen of their use.
    #[error(
        "the profile has {0} groups of objects and saw no use of any of them: nothing can be said of what near gives; the program ended too \
         soon, or pages could not be watched (nearfar doctor)"
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
    let middle = Model::new(summary, &demands, machine, Guess::middle(summary));
    let drawn = draws(summary, &demands, machine);
    let ask = |seconds: &dyn Fn(&Model<'_>) -> f64| estimate(seconds(&middle), drawn.iter().map(seconds).collect());
    let cache = middle.flat_cache();
    let fits = summary.peak_bytes as f64 <= question.near - cache;
    let none = vec![0.0; demands.groups.len()];
    let all = vec![1.0; demands.groups.len()];
    let chosen = if fits {
        Chosen { seconds: middle.time(&all, cache), shares: all.clone(), exact: true }
    } else {
        choose(&middle, (question.near - cache).max(0.0), question.fractions)
    };
    let hybrid = choose(&middle, question.near * (1.0 - HYBRID), question.fractions);
    let times = Times {
        all_far: ask(&|model| model.time(&none, cache)),
        plan: ask(&|model| model.time(&chosen.shares, cache)),
        all_near: ask(&|model| model.time(&all, cache)),
        cache: ask(&|model| model.time(&none, question.near)),
        hybrid: ask(&|model| model.time(&hybrid.shares, question.near * HYBRID)),
    };
    let gain = |group: usize| {
        let with = |share: f64| {
            let mut shares = chosen.shares.clone();
            shares[group] = share;
            shares
        };
        let (near, far) = (with(1.0), with(0.0));
        ask(&|model| model.time(&far, cache) - model.time(&near, cache))
    };
    let total: f64 = summary.objects.iter().map(|group| group.total().value).sum();
    let mut items: Vec<Item> = Vec::new();
    for (at, group) in summary.objects.iter().enumerate() {
        let share = chosen.shares[at];
        let gain = if demands.groups[at].is_idle() { Estimate::default() } else { gain(at) };
        let room = question.near - cache;
        let why =
            why(group, &demands.groups[at], share, &gain, room, &Context { fits, total, all_far: times.all_far.value, machine });
        items.push(Item {
            name: group.name.clone(),
            group: at,
            bytes: group.peak_bytes,
            near: share,
            gain,
            why,
            nameless: false,
        });
    }
    items.sort_by(|a, b| b.gain.value.total_cmp(&a.gain.value));
    // Least gain last: when near turns out to be smaller than was thought, that is what spills.
    let mut found = Vec::new();
    for item in items.iter_mut().filter(|item| item.near > WORTH_A_RULE) {
        let place = rules::place(&summary.objects[item.group], &summary.objects, least_recorded(summary));
        item.nameless = place.is_none();
        found.extend(place.map(|place| (place, item.why.clone(), item.near)));
    }
    found.sort_by_key(|(place, ..)| usize::from(place.frame.is_empty() && place.symbol.is_none()));
    let rules = found.into_iter().map(|(place, why, _)| (place, why)).collect();
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
    let curve = curve(&middle, summary.peak_bytes as f64, question);
    Ok(Advice { items, times, planned, exact: chosen.exact, curve, words, fits, rules })
}

/// Blocks below this size are no objects of their own.
fn least_recorded(summary: &Summary) -> u64 {
    let heap = summary.objects.iter().filter(|group| group.kind == crate::profile::record::Kind::Heap);
    heap.map(|group| group.least).filter(|&least| least > 0).min().unwrap_or(4096).min(4096)
}

fn of_pattern(summary: &Summary, pattern: Pattern) -> f64 {
    summary.objects.iter().filter(|group| group.pattern == pattern).map(|group| group.total().value).sum()
}

/// Run time by bytes of near: from nothing to everything.
fn curve(model: &Model<'_>, peak: f64, question: Question) -> Vec<Point> {
    let cache = model.flat_cache();
    let none = vec![0.0; model.demands().groups.len()];
    let most = peak.max(1.0) + cache;
    let mut sizes: Vec<f64> = (0..=POINTS).map(|step| most * step as f64 / POINTS as f64).collect();
    if question.near < most {
        sizes.push(question.near);
    }
    sizes.sort_by(f64::total_cmp);
    let point = |near: f64| Point {
        near,
        plan: choose(model, (near - cache).max(0.0), question.fractions).seconds,
        cache: model.time(&none, near.max(cache)),
    };
    sizes.into_iter().map(point).collect()
}

struct Context<'a> {
    fits: bool,
    total: f64,
    all_far: f64,
    machine: &'a Machine,
}

fn why(group: &ObjectGroup, demand: &Demand, share: f64, gain: &Estimate, room: f64, context: &Context<'_>) -> String {
    let traffic = group.total().value;
    let pattern = match group.pattern {
        Pattern::Stream => "in order",
        Pattern::Strided => "with strides",
        Pattern::Random => "without order",
        Pattern::Unknown => "in an order not known",
    };
    let size = |bytes: f64| Bytes(bytes as u64);
    let used = match &context.machine.far {
        Far::Memory(_) => {
            let percent = 100.0 * traffic / context.total.max(1.0);
            format!("{} from and to memory ({percent:.0} % of all), {pattern}", size(traffic))
        }
        Far::Paged(_) => format!("{:.0} visits of its pages, {pattern}", group.page_visits.value),
    };
    let by = group.routines.first().map_or_else(String::new, |(name, _)| format!(", by {name}"));
    let paged = matches!(context.machine.far, Far::Paged(_));
    if paged && !demand.pageable {
        return "is never paged".to_owned();
    }
    if demand.is_idle() {
        return "no use of it was seen".to_owned();
    }
    if gain.value < 1e-3 * context.all_far {
        let cached = !paged && traffic < 64.0 * group.page_visits.value;
        return if cached { "it stays in the processor's caches".to_owned() } else { format!("gains nothing: {used}") };
    }
    if share >= 1.0 - 1e-9 {
        let fits = if context.fits { "everything fits; " } else { "" };
        return format!("{fits}{used}{by}");
    }
    if share > WORTH_A_RULE {
        return format!("{:.0} % of it has room; {used}{by}", 100.0 * share);
    }
    if demand.live.iter().any(|&live| live > room) {
        return format!("does not fit: {} of {}; {used}", size(demand.peak), size(room.max(0.0)));
    }
    format!("others gain more with these bytes; {used}")
}

#[cfg(test)]
mod tests {
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::Tier;
    use super::*;
    use crate::profile::summary::NamedFrame;

    fn machine() -> Machine {
        let tier = |rate: f64| Tier::plain("t", rate, 100.0, 1e12);
        Machine {
            name: "m".into(),
            near: tier(80e9),
            far: Far::Memory(tier(10e9)),
            home: tier(10e9),
            cores: 1,
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
        assert!(advice.items.iter().any(|item| item.why.contains("does not fit")) && advice.exact);
        assert!(advice.curve.windows(2).all(|pair| pair[1].plan <= pair[0].plan * 1.000_001), "more near is never slower");
        let everything = super::advice(&summary, &machine(), Question { near: 7e9, fractions: false }).unwrap();
        assert!(everything.fits && everything.rules.len() == 3 && everything.words[0].contains("everything fits"));
    }

    #[test]
    fn profiles_that_say_nothing() {
        let ask = |summary: &Summary| advice(summary, &machine(), Question { near: 1e9, fractions: false }).unwrap_err();
        assert_eq!(ask(&summary(1.0, 1, Vec::new())), NoAdvice::NoObjects);
        assert_eq!(ask(&summary(1.0, 1, vec![swept("a", 1e6, 0.0, 1)])), NoAdvice::NoTraffic(1));
        assert_eq!(ask(&summary(0.0, 1, vec![swept("a", 1e6, 1.0, 1)])), NoAdvice::NoTime);
    }
}

//! Whose time the time of a placement is: the model's seconds, stretch by stretch, divided over the routines of the profile.
//!
//! Computing is of the routines that ran in that stretch, less what memory explains of their time at home. What a placement adds to it
//! (transfers, waits) is theirs in proportion to what they ask of the groups concerned. Where several routines run in one stretch the
//! model knows only their sum, so that what overlaps is divided in proportion as well. Sums are those of the model.

use super::model::{Model, Use};
use super::shares::Shares;
use crate::profile::summary::Summary;
use serde::{Deserialize, Serialize};

/// A routine's part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineTime {
    /// Its name in the profile.
    pub function: String,
    /// File name of the program or library.
    pub module: String,
    /// Wall seconds.
    pub seconds: f64,
}

/// A run, divided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByRoutine {
    /// In the order of the profile.
    pub routines: Vec<RoutineTime>,
    /// Seconds that are of none of them: the program slept, read files, or nobody knows.
    pub other: f64,
}

impl ByRoutine {
    /// All of it, in seconds.
    pub fn total(&self) -> f64 {
        self.other + self.routines.iter().map(|one| one.seconds).sum::<f64>()
    }
}

/// Adds `seconds`, divided as `asked` of each group is over who asks; false where nothing is asked.
fn add(to: &mut [f64], seconds: f64, asked: &[Use], asking: &[Vec<f64>]) -> bool {
    let sum: f64 = asked.iter().map(Use::seconds).sum();
    if sum <= 0.0 {
        return false;
    }
    for (asked, asking) in asked.iter().zip(asking) {
        let part = seconds * asked.seconds() / sum;
        to.iter_mut().zip(asking).for_each(|(to, share)| *to += part * share);
    }
    true
}

/// Divides the seconds of `model`, which is of `summary`, with these shares of its groups near and `cache` bytes of near as a cache of far;
/// they sum to [`Model::time`]. `None` where the profile has no times of routines.
pub fn by_routine(summary: &Summary, model: &Model<'_>, shares: &[f64], cache: f64) -> Option<ByRoutine> {
    let demands = model.demands();
    let known = Shares::of(summary, &demands.seconds)?;
    let count = summary.routines.len();
    let totals = known.totals();
    let cached = model.cached(cache, shares);
    let mut seconds = vec![0.0; count + 1];
    for (bin, time) in known.time.iter().enumerate() {
        let asking: Vec<Vec<f64>> = (0..demands.groups.len()).map(|group| known.asking(group, bin, &totals)).collect();
        let asked: Vec<Use> = model.asked(bin, shares, cached.as_ref().map(|cached| cached[bin].as_slice())).collect();
        let whole = model.seconds(bin, &asked.iter().fold(Use::default(), |sum, one| sum.plus(1.0, one)));
        let (home, at_home) = model.at_home(bin);
        let computing = model.computes(bin);
        // At home a routine's time is its computing and its part of what memory takes.
        let mut explained = vec![0.0; count + 1];
        let uses: Vec<Use> = demands.groups.iter().map(|group| model.home(group, bin)).collect();
        add(&mut explained, (home - at_home).max(0.0), &uses, &asking);
        let mut own: Vec<f64> = time.iter().zip(&explained).map(|(share, memory)| (share * home - memory).max(0.0)).collect();
        let sum: f64 = own.iter().sum();
        if sum > 0.0 {
            own.iter_mut().for_each(|own| *own *= computing / sum);
        } else {
            own = time.iter().map(|share| share * computing).collect();
        }
        if !add(&mut own, whole - computing, &asked, &asking) {
            own.iter_mut().zip(time).for_each(|(own, share)| *own += (whole - computing) * share);
        }
        seconds.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
    }
    let other = seconds.pop().unwrap_or(0.0);
    let routines = summary.routines.iter().zip(seconds).map(|(routine, seconds)| RoutineTime {
        function: routine.function.clone(),
        module: routine.module.clone(),
        seconds,
    });
    Some(ByRoutine { routines: routines.collect(), other })
}

#[cfg(test)]
mod tests {
    use super::super::demand::Demands;
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::{Far, Machine, Paged, Tier};
    use super::super::unknowns::Unknowns;
    use super::*;
    use crate::profile::summary::{Pattern, Routine};
    use proptest::prelude::*;

    const BINS: usize = 8;

    fn routine(function: &str, time: Vec<f64>) -> Routine {
        Routine { function: function.into(), module: "app".into(), self_s: time.iter().sum(), time, ..Routine::default() }
    }

    /// Routine "one" goes through group 0 and "two" through group 1; in turns, or one after the other.
    fn program(in_turns: bool) -> Summary {
        let mut groups = vec![swept("a", 1e9, 12.0, BINS), swept("b", 1e9, 12.0, BINS)];
        let mut parts = [vec![0.5; BINS], vec![0.5; BINS]];
        if !in_turns {
            parts = [0, 1].map(|half| (0..BINS).map(|bin| f64::from(u8::from(bin * 2 / BINS == half))).collect());
        }
        for (group, (name, part)) in groups.iter_mut().zip([("one", &parts[0]), ("two", &parts[1])]) {
            group.routines = vec![(name.into(), 1.0)];
            group.traffic = part.iter().map(|part| part * 12e9 / 4.0).collect();
        }
        let mut summary = summary(BINS as f64, BINS, groups);
        summary.routines = vec![routine("one", parts[0].clone()), routine("two", parts[1].clone())];
        summary
    }

    fn memory() -> Machine {
        let tier = |rate: f64| Tier { per_core: rate, ..Tier::plain("t", rate, 100.0, 1e12) };
        Machine {
            name: "m".into(),
            near: tier(40e9),
            far: Far::Memory(tier(4e9)),
            home: tier(4e9),
            cores: 1,
            cpus: 1,
            scaling: Default::default(),
            notes: Vec::new(),
        }
    }

    fn paged() -> Machine {
        let far = Paged { page_ns: 0.0, ..Paged::example(32e6) };
        Machine { far: Far::Paged(far), ..memory() }
    }

    fn times(summary: &Summary, machine: &Machine, shares: &[f64], cache: f64) -> [f64; 3] {
        let demands = Demands::of(summary);
        let model = Model::new(summary, &demands, machine, Unknowns::middle(summary));
        let found = by_routine(summary, &model, shares, cache).expect("times");
        let total = model.time(shares, cache);
        assert!((found.total() - total).abs() < 1e-9 * total, "{found:?} of {total}");
        [found.routines[0].seconds, found.routines[1].seconds, found.other]
    }

    #[test]
    fn a_group_that_is_far_slows_its_routine_only() {
        for in_turns in [false, true] {
            let near = times(&program(in_turns), &paged(), &[1.0, 1.0], 32e6);
            let one_far = times(&program(in_turns), &paged(), &[0.0, 1.0], 32e6);
            assert!((near[0] - 4.0).abs() < 1e-6 && (near[1] - 4.0).abs() < 1e-6 && near[2].abs() < 1e-9, "{near:?}");
            assert!(one_far[0] > 4.5 && (one_far[1] - 4.0).abs() < 1e-6, "{in_turns} {one_far:?}");
        }
    }

    #[test]
    fn a_group_that_is_near_is_faster_for_its_routine_only() {
        let far = times(&program(false), &memory(), &[0.0, 0.0], 0.0);
        let one_near = times(&program(false), &memory(), &[1.0, 0.0], 0.0);
        assert!((far[0] - 4.0).abs() < 0.1 && (far[1] - 4.0).abs() < 0.1, "as at home: {far:?}");
        assert!(one_near[0] < 0.9 * far[0] && (one_near[1] - far[1]).abs() < 1e-6, "{one_near:?}");
        // In the same stretch the model lets transfers of one hide behind computing of the other: both gain, the one whose group it is
        // more.
        let (far, one_near) = (program(true), program(true));
        let far = times(&far, &memory(), &[0.0, 0.0], 0.0);
        let one_near = times(&one_near, &memory(), &[1.0, 0.0], 0.0);
        assert!(far[0] - one_near[0] > 1.2 * (far[1] - one_near[1]) && one_near[1] <= far[1], "{far:?} {one_near:?}");
    }

    #[test]
    fn what_nobody_ran_in_is_of_no_routine() {
        let mut slept = program(false);
        slept.routines[1].time[6..].fill(0.0);
        slept.routines[1].self_s = 2.0;
        slept.cpu_s = 6.0;
        let found = times(&slept, &paged(), &[1.0, 1.0], 32e6);
        assert!((found[1] - 2.0).abs() < 1e-6 && (found[2] - 2.0).abs() < 1e-6, "{found:?}");
        // Time in the kernel, which the samples do not have, is of those that ran.
        slept.cpu_s = 8.0;
        let found = times(&slept, &paged(), &[1.0, 1.0], 32e6);
        assert!(found[0] > 3.9 && found[0] < 4.1 && found[1] > 1.9 && found[2] < 2.1, "{found:?}");
        // It is looked for where samples leave room: "one" was in the kernel for half of the first stretch.
        let mut zeroing = program(false);
        zeroing.routines[0].time[0] = 0.5;
        zeroing.routines[0].self_s = 3.5;
        let found = times(&zeroing, &paged(), &[1.0, 1.0], 32e6);
        assert!((found[0] - 4.0).abs() < 1e-6 && found[2].abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn without_times_of_routines_there_is_no_answer() {
        let mut summary = program(false);
        for routine in &mut summary.routines {
            (routine.self_s, routine.time) = (0.0, Vec::new());
        }
        let (machine, demands) = (paged(), Demands::of(&summary));
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        assert_eq!(by_routine(&summary, &model, &[1.0, 1.0], 32e6), None);
        // Their sum alone is as if it were even.
        summary.routines.iter_mut().for_each(|routine| routine.self_s = 4.0);
        let found = times(&summary, &machine, &[1.0, 1.0], 32e6);
        assert!((found[0] - 4.0).abs() < 1e-6 && (found[1] - 4.0).abs() < 1e-6, "{found:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sums_hold(
            near in (0.0..1.0f64, 0.0..1.0f64),
            cache in 0.0..3e9f64,
            random in any::<bool>(),
            is_paged in any::<bool>(),
            ran in proptest::collection::vec((0.0..2.0f64, 0.0..2.0f64), BINS),
            shares in (0.0..1.0f64, 0.0..1.0f64),
        ) {
            let mut summary = program(true);
            summary.routines = vec![
                routine("one", ran.iter().map(|ran| ran.0).collect()),
                routine("two", ran.iter().map(|ran| ran.1).collect()),
            ];
            prop_assume!(summary.routines.iter().any(|routine| routine.self_s > 0.0));
            for (group, share) in summary.objects.iter_mut().zip([shares.0, shares.1]) {
                group.pattern = if random { Pattern::Random } else { Pattern::Stream };
                group.routines = vec![("one".into(), share), ("two".into(), 1.0 - share), ("nobody".into(), 0.1)];
            }
            let machine = if is_paged { paged() } else { memory() };
            let found = times(&summary, &machine, &[near.0, near.1], cache);
            prop_assert!(found.iter().all(|seconds| *seconds >= -1e-9 && seconds.is_finite()), "{found:?}");
        }
    }
}

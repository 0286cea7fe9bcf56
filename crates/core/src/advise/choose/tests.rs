//! Which objects are chosen, against every set and against what is known of simple cases.

use super::super::demand::Demands;
use super::super::demand::tests::{summary, swept};
use super::super::machine::{Far, Machine, Paged, Tier};
use super::super::unknowns::Unknowns;
use super::*;
use crate::profile::summary::{Pattern, Summary};

fn machine() -> Machine {
    let tier = |rate: f64, latency: f64| Tier::plain("t", rate, latency, 1e12);
    let (near, far) = (tier(80e9, 120.0), tier(10e9, 100.0));
    Machine {
        name: "m".into(),
        near,
        home: far.clone(),
        far: Far::Memory(far),
        cores: 1,
        cpus: 1,
        scaling: Default::default(),
        notes: Vec::new(),
    }
}

fn paged() -> Machine {
    let far = Paged::example(16e6);
    Machine::paged("here", Tier::plain("m", 20e9, 100.0, 1e12), far)
}

fn each_alone(count: usize) -> Vec<Vec<usize>> {
    (0..count).map(|at| vec![at]).collect()
}

fn into(model: &Model<'_>, bytes: f64, fractions: bool) -> Chosen {
    let sets = each_alone(model.demands().groups.len());
    choose(model, &Room { sets: &sets, bytes, fractions, printed: None })
}

fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    crate::random_numbers::unit(*seed)
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
    let (mut seed, mut worst, mut alike) = (7, 0f64, 0);
    const CASES: usize = 40;
    for case in 0..CASES {
        let summary = some(&mut seed, 3 + case % 8);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        let bytes = 1e8 * (1.0 + 5.0 * random(&mut seed));
        let chosen = into(&model, bytes, false);
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
        assert!(
            chosen.exact && chosen.seconds <= best * (1.001 + within(false)) && chosen.seconds >= best * 0.999,
            "{} {best}",
            chosen.seconds
        );
        assert!((model.time(&chosen.shares, 0.0) - chosen.seconds).abs() < 1e-6 * best, "what is said is what is chosen");
        let room = Room { sets: &each_alone(count), bytes, fractions: false, printed: None };
        let over = heuristic(&model, &room) / best - 1.0;
        worst = worst.max(over);
        alike += usize::from(over <= 0.01);
    }
    assert!(worst <= 0.05 && alike >= CASES * 9 / 10, "{worst} {alike}");
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
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    assert_eq!(into(&model, 1.1e9, false).shares, [1.0, 1.0]);
    assert_eq!(into(&model, 0.9e9, false).shares, [0.0, 0.0]);
}

#[test]
fn fractions_are_whole_objects() {
    let machine = machine();
    let near = |objects: u64| {
        let mut group = swept("a", 1e9, 20.0, 8);
        (group.count, group.most) = (objects, group.peak_bytes / objects);
        let summary = summary(4.0, 8, vec![group]);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        into(&model, 0.9e9, true).shares[0]
    };
    assert_eq!([1, 2, 4, 10].map(near), [0.0, 0.5, 0.75, 0.9]);
}

#[test]
fn sets_go_together_and_what_is_in_none_stays() {
    let machine = machine();
    let groups = ["a", "b", "c"].map(|name| swept(name, 1e9, 10.0, 8));
    let summary = summary(4.0, 8, groups.to_vec());
    let demands = Demands::of(&summary);
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    let shares = |bytes: f64| {
        let room = Room { sets: &[vec![0, 2]], bytes, fractions: true, printed: None };
        choose(&model, &room).shares
    };
    assert_eq!(shares(1.5e9), [0.0, 0.0, 0.0], "half of a set cannot be told from the rest");
    assert_eq!(shares(9e9), [1.0, 0.0, 1.0]);
}

#[test]
fn behind_page_faults_nothing_is_better_by_the_time_that_is_printed() {
    let machine = paged();
    let mut seed = 11;
    for _ in 0..30 {
        let count = 3 + (6.0 * random(&mut seed)) as usize;
        let summary = some(&mut seed, count);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        let near = 1e8 * (1.0 + 5.0 * random(&mut seed));
        let printed = |shares: &[f64]| model.flat_time(shares, near);
        let bytes = near - 16e6;
        let room = Room { sets: &each_alone(count), bytes, fractions: false, printed: Some(&printed) };
        let chosen = choose(&model, &room);
        let sets = (0..1u32 << count).map(|set| (0..count).map(|at| f64::from(set >> at & 1)).collect::<Vec<_>>());
        let fit = sets.filter(|shares| model.placed(shares) <= bytes);
        let best = fit.map(|shares| printed(&shares)).fold(f64::INFINITY, f64::min);
        // What gains next to nothing is no candidate.
        assert!(!chosen.exact || chosen.seconds <= best * (1.001 + within(true)), "{} {best}", chosen.seconds);
        assert_eq!(chosen.seconds, printed(&chosen.shares));
    }
}

#[test]
fn what_a_cache_holds_leaves_near_to_others() {
    let machine = paged();
    // More of the first misses in a small cache, but what the second leaves free of near holds all that it uses at a time.
    let mut first = swept("first", 60e6, 100.0, 8);
    first.misses.points = vec![(0.0, 1.0), (19e6, 1.0), (20e6, 0.0)];
    first.pattern = Pattern::Random;
    let summary = summary(2.0, 8, vec![first, swept("second", 90e6, 60.0, 8)]);
    let demands = Demands::of(&summary);
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    let printed = |shares: &[f64]| model.flat_time(shares, 136e6);
    let mut room = Room { sets: &each_alone(2), bytes: 120e6, fractions: false, printed: Some(&printed) };
    assert_eq!(choose(&model, &room).shares, [0.0, 1.0]);
    room.printed = None;
    assert_eq!(choose(&model, &room).shares, [1.0, 0.0], "by a cache of fixed size");
}

#[test]
fn what_a_cache_would_hold_as_well_is_near_by_name() {
    let machine = paged();
    let summary = summary(2.0, 8, vec![swept("hot", 32e6, 400.0, 8), swept("warm", 64e6, 50.0, 8)]);
    let demands = Demands::of(&summary);
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    let printed = |shares: &[f64]| model.flat_time(shares, 64e6);
    let room = Room { sets: &each_alone(2), bytes: 48e6, fractions: false, printed: Some(&printed) };
    assert_eq!(choose(&model, &room).shares, [1.0, 0.0]);
}

#[test]
fn many_groups_are_chosen_in_good_time() {
    let machine = machine();
    let summary = some(&mut 3, 300);
    let demands = Demands::of(&summary);
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    let start = std::time::Instant::now();
    let chosen = into(&model, 5e9, false);
    assert!(!chosen.exact && chosen.seconds < model.time(&vec![0.0; 300], 0.0));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

//! Times of placements under the model, against what simple machines take.

use super::*;
use crate::advise::demand::tests::{summary, swept};
use crate::advise::scaling::Scaling;
use crate::profile::summary::{Estimate, ObjectGroup, Pattern};
use proptest::prelude::*;

fn tiers() -> Machine {
    let (near, far) = (Tier::plain("fast", 100e9, 100.0, 1e12), Tier::plain("slow", 10e9, 200.0, 1e12));
    let (mut near, mut far) = (near, far);
    (near.per_core, far.per_core) = (near.read, far.read);
    Machine {
        name: "m".into(),
        home: far.clone(),
        near,
        far: Far::Memory(far),
        cores: 4,
        cpus: 4,
        scaling: Default::default(),
        notes: Vec::new(),
    }
}

#[test]
fn at_home_the_run_takes_what_it_took() {
    let (machine, mut group) = (tiers(), swept("a", 1e9, 30.0, 10));
    for pattern in [Pattern::Stream, Pattern::Random] {
        group.pattern = pattern;
        let summary = summary(5.0, 10, vec![group.clone()]);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        let time = model.time(&[0.0], 0.0);
        assert!((4.95..5.1).contains(&time), "{pattern:?} {time}");
        assert!(model.time(&[1.0], 0.0) < time);
    }
}

#[test]
fn streams_go_with_bandwidth_and_gathers_with_latency() {
    let machine = tiers();
    let near = |pattern: Pattern, busy_s: f64| {
        let mut group = swept("a", 1e9, 48.0, 10);
        (group.pattern, group.busy_s) = (pattern, busy_s);
        let summary = summary(5.0, 10, vec![group]);
        let demands = Demands::of(&summary);
        Model::new(&summary, &demands, &machine, Unknowns::middle(&summary)).time(&[1.0], 0.0)
    };
    // 48 GB at 10 GB/s was nearly all of 5 s, and takes 0.48 s at 100 GB/s beside what was computed.
    assert!((0.5..3.0).contains(&near(Pattern::Stream, 0.0)), "{}", near(Pattern::Stream, 0.0));
    let mut group = swept("a", 1e9, 10.0, 10);
    group.pattern = Pattern::Random;
    let summary = summary(5.0, 10, vec![group]);
    let demands = Demands::of(&summary);
    let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
    // 156 M loads of 200 ns, four at a time, are 7.8 s: more than there is, so that all but a tenth is taken to be waiting.
    let gain = model.time(&[0.0], 0.0) / model.time(&[1.0], 0.0);
    assert!((1.5..2.3).contains(&gain), "half the latency: {gain}");
}

/// A core that has twice as many loads under way on one memory waits half as long for it, where the program has as many as it can;
/// where each load needs the one before, no more than latency counts.
#[test]
fn memory_that_takes_more_loads_at_once_is_waited_for_less() {
    let mut machine = tiers();
    machine.near.latency_ns = machine.home.latency_ns;
    (machine.near.parallel_loads, machine.home.parallel_loads) = (Some(20.0), Some(10.0));
    machine.far = Far::Memory(machine.home.clone());
    (machine.near.read, machine.near.per_core) = (machine.home.read, machine.home.read);
    machine.near.write = machine.home.write;
    let mut group = swept("a", 1e9, 6.0, 10);
    (group.pattern, group.busy_s) = (Pattern::Random, 10.0);
    let summary = summary(10.0, 10, vec![group]);
    let demands = Demands::of(&summary);
    let gain = |parallelism: f64| {
        let guess = Unknowns { parallelism, ..Unknowns::middle(&summary) };
        let model = Model::new(&summary, &demands, &machine, guess);
        model.time(&[0.0], 0.0) - model.time(&[1.0], 0.0)
    };
    // 94 M loads of 200 ns, ten at once, are 1.9 s: half of it goes.
    assert!((0.85..1.0).contains(&gain(1.0)) && gain(0.0).abs() < 1e-9, "{} {}", gain(1.0), gain(0.0));
    // What was measured on one memory only says nothing of a difference.
    let unknown = Tier { parallel_loads: None, ..machine.home.clone() };
    let machine = Machine { home: unknown.clone(), far: Far::Memory(unknown), ..machine.clone() };
    let model = Model::new(&summary, &demands, &machine, Unknowns { parallelism: 1.0, ..Unknowns::middle(&summary) });
    assert!((model.time(&[0.0], 0.0) - model.time(&[1.0], 0.0)).abs() < 1e-9);
    assert_eq!((model.most_at_once(&machine.home), model.most_at_once(&machine.near)), ((20.0, false), (20.0, false)));
}

#[test]
fn more_threads_fill_the_memory_that_few_do_not() {
    // Two threads of 1 GB/s each do not fill 10 GB/s; 64 would, and gain from what is faster.
    let mut machine = tiers();
    machine.home.per_core = 1e9;
    machine.near.per_core = 1e9;
    machine.far = Far::Memory(machine.home.clone());
    let mut summary = summary(10.0, 10, vec![swept("a", 1e9, 18.0, 10)]);
    summary.cpu_s = 20.0;
    let demands = Demands::of(&summary);
    let gain = |threads: f64| {
        let machine = Machine { scaling: Scaling::extrapolated(2.0, threads), ..machine.clone() };
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        (model.time(&[0.0], 0.0), model.time(&[0.0], 0.0) / model.time(&[1.0], 0.0))
    };
    let ((two, none), (many, much)) = (gain(2.0), gain(64.0));
    assert!((9.5..10.5).contains(&two) && none < 1.1, "{two} {none}");
    assert!(many < 2.5 && many > 1.7 && much > 3.0, "18 GB at 10 GB/s: {many} {much}");
}

#[test]
fn one_thread_more_changes_little_where_some_of_the_time_only_one_runs() {
    let mut summary = summary(10.0, 10, vec![swept("a", 1e9, 100.0, 10)]);
    let time: Vec<f64> = (0..10).map(|bin| if bin < 5 { 1.0 } else { 16.0 }).collect();
    summary.cpu_s = time.iter().sum();
    summary.routines = vec![crate::profile::summary::Routine { self_s: summary.cpu_s, time, ..Default::default() }];
    let demands = Demands::of(&summary);
    assert_eq!(demands.threads(), 16.0);
    let mut home = Tier::plain("home", 60e9, 100.0, 1e12);
    home.per_core = 20e9;
    let memory = Machine { home: home.clone(), near: home.clone(), far: Far::Memory(home.clone()), ..tiers() };
    let paged = Machine::paged("here", home, Paged::example(16e6));
    for machine in [memory, paged] {
        let time = |threads: f64, part: f64| {
            let scaling = Scaling { part, ..Scaling::extrapolated(16.0, threads) };
            let machine = Machine { scaling, ..machine.part(part) };
            let machine = Machine { scaling, ..machine };
            Model::new(&summary, &demands, &machine, Unknowns::middle(&summary)).time(&[1.0], 2e9)
        };
        let (same, more, ranks) = (time(16.0, 1.0), time(17.0, 1.0), time(16.0, 0.125));
        assert!((same - 10.0).abs() < 0.1 && more < same && more > 0.95 * same, "{same} {more}");
        assert!(ranks > 1.2 * same, "100 GB at an eighth of 60 GB/s are 13 s: {same} {ranks}");
    }
}

#[test]
fn pages_that_miss_cost_transfer_or_waiting() {
    let far = Paged { page_ns: 0.0, ..Paged::example(16e6) };
    let machine = Machine::paged("here", Tier::plain("DRAM", 30e9, 100.0, 1e12), far);
    let run = |pattern: Pattern| {
        let mut group = swept("a", 1e9, 12.0, 10);
        group.pattern = pattern;
        let summary = summary(1.0, 10, vec![group]);
        let demands = Demands::of(&summary);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        [model.time(&[0.0], model.flat_cache()), model.time(&[1.0], 16e6), model.time(&[0.0], 1.25e9), model.time(&[0.0], 0.9e9)]
    };
    let [far, near, cache, scarce] = run(Pattern::Stream);
    assert!((3.25..3.55).contains(&far), "12 GB at 4 GB/s beside a second, and what is new goes there once: {far}");
    assert!((near - 1.0).abs() < 1e-9 && (cache - 1.0).abs() < 0.01, "{near} {cache}");
    assert!((1.1..2.0).contains(&scarce), "most of it is kept: {scarce}");
    let [far, ..] = run(Pattern::Random);
    assert!((50.0..70.0).contains(&far), "2.9 M faults of 20 us: {far}");
}

#[test]
fn what_is_made_anew_takes_what_that_was_measured_to_take() {
    // 8 GB, made in turns, of which each leaves before it is freed.
    let mut group = swept("temporary", 2e9, 0.0, 8);
    (group.count, group.least, group.most) = (8, 1_000_000_000, 1_000_000_000);
    let summary = summary(8.0, 8, vec![group]);
    let demands = Demands::of(&summary);
    let time = |new_ns: f64| {
        let far = Paged { new_ns, ..Paged::example(16e6) };
        let machine = Machine::paged("here", Tier::plain("DRAM", 30e9, 100.0, 1e12), far);
        let model = Model::new(&summary, &demands, &machine, Unknowns { paged_overlap: 1.0, ..Unknowns::middle(&summary) });
        let moved = model.paged(&[0.0], 16e6).expect("pages");
        assert!(moved.fetched == 0.0 && moved.back == 0.0 && (moved.new * PAGE / 8e9 - 1.0).abs() < 0.02, "{moved:?}");
        model.time(&[0.0], 16e6) - model.time(&[1.0], 16e6)
    };
    let (least, made) = (time(0.0), time(4096.0));
    assert!(
        (1.9..2.1).contains(&least) && (9.8..10.2).contains(&made),
        "{least} {made}: 8 GB at 4 GB/s, and 4 us for each page besides"
    );
}

proptest! {
    #[test]
    fn more_near_never_takes_longer(
        sizes in prop::collection::vec((1e7..2e9_f64, 0.5..40.0_f64, any::<bool>(), 0.0..1.0_f64, 1..9u64), 1..6),
        cache in 4e6..3e9_f64
    ) {
        let groups = sizes.iter().map(|&(bytes, sweeps, random, written, count)| {
            let mut group = swept("a", bytes, sweeps, 12);
            // Temporaries, of which two are alive at a time.
            let one = if count > 2 { bytes / 2.0 } else { bytes } as u64;
            (group.count, group.least, group.most) = (count, one, one);
            let pattern = if random { Pattern::Random } else { Pattern::Stream };
            ObjectGroup { pattern, written: Estimate::exact(written * bytes * sweeps), ..group }
        });
        let summary = summary(6.0, 12, groups.collect());
        let demands = Demands::of(&summary);
        let far = Paged { new_ns: 3000.0, ..Paged::example(4e6) };
        let machine = Machine::paged("here", Tier::plain("DRAM", 30e9, 100.0, 1e12), far);
        let model = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary));
        let shares = vec![0.0; sizes.len()];
        let (less, more) = (model.time(&shares, cache), model.time(&shares, 1.3 * cache));
        prop_assert!(more <= less * (1.0 + 1e-6), "{less} {more}");
        // Nothing is faster than all of it near.
        prop_assert!(model.time(&vec![1.0; sizes.len()], cache) <= more * (1.0 + 1e-6));
    }
}

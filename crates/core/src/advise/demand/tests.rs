//! What groups ask for, and what a cache makes of them; summaries that other tests use, too.

use super::*;
use crate::profile::record::Method;
use crate::profile::summary::{Estimate, FORMAT, Routine};

/// `sweeps` times through `bytes` in order, reading; all of it alive in all bins.
pub fn swept(name: &str, bytes: f64, sweeps: f64, bins: usize) -> ObjectGroup {
    let traffic = bytes * sweeps;
    ObjectGroup {
        name: name.into(),
        count: 1,
        least: bytes as u64,
        most: bytes as u64,
        peak_bytes: bytes as u64,
        live_bytes: vec![bytes; bins],
        lifetime_s: 1.0,
        footprint: Estimate::exact(bytes),
        read: Estimate { value: traffic, low: 0.95 * traffic, high: 1.05 * traffic },
        traffic: vec![traffic / bins as f64; bins],
        lines_per_visit: Estimate::exact(64.0),
        pattern: Pattern::Stream,
        misses: Curve { points: vec![(0.0, 1.0), (bytes * 0.99, 1.0), (bytes, 0.0)] },
        page_visits: Estimate::exact(traffic / PAGE),
        routines: vec![("work".into(), 1.0)],
        looks: 100,
        touches: 90,
        ..ObjectGroup::default()
    }
}

pub fn summary(wall_s: f64, bins: usize, objects: Vec<ObjectGroup>) -> Summary {
    Summary {
        program: "/bin/app".into(),
        args: vec!["app".into()],
        processes: 1,
        host: "here".into(),
        method: Method::PageFaults,
        wall_s,
        cpu_s: wall_s,
        bin_s: wall_s / bins as f64,
        cache_bytes: 1 << 20,
        format: FORMAT,
        least: 4096,
        peak_bytes: objects.iter().map(|group| group.peak_bytes).sum(),
        objects,
        ..Summary::default()
    }
}

#[test]
fn totals_stay_in_coarse_bins() {
    let summary = summary(10.0, 1000, vec![swept("a", 1e9, 20.0, 1000)]);
    let demands = Demands::of(&summary);
    let group = &demands.groups[0];
    assert_eq!(demands.seconds.len(), BINS);
    assert!((demands.seconds.iter().sum::<f64>() - 10.0).abs() < 1e-9);
    assert!((group.read.iter().sum::<f64>() - 20e9).abs() < 1.0 && group.live.iter().all(|&live| (live - 1e9).abs() < 1.0));
}

#[test]
fn bytes_at_a_time_are_those_of_the_worst_moment() {
    // Two of 96 fine bins are one coarse one; the last bin is half as long as the others.
    let mut group = swept("a", 1e9, 20.0, 96);
    group.live_bytes = vec![0.0; 96];
    (group.live_bytes[4], group.live_bytes[95]) = (1e9, 5e8);
    let mut summary = summary(9.6, 96, vec![group]);
    summary.wall_s = 9.55;
    let demands = Demands::of(&summary);
    assert_eq!((demands.groups[0].live[2], demands.groups[0].live[47], demands.groups[0].live[0]), (1e9, 5e8, 0.0));
    assert!((demands.seconds[47] - 0.15).abs() < 1e-9 && (demands.seconds[0] - 0.2).abs() < 1e-9);
}

#[test]
fn large_static_arrays_are_paged() {
    let pageable = |kind: Kind, bytes: f64| {
        let group = ObjectGroup { kind, ..swept("a", bytes, 1.0, 1) };
        Demands::of(&summary(1.0, 1, vec![group])).groups[0].pageable
    };
    assert!(pageable(Kind::Static, 2e6) && !pageable(Kind::Static, 5e5));
    assert!(!pageable(Kind::MainStack, 2e6) && !pageable(Kind::ThreadStack, 2e6) && pageable(Kind::Heap, 5e5));
}

#[test]
fn a_cache_is_shared_by_age() {
    // 1 GB in a quarter of a second and 1 GB in 4 s: the former stays, and pages of the slow one have gone by the time they are asked for.
    let summary = summary(8.0, 8, vec![swept("fast", 1e9, 32.0, 8), swept("slow", 1e9, 2.0, 8)]);
    let demands = Demands::of(&summary);
    let misses = |bytes: f64, shares: &[f64], paged: bool| {
        let found = &demands.cached(|_, _| bytes, shares, paged)[0];
        [found[0].misses, found[1].misses]
    };
    let [fast, slow] = misses(1.5e9, &[1.0, 1.0], false);
    assert!(fast < 0.01 && slow > 0.99, "{fast} {slow}");
    let [fast, slow] = misses(1.5e9, &[1.0, 1.0], true);
    assert!(fast < 0.01 && (0.4..0.9).contains(&slow), "a part of the slow one is kept: {fast} {slow}");
    let [fast, _] = misses(0.4e9, &[1.0, 1.0], false);
    assert!(fast > 0.99);
    assert_eq!(misses(2.2e9, &[1.0, 1.0], true), [0.0, 0.0]);
    assert_eq!(misses(1.1e9, &[1.0, 0.0], true)[0], 0.0, "alone it fits");
}

#[test]
fn phases_share_a_cache_one_after_the_other() {
    let mut groups = vec![swept("first", 1e9, 8.0, 8), swept("second", 1e9, 8.0, 8)];
    for (at, group) in groups.iter_mut().enumerate() {
        group.traffic = (0..8).map(|bin| if (bin < 4) == (at == 0) { 2e9 } else { 0.0 }).collect();
    }
    let phased = summary(8.0, 8, groups.clone());
    let demands = Demands::of(&phased);
    let cached = demands.cached(|_, _| 1.1e9, &[1.0, 1.0], true);
    assert!(cached[0][0].misses < 0.01 && cached[7][1].misses < 0.01, "each fits in its phase: {cached:?}");
    assert!(cached[0][0].held < 0.2e9 && cached[7][1].held > 0.9e9, "the first is displaced by the second: {cached:?}");
    let mut freed = groups.clone();
    freed[0].live_bytes = (0..8).map(|bin| if bin < 4 { 1e9 } else { 0.0 }).collect();
    let cached = Demands::of(&summary(8.0, 8, freed)).cached(|_, _| 1.1e9, &[1.0, 1.0], true);
    assert!(cached[0][0].held > 0.9e9, "what is freed before is not: {cached:?}");
    // Three looks each tell nothing: what may be chance is no phase.
    groups.iter_mut().for_each(|group| group.touches = 3);
    assert_eq!(Demands::of(&summary(8.0, 8, groups)).phases, [0]);
}

#[test]
fn what_is_swept_in_turns_is_near_as_a_whole() {
    let points = vec![(0.0, 1.0), (3e8, 1.0), (3e8, 0.4), (5e8, 0.4), (5e8, 0.0)];
    let mut group = swept("a", 1e9, 8.0, 8);
    group.misses = Curve { points };
    let misses = |group: &ObjectGroup, bytes: f64| {
        Demands::of(&summary(8.0, 8, vec![group.clone()])).cached(|_, _| bytes, &[1.0], true)[0][0].misses
    };
    assert!(misses(&group, 0.6e9) > 0.1 && misses(&group, 1.1e9) == 0.0);
    group.pattern = Pattern::Random;
    assert!(misses(&group, 0.6e9) < 0.01, "where there is no order the mean is what is near");
}

#[test]
fn temporaries_that_do_not_fit_pass() {
    // One of 1 GB is made before the last one is freed.
    let mut group = swept("temporary", 2e9, 4.0, 8);
    (group.count, group.least, group.most) = (8, 1_000_000_000, 1_000_000_000);
    let demands = Demands::of(&summary(8.0, 8, vec![group]));
    let temporary = &demands.groups[0];
    assert!(temporary.fresh.iter().sum::<f64>() * PAGE > 7.9e9 && temporary.changed == 0.0);
    assert!((temporary.passes(1.5e9, 1.0) - 0.5).abs() < 1e-9 && temporary.passes(2e9, 1.0) == 0.0);
    assert_eq!(temporary.passes(0.5e9, 1.0), 1.0);
}

#[test]
fn routines_work_on_what_they_touch() {
    let mut groups = vec![swept("a", 1e9, 8.0, 8), swept("b", 1e9, 8.0, 8)];
    for (group, name) in groups.iter_mut().zip(["one", "two"]) {
        group.routines = vec![(name.into(), 1.0)];
    }
    let mut summary = summary(8.0, 8, groups);
    let routine = |function: &str, seconds: f64| Routine {
        function: function.into(),
        module: "app".into(),
        self_s: seconds,
        time: vec![seconds / 8.0; 8],
        ..Routine::default()
    };
    summary.routines = vec![routine("one", 2.0), routine("two", 1.0), routine("computes", 5.0)];
    let demands = Demands::of(&summary);
    let at_work = |at: usize| demands.groups[at].at_work[3];
    assert!((at_work(0) - 0.25).abs() < 1e-9 && (at_work(1) - 0.125).abs() < 1e-9, "{} {}", at_work(0), at_work(1));
    summary.routines.clear();
    let demands = Demands::of(&summary);
    assert!((demands.groups[0].at_work[3] - 0.5).abs() < 1e-9, "by visits");
}

#[test]
fn threads_are_those_that_ran_for_a_tenth_of_the_time() {
    let routine = |time: Vec<f64>| Routine { self_s: time.iter().sum(), time, ..Routine::default() };
    // One thread for four seconds, four for four, and a tenth of the time with eight.
    let time = vec![1.0, 1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0, 4.0, 8.0];
    let mut summary = summary(10.0, 10, vec![swept("a", 1e9, 1.0, 10)]);
    (summary.cpu_s, summary.routines) = (32.0 * 1.25, vec![routine(time)]);
    // A fifth of the samples was lost.
    let demands = Demands::of(&summary);
    assert_eq!((demands.threads(), demands.busy[0], demands.busy[5]), (10.0, 1.25, 5.0));
    summary.cpu_s = 32.0;
    let demands = Demands::of(&summary);
    assert_eq!((demands.threads(), demands.busy[0], demands.busy[5]), (8.0, 1.0, 4.0));
    // Where samples miss most of it, all stretches are as the mean.
    summary.cpu_s = 60.0;
    assert_eq!(Demands::of(&summary).busy, vec![6.0; 10]);
}

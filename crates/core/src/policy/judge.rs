//! Tests that every eviction policy must pass, and the targets of the default one, judged by replay.

use crate::policy::replay::{Access, Action, LIMBO_SHARE, Replay, Tally, belady, lru, replay};
use crate::policy::traces::Trace;
use crate::policy::units::UnitMap;
use crate::policy::{Arrival, EVICT_NAMES, Evict, Unit, evict_by_name};
use proptest::prelude::*;
use std::collections::HashMap;

/// Near in units and pages a unit: whole blocks of a small near, chunks of a small near.
const NEARS: [(u64, u32); 2] = [(400, 512), (4000, 16)];

fn policy(name: &str) -> Box<dyn Evict> {
    evict_by_name(name, 1).unwrap()
}

/// Counts of the part of `trace` from `from` on.
fn after(trace: &[Access], from: usize, capacity: u64, name: &str) -> Tally {
    let mut policy = policy(name);
    let mut near = Replay::new(capacity, capacity / LIMBO_SHARE, policy.as_mut());
    trace[..from].iter().for_each(|&access| near.access(access));
    let before = near.tally();
    trace[from..].iter().for_each(|&access| near.access(access));
    near.tally().since(&before)
}

#[test]
fn names_resolve() {
    for name in EVICT_NAMES {
        assert_eq!(policy(name).name(), *name);
    }
    assert!(evict_by_name("nobody", 1).is_none());
}

#[test]
fn yardsticks_on_a_known_trace() {
    // 1 2 3 1 2 3 with room for two: MIN keeps 1 (or 2) and misses 4, LRU misses 6.
    let trace = Trace::new(16).sweep(0, 3, 2).done();
    assert_eq!((belady(&trace, 32).misses, lru(&trace, 32).misses), (4, 6));
    assert_eq!(belady(&trace, 48).misses, 3);
    let fifo = replay(&trace, 32, 0, policy("fifo").as_mut());
    assert_eq!((fifo.misses, fifo.pages_in), (6, 96));
}

/// A loop of D over C pages (limbo taken off): at least 95 % of C / D hits, from the second lap on.
#[test]
fn adaptive_keeps_its_share_of_loops() {
    for (units, pages) in NEARS {
        let capacity = units * u64::from(pages);
        let room = units - units / LIMBO_SHARE;
        for percent in [105, 125, 160, 200, 300, 400, 800] {
            let data = units * percent / 100;
            let trace = Trace::new(pages).sweep(0, data, 40).done();
            let rate = after(&trace, data as usize, capacity, "adaptive").hit_rate();
            let share = room as f64 / data as f64;
            println!("{units} x {pages}, {percent} %: {:.3} of C/D", rate / share);
            assert!(rate >= 0.95 * share.min(1.0), "{units} units, {percent} %: {rate:.3} of {share:.3}");
        }
    }
}

/// The same when victims are asked for in bursts, of up to an eighth of near, and units have all sizes.
#[test]
fn adaptive_keeps_its_share_of_loops_when_evicting_in_bursts() {
    for (units, pages) in NEARS {
        let capacity = units * u64::from(pages);
        for percent in [125, 200, 300, 600] {
            for burst in [2, 32, 16, 8].map(|part| if part == 2 { 2 * u64::from(pages) } else { capacity / part }) {
                let data = units * percent / 100;
                let sizes = |i: u64| {
                    if i.is_multiple_of(5) {
                        Access::read(Unit::chunk(i as usize, 3), pages / 3 + 1)
                    } else {
                        Access::read(Unit::block(i as usize), pages)
                    }
                };
                for mixed in [false, true] {
                    let one =
                        |i: u64| if mixed { sizes(i % data) } else { Access::read(Unit::block((i % data) as usize), pages) };
                    let lap: u64 = (0..data).map(|i| u64::from(one(i).pages)).sum();
                    let mut policy = policy("adaptive");
                    let mut near = Replay::new(capacity, capacity / LIMBO_SHARE, policy.as_mut());
                    near.evict_ahead(burst);
                    (0..8 * data).for_each(|i| near.access(one(i)));
                    let before = near.tally();
                    (0..30 * data).for_each(|i| near.access(one(i)));
                    let read = near.tally().since(&before).pages_in as f64 / (30 * lap) as f64;
                    let room = (capacity - capacity / LIMBO_SHARE).saturating_sub(burst);
                    let least = (1.0 - room as f64 / lap as f64).max(0.0);
                    println!(
                        "{units} x {pages}, {percent} %, burst {burst}, {mixed}: reads {read:.3} of a lap, at best {least:.3}"
                    );
                    assert!(read <= least + 0.05, "{units} units, {percent} %, bursts of {burst}: {read:.3} of {least:.3}");
                }
            }
        }
    }
}

#[test]
fn adaptive_is_near_the_best_fixed_policy() {
    for (c, pages) in NEARS {
        let t = || Trace::new(pages);
        let traces = [
            ("uniform", 0.95, t().uniform(0, c * 3, c * 40)),
            ("zipf 0.7", 0.97, t().zipf(0, c * 4, 0.7, c * 40)),
            ("zipf 1.0", 0.97, t().zipf(0, c * 8, 1.0, c * 40)),
            ("zipf 1.2", 0.97, t().zipf(0, c * 8, 1.2, c * 40)),
            ("sweeps and a hot set", 0.97, t().sweep_and_zipf(c * 4, c, 0.9, 2, c * 40)),
            ("phases of loops", 0.95, t().sweep(0, c * 9 / 10, 10).sweep(c * 10, c * 9 / 10, 10).sweep(0, c * 9 / 10, 10)),
            ("phases of large loops", 0.95, t().sweep(0, c * 2, 10).sweep(c * 10, c * 2, 10)),
            ("phases, random", 0.95, t().uniform(0, c * 9 / 10, c * 10).uniform(c * 10, c * 9 / 10, c * 10)),
            ("drift", 0.97, t().drift(0, c * 10, c / 2, c * 60)),
            ("wide drift", 0.97, t().drift(0, c * 10, c * 95 / 100, c * 60)),
            ("stencil", 0.95, t().stencil(0, c * 2, c / 50, 10)),
            ("stencil of wide planes", 0.95, t().stencil(0, c * 2, c / 10, 10)),
            ("tiles", 0.95, t().tiles(0, c * 4, c * 9 / 10, 5, 4)),
        ];
        for (name, least, trace) in traces {
            let trace = trace.done();
            let capacity = c * u64::from(pages);
            let rate = |name: &str| replay(&trace, capacity, capacity / LIMBO_SHARE, policy(name).as_mut()).hit_rate();
            let best = EVICT_NAMES[1..].iter().map(|name| rate(name)).fold(0.0, f64::max);
            let ours = rate("adaptive");
            println!(
                "{c} x {pages}, {name}: {ours:.3}, {:.2} of the best fixed, {:.2} of MIN",
                ours / best,
                ours / belady(&trace, capacity).hit_rate()
            );
            assert!(ours >= least * best, "{c} units, {name}: {ours:.3}, best fixed {best:.3}");
        }
    }
}

/// Nears in units and pages a unit for what follows.
const MORE_NEARS: [(u64, u32); 4] = [(150, 512), (400, 512), (1200, 64), (4000, 16)];

/// Every trace that `nearfar bench policies` replays, at four sizes. The target is 0.95; what is known to be short of it is named,
/// with what it reaches as the floor.
#[test]
fn adaptive_on_every_trace() {
    const SHORT: [(&str, f64); 3] = [("up and down 2", 0.90), ("stencil 2, wide", 0.87), ("tiles 1.5 of 6", 0.88)];
    let mut below = Vec::new();
    for (c, pages) in MORE_NEARS {
        let capacity = c * u64::from(pages);
        for (name, mut trace) in crate::policy::traces::all(c, pages) {
            // Hits alone compare where nothing is written: otherwise some are given up to save writes.
            trace.iter_mut().for_each(|access| access.act = Action::Read);
            let rate = |name: &str| replay(&trace, capacity, capacity / LIMBO_SHARE, policy(name).as_mut()).hit_rate();
            let best = EVICT_NAMES[1..].iter().map(|name| rate(name)).fold(0.0, f64::max);
            let ratio = rate("adaptive") / best;
            let least = SHORT.iter().find(|(short, _)| *short == name).map_or(0.95, |&(_, floor)| floor);
            println!("{c} x {pages}, {name}: {ratio:.3} of the best fixed");
            if ratio < least {
                below.push(format!("{c} units, {name}: {ratio:.3}"));
            }
        }
    }
    assert!(below.is_empty(), "{below:?}");
}

/// The same traces with their writes: bytes read and written together, over those of the fixed policy that moves least. The target
/// is 1/0.95.
#[test]
fn adaptive_moves_few_bytes() {
    const LONG: [(&str, f64); 5] = [
        ("sweep 1.05", 1.15),
        ("phases of loops 0.9", 1.42),
        ("phases, random 0.9", 1.15),
        ("stencil 2, wide", 1.10),
        ("tiles 0.9 of 4", 1.35),
    ];
    // Chunks are not kept for being written, which costs these traces and wins on recorded ones.
    const LONG_IN_CHUNKS: [(&str, f64); 3] = [("up and down 2", 1.07), ("stencil 2, wide", 1.18), ("tiles 0.5 of 4", 1.08)];
    let mut above = Vec::new();
    for (c, pages) in MORE_NEARS {
        let capacity = c * u64::from(pages);
        for (name, trace) in crate::policy::traces::all(c, pages) {
            let moved = |name: &str| {
                let tally = replay(&trace, capacity, capacity / LIMBO_SHARE, policy(name).as_mut());
                (tally.pages_in + tally.pages_out) as f64
            };
            let ratio = moved("adaptive") / EVICT_NAMES[1..].iter().map(|name| moved(name)).fold(f64::MAX, f64::min);
            let in_chunks = if pages == 16 { &LONG_IN_CHUNKS[..] } else { &[] };
            let most = in_chunks.iter().chain(&LONG).find(|(long, _)| *long == name).map_or(1.0 / 0.95, |&(_, most)| most);
            println!("{c} x {pages}, {name}: {ratio:.3} of the bytes of the best fixed");
            if ratio > most {
                above.push(format!("{c} units, {name}: {ratio:.3}"));
            }
        }
    }
    assert!(above.is_empty(), "{above:?}");
}

/// What is written is kept where it is a whole block; of chunks the policy takes no notice of it.
#[test]
fn chunks_are_not_kept_for_being_written() {
    let victims = |unit: fn(u64) -> Unit, pages: u32, written: u32| {
        let mut policy = policy("adaptive");
        policy.set_capacity(100 * u64::from(pages));
        let mut gone = Vec::new();
        for i in 0..3000 {
            policy.insert(unit(i % 300), pages, Arrival::Demanded);
            while policy.resident_pages() > 100 * u64::from(pages) {
                let victim = policy.victim().unwrap();
                policy.left(victim, if victim.block_number().is_multiple_of(3) { written } else { 0 });
                gone.push(victim);
            }
        }
        gone
    };
    let (chunk, block) = (|i: u64| Unit::chunk(i as usize, 3), |i: u64| Unit::block(i as usize));
    assert_eq!(victims(chunk, 16, 16), victims(chunk, 16, 0));
    assert_ne!(victims(block, 512, 512), victims(block, 512, 0));
}

/// Units that the kernel holds come back at once: others must leave in their stead, whatever part of near they are in.
#[test]
fn what_cannot_leave_does_not_keep_the_others() {
    const ROOM: u64 = 64 * 512;
    let pinned = Unit::chunk(9999, 0);
    let mut policy = policy("adaptive");
    policy.set_capacity(ROOM);
    policy.insert(pinned, 1, Arrival::Touched);
    let mut resident = std::collections::HashSet::new();
    let mut in_a_row = 0;
    for visit in 0..4000usize {
        // All of it is written, so that it is dear to keep out.
        let unit = Unit::block(visit % 100);
        if !resident.insert(unit) {
            continue;
        }
        policy.insert(unit, 512, Arrival::Demanded);
        while policy.resident_pages() > ROOM - 4 * 512 {
            let victim = policy.victim().unwrap();
            if victim == pinned {
                in_a_row += 1;
                assert!(in_a_row < 8, "visit {visit}: nothing but what cannot leave");
                policy.insert(pinned, 1, Arrival::Rescued);
                continue;
            }
            in_a_row = 0;
            resident.remove(&victim);
            policy.left(victim, 512);
        }
    }
}

/// Whatever came before, a loop gets its share in the end, also one that is just too large for a long FIFO.
#[test]
fn adaptive_is_not_stuck_in_a_loop() {
    for (c, pages) in MORE_NEARS {
        for before in 0..3 {
            for percent in [105, 110, 120, 135, 160] {
                let t = Trace::new(pages);
                let t = match before {
                    0 => t.sweep(0, c * 9 / 10, 10),
                    1 => t.drift(0, c * 10, c / 2, c * 20),
                    _ => t.sweep(0, c / 2, 10).sweep(c * 9, c * 3, 1),
                };
                let data = c * percent / 100;
                let trace = t.sweep(c * 20, data, 40).done();
                let rate = after(&trace, trace.len() - 10 * data as usize, c * u64::from(pages), "adaptive").hit_rate();
                let ratio = rate * data as f64 / (c - c / LIMBO_SHARE) as f64;
                println!("{c} x {pages}, {percent} % after {before}: {ratio:.3} of C/D");
                assert!(ratio >= if percent == 105 { 0.75 } else { 0.9 }, "{c} units, {percent} % after {before}: {ratio:.3}");
            }
        }
    }
}

/// A new working set that fits is in near after it was missed at most twice and a half.
#[test]
fn adaptive_lets_go_of_an_old_phase() {
    for (c, pages) in NEARS {
        let trace = Trace::new(pages).sweep(0, c * 9 / 10, 10).sweep(c * 10, c * 9 / 10, 10).done();
        let tally = after(&trace, trace.len() / 2, c * u64::from(pages), "adaptive");
        assert!(tally.misses <= c * 9 / 4, "{tally:?} with {c} units");
    }
}

#[test]
fn adaptive_with_units_of_all_sizes() {
    let mut state = 1;
    let size = |number: u64| {
        if number.is_multiple_of(3) {
            Access::read(Unit::block(number as usize), 512)
        } else {
            Access::read(Unit::chunk(number as usize, 3), 1 + (number % 16) as u32)
        }
    };
    let loops: Vec<Access> = (0..40 * 600).map(|i| size(i % 600)).collect();
    let mix: Vec<Access> = (0..40 * 600).map(|_| size(crate::random_numbers::xorshift(&mut state) % 600)).collect();
    let total: u64 = (0..600).map(|n| u64::from(size(n).pages)).sum();
    for trace in [loops, mix] {
        let tally = replay(&trace, total / 2, total / 64, policy("adaptive").as_mut());
        // Bytes, not visits: large units count more.
        let share = 1.0 - tally.pages_in as f64 / (40 * total) as f64;
        assert!(share >= 0.42, "{share:.3} {tally:?}");
    }
}

/// Loops over `blocks` blocks with room for `room`, of which those that `writes` says change; returns reads and writes per
/// lap after twenty laps.
fn laps(blocks: usize, room: usize, writes: impl Fn(usize) -> bool) -> (f64, f64) {
    let mut policy = policy("adaptive");
    policy.set_capacity(room as u64 * 512);
    // What is resident, and whether it changed since it came; what far has.
    let mut near: HashMap<Unit, bool> = HashMap::new();
    let mut far: HashMap<Unit, ()> = HashMap::new();
    let (mut read, mut written) = (0, 0);
    for lap in 0..60 {
        if lap == 20 {
            (read, written) = (0, 0);
        }
        for block in 0..blocks {
            let unit = Unit::block(block);
            if !near.contains_key(&unit) {
                while near.len() >= room {
                    let victim = policy.victim().expect("something is resident");
                    let changed = near.remove(&victim).expect("a victim is resident");
                    let known = far.insert(victim, ()).is_some();
                    written += usize::from(changed || !known);
                    policy.left(victim, if changed && known { 512 } else { 0 });
                }
                read += usize::from(far.contains_key(&unit));
                near.insert(unit, lap == 0);
                policy.insert(unit, 512, if lap == 0 { Arrival::Touched } else { Arrival::Demanded });
            }
            *near.get_mut(&unit).expect("just made resident") |= writes(block);
        }
    }
    (read as f64 / 40.0, written as f64 / 40.0)
}

#[test]
fn a_loop_keeps_what_it_writes() {
    // A third is written, as much as fits: nearly all writes go away, and no reads are added.
    let (read, written) = laps(600, 200, |block| block % 3 == 0);
    println!("a third of 600 written, near 200: {read} read, {written} written");
    assert!(read < 415.0 && written < 15.0, "{read} {written}");
    // All or nothing is written: nothing to choose, and the share of the loop is kept.
    for all in [false, true] {
        let (read, written) = laps(600, 200, |_| all);
        assert!(read < 420.0 && written <= read, "{all}: {read} {written}");
    }
    for (blocks, every) in [(250, 3), (400, 3), (1000, 3), (1600, 3), (1600, 7), (1600, 1), (3000, 2)] {
        let (read, written) = laps(blocks, 200, |block| block % every == 0);
        println!("{blocks} blocks, 1/{every} written: {read} read, {written} written");
        assert!(read < 1.05 * (blocks - 200) as f64 + 12.0, "{blocks} {every}: {read}");
        assert!(written < (blocks / every) as f64 - 150.0f64.min(0.8 * (blocks / every) as f64), "{blocks} {every}: {written}");
    }
    // More is written than fits: near has no room for anything else.
    let (read, written) = laps(600, 200, |block| block < 400);
    assert!(read < 420.0 && written < 225.0, "{read} {written}");
}

proptest! {
    /// Belady's bound holds for every policy when all units have one size, limbo included.
    #[test]
    fn nobody_beats_belady(numbers in prop::collection::vec(0u64..40, 1..600), near in 1u64..30, limbo in 0u64..8) {
        let mut trace = Trace::new(16);
        numbers.iter().for_each(|&n| trace.visit(n));
        let trace = trace.done();
        let limbo = limbo.min(near - 1);
        let bound = belady(&trace, near * 16).misses;
        for name in EVICT_NAMES {
            let tally = replay(&trace, near * 16, limbo * 16, policy(name).as_mut());
            prop_assert!(tally.misses >= bound, "{} {:?}", name, tally);
            prop_assert_eq!(tally.hits + tally.rescued + tally.misses, tally.accesses);
        }
        prop_assert!(lru(&trace, near * 16).misses >= bound);
    }

    /// Any calls in any order: victims are resident, none is given twice, and the pages add up.
    #[test]
    fn victims_are_resident(
        acts in prop::collection::vec((0u8..10, 0usize..60, 0u32..513, 0u8..3), 1..400),
        capacity in prop_oneof![Just(0u64), 1u64..100, 1000u64..100_000],
    ) {
        for name in EVICT_NAMES {
            let mut policy = evict_by_name(name, capacity).unwrap();
            let mut resident: UnitMap<u32> = UnitMap::default();
            for &(act, number, pages, arrival) in &acts {
                let unit = if number % 2 == 0 { Unit::block(number) } else { Unit::chunk(number / 8, number % 8) };
                match act {
                    0..=5 => {
                        policy.insert(unit, pages, [Arrival::Touched, Arrival::Demanded, Arrival::Rescued][usize::from(arrival)]);
                        resident.insert(unit, pages);
                    }
                    6 => {
                        policy.remove(unit);
                        resident.remove(&unit);
                    }
                    7 => policy.set_capacity(capacity * u64::from(arrival)),
                    _ => match policy.victim() {
                        Some(victim) => prop_assert!(resident.remove(&victim).is_some(), "{}", name),
                        None => prop_assert!(resident.is_empty(), "{}", name),
                    },
                }
                prop_assert_eq!(policy.resident_pages(), resident.values().map(|&p| u64::from(p)).sum::<u64>(), "{}", name);
            }
            while let Some(victim) = policy.victim() {
                prop_assert!(resident.remove(&victim).is_some(), "{}", name);
            }
            prop_assert!(resident.is_empty() && policy.resident_pages() == 0, "{}", name);
        }
    }
}

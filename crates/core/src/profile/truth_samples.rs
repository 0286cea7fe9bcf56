//! Estimates from memory samples of the processor, alone and beside looks, against truth, on simulated programs.

use super::analyse::{Options, analyse};
use super::record::{Access, Method, Record, Source};
use super::simulate::{Machine, Run, STREAM, Sampling, Simulated, VARIES, simulate, simulate_sampled};
use super::summary::Summary;
use super::truth::{CACHE, MB, compare, phases, sweeps};
use crate::random_numbers::Random;

const SEEDS: u64 = 4;

/// Root of the mean square of the errors of shares, in points; how many of all intervals hold the truth.
fn errors<'a>(all: impl Iterator<Item = (&'a Simulated, Summary)>) -> (f64, usize, usize) {
    let (mut squares, mut number, mut held) = (0.0, 0, 0);
    for (run, summary) in all {
        let found = compare(run, &summary);
        let (sum, truth) = found.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        for (estimate, true_value, holds) in found {
            squares += (100.0 * (estimate / sum - true_value / truth)).powi(2);
            number += 1;
            held += usize::from(holds);
        }
    }
    ((squares / f64::from(number)).sqrt(), held, number as usize)
}

fn runs(program: &dyn Fn(&mut Run), looks: usize, sampling: Option<(f64, f64)>) -> Vec<Simulated> {
    let run = |seed| {
        let sampling = sampling.map(|(period, ahead)| Sampling::new(period, ahead, 77 + seed));
        simulate_sampled(program, CACHE, &[], looks, 200 + seed, sampling)
    };
    (0..SEEDS).map(run).collect()
}

fn judged(runs: &[Simulated]) -> (f64, usize, usize) {
    errors(runs.iter().map(|run| (run, analyse(&run.content, &Machine, &Options::default()))))
}

/// Six tables of different sizes that are gathered from, each as often as it says.
fn tables(run: &mut Run) {
    let sizes = [2, 2, 3, 3, 4, 4].map(|size| size * MB);
    let often = [1, 2, 3, 4, 6, 8];
    let ids: Vec<_> = (0..6).map(|site| run.alloc(site, sizes[site])).collect();
    (0..6).for_each(|at| run.sweep(ids[at], sizes[at], true));
    let mut random = Random::new(4);
    for _ in 0..20_000 {
        for at in 0..6 {
            (0..often[at]).for_each(|_| run.touch(ids[at], (random.unit() * sizes[at] as f64) as u64 & !7, false, VARIES));
        }
    }
}

#[test]
fn samples_alone_give_shares_within_chance() {
    // Not temporaries: whether the memory of a block comes anew, and so is written back once without a store, only looks tell.
    for (name, program) in [("sweeps", &sweeps as &dyn Fn(&mut Run)), ("tables", &tables), ("phases", &phases)] {
        let few = runs(program, 0, Some((5003.0, 0.0)));
        let (error, held, all) = judged(&few);
        let exact = judged(&runs(program, 0, Some((101.0, 0.0)))).0;
        println!("{name}: {error:.2} points, {held} of {all} intervals hold; {exact:.2} with fifty times the samples");
        let summary = analyse(&few[0].content, &Machine, &Options::default());
        // Shares of objects by n samples of which loads from memory are most: at most half of the root of 1 / n, and a little for the sort of each.
        let chance = 100.0 * 0.5 / (summary.samples as f64).sqrt();
        assert!(error < 1.5 * chance, "{name}: {error} points, chance gives {chance}");
        assert!(exact < 0.5 * error, "{name}: {exact} after {error}");
        assert!(held * 100 >= all * 80, "{name}: {held} of {all}");
        assert_eq!(summary.method, Method::Hardware);
        assert!(summary.notes.iter().any(|note| note.contains("fetched ahead")), "{:?}", summary.notes);
    }
}

#[test]
fn few_looks_and_many_samples_are_better_than_either_by_itself_among_gathers() {
    let looks = runs(&tables, 25, None);
    let both = runs(&tables, 25, Some((31.0, 0.0)));
    let (without, with) = (judged(&looks).0, judged(&both));
    println!("tables: {without:.2} points by looks, {:.2} with samples; {} of {} hold", with.0, with.1, with.2);
    assert!(with.0 < 0.6 * without, "{without} points, {} with samples", with.0);
    assert!(with.1 * 100 >= with.2 * 80, "{} of {} intervals hold the truth", with.1, with.2);
    assert_eq!(analyse(&both[0].content, &Machine, &Options::default()).method, Method::Both);
}

/// What prefetchers hide must not take traffic from streams.
#[test]
fn lines_fetched_ahead_do_not_bend_shares() {
    let program = |run: &mut Run| {
        let (one, other, table) = (run.alloc(0, 2 * MB), run.alloc(1, 2 * MB), run.alloc(2, 4 * MB));
        [(one, 2 * MB), (other, 2 * MB), (table, 4 * MB)].into_iter().for_each(|(id, len)| run.sweep(id, len, true));
        let mut random = Random::new(5);
        for _ in 0..6 {
            for line in 0..2 * MB / 64 {
                run.touch(one, line * 64, false, STREAM);
                run.touch(other, line * 64, false, STREAM);
                run.touch(table, (random.unit() * 4.0 * MB as f64) as u64 & !7, false, VARIES);
            }
        }
    };
    let looks = judged(&runs(&program, 200, None)).0;
    let both = judged(&runs(&program, 200, Some((31.0, 0.9)))).0;
    let alone = judged(&runs(&program, 0, Some((31.0, 0.9)))).0;
    println!("streams and a table: {looks:.2} points by looks, {both:.2} by both, {alone:.2} by samples");
    assert!(both < looks + 0.5, "{looks} points by looks, {both} with samples");
    assert!(alone > 15.0, "the test is one: samples alone are {alone} points off");
}

#[test]
fn latency_routines_and_time_by_samples() {
    let run = &runs(&phases, 0, Some((101.0, 0.0)))[0];
    let summary = analyse(&run.content, &Machine, &Options::default());
    let one = summary.objects.iter().find(|object| object.name.starts_with("object1 ")).unwrap();
    assert!((one.load_cycles - 300.0).abs() < 1.0, "{}", one.load_cycles);
    assert_eq!(one.routines[0].0, format!("function{STREAM}"));
    let early: f64 = one.traffic[..one.traffic.len() * 2 / 3].iter().sum();
    assert!(early > 0.9 * one.traffic.iter().sum::<f64>(), "{:?}", one.traffic);
    assert!((one.traffic.iter().sum::<f64>() / one.total().value - 1.0).abs() < 1e-6);
    assert!(summary.confidence().unwrap() < 0.5);
}

/// Blocks come and go at the same addresses: a sample belongs to what was there when it was taken.
#[test]
fn samples_belong_to_what_was_there_at_their_time() {
    let program = |run: &mut Run| {
        let first = run.alloc(0, MB);
        run.sweep(first, MB, true);
        run.free(first);
        let second = run.alloc(1, MB);
        run.sweep(second, MB, true);
        run.now += 1000;
        run.free(second);
    };
    let mut run = simulate(program, CACHE, &[], 0, 1);
    let records = &mut run.content.batches[0].records;
    let (mut spans, mut addr) = (Vec::new(), 0);
    for record in records.iter_mut() {
        match record {
            Record::Object(object) => {
                addr = if addr == 0 { object.addr } else { addr };
                object.addr = addr;
                spans.push(object.at);
            }
            Record::Gone { at, .. } => spans.push(*at),
            _ => {}
        }
    }
    let at = |at: u64, offset: u64| Access {
        at,
        ip: STREAM,
        tid: 1,
        addr: addr + offset,
        stands_for: 1,
        cycles: 100,
        source: Source::Memory,
        writes: false,
    };
    // Written late and out of order, as rings of several CPUs are.
    let samples = vec![
        at(spans[2] + 5, 0),
        at(spans[0] + 5, MB - 1),
        at(spans[0] + 6, MB),
        at(spans[3] + 5, 0),
        at(spans[2] + 9, 8),
        at(spans[1] - 1, 8),
        at(spans[2] - 1 - (spans[2] - spans[1]), 8),
    ];
    let end = records.len() - 1;
    records.insert(end, Record::Accesses { at: spans[3], samples, lost: 4 });
    let summary = analyse(&run.content, &Machine, &Options::default());
    let of = |name: &str| summary.objects.iter().find(|object| object.name.starts_with(name)).map(|object| object.samples);
    assert_eq!((of("object1 "), of("object2 ")), (Some(3), Some(2)), "two of seven were in no object");
    assert_eq!((summary.samples, summary.samples_lost), (7, 4));
    assert!(summary.notes.iter().any(|note| note.contains("4 memory samples")), "{:?}", summary.notes);
}

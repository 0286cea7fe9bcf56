//! Two-electron integrals of a Hartree-Fock code: computed once and kept in memory, or computed anew whenever they are needed.
//!
//! A repetition builds the Fock matrix from a density matrix. The conventional way reads each of the n^4 / 8 integrals once, in the
//! order of memory, and near memory holds matrices of n^2; the direct way (Almlof, Faegri and Korsell 1982) was invented when they no
//! longer fitted, and has no large array. Both feed the same loop, so that results are the same to the last bit. Intensity of the
//! stored: 12 flop for the 8 bytes of an integral, three sums and three updates, 1.5 for large n.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::fock_sums::{Density, FLOP, Sums, finish, larger, sums_len};
use crate::gaussians::{Basis, QUARTET_FLOP, pair};
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::Random;

/// Parts of equal work, each with matrices of its own: sums are the same for any number of threads.
const BLOCKS: usize = 16;

/// Elements of the Fock matrix that are verified against its definition, and how far they may be off.
const SAMPLES: usize = 8;
const TOLERANCE: f64 = 1e-10;

/// Where integrals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory.
    Stored,
    /// Computation in every repetition.
    Direct,
}

/// Rows of the triangle of integrals (pair ij by pairs kl up to it), with the matrices that they are added up in.
struct Block<'a> {
    rows: Range<usize>,
    /// None where they are computed.
    integrals: &'a mut [f64],
    sums: Sums<'a>,
}

/// Integrals of pairs before pair `ij`.
const fn before(ij: usize) -> usize {
    ij * (ij + 1) / 2
}

/// The most functions whose integrals and matrices take at most `bytes`, and at least 2.
fn functions_of(bytes: usize) -> usize {
    let needed = |n: usize| size_of::<f64>() * (before(pair(n, 0)) + BLOCKS * sums_len(n) + n * n);
    (2..).take_while(|&n| needed(n) <= bytes).last().unwrap_or(2)
}

/// Builds `setting.repetitions` Fock matrices with as many functions as fit into `setting.data_bytes` when integrals are stored. An
/// operation is one integral; its flop are 12 and, where it is computed, those of its primitives, on average. The traffic counted is 8
/// bytes for each stored integral, the matrices of each block written and read once, and the Fock matrix written. Verified by another
/// computation of every integral and of the matrix, and by its definition at a few places; not where the time limit cut it off.
pub fn integrals(setting: &Setting, source: Source) -> Result<Report, Error> {
    let n = functions_of(setting.data_bytes);
    let basis = Basis::new(n);
    let setup = Setup::begin(setting);
    let stored = if source == Source::Stored { before(basis.pairs()) } else { 0 };
    let mut values = Buffer::<f64>::zeroed(&setting.placement, stored)?;
    let mut sums = Buffer::<f64>::zeroed(&setting.placement, BLOCKS * sums_len(n))?;
    let mut fock = Buffer::<f64>::zeroed(&setting.placement, n * n)?;
    values.announce(Pattern::Sequential);
    let mut blocks = blocks(&basis, &mut values, &mut sums);
    thread_team::map(setting.split(&mut blocks, 1), |(_, blocks)| blocks.iter_mut().for_each(|block| block.fill(&basis)));

    // One member, who sends a crew over the blocks and adds up what they made.
    let (ran, _) = setup.run(vec![(&mut blocks, &mut *fock)], AfterLimit::End, |(blocks, fock), number, watch| {
        let density = Density::new(n, number);
        let done = thread_team::map(setting.split(blocks, 1), |(_, blocks)| {
            blocks.iter_mut().map(|block| block.build(&basis, &density, || watch.is_over())).sum::<usize>()
        });
        finish(n, blocks.iter().map(|block| &block.sums), fock);
        let integrals = done.into_iter().sum::<usize>();
        let bytes = integrals.min(stored) + 2 * BLOCKS * sums_len(n) + n * n;
        ((bytes * size_of::<f64>()) as u64, integrals as u64)
    });

    let checksum = if setting.verify { digest(0, fock.iter().map(|value| value.to_bits())) } else { 0 };
    let verify_values = setting.verify && ran.finished();
    let wrong = if verify_values { wrong_values(setting, &basis, ran.last(), &mut blocks, &fock) } else { 0 };
    let name = if source == Source::Stored { "integrals" } else { "integrals-direct" };
    let data_bytes = size_of::<f64>() * (stored + BLOCKS * sums_len(n) + n * n);
    Ok(Report {
        verified: Verified::of(verify_values, wrong),
        flop_per_operation: flop_per_integral(&basis, source),
        ..ran.report(name, "integrals", data_bytes, (wrong, checksum))
    })
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting, source: Source) -> Traffic {
    let n = functions_of(setting.data_bytes);
    let integrals = before(pair(n, 0)) as f64;
    let stored = if source == Source::Stored { integrals } else { 0.0 };
    let matrices = (2 * BLOCKS * sums_len(n) + n * n) as f64;
    Traffic { bytes: 8.0 * (stored + matrices), flop: flop_per_integral(&Basis::new(n), source) * integrals }
}

fn flop_per_integral(basis: &Basis, source: Source) -> f64 {
    let quartets: f64 = (0..basis.pairs()).map(|ij| basis.quartets(ij)).sum();
    FLOP + if source == Source::Direct { QUARTET_FLOP * quartets / before(basis.pairs()) as f64 } else { 0.0 }
}

/// Cuts the triangle into [`BLOCKS`] of nearly equal numbers of integrals.
fn blocks<'a>(basis: &Basis, mut values: &'a mut [f64], sums: &'a mut [f64]) -> Vec<Block<'a>> {
    let pairs = basis.pairs();
    let stored = !values.is_empty();
    let bound = |number: usize| (0..pairs).find(|&ij| before(ij) * BLOCKS >= number * before(pairs)).unwrap_or(pairs);
    let mut blocks = Vec::new();
    for (number, sums) in sums.chunks_exact_mut(sums_len(basis.functions)).enumerate() {
        let rows = bound(number)..bound(number + 1);
        let len = if stored { before(rows.end) - before(rows.start) } else { 0 };
        let (integrals, rest) = std::mem::take(&mut values).split_at_mut(len);
        blocks.push(Block { rows, integrals, sums: Sums::new(basis.functions, sums) });
        values = rest;
    }
    blocks
}

/// Calls `visit(k, pairs (k, 0) up to (k, k) or to ij)` for the pairs up to `ij`.
fn for_each_run(ij: usize, mut visit: impl FnMut(usize, Range<usize>)) {
    (0..=larger(ij)).for_each(|k| visit(k, pair(k, 0)..pair(k + 1, 0).min(ij + 1)));
}

/// A run of integrals, halved for every symmetry that leaves them as they are: then all eight permutations can be added alike.
fn compute(basis: &Basis, ij: usize, k: usize, values: &mut [f64]) {
    basis.integrals(ij, pair(k, 0), values);
    if ij == pair(larger(ij), larger(ij)) {
        values.iter_mut().for_each(|value| *value *= 0.5);
    }
    if let Some(same) = values.get_mut(k) {
        *same *= 0.5;
    }
    if let Some(same) = values.get_mut(ij - pair(k, 0)) {
        *same *= 0.5;
    }
}

impl Block<'_> {
    /// Computes the integrals that are to be stored.
    fn fill(&mut self, basis: &Basis) {
        let mut rest = &mut *self.integrals;
        for ij in self.rows.clone() {
            if rest.is_empty() {
                break;
            }
            let (own, others) = rest.split_at_mut(ij + 1);
            for_each_run(ij, |k, run| compute(basis, ij, k, &mut own[run]));
            rest = others;
        }
    }

    /// Adds up all rows, or fewer once `is_over`; returns the integrals used.
    fn build(&mut self, basis: &Basis, density: &Density, is_over: impl Fn() -> bool) -> usize {
        let n = basis.functions;
        self.sums.clear();
        let (mut scratch, mut rows) = (vec![0.0; n], [vec![0.0; n], vec![0.0; n]]);
        let mut used = 0;
        for ij in self.rows.clone() {
            if is_over() {
                break;
            }
            let stored = self.integrals.get(used..used + ij + 1);
            rows.iter_mut().for_each(|row| row.fill(0.0));
            for_each_run(ij, |k, run| match stored {
                Some(row) => self.sums.add(n, density, ij, k, &row[run], &mut rows),
                None => {
                    let values = &mut scratch[..run.len()];
                    compute(basis, ij, k, values);
                    self.sums.add(n, density, ij, k, values, &mut rows);
                }
            });
            self.sums.end_row(n, ij, &rows);
            used += ij + 1;
        }
        used
    }
}

/// Integrals and elements of the matrix that another computation does not come to, and elements that are not what they are by
/// definition. Written so that a NaN is wrong.
fn wrong_values(setting: &Setting, basis: &Basis, repetition: usize, old: &mut [Block], fock: &[f64]) -> u64 {
    let n = basis.functions;
    let density = Density::new(n, repetition);
    let mut sums = vec![0.0; BLOCKS * sums_len(n)];
    let mut parts: Vec<_> = old.iter_mut().zip(sums.chunks_exact_mut(sums_len(n))).collect();
    let anew = thread_team::map(setting.split(&mut parts, 1), |(_, parts)| {
        let anew = parts.iter_mut().map(|(old, place)| {
            let wrong = wrong_integrals(basis, old);
            let (rows, sums) = (old.rows.clone(), Sums::new(n, place));
            let mut block = Block { rows, integrals: old.integrals, sums };
            block.build(basis, &density, || false);
            (wrong, block.sums)
        });
        anew.collect::<Vec<_>>()
    });
    let anew: Vec<_> = anew.into_iter().flatten().collect();
    let wrong: u64 = anew.iter().map(|(wrong, _)| wrong).sum();
    let mut expected = vec![0.0; n * n];
    finish(n, anew.iter().map(|(_, sums)| sums), &mut expected);
    let differ = fock.iter().zip(&expected).filter(|(value, expected)| value.to_bits() != expected.to_bits()).count();
    let mut random = Random::new(repetition as u64);
    let off = (0..SAMPLES).filter(|_| {
        let (p, q) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
        let defined = defined(basis, &density, p, q);
        let is_right = (fock[p * n + q] - defined).abs() <= TOLERANCE * (1.0 + defined.abs());
        !is_right
    });
    wrong + (differ + off.count()) as u64
}

fn wrong_integrals(basis: &Basis, block: &Block) -> u64 {
    let (mut wrong, mut used) = (0, 0);
    let mut scratch = vec![0.0; basis.functions];
    for ij in block.rows.clone().take_while(|_| !block.integrals.is_empty()) {
        let row = &block.integrals[used..used + ij + 1];
        for_each_run(ij, |k, run| {
            let expected = &mut scratch[..run.len()];
            compute(basis, ij, k, expected);
            let differ = row[run].iter().zip(expected).filter(|(value, expected)| value.to_bits() != expected.to_bits());
            wrong += differ.count() as u64;
        });
        used += ij + 1;
    }
    wrong
}

/// An element by the sum that defines it, without any symmetry.
fn defined(basis: &Basis, density: &Density, p: usize, q: usize) -> f64 {
    let n = basis.functions;
    let integral = |a: usize, b: usize, c: usize, d: usize| {
        let mut value = [0.0];
        basis.integrals(pair(a.max(b), a.min(b)), pair(c.max(d), c.min(d)), &mut value);
        value[0]
    };
    let term = |place: usize| {
        let (r, s) = (place / n, place % n);
        density.square[place] * (integral(p, q, r, s) - 0.5 * integral(p, r, q, s))
    };
    (0..n * n).map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_runs_are_all_there() {
        for ij in 0..pair(200, 0) {
            let mut next = 0;
            for_each_run(ij, |k, run| next = if run.start == next && run.len() <= k + 1 { run.end } else { usize::MAX });
            assert_eq!(next, ij + 1);
        }
    }

    #[test]
    fn stored_and_direct_come_to_the_same_matrix() {
        for repetitions in [1, 2] {
            let setting = Setting::new(1 << 20, 2, repetitions);
            let [stored, direct] =
                [Source::Stored, Source::Direct].map(|source| integrals(&setting, source).expect("a small run"));
            assert_eq!((stored.verified, direct.verified), (Verified::Right, Verified::Right));
            assert_eq!((stored.checksum, stored.repetitions[0].operations), (direct.checksum, direct.repetitions[0].operations));
            assert!(stored.data_bytes <= 1 << 20 && stored.data_bytes > 900_000 && direct.data_bytes < 300_000);
        }
    }

    #[test]
    fn a_wrong_bit_is_told_and_the_matrix_is_right_by_definition() {
        let (n, setting) = (9, Setting::new(0, 2, 1));
        let basis = Basis::new(n);
        let density = Density::new(n, 3);
        let (mut values, mut sums) = (vec![0.0; before(basis.pairs())], vec![0.0; BLOCKS * sums_len(n)]);
        let mut blocks = blocks(&basis, &mut values, &mut sums);
        let mut fock = vec![0.0; n * n];
        for block in &mut blocks {
            block.fill(&basis);
            block.build(&basis, &density, || false);
        }
        finish(n, blocks.iter().map(|block| &block.sums), &mut fock);
        for (place, value) in fock.iter().enumerate() {
            let defined = defined(&basis, &density, place / n, place % n);
            assert!((value - defined).abs() < 1e-11 * (1.0 + defined.abs()), "{place}: {value} {defined}");
        }
        assert_eq!(wrong_values(&setting, &basis, 3, &mut blocks, &fock), 0);
        fock[17] = f64::from_bits(fock[17].to_bits() ^ 1);
        assert_eq!(wrong_values(&setting, &basis, 3, &mut blocks, &fock), 1);
        fock[17] = f64::from_bits(fock[17].to_bits() ^ 1);
        blocks[5].integrals[3] = f64::NAN;
        assert!(wrong_values(&setting, &basis, 3, &mut blocks, &fock) >= 1);
    }
}

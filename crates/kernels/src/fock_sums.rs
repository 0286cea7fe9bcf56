//! Coulomb and exchange sums of a Fock matrix, to which integrals are added in runs along memory.
//!
//! The eight permutations of an integral give the same value, and are added up together: three sums and three updates. Sums of several
//! parts of the integrals are added in order. Does not know where integrals come from.

use crate::gaussians::pair;
use nearfar_core::random_numbers::{mix, unit};

/// Flop of one integral in [`Sums::add`].
pub const FLOP: f64 = 12.0;

/// Sums that run side by side, so that the compiler can use vectors.
const LANES: usize = 4;

/// Coulomb sums by pairs, exchange sums by rows.
#[derive(Debug)]
pub struct Sums<'a> {
    coulomb: &'a mut [f64],
    exchange: &'a mut [f64],
}

/// A symmetric density matrix: by rows, and twice its values by pairs.
#[derive(Debug)]
pub struct Density {
    /// By rows.
    pub square: Vec<f64>,
    doubled: Vec<f64>,
}

/// Numbers of the matrices of one block.
pub const fn sums_len(functions: usize) -> usize {
    pair(functions, 0) + functions * functions
}

/// The larger index of a pair.
pub fn larger(ij: usize) -> usize {
    let i = ((((8 * ij + 1) as f64).sqrt() - 1.0) / 2.0) as usize;
    // The root may be rounded either way.
    if pair(i, 0) > ij {
        i - 1
    } else if pair(i + 1, 0) <= ij {
        i + 1
    } else {
        i
    }
}

impl Density {
    /// Another one in every repetition.
    pub fn new(n: usize, repetition: usize) -> Self {
        let value = |i: usize, j: usize| unit(mix((repetition as u64) << 40 | pair(i, j) as u64));
        let square = (0..n * n).map(|place| value((place / n).max(place % n), (place / n).min(place % n))).collect();
        let doubled = (0..n).flat_map(|i| (0..=i).map(move |j| 2.0 * value(i, j))).collect();
        Self { square, doubled }
    }
}

impl<'a> Sums<'a> {
    /// Zero, in the place of [`sums_len`] numbers.
    pub fn new(n: usize, place: &'a mut [f64]) -> Self {
        let (coulomb, exchange) = place.split_at_mut(pair(n, 0));
        Self { coulomb, exchange }
    }

    /// Zero again.
    pub fn clear(&mut self) {
        self.coulomb.fill(0.0);
        self.exchange.fill(0.0);
    }

    /// Ends a row of integrals: what [`Self::add`] kept for rows i and j of the exchange sums is added to them.
    pub fn end_row(&mut self, n: usize, ij: usize, rows: &[Vec<f64>; 2]) {
        let i = larger(ij);
        for (index, row) in [i, ij - pair(i, 0)].into_iter().zip(rows) {
            self.exchange[index * n..][..n].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Adds what the run of integrals (ij|kl) for l from 0 gives to the Coulomb sums, and to `rows` i and j of the exchange sums.
    pub fn add(&mut self, n: usize, density: &Density, ij: usize, k: usize, values: &[f64], rows: &mut [Vec<f64>; 2]) {
        let i = larger(ij);
        let j = ij - pair(i, 0);
        let (square, of_ij, kl) = (&density.square, density.doubled[ij], pair(k, 0));
        let (of_jk, of_ik) = (square[j * n + k], square[i * n + k]);
        let len = values.len();
        let [row_i, row_j] = rows;
        let coulomb = self.coulomb[kl..kl + len].as_chunks_mut::<LANES>();
        let kept = (row_i[..len].as_chunks_mut::<LANES>(), row_j[..len].as_chunks_mut::<LANES>());
        let factors = density.doubled[kl..kl + len].as_chunks::<LANES>();
        let (of_i, of_j) = (square[i * n..i * n + len].as_chunks::<LANES>(), square[j * n..j * n + len].as_chunks::<LANES>());
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sums = [[0.0; LANES]; 3];
        let all = chunks.iter().zip(coulomb.0).zip(kept.0.0).zip(kept.1.0).zip(factors.0).zip(of_i.0).zip(of_j.0);
        for ((((((value, coulomb), row_i), row_j), factor), of_i), of_j) in all {
            for lane in 0..LANES {
                sums[0][lane] += factor[lane] * value[lane];
                sums[1][lane] += of_j[lane] * value[lane];
                sums[2][lane] += of_i[lane] * value[lane];
                coulomb[lane] += of_ij * value[lane];
                row_i[lane] += of_jk * value[lane];
                row_j[lane] += of_ik * value[lane];
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            sums[0][lane] += factors.1[lane] * value;
            sums[1][lane] += of_j.1[lane] * value;
            sums[2][lane] += of_i.1[lane] * value;
            coulomb.1[lane] += of_ij * value;
            kept.0.1[lane] += of_jk * value;
            kept.1.1[lane] += of_ik * value;
        }
        let [with_kl, with_jl, with_il] = sums.map(|lanes| lanes.iter().sum::<f64>());
        self.coulomb[ij] += with_kl;
        row_i[k] += with_jl;
        row_j[k] += with_il;
    }
}

/// The Fock matrix without its one-electron part, J - K / 2, from the sums of blocks in order.
pub fn finish<'a, 'b: 'a>(n: usize, blocks: impl Iterator<Item = &'a Sums<'b>> + Clone, fock: &mut [f64]) {
    for (row, values) in fock.chunks_exact_mut(n).enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            let (i, j) = (row.max(column), row.min(column));
            let mut sum = 0.0;
            for block in blocks.clone() {
                let coulomb = block.coulomb[pair(i, j)] * if i == j { 2.0 } else { 1.0 };
                sum += coulomb - 0.5 * (block.exchange[i * n + j] + block.exchange[j * n + i]);
            }
            *value = sum;
        }
    }
}

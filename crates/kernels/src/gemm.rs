//! C += A * B in f32 over matrices stored by tiles, with tiles so small that three of them fit near memory: the program that was
//! written with two tiers in mind, and the proof that paging can be nearly free.
//!
//! Values are small integers, so that sums are exact and the product can be verified exactly (Freivalds: C x = A (B x)). Threads share
//! each tile product and wait for each other after it, as a parallel loop inside a tile loop does.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::buffer::Buffer;
use crate::gemm_tile::{self, COLUMNS, ROWS, Scratch};
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::mix;

/// Tiles are a multiple of this, so that the micro-kernel has no edges.
const UNIT: usize = ROWS * COLUMNS / 2;

/// Square matrices of `tiles` x `tiles` tiles, each of `size` x `size` values and contiguous in memory, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Tiles per side of a matrix.
    pub tiles: usize,
    /// Values per side of a tile.
    pub size: usize,
}

impl Tiling {
    /// The tiling of three matrices of at most `data_bytes` together, three tiles of which take at most half of `near_bytes`: the other
    /// half is for the tiles on their way in and out.
    pub fn new(data_bytes: usize, near_bytes: usize) -> Self {
        let side = |bytes: usize| ((bytes / 3 / size_of::<f32>()) as f64).sqrt() as usize;
        let order = side(data_bytes).max(UNIT);
        let largest = side(near_bytes / 2).max(UNIT);
        let tiles = order.div_ceil(largest);
        Self { tiles, size: (order / tiles / UNIT).max(1) * UNIT }
    }

    /// Rows and columns of a matrix.
    pub const fn order(&self) -> usize {
        self.tiles * self.size
    }

    const fn values_per_tile(&self) -> usize {
        self.size * self.size
    }

    /// Calls `visit(row, column of its first value, row of one tile)` for all values, in the order of memory.
    fn for_each_row<'a>(&self, matrix: &'a [f32], mut visit: impl FnMut(usize, usize, &'a [f32])) {
        for (number, tile) in matrix.chunks_exact(self.values_per_tile()).enumerate() {
            for (row, values) in tile.chunks_exact(self.size).enumerate() {
                visit(number / self.tiles * self.size + row, number % self.tiles * self.size, values);
            }
        }
    }

    /// `matrix * vector`, exactly.
    fn times(&self, matrix: &[f32], vector: &[i64]) -> Vec<i64> {
        let mut product = vec![0i64; self.order()];
        self.for_each_row(matrix, |row, column, values| {
            product[row] += values.iter().zip(&vector[column..]).map(|(&value, x)| value as i64 * x).sum::<i64>();
        });
        product
    }
}

fn value_at(matrix: u64, index: usize) -> f32 {
    (mix(matrix << 56 | index as u64) % 5) as f32 - 2.0
}

/// Multiplies `setting.repetitions` times, with tiles for `near_bytes` of near memory. An operation is one floating-point addition or
/// multiplication; the traffic counted is what passes between the tiles and the tile product (three tiles read, one written).
pub fn gemm(setting: &Setting, near_bytes: usize) -> Result<Report, Error> {
    let tiling = Tiling::new(setting.data_bytes, near_bytes);
    let Tiling { tiles, size } = tiling;
    let values = tiling.order() * tiling.order();
    let setup = Setup::begin(setting);
    let mut matrices = [
        Buffer::<f32>::zeroed(&setting.placement, values)?,
        Buffer::<f32>::zeroed(&setting.placement, values)?,
        Buffer::<f32>::zeroed(&setting.placement, values)?,
    ];
    let [a, b, c] = &mut matrices;
    for (name, matrix) in [(1, &mut *a), (2, &mut *b)] {
        thread_team::map(setting.split(matrix, 1), |(first, values)| {
            for (offset, value) in values.iter_mut().enumerate() {
                *value = value_at(name, first + offset);
            }
        });
    }
    c.fill(0.0);

    let members = (0..setting.threads.max(1)).map(|_| (Scratch::new(), Vec::with_capacity(tiles * tiles)));
    let mut members: Vec<(Scratch, Vec<&mut [f32]>)> = members.collect();
    let strips = row_shares(size, members.len());
    for tile in c.chunks_exact_mut(tiling.values_per_tile()) {
        let mut rest = tile;
        for ((_, own), rows) in members.iter_mut().zip(&strips) {
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(rows * size);
            own.push(mine);
            rest = others;
        }
    }
    let firsts: Vec<usize> = strips.iter().scan(0, |sum, rows| Some(std::mem::replace(sum, *sum + rows))).collect();
    let shares = members.into_iter().zip(firsts).zip(strips).collect();
    let barrier = Barrier::new(setting.threads.max(1));
    // The first step that is not to be done, decided by the first thread before the barrier that ends the step before.
    let end = AtomicUsize::new(usize::MAX);
    let (a_values, b_values) = (&**a, &**b);
    let (ran, _) = setup.run(shares, AfterLimit::End, |share, _, watch| {
        let (((scratch, c), first), rows) = share;
        let mut steps = 0;
        for (number, c) in c.iter_mut().enumerate() {
            for k in 0..tiles {
                let a_start = (number / tiles * tiles + k) * tiling.values_per_tile() + *first * size;
                let b_start = (k * tiles + number % tiles) * tiling.values_per_tile();
                let a_rows = &a_values[a_start..a_start + *rows * size];
                let b_tile = &b_values[b_start..b_start + tiling.values_per_tile()];
                gemm_tile::multiply_add(scratch, size, a_rows, b_tile, c);
                steps += 1;
                if *first == 0 && watch.is_over() {
                    end.store(steps, Ordering::Relaxed);
                }
                barrier.wait();
                if end.load(Ordering::Relaxed) <= steps {
                    return done(steps, *rows, size);
                }
            }
        }
        done(steps, *rows, size)
    });

    let verify_product = setting.verify && ran.finished();
    let mut wrong = 0;
    if verify_product {
        let x: Vec<i64> = (0..tiling.order()).map(|index| (mix(index as u64) % 1000) as i64).collect();
        let expected = tiling.times(a, &tiling.times(b, &x));
        let times = ran.last() as i64 + 1;
        wrong = tiling.times(c, &x).iter().zip(expected).filter(|(c, ab)| **c != times * ab).count() as u64;
    }
    let mut checksum = 0u64;
    if setting.verify {
        // By row and column, not by memory, so that the digest is the same for every tiling.
        tiling.for_each_row(c, |row, column, values| {
            for (offset, value) in values.iter().enumerate() {
                let place = (row * tiling.order() + column + offset) as u64;
                checksum = checksum.wrapping_add(u64::from(value.to_bits()).wrapping_mul(2 * place + 1));
            }
        });
    }
    let verified = Verified::of(verify_product, wrong);
    Ok(Report {
        verified,
        flop_per_operation: 1.0,
        ..ran.report("gemm", "flop", 3 * values * size_of::<f32>(), (wrong, checksum))
    })
}

/// What one product moves and computes: 2 n^3 flop, and four tiles' worth of bytes for each product of two tiles.
pub fn traffic(setting: &Setting, near_bytes: usize) -> Traffic {
    let tiling = Tiling::new(setting.data_bytes, near_bytes);
    let (order, tiles) = (tiling.order() as f64, tiling.tiles as f64);
    Traffic { bytes: 4.0 * tiles * order * order * size_of::<f32>() as f64, flop: 2.0 * order.powi(3) }
}

fn done(steps: usize, rows: usize, size: usize) -> thread_team::Done {
    let products = (steps * rows) as u64 * (size * size) as u64;
    let values = 4 * (steps * rows * size) as u64;
    (values * size_of::<f32>() as u64, 2 * products)
}

/// Rows of a tile for each thread: multiples of [`ROWS`] that add up to `size`.
fn row_shares(size: usize, threads: usize) -> Vec<usize> {
    let units = size / ROWS;
    (0..threads).map(|index| ((index + 1) * units / threads - index * units / threads) * ROWS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_tiles_take_half_of_near() {
        let tiling = Tiling::new(600 << 20, 200 << 20);
        assert!(12 * tiling.size * tiling.size <= 100 << 20);
        assert!(12 * tiling.order() * tiling.order() <= 600 << 20);
        assert!(12 * tiling.order() * tiling.order() >= 560 << 20);
        assert_eq!(Tiling::new(1, 1), Tiling { tiles: 1, size: UNIT });
    }

    #[test]
    fn rows_are_shared_without_rest() {
        assert_eq!(row_shares(48, 3).iter().sum::<usize>(), 48);
        assert_eq!(row_shares(48, 100).iter().sum::<usize>(), 48);
    }
}

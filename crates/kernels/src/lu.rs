//! LU factorization of a dense matrix, in place and without pivoting, as blocked right-looking codes do it: after each panel of columns
//! the whole rest of the matrix is read and written once.
//!
//! Stored column by column, so that a block column is contiguous, and threads share the rest by block columns. An element is worked on
//! in the same order whichever thread does it: results are the same to the last bit. The matrix is diagonally dominant, and another
//! one in every repetition. Does not reach the processor's peak.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::mix;

/// Columns of a panel; rows and columns of a tile.
const BLOCK: usize = 64;

/// Rows and columns of a tile whose values the inner loop keeps in registers.
const ROWS: usize = 8;
const COLUMNS: usize = 2;

/// How far L (U x) may be off from A x, relative to the sum of the magnitudes in a row of A.
const TOLERANCE: f64 = 1e-10;

/// Numbers of a tile, column by column.
type Tile = [[f64; BLOCK]; BLOCK];

/// Operations of a [`factor`], of a [`solve`] or a [`divide`] and the division, and of an [`update`] of one tile.
const FACTOR_FLOP: u64 = (BLOCK * (BLOCK - 1) / 2 + BLOCK * (BLOCK - 1) * (2 * BLOCK - 1) / 3) as u64;
const SOLVE_FLOP: u64 = (BLOCK * BLOCK * (BLOCK - 1)) as u64;
const DIVIDE_FLOP: u64 = (BLOCK * BLOCK * BLOCK) as u64;
const UPDATE_FLOP: u64 = 2 * DIVIDE_FLOP;
const TILE_BYTES: u64 = size_of::<Tile>() as u64;

fn a_at(order: usize, repetition: usize, row: usize, column: usize) -> f64 {
    let random = mix((repetition as u64) << 56 | (column * order + row) as u64);
    let value = (random >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    if row == column { value + order as f64 } else { value }
}

/// Factors `setting.repetitions` matrices of at most `setting.data_bytes`, one after another in the same place. An operation is one
/// floating-point operation; the traffic counted is what passes between the matrix and tiles. Writing the matrix anew is part of each
/// repetition. Not verified where the time limit cut a repetition off.
pub fn lu(setting: &Setting) -> Result<Report, Error> {
    let order = (((setting.data_bytes / size_of::<f64>()) as f64).sqrt() as usize / BLOCK).max(1) * BLOCK;
    let setup = Setup::begin(setting);
    let mut matrix = Buffer::<f64>::zeroed(&setting.placement, order * order)?;
    matrix.announce(Pattern::Sequential);
    // No repetition meets fresh pages.
    thread_team::map(setting.split(&mut matrix, BLOCK * order), |(_, part)| part.fill(-1.0));

    // One member, who sends a crew over the rest of the matrix after each panel.
    let (ran, _) = setup.run(vec![&mut *matrix], AfterLimit::End, |matrix, number, watch| {
        let fills =
            thread_team::map(setting.split(matrix, order), |(first, part)| fill(part, first / order, order, number, watch));
        let filled = fills.into_iter().sum::<u64>() * size_of::<f64>() as u64;
        let (bytes, flop) = if watch.is_over() { (0, 0) } else { factorize(setting, matrix, order, watch) };
        (filled + bytes, flop)
    });

    let (_, checksum) = ran
        .check(setting.split(&mut matrix, order), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_product = setting.verify && ran.finished();
    let wrong = if verify_product { wrong_rows(setting, &mut matrix, order, ran.last()) } else { 0 };
    let verified = Verified::of(verify_product, wrong);
    Ok(Report {
        verified,
        flop_per_operation: 1.0,
        ..ran.report("lu", "flop", order * order * size_of::<f64>(), (wrong, checksum))
    })
}

/// Writes the columns from number `first` on; returns the values written.
fn fill(part: &mut [f64], first: usize, order: usize, repetition: usize, watch: &Watch) -> u64 {
    for (number, column) in part.chunks_exact_mut(order).enumerate() {
        column.iter_mut().enumerate().for_each(|(row, value)| *value = a_at(order, repetition, row, first + number));
        if watch.is_over() {
            return ((number + 1) * order) as u64;
        }
    }
    part.len() as u64
}

fn factorize(setting: &Setting, matrix: &mut [f64], order: usize, watch: &Watch) -> thread_team::Done {
    let (mut bytes, mut flop) = (0, 0);
    for row in (0..order).step_by(BLOCK) {
        let (panel, rest) = matrix[row * order..].split_at_mut(BLOCK * order);
        let mut corner = loaded(panel, row, order);
        factor(&mut corner);
        store(&corner, panel, row, order);
        for below in (row + BLOCK..order).step_by(BLOCK) {
            let mut tile = loaded(panel, below, order);
            divide(&mut tile, &corner);
            store(&tile, panel, below, order);
        }
        let tiles = ((order - row) / BLOCK) as u64;
        bytes += 2 * tiles * TILE_BYTES;
        flop += FACTOR_FLOP + (tiles - 1) * DIVIDE_FLOP;
        let panel = &*panel;
        let columns = thread_team::map(setting.split(rest, BLOCK * order), |(_, part)| {
            let mut done = 0;
            for columns in part.chunks_exact_mut(BLOCK * order) {
                if watch.is_over() {
                    break;
                }
                let mut upper = loaded(columns, row, order);
                solve(&corner, &mut upper);
                store(&upper, columns, row, order);
                for below in (row + BLOCK..order).step_by(BLOCK) {
                    update(columns, below, order, &loaded(panel, below, order), &upper);
                }
                done += 1;
            }
            done
        });
        let columns: u64 = columns.into_iter().sum();
        bytes += columns * (2 + 3 * (tiles - 1)) * TILE_BYTES;
        flop += columns * (SOLVE_FLOP + (tiles - 1) * UPDATE_FLOP);
        if watch.is_over() {
            break;
        }
    }
    (bytes, flop)
}

/// The tile of a block column that begins at `row`.
fn loaded(columns: &[f64], row: usize, order: usize) -> Tile {
    let mut tile = [[0.0; BLOCK]; BLOCK];
    for (column, values) in tile.iter_mut().zip(columns.chunks_exact(order)) {
        column.copy_from_slice(&values[row..row + BLOCK]);
    }
    tile
}

fn store(tile: &Tile, columns: &mut [f64], row: usize, order: usize) {
    for (column, values) in tile.iter().zip(columns.chunks_exact_mut(order)) {
        values[row..row + BLOCK].copy_from_slice(column);
    }
}

/// tile = L and U of the tile.
fn factor(tile: &mut Tile) {
    for step in 0..BLOCK {
        let (left, right) = tile.split_at_mut(step + 1);
        let lower = &mut left[step];
        let pivot = lower[step];
        lower[step + 1..].iter_mut().for_each(|value| *value /= pivot);
        for column in right {
            eliminate(column, lower, step);
        }
    }
}

/// tile = L^-1 tile.
fn solve(corner: &Tile, tile: &mut Tile) {
    for column in tile {
        corner.iter().enumerate().for_each(|(step, lower)| eliminate(column, lower, step));
    }
}

fn eliminate(column: &mut [f64; BLOCK], lower: &[f64; BLOCK], step: usize) {
    let factor = column[step];
    column[step + 1..].iter_mut().zip(&lower[step + 1..]).for_each(|(value, lower)| *value -= lower * factor);
}

/// tile = tile U^-1.
fn divide(tile: &mut Tile, corner: &Tile) {
    for (step, upper) in corner.iter().enumerate() {
        let (left, right) = tile.split_at_mut(step);
        let column = &mut right[0];
        for (done, factor) in left.iter().zip(upper) {
            column.iter_mut().zip(done).for_each(|(value, done)| *value -= done * factor);
        }
        column.iter_mut().for_each(|value| *value /= upper[step]);
    }
}

/// The tile of `columns` at `row` loses `lower * upper`.
fn update(columns: &mut [f64], row: usize, order: usize, lower: &Tile, upper: &Tile) {
    for (pair, factors) in columns.chunks_exact_mut(COLUMNS * order).zip(upper.chunks_exact(COLUMNS)) {
        for first in (0..BLOCK).step_by(ROWS) {
            let mut sums = [[0.0; ROWS]; COLUMNS];
            for (step, lower) in lower.iter().enumerate() {
                let lower: &[f64] = &lower[first..first + ROWS];
                for (sums, factors) in sums.iter_mut().zip(factors) {
                    sums.iter_mut().zip(lower).for_each(|(sum, lower)| *sum += lower * factors[step]);
                }
            }
            for (sums, column) in sums.iter().zip(pair.chunks_exact_mut(order)) {
                column[row + first..][..ROWS].iter_mut().zip(sums).for_each(|(value, sum)| *value -= sum);
            }
        }
    }
}

/// Rows in which L (U x) is not A x, for an x of values that no two columns share. Written so that a NaN is wrong.
fn wrong_rows(setting: &Setting, matrix: &mut [f64], order: usize, repetition: usize) -> u64 {
    let x: Vec<f64> = (0..order).map(|column| 1.0 + (mix(!(column as u64)) >> 11) as f64 / (1u64 << 53) as f64).collect();
    let expected = product(setting, matrix, order, |number, _, sum| {
        sum.iter_mut().enumerate().for_each(|(row, sum)| *sum += a_at(order, repetition, row, number) * x[number]);
    });
    let upper = product(setting, matrix, order, |number, column, sum| {
        sum.iter_mut().zip(&column[..=number]).for_each(|(sum, value)| *sum += value * x[number]);
    });
    let both = product(setting, matrix, order, |number, column, sum| {
        sum[number] += upper[number];
        sum.iter_mut().zip(column).skip(number + 1).for_each(|(sum, value)| *sum += value * upper[number]);
    });
    let right = both.iter().zip(&expected).filter(|(both, expected)| (*both - *expected).abs() <= TOLERANCE * 2.0 * order as f64);
    (order - right.count()) as u64
}

/// The sum of what `add(its number, column, sum)` makes of all columns.
fn product(setting: &Setting, matrix: &mut [f64], order: usize, add: impl Fn(usize, &[f64], &mut [f64]) + Sync) -> Vec<f64> {
    let sums = thread_team::map(setting.split(matrix, order), |(first, part)| {
        let mut sum = vec![0.0; order];
        part.chunks_exact(order).enumerate().for_each(|(offset, column)| add(first / order + offset, column, &mut sum));
        sum
    });
    let total = |row: usize| sums.iter().map(|sum| sum[row]).sum();
    (0..order).map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let (order, setting) = (3 * BLOCK, Setting::new(0, 2, 1));
        for (row, column) in [(0, 191), (100, 100), (191, 0), (70, 3)] {
            let mut matrix: Vec<f64> = (0..order * order).map(|index| a_at(order, 5, index % order, index / order)).collect();
            thread_team::run(&setting, vec![&mut matrix], AfterLimit::End, |matrix, _, watch| {
                factorize(&setting, matrix, order, watch)
            });
            assert_eq!(wrong_rows(&setting, &mut matrix, order, 5), 0);
            let value = &mut matrix[column * order + row];
            *value = f64::from_bits(value.to_bits() ^ 1 << 48);
            assert!(wrong_rows(&setting, &mut matrix, order, 5) > 0, "{row} {column}");
        }
    }
}

//! The arithmetic of LU factorization on tiles of 64 by 64 f64, which are copied out of block columns of a matrix.
//!
//! Invariant: an element's operations and their order are the same for every layout of the matrix: results are the same to the last
//! bit. Does not know what the rest of the matrix looks like, and does not reach the processor's peak.

/// Columns of a panel; rows and columns of a tile.
pub const BLOCK: usize = 64;

/// Rows and columns of a tile whose values the inner loop keeps in registers.
const ROWS: usize = 8;
const COLUMNS: usize = 2;

/// Numbers of a tile, column by column.
pub type Tile = [[f64; BLOCK]; BLOCK];

/// Bytes of a tile.
pub const TILE_BYTES: u64 = size_of::<Tile>() as u64;

/// Floating-point operations of a [`factor`].
pub const FACTOR_FLOP: u64 = (BLOCK * (BLOCK - 1) / 2 + BLOCK * (BLOCK - 1) * (2 * BLOCK - 1) / 3) as u64;
/// Those of a [`solve`].
pub const SOLVE_FLOP: u64 = (BLOCK * BLOCK * (BLOCK - 1)) as u64;
/// Those of a [`divide`].
pub const DIVIDE_FLOP: u64 = (BLOCK * BLOCK * BLOCK) as u64;
/// Those of an [`update`].
pub const UPDATE_FLOP: u64 = 2 * DIVIDE_FLOP;

/// The tile that begins at `row` in a block column whose columns have `order` rows.
pub fn loaded(columns: &[f64], row: usize, order: usize) -> Tile {
    let mut tile = [[0.0; BLOCK]; BLOCK];
    for (column, values) in tile.iter_mut().zip(columns.chunks_exact(order)) {
        column.copy_from_slice(&values[row..row + BLOCK]);
    }
    tile
}

/// The reverse of [`loaded`].
pub fn store(tile: &Tile, columns: &mut [f64], row: usize, order: usize) {
    for (column, values) in tile.iter().zip(columns.chunks_exact_mut(order)) {
        values[row..row + BLOCK].copy_from_slice(column);
    }
}

/// tile = L and U of the tile, in one place: the diagonal of L, all ones, is not stored.
pub fn factor(tile: &mut Tile) {
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
pub fn solve(corner: &Tile, tile: &mut Tile) {
    for column in tile {
        corner.iter().enumerate().for_each(|(step, lower)| eliminate(column, lower, step));
    }
}

fn eliminate(column: &mut [f64; BLOCK], lower: &[f64; BLOCK], step: usize) {
    let factor = column[step];
    column[step + 1..].iter_mut().zip(&lower[step + 1..]).for_each(|(value, lower)| *value -= lower * factor);
}

/// tile = tile U^-1.
pub fn divide(tile: &mut Tile, corner: &Tile) {
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
pub fn update(columns: &mut [f64], row: usize, order: usize, lower: &Tile, upper: &Tile) {
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

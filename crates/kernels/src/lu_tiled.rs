//! LU factorization for two tiers: the matrix is stored by tiles that are contiguous, of which three fit near memory. What `gemm` is to
//! a plain matrix product, this is to `lu`: the program that was written with paging in mind.
//!
//! Left-looking: tiles are finished one after another, down each column of tiles. The tile that is worked on stays near, while it loses
//! the products of the finished tiles left of it and above it; then it is factored or solved, and never written again. With N tiles of
//! n/N rows per side, n^2 N 2/3 values are read for products, and N is the order over the square root of near memory: the traffic is
//! O(n^3 / sqrt(near)) bytes for n^3 2/3 flop, an intensity of n / (8 N) flop per byte, or about sqrt(near / 48) / 8.
//!
//! An element's operations and their order are those of `lu`: results are the same as those of `lu` to the last bit. Threads share the
//! work on each tile by block columns.

use std::cmp::Ordering;

use crate::lu;
use crate::lu_matrix::{self, Factorization, Layout};
use crate::lu_tile::{BLOCK, DIVIDE_FLOP, SOLVE_FLOP, Tile, UPDATE_FLOP};
use crate::lu_tile::{divide, loaded, solve, store, update};
use crate::report::{Report, Traffic};
use crate::thread_team::{self, Error, Setting, Watch};

/// The layout of a matrix of at most `data_bytes`, three tiles of which take at most half of `near_bytes`: the other half is for the
/// tiles on their way in and out. Up to two tiles more per side than need be, where whole blocks then leave less of the data unused.
fn layout(data_bytes: usize, near_bytes: usize) -> Layout {
    let side = |bytes: usize| ((bytes / size_of::<f64>()) as f64).sqrt() as usize;
    let (order, largest) = (side(data_bytes).max(BLOCK), side(near_bytes / 6).max(BLOCK));
    let fewest = order.div_ceil(largest);
    let with = |tiles: usize| Layout { tiles, size: order / tiles / BLOCK * BLOCK };
    // Of equal ones the first, which has the largest tiles. A tile is at least a block.
    let blocks = Layout { tiles: order / BLOCK, size: BLOCK };
    let fits = (fewest..=fewest + 2).map(with).filter(|layout| layout.size > 0);
    fits.rev().max_by_key(|layout| layout.order()).unwrap_or(blocks)
}

/// Factors `setting.repetitions` matrices of at most `setting.data_bytes`, with tiles for `near_bytes` of near memory. An operation is
/// one floating-point operation; the traffic counted is what passes between the matrix and near memory: each tile read and written
/// once when it is finished, two tiles read for a product, one (on the diagonal) for a solve, and the matrix written anew. Not
/// verified where the time limit cut a repetition off.
pub fn lu_tiled(setting: &Setting, near_bytes: usize) -> Result<Report, Error> {
    let layout = layout(setting.data_bytes, near_bytes);
    let how = Factorization { workload: "lu-tiled", layout, steps: layout.order() };
    lu_matrix::run(setting, how, |matrix, watch| factorize(setting, matrix, layout, watch))
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting, near_bytes: usize) -> Traffic {
    let layout = layout(setting.data_bytes, near_bytes);
    let (tiles, order) = (layout.tiles as f64, layout.order() as f64);
    let products = tiles * (tiles - 1.0) * (2.0 * tiles - 1.0) / 6.0;
    let passes = 3.0 * tiles * tiles + tiles * (tiles - 1.0) + 2.0 * products;
    Traffic {
        bytes: passes * (layout.values_per_tile() * size_of::<f64>()) as f64,
        flop: order * (order - 1.0) / 2.0 + order * (order - 1.0) * (2.0 * order - 1.0) / 3.0,
    }
}

fn factorize(setting: &Setting, matrix: &mut [f64], layout: Layout, watch: &Watch) -> thread_team::Done {
    let Layout { tiles, size } = layout;
    let values = layout.values_per_tile();
    let tile = |number: usize| number * values..(number + 1) * values;
    let team = Team { setting, size, watch };
    let (mut passes, mut flop) = (0, 0);
    for column in 0..tiles {
        let (left, rest) = matrix.split_at_mut(column * tiles * values);
        for row in 0..tiles {
            let (above, rest) = rest.split_at_mut(row * values);
            let own = &mut rest[..values];
            passes += 2;
            for step in 0..row.min(column) {
                flop += team.subtract_product(own, &left[tile(step * tiles + row)], &above[tile(step)]);
                passes += 2;
                if watch.is_over() {
                    break;
                }
            }
            flop += match row.cmp(&column) {
                _ if watch.is_over() => 0,
                Ordering::Equal => lu::factorize(setting, own, size, watch).1,
                Ordering::Less => team.solve(own, &left[tile(row * tiles + row)]),
                Ordering::Greater => team.divide(own, &above[tile(column)]),
            };
            passes += u64::from(row != column);
            if watch.is_over() {
                return (passes * (values * size_of::<f64>()) as u64, flop);
            }
        }
    }
    (passes * (values * size_of::<f64>()) as u64, flop)
}

/// Threads that share the work on a tile by block columns. Each operation returns the floating-point operations done.
struct Team<'a> {
    setting: &'a Setting,
    size: usize,
    watch: &'a Watch<'a>,
}

impl Team<'_> {
    /// Numbers of the first row of each block.
    fn blocks(&self, first: usize) -> impl Iterator<Item = usize> + use<> {
        (first..self.size).step_by(BLOCK)
    }

    /// The block column of a tile that begins at column `first`.
    fn columns<'a>(&self, tile: &'a [f64], first: usize) -> &'a [f64] {
        &tile[first * self.size..(first + BLOCK) * self.size]
    }

    /// Does `work(its first column, block column)` for all block columns of a part of a tile that begins at column `first`.
    fn share(&self, first: usize, part: &mut [f64], work: impl Fn(usize, &mut [f64]) -> u64 + Sync) -> u64 {
        let flop = thread_team::map(self.setting.split(part, BLOCK * self.size), |(start, part)| {
            let columns = part.chunks_exact_mut(BLOCK * self.size).enumerate();
            columns.map(|(number, columns)| work(first + start / self.size + number * BLOCK, columns)).sum::<u64>()
        });
        flop.into_iter().sum()
    }

    /// tile -= lower * upper.
    fn subtract_product(&self, tile: &mut [f64], lower: &[f64], upper: &[f64]) -> u64 {
        self.share(0, tile, |first, columns| {
            let mut flop = 0;
            for step in self.blocks(0) {
                if self.watch.is_over() {
                    break;
                }
                let factors = loaded(self.columns(upper, first), step, self.size);
                let lower = self.columns(lower, step);
                flop += self.update(columns, 0, |row| loaded(lower, row, self.size), &factors);
            }
            flop
        })
    }

    /// tile = L^-1 tile, with the L of a factored tile.
    fn solve(&self, tile: &mut [f64], factored: &[f64]) -> u64 {
        self.share(0, tile, |_, columns| {
            let mut flop = 0;
            for step in self.blocks(0) {
                if self.watch.is_over() {
                    break;
                }
                let lower = self.columns(factored, step);
                let mut upper = loaded(columns, step, self.size);
                solve(&loaded(lower, step, self.size), &mut upper);
                store(&upper, columns, step, self.size);
                flop += SOLVE_FLOP + self.update(columns, step + BLOCK, |row| loaded(lower, row, self.size), &upper);
            }
            flop
        })
    }

    /// tile = tile U^-1, with the U of a factored tile.
    fn divide(&self, tile: &mut [f64], factored: &[f64]) -> u64 {
        let mut flop = 0;
        for step in self.blocks(0) {
            if self.watch.is_over() {
                break;
            }
            let (panel, rest) = tile[step * self.size..].split_at_mut(BLOCK * self.size);
            let corner = loaded(self.columns(factored, step), step, self.size);
            for row in self.blocks(0) {
                let mut block = loaded(panel, row, self.size);
                divide(&mut block, &corner);
                store(&block, panel, row, self.size);
                flop += DIVIDE_FLOP;
            }
            let panel = &*panel;
            flop += self.share(step + BLOCK, rest, |first, columns| {
                let upper = loaded(self.columns(factored, first), step, self.size);
                self.update(columns, 0, |row| loaded(panel, row, self.size), &upper)
            });
        }
        flop
    }

    /// The blocks of a block column from row `first` on lose `lower(row) * upper`.
    fn update(&self, columns: &mut [f64], first: usize, lower: impl Fn(usize) -> Tile, upper: &Tile) -> u64 {
        let mut flop = 0;
        for row in self.blocks(first) {
            update(columns, row, self.size, &lower(row), upper);
            flop += UPDATE_FLOP;
        }
        flop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_tiles_take_half_of_near() {
        for (data, near) in [(96 << 20, 24 << 20), (512 << 20, 128 << 20), (128 << 20, 200 << 20), (1 << 20, 900_000)] {
            let layout = layout(data, near);
            assert!(3 * 8 * layout.values_per_tile() <= near / 2, "{layout:?} {near}");
            let taken = 8 * layout.order() * layout.order();
            assert!(taken <= data && taken > data / 10 * 7, "{layout:?}: {taken} of {data}");
        }
        assert_eq!(layout(1, 1), Layout { tiles: 1, size: BLOCK });
    }

    #[test]
    fn results_are_those_of_the_plain_factorization_to_the_last_bit() {
        let setting = Setting::new(8 * 384 * 384, 2, 2);
        let plain = lu::lu(&setting).expect("lu");
        for (tiles, near) in [(1, 1 << 30), (2, 48 * 192 * 192), (3, 48 * 128 * 128), (6, 1)] {
            assert_eq!(layout(setting.data_bytes, near), Layout { tiles, size: 384 / tiles });
            let tiled = lu_tiled(&setting, near).expect("lu-tiled");
            assert_eq!((tiled.checksum, tiled.verified), (plain.checksum, plain.verified), "{tiles}");
        }
    }

    #[test]
    fn a_wrong_value_is_told() {
        let layout = Layout { tiles: 3, size: BLOCK };
        let how = Factorization { workload: "lu-tiled", layout, steps: layout.order() };
        let places = [(0, 191), (100, 100), (191, 0), (70, 3)];
        lu_matrix::assert_wrong_values_are_told(how, &places, |setting, matrix, watch| factorize(setting, matrix, layout, watch));
    }
}

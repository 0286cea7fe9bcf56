//! Matrices of a few complex columns and very many rows, column after column in memory: their inner products and combinations, as a
//! crew of threads works them out tile by tile.
//!
//! Rows are cut into a fixed number of slices, which threads share out; results of slices are added in order, so that they are the same
//! for any number of threads. Each block of columns is read once by each call, in runs of 8 KiB of every column.

use std::ops::Range;

use crate::complex_tile::{Block, COLUMNS, ROWS, Tile, ZERO, add_columns, inner_products};
use crate::thread_team::{self, Done, Setting};

/// Numbers of a complex value.
const PARTS: usize = 2;

/// Parts of the rows that are summed apart; more threads than that have nothing to do.
const SLICES: usize = 16;

/// Flop of a complex product and sum.
const FLOP: u64 = 8;

/// Threads, the rows of all matrices (a power of two, at least `SLICES` times 4), and when to stop.
pub struct Crew<'a> {
    /// The threads.
    pub setting: &'a Setting,
    /// Rows of every column.
    pub rows: usize,
    /// Whether the time is over.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Crew<'_> {
    /// Numbers in a column.
    pub const fn column(&self) -> usize {
        PARTS * self.rows
    }

    fn columns<'a>(&self, matrix: &'a [f64]) -> std::slice::ChunksExact<'a, f64> {
        matrix.chunks_exact(self.column())
    }

    /// Columns of `matrix`, by blocks of [`COLUMNS`].
    fn blocks<'a>(&self, matrix: &'a [f64]) -> std::slice::Chunks<'a, f64> {
        matrix.chunks(COLUMNS * self.column())
    }

    /// Runs of rows of a slice, each of one tile.
    fn tiles(&self, slice: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (len, size) = (self.rows / SLICES, ROWS.min(self.rows / SLICES));
        (slice * len..(slice + 1) * len).step_by(size).map(move |first| first..first + size)
    }

    /// The work of tiles of some rows with `left` and `right` columns: all are read, and combined two by two.
    fn done(&self, rows: usize, left: usize, right: usize) -> Done {
        (((left + right) * rows * PARTS * size_of::<f64>()) as u64, FLOP * (left * right * rows) as u64)
    }

    /// The inner products of all columns of `left`, block by block, with at most [`COLUMNS`] columns `right`; and (bytes, flop).
    pub fn products(&self, left: &[f64], right: &[f64]) -> (Vec<Block>, Done) {
        let count = self.blocks(left).len();
        let (left_columns, right_columns) = (self.columns(left).len(), self.columns(right).len());
        let mut slices: Vec<(Vec<Block>, Done)> = vec![(vec![ZERO; count], (0, 0)); SLICES];
        thread_team::map(self.setting.split(&mut slices, 1), |(first, slices)| {
            let (mut a, mut b) = (Tile::new(), Tile::new());
            for ((sums, done), slice) in slices.iter_mut().zip(first..) {
                for rows in self.tiles(slice).take_while(|_| !(self.is_over)()) {
                    b.load(self.columns(right), rows.clone());
                    for (sums, block) in sums.iter_mut().zip(self.blocks(left)) {
                        a.load(self.columns(block), rows.clone());
                        inner_products(&a, &b, rows.len(), sums);
                    }
                    *done = added(*done, self.done(rows.len(), left_columns, right_columns));
                }
            }
        });
        let mut total = vec![ZERO; count];
        let mut done = (0, 0);
        for (sums, slice) in &slices {
            let numbers = total.iter_mut().flatten().flatten().flatten();
            numbers.zip(sums.iter().flatten().flatten().flatten()).for_each(|(total, sum)| *total += sum);
            done = added(done, *slice);
        }
        (total, done)
    }

    /// Adds to at most [`COLUMNS`] columns `right`, or to what the block `own` makes of them, all blocks of `left` times `factors`.
    /// Returns (bytes, flop): `right` is read and written.
    pub fn combine(&self, left: &[f64], factors: &[Block], own: Option<&Block>, right: &mut [f64]) -> Done {
        let (left_columns, right_columns) = (self.columns(left).len(), right.len() / self.column());
        let mut slices: Vec<Vec<&mut [f64]>> = (0..SLICES).map(|_| Vec::new()).collect();
        for column in right.chunks_exact_mut(self.column()) {
            let parts = column.chunks_exact_mut(self.column() / SLICES);
            slices.iter_mut().zip(parts).for_each(|(slice, part)| slice.push(part));
        }
        let done = thread_team::map(self.setting.split(&mut slices, 1), |(first, slices)| {
            let (mut a, mut b) = (Tile::new(), Tile::new());
            let mut done = (0, 0);
            for (columns, slice) in slices.iter_mut().zip(first..) {
                for rows in self.tiles(slice).take_while(|_| !(self.is_over)()) {
                    let begin = slice * (self.rows / SLICES);
                    let own_rows = rows.start - begin..rows.end - begin;
                    let target = columns.iter().map(|column| &**column);
                    if let Some(own) = own {
                        a.load(target, own_rows.clone());
                        b.clear();
                        add_columns(&a, own, rows.len(), &mut b);
                        done.1 += self.done(rows.len(), right_columns, right_columns).1;
                    } else {
                        b.load(target, own_rows.clone());
                    }
                    for (factors, block) in factors.iter().zip(self.blocks(left)) {
                        a.load(self.columns(block), rows.clone());
                        add_columns(&a, factors, rows.len(), &mut b);
                    }
                    b.store(columns.iter_mut().map(|column| &mut **column), own_rows);
                    done = added(done, self.done(rows.len(), left_columns, right_columns));
                    done.0 += self.done(rows.len(), 0, right_columns).0;
                }
            }
            done
        });
        done.into_iter().fold((0, 0), added)
    }

    /// Takes from at most [`COLUMNS`] columns `right` their parts along the columns of `left`, times `scale`.
    pub fn subtract(&self, left: &[f64], scale: f64, right: &mut [f64]) -> Done {
        let (mut factors, done) = self.products(left, right);
        factors.iter_mut().flatten().flatten().flatten().for_each(|factor| *factor *= -scale);
        added(done, self.combine(left, &factors, None, right))
    }
}

/// Both together.
pub fn added(a: Done, b: Done) -> Done {
    (a.0 + b.0, a.1 + b.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fft_lines::initial;

    #[test]
    fn what_is_left_is_orthogonal_for_any_number_of_threads() {
        let mut results = Vec::new();
        for threads in [1, 2, 3, 20] {
            let setting = Setting::new(0, threads, 1);
            let crew = Crew { setting: &setting, rows: 1 << 14, is_over: &|| false };
            let mut column: Vec<f64> = (0..crew.column()).map(initial).collect();
            let (norm, _) = crew.products(&column, &column);
            column.iter_mut().for_each(|value| *value /= norm[0][0][0][0].sqrt());
            let mut right: Vec<f64> = (0..3 * crew.column()).map(|index| initial(index + 7)).collect();
            let (bytes, flop) = crew.subtract(&column, 1.0, &mut right);
            assert_eq!((bytes, flop), (((4 + 7) * 16) << 14, (2 * 3 * 8) << 14));
            let (rest, _) = crew.products(&column, &right);
            assert!((0..3).all(|j| rest[0][0][0][j].hypot(rest[0][1][0][j]) < 1e-12), "{:?}", rest[0][0][0]);
            results.push(right);
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

//! Partial Cholesky factorization of one dense front: its pivot columns become columns of the factor, and their product is taken from
//! the rest, which is the update for later fronts.
//!
//! Blocked: columns in groups of `BLOCK`, rows in strips that the inner loop keeps in registers. A value is worked on in the same
//! order whichever thread does it. Only the lower triangle means something. Does not know sparse matrices.

use std::sync::{Mutex, PoisonError};

use crate::thread_team::{self, Done};

/// Columns of a block.
const BLOCK: usize = 32;
/// Rows and columns of the piece that the inner loop keeps in registers.
const ROWS: usize = 8;
const COLUMNS: usize = 2;

/// Who works on a front, and when it ends early.
#[derive(Clone, Copy)]
pub struct Crew<'a> {
    /// Threads that share the columns.
    pub threads: usize,
    /// Whether to end.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Crew<'_> {
    /// Does `work` on all `items`, of which each thread takes the next when it is free; returns what was done.
    fn share<T: Send>(self, items: impl Iterator<Item = T> + Send, work: impl Fn(T) -> Done + Sync) -> Done {
        let add = |sum: Done, done: Done| (sum.0 + done.0, sum.1 + done.1);
        if self.threads < 2 {
            return items.map(work).fold((0, 0), add);
        }
        let queue = Mutex::new(items);
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let member = |()| std::iter::from_fn(&next).map(&work).fold((0, 0), add);
        thread_team::map(vec![(); self.threads], member).into_iter().fold((0, 0), add)
    }
}

/// Factors the columns of `panel` (`rows` each, and less columns than rows or as many), and takes their product from `update`, whose
/// columns are those after the panel's. Returns (bytes, operations): a block of columns is read and written once for each block before
/// it and once for itself, and so are the columns that it loses.
pub fn factor(panel: &mut [f64], rows: usize, update: &mut [f64], crew: Crew) -> Done {
    let pivots = panel.len() / rows;
    let mut done = (0, 0);
    let mut add = |(bytes, flop): Done| done = (done.0 + bytes, done.1 + flop);
    for start in (0..pivots).step_by(BLOCK) {
        let (block, rest) = panel[start * rows..].split_at_mut(BLOCK.min(pivots - start) * rows);
        add(factor_block(block, rows, start));
        let (block, width) = (&*block, block.len() / rows);
        let columns = rest.chunks_mut(BLOCK * rows).zip((start + width..).step_by(BLOCK));
        add(crew.share(
            columns,
            |(columns, at)| {
                if (crew.is_over)() { (0, 0) } else { subtract_product(columns, rows, at, block, rows, at) }
            },
        ));
    }
    let boundary = rows - pivots;
    if boundary > 0 {
        let columns = update.chunks_mut(BLOCK * boundary).zip((0..).step_by(BLOCK));
        add(crew.share(columns, |(columns, at)| {
            let blocks = panel.chunks(BLOCK * rows).take_while(|_| !(crew.is_over)());
            let done = blocks.map(|block| subtract_product(columns, boundary, at, block, rows, pivots + at));
            done.fold((0, 0), |sum, done| (sum.0 + done.0, sum.1 + done.1))
        }));
    }
    done
}

/// What [`factor`] does, by formula: block by block, but not value by value.
pub fn work_of(rows: usize, pivots: usize) -> Done {
    let (mut bytes, mut flop) = (0, 0);
    let mut product = |columns: usize, height: usize, depth: usize| {
        bytes += 16 * columns * height + 8 * depth * (height + columns);
        flop += 2 * columns * height * depth;
    };
    let widths = |count: usize| (0..count).step_by(BLOCK).map(move |start| (start, BLOCK.min(count - start)));
    let mut own = (0, 0);
    for (start, width) in widths(pivots) {
        let height = rows - start;
        own.0 += 16 * width * height;
        own.1 += (0..width)
            .map(|column| 1 + (height - column - 1) + 2 * (column + 1..width).map(|later| height - later).sum::<usize>())
            .sum::<usize>();
        widths(pivots).filter(|(later, _)| *later > start).for_each(|(later, columns)| product(columns, rows - later, width));
        widths(rows - pivots).for_each(|(later, columns)| product(columns, rows - pivots - later, width));
    }
    ((own.0 + bytes) as u64, (own.1 + flop) as u64)
}

/// Factors a block of columns of which the first has its diagonal at row `start`.
fn factor_block(block: &mut [f64], rows: usize, start: usize) -> Done {
    let mut flop = 0;
    for column in 0..block.len() / rows {
        let (own, later) = block[column * rows..].split_at_mut(rows);
        let own = &mut own[start + column..];
        let diagonal = own[0].sqrt();
        own[0] = diagonal;
        own[1..].iter_mut().for_each(|value| *value /= diagonal);
        flop += own.len();
        for (offset, later) in (1..).zip(later.chunks_exact_mut(rows)) {
            let (factor, own) = (own[offset], &own[offset..]);
            later[start + column + offset..].iter_mut().zip(own).for_each(|(value, own)| *value -= factor * own);
            flop += 2 * own.len();
        }
    }
    (16 * (block.len() / rows * (rows - start)) as u64, flop as u64)
}

/// Takes from columns of `height` values, from row `at` on, the product of the columns in `block` (of `rows` values, from row `below` on)
/// and those of its rows that belong to these columns. The rows at `at` and `below` hold the first column's diagonal.
fn subtract_product(columns: &mut [f64], height: usize, at: usize, block: &[f64], rows: usize, below: usize) -> Done {
    let (count, depth) = (columns.len() / height, block.len() / rows);
    // Copies with zeros at the end, so that the inner loop has no rest.
    let mut factors = [[[0.0; COLUMNS]; BLOCK]; BLOCK / COLUMNS];
    let mut strip = [[0.0; ROWS]; BLOCK];
    for (step, values) in block.chunks_exact(rows).enumerate() {
        let values = values[below..].iter().take(count);
        values.enumerate().for_each(|(column, value)| factors[column / COLUMNS][step][column % COLUMNS] = *value);
    }
    for row in (0..height - at).step_by(ROWS) {
        let tall = ROWS.min(height - at - row);
        for (strip, values) in strip.iter_mut().zip(block.chunks_exact(rows)) {
            strip[..tall].copy_from_slice(&values[below + row..][..tall]);
        }
        for (columns, factors) in columns.chunks_mut(COLUMNS * height).zip(&factors) {
            let mut sums = [[0.0; ROWS]; COLUMNS];
            for (strip, factors) in strip[..depth].iter().zip(factors) {
                for (sums, factor) in sums.iter_mut().zip(factors) {
                    sums.iter_mut().zip(strip).for_each(|(sum, value)| *sum += factor * value);
                }
            }
            for (column, sums) in columns.chunks_exact_mut(height).zip(&sums) {
                column[at + row..][..tall].iter_mut().zip(sums).for_each(|(value, sum)| *value -= sum);
            }
        }
    }
    let tall = height - at;
    ((16 * count * tall + 8 * depth * (tall + count)) as u64, (2 * count * tall * depth) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::random_numbers::mix;

    #[test]
    fn a_front_is_the_product_of_its_factor_and_the_update() {
        for (rows, pivots) in [(1, 1), (9, 5), (75, 75), (150, 83)] {
            let boundary = rows - pivots;
            let value = |row: usize, column: usize| {
                let random = (mix((row.max(column) * 1000 + row.min(column)) as u64) % 1000) as f64 / 1000.0;
                if row == column { rows as f64 + random } else { random }
            };
            let mut panel: Vec<f64> = (0..rows * pivots).map(|at| value(at % rows, at / rows)).collect();
            let at = |at: usize| value(pivots + at % boundary, pivots + at / boundary);
            let mut update: Vec<f64> = (0..boundary * boundary).map(at).collect();
            let done = factor(&mut panel, rows, &mut update, Crew { threads: 2, is_over: &|| false });
            assert_eq!(done, work_of(rows, pivots));
            for (row, column) in (0..rows * rows).map(|at| (at % rows, at / rows)).filter(|(row, column)| row >= column) {
                let product = |k: usize| panel[k * rows + row] * panel[k * rows + column];
                let mut sum: f64 = (0..pivots.min(column + 1)).map(product).sum();
                if column >= pivots {
                    sum += update[(column - pivots) * boundary + row - pivots];
                }
                assert!((sum - value(row, column)).abs() < 1e-10, "{rows} {pivots}: {row} {column}");
            }
        }
    }
}

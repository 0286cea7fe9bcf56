//! LU factorization of a dense matrix, in place and without pivoting, as blocked right-looking codes do it: after each panel of columns
//! the whole rest of the matrix is read and written once.
//!
//! Stored column by column, so that a block column is contiguous, and threads share the rest by block columns. An element is worked on
//! in the same order whichever thread does it: results are the same to the last bit.

use crate::lu_matrix::{self, Factorization, Layout};
use crate::lu_tile::{BLOCK, DIVIDE_FLOP, FACTOR_FLOP, SOLVE_FLOP, TILE_BYTES, UPDATE_FLOP};
use crate::lu_tile::{divide, factor, loaded, solve, store, update};
use crate::report::Report;
use crate::thread_team::{self, Error, Setting, Watch};

/// Factors `setting.repetitions` matrices of at most `setting.data_bytes`, one after another in the same place. An operation is one
/// floating-point operation; the traffic counted is what passes between the matrix and tiles. Writing the matrix anew is part of each
/// repetition. Not verified where the time limit cut a repetition off.
pub fn lu(setting: &Setting) -> Result<Report, Error> {
    let order = (((setting.data_bytes / size_of::<f64>()) as f64).sqrt() as usize / BLOCK).max(1) * BLOCK;
    let how = Factorization { workload: "lu", layout: Layout::by_columns(order), steps: order };
    lu_matrix::run(setting, how, |matrix, watch| factorize(setting, matrix, order, watch))
}

/// Factors a matrix stored by columns.
pub(crate) fn factorize(setting: &Setting, matrix: &mut [f64], order: usize, watch: &Watch) -> thread_team::Done {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let order = 3 * BLOCK;
        let how = Factorization { workload: "lu", layout: Layout::by_columns(order), steps: order };
        let places = [(0, 191), (100, 100), (191, 0), (70, 3)];
        lu_matrix::assert_wrong_values_are_told(how, &places, |setting, matrix, watch| factorize(setting, matrix, order, watch));
    }
}

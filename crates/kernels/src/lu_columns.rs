//! LU factorization column by column, without blocks and without pivoting, as LINPACK's `dgefa` (1979) does it: the ancestor of `lu`,
//! bound by memory.
//!
//! Eliminating one column divides it by its pivot and then reads and writes the whole rest of the matrix once (one `daxpy` for each
//! column): nothing but the eliminated column is used again before a pass over all the data. A value is used for one multiplication
//! and one subtraction in a pass, 2 flop for 16 bytes: an intensity of 1/8 flop per byte, however near memory is used.
//!
//! A whole factorization of order n takes n passes. A repetition does the first `STEPS` of them, on a matrix that it writes anew.

use crate::lu_matrix::{self, Factorization, Layout};
use crate::report::{Report, Traffic};
use crate::thread_team::{self, Error, Setting, Watch};

/// Columns eliminated in a repetition: passes over the data.
const STEPS: usize = 8;

/// Rows are a multiple of this, a cache line.
const UNIT: usize = 64 / size_of::<f64>();

fn order(setting: &Setting) -> usize {
    (((setting.data_bytes / size_of::<f64>()) as f64).sqrt() as usize / UNIT).max(2) * UNIT
}

/// Eliminates the first columns of `setting.repetitions` matrices of at most `setting.data_bytes`, one after another in the same place.
/// An operation is one floating-point operation; the traffic counted is each value that a step changes, read and written, the pivot
/// and each other column's factor, read, and the matrix written anew. Not verified where the time limit cut a repetition off.
pub fn lu_columns(setting: &Setting) -> Result<Report, Error> {
    let order = order(setting);
    let how = Factorization { workload: "lu-columns", layout: Layout::by_columns(order), steps: STEPS };
    lu_matrix::run(setting, how, |matrix, watch| eliminate(setting, matrix, order, watch))
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let order = order(setting) as f64;
    let mut traffic = Traffic { bytes: 8.0 * order * order, flop: 0.0 };
    for step in 0..STEPS {
        let below = order - 1.0 - step as f64;
        traffic.bytes += (below + 1.0) * (8.0 + 16.0 * below);
        traffic.flop += below + 2.0 * below * below;
    }
    traffic
}

fn eliminate(setting: &Setting, matrix: &mut [f64], order: usize, watch: &Watch) -> thread_team::Done {
    let (mut columns, mut values) = (0, 0);
    let mut flop = 0;
    for step in 0..STEPS {
        let below = (order - 1 - step) as u64;
        let (column, rest) = matrix[step * order..].split_at_mut(order);
        let pivot = column[step];
        let lower = &mut column[step + 1..];
        lower.iter_mut().for_each(|value| *value /= pivot);
        let lower = &*lower;
        let others = thread_team::map(setting.split(rest, order), |(_, part)| {
            let mut done = 0;
            for column in part.chunks_exact_mut(order) {
                let factor = column[step];
                column[step + 1..].iter_mut().zip(lower).for_each(|(value, lower)| *value -= lower * factor);
                done += 1;
                if watch.is_over() {
                    break;
                }
            }
            done
        });
        let others: u64 = others.into_iter().sum();
        columns += 1 + others;
        values += (1 + others) * below;
        flop += below + others * 2 * below;
        if watch.is_over() {
            break;
        }
    }
    (columns * 8 + values * 16, flop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let order = 48;
        let how = Factorization { workload: "lu-columns", layout: Layout::by_columns(order), steps: STEPS };
        // Of L, of U on and off the diagonal, and of what is not factored yet.
        let places = [(47, 0), (20, STEPS - 1), (3, 3), (0, 47), (STEPS - 1, 30), (STEPS, STEPS), (47, 8), (30, 47)];
        lu_matrix::assert_wrong_values_are_told(how, &places, |setting, matrix, watch| eliminate(setting, matrix, order, watch));
    }
}

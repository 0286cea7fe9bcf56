//! C += A * B in f32 as textbooks write it, without tiles: for each row of A the whole of B is walked, row by row, and added to a row
//! of C. The program that was not written with two tiers in mind, beside `gemm`, which was.
//!
//! So that a repetition is bounded, A and C are a band of `BAND` rows, whatever the size; B is square. B is nearly all of the data
//! and is read BAND times in a repetition, in order; the row of C that is worked on stays in the CPU's caches. A value of B is used
//! for one multiplication and one addition each time that it is read: an intensity of half a flop per byte.
//!
//! Values are small integers, so that sums are exact. For the verification A and B are held against what they were made as, and C
//! against them (Freivalds: C x = A (B x)).

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, digest};
use nearfar_core::random_numbers::mix;

/// Rows of A and of C: some numbers of threads share them evenly.
const BAND: usize = 12;

/// Columns are a multiple of this, a cache line.
const UNIT: usize = 64 / size_of::<f32>();

/// The matrices that are read.
#[derive(Clone, Copy)]
enum Matrix {
    A = 1,
    B = 2,
}

/// In -2..=2.
fn value_at(matrix: Matrix, index: usize) -> f32 {
    (mix((matrix as u64) << 56 | index as u64) % 5) as f32 - 2.0
}

/// Rows and columns of B: those of the largest whose values and two bands take at most `data_bytes`.
fn order(data_bytes: usize) -> usize {
    let values = (data_bytes / size_of::<f32>()) as f64;
    let band = BAND as f64;
    (((values + band * band).sqrt() - band) as usize / UNIT).max(1) * UNIT
}

/// Some rows of A and of C.
struct Share<'a> {
    a: &'a [f32],
    c: &'a mut [f32],
}

/// Adds the product to C `setting.repetitions` times. An operation is one floating-point operation; the traffic counted is each value of
/// B once for every row of the band, each of A once, and each of C once read and once written.
pub fn gemm_plain(setting: &Setting) -> Result<Report, Error> {
    let order = order(setting.data_bytes);
    let setup = Setup::begin(setting);
    let mut a = Buffer::<f32>::zeroed(&setting.placement, BAND * order)?;
    let mut b = Buffer::<f32>::zeroed(&setting.placement, order * order)?;
    let mut c = Buffer::<f32>::zeroed(&setting.placement, BAND * order)?;
    [&a, &b, &c].iter().for_each(|matrix| matrix.announce(Pattern::Sequential));
    for (name, matrix) in [(Matrix::A, &mut a), (Matrix::B, &mut b)] {
        thread_team::map(setting.split(matrix, 1), |(first, values)| {
            values.iter_mut().enumerate().for_each(|(offset, value)| *value = value_at(name, first + offset));
        });
    }
    c.fill(0.0);

    let (a_values, b_values) = (&*a, &*b);
    let shares = setting.split(&mut c, order).into_iter().map(|(first, c)| Share { a: &a_values[first..first + c.len()], c });
    let (ran, _) = setup.run(shares.collect(), AfterLimit::End, |share, _, watch| multiply_add(share, b_values, order, watch));

    let verify_product = setting.verify && ran.finished();
    let mut wrong = 0;
    if verify_product {
        wrong += ran.check(setting.split(&mut a, order), |(first, part)| wrong_values(Matrix::A, first, part)).0;
        wrong += ran.check(setting.split(&mut b, order), |(first, part)| wrong_values(Matrix::B, first, part)).0;
        wrong += wrong_rows(&a, &b, &c, order, ran.last() as i64 + 1);
    }
    let (_, checksum) = ran.check(setting.split(&mut c, order), |(first, part)| {
        (0, digest(first, part.iter().map(|value| u64::from(value.to_bits()))))
    });
    let data_bytes = (order + 2 * BAND) * order * size_of::<f32>();
    let verified = Verified::of(verify_product, wrong);
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("gemm-plain", "flop", data_bytes, (wrong, checksum)) })
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let (order, band) = (order(setting.data_bytes) as f64, BAND as f64);
    Traffic { bytes: band * order * (order + 3.0) * size_of::<f32>() as f64, flop: 2.0 * band * order * order }
}

fn multiply_add(share: &mut Share, b: &[f32], order: usize, watch: &Watch) -> thread_team::Done {
    let (mut values, mut products) = (0, 0);
    for (a_row, c_row) in share.a.chunks_exact(order).zip(share.c.chunks_exact_mut(order)) {
        values += 2 * c_row.len() as u64;
        for (factor, b_row) in a_row.iter().zip(b.chunks_exact(order)) {
            c_row.iter_mut().zip(b_row).for_each(|(c, b)| *c += factor * b);
            values += 1 + b_row.len() as u64;
            products += b_row.len() as u64;
            if watch.is_over() {
                return (values * size_of::<f32>() as u64, 2 * products);
            }
        }
    }
    (values * size_of::<f32>() as u64, 2 * products)
}

/// Values that are not as they were made at first. Written so that a NaN is wrong.
fn wrong_values(matrix: Matrix, first: usize, part: &[f32]) -> Checked {
    let right = part.iter().enumerate().filter(|(offset, value)| **value == value_at(matrix, first + offset));
    ((part.len() - right.count()) as u64, 0)
}

/// Rows of C that are not `times` the product of A and B, told by their sums with random weights.
fn wrong_rows(a: &[f32], b: &[f32], c: &[f32], order: usize, times: i64) -> u64 {
    let x: Vec<i64> = (0..order).map(|index| (mix(index as u64) % 1000) as i64 + 1).collect();
    let bx: Vec<i64> = b.chunks_exact(order).map(|row| sum(row, &x)).collect();
    let is_right = |(a, c): &(&[f32], &[f32])| c.iter().all(|value| value.fract() == 0.0) && sum(c, &x) == times * sum(a, &bx);
    let rows = a.chunks_exact(order).zip(c.chunks_exact(order));
    BAND as u64 - rows.filter(is_right).count() as u64
}

/// Exact: values are integers, and larger ones than fit would not be right.
fn sum(values: &[f32], weights: &[i64]) -> i64 {
    values.iter().zip(weights).fold(0, |sum: i64, (value, weight)| sum.wrapping_add((*value as i64).wrapping_mul(*weight)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_bit_is_told() {
        let order = 48;
        let mut b: Vec<f32> = (0..order * order).map(|index| value_at(Matrix::B, index)).collect();
        let a: Vec<f32> = (0..BAND * order).map(|index| value_at(Matrix::A, index)).collect();
        let mut c = vec![0.0; BAND * order];
        let share = Share { a: &a, c: &mut c };
        thread_team::run(&Setting::new(0, 1, 2), vec![share], AfterLimit::End, |share, _, watch| {
            multiply_add(share, &b, order, watch)
        });
        assert_eq!((wrong_rows(&a, &b, &c, order, 2), wrong_rows(&a, &b, &c, order, 1)), (0, BAND as u64));
        let place = c.iter().position(|value| *value != 0.0).expect("a value");
        for bit in [0, 20, 31] {
            let mut spoilt = c.clone();
            spoilt[place] = f32::from_bits(spoilt[place].to_bits() ^ 1 << bit);
            assert_eq!(wrong_rows(&a, &b, &spoilt, order, 2), 1, "bit {bit}");
        }
        b[1000] = f32::NAN;
        assert_eq!(wrong_values(Matrix::B, 0, &b).0, 1);
    }

    #[test]
    fn the_data_takes_what_there_is() {
        for data_bytes in [1 << 20, 96 << 20, 512 << 20] {
            let taken = (order(data_bytes) + 2 * BAND) * order(data_bytes) * size_of::<f32>();
            assert!(taken <= data_bytes && taken > data_bytes / 16 * 15, "{taken} of {data_bytes}");
        }
    }
}

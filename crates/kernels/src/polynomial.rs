//! A polynomial of a chosen degree evaluated at every element of a vector: the sweep through arithmetic intensities of the study of
//! Intel Memory Drive Technology (Mironov et al., MCHPC 2018), which finds how much work on a value hides a far tier.
//!
//! One vector of f64 is read and another written, once each and in order: nothing is used again. Horner's rule takes a multiplication
//! and an addition for each degree, hence 2 N flop for 16 bytes: an intensity of N / 8 flop per byte. The coefficients (64 KiB at most)
//! stay in the CPU's caches and do not count as traffic.
//!
//! The values of the vector are drawn from a table of 1024, so that verification is exact and yet cheap: it evaluates the table.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, weight};
use nearfar_core::random_numbers::{mix, unit};

/// Values evaluated at once: as many chains of dependent operations as hide their latency.
const GROUP: usize = 16;

/// Different values that the vector has.
const TABLE: usize = 1024;

/// Floating-point operations between two looks at the clock (some milliseconds), and the most elements (32 KiB of each vector).
const BATCH_FLOP: usize = 1 << 22;
const BATCH: usize = 4096;

struct Share<'a> {
    x: &'a mut [f64],
    y: &'a mut [f64],
    first: usize,
    /// Elements that the last repetition came to.
    done: usize,
}

/// In -1..1, so that no power grows.
fn number(random: u64) -> f64 {
    2.0 * unit(random) - 1.0
}

const fn place_in_table(index: usize) -> usize {
    mix(index as u64) as usize % TABLE
}

fn table() -> Vec<f64> {
    (0..TABLE).map(|place| number(mix(!(place as u64)))).collect()
}

/// `degree + 1` coefficients, highest first. The constant one changes with every repetition, so that a lost write shows.
fn coefficients(degree: usize, repetition: usize) -> Vec<f64> {
    let mut all: Vec<f64> = (0..=degree).map(|power| number(mix(power as u64))).collect();
    all[degree] += 1.0 + repetition as f64;
    all
}

/// Elements of each vector: whole groups.
fn len(setting: &Setting) -> usize {
    (setting.data_bytes / 2 / size_of::<f64>() / GROUP).max(1) * GROUP
}

/// Evaluates a polynomial of `degree` (at least 1) in `setting.repetitions` sweeps over two vectors that together hold at most
/// `setting.data_bytes`. An operation is one floating-point operation; the traffic counted is each element of x read and of y written.
pub fn polynomial(setting: &Setting, degree: usize) -> Result<Report, Error> {
    let (len, degree) = (len(setting), degree.max(1));
    let setup = Setup::begin(setting);
    let mut x = Buffer::<f64>::zeroed(&setting.placement, len)?;
    let mut y = Buffer::<f64>::zeroed(&setting.placement, len)?;
    [&x, &y].iter().for_each(|vector| vector.announce(Pattern::Sequential));
    let table = table();
    let shares = setting.split(&mut x, GROUP).into_iter().zip(setting.split(&mut y, GROUP));
    let shares = shares.map(|((first, x), (_, y))| Share { x, y, first, done: 0 }).collect();
    let shares = thread_team::map(shares, |share: Share| {
        share.x.iter_mut().enumerate().for_each(|(offset, x)| *x = table[place_in_table(share.first + offset)]);
        share.y.fill(f64::NAN);
        share
    });

    let (ran, shares) = setup.run(shares, AfterLimit::End, |share, number, watch| {
        sweep(share, &coefficients(degree, number), watch);
        ((share.done * 2 * size_of::<f64>()) as u64, (share.done * 2 * degree) as u64)
    });

    let values_of = |repetition: usize| {
        let mut values = vec![0.0; TABLE];
        evaluate(&coefficients(degree, repetition), &table, &mut values);
        values
    };
    let last = ran.last();
    let expected = Expected { last: values_of(last), before: last.checked_sub(1).map(values_of), table: &table };
    let checked = ran.check(shares, |share| expected.check(&share));
    Ok(Report { flop_per_operation: 1.0, ..ran.report("polynomial", "flop", 2 * len * size_of::<f64>(), checked) })
}

/// What one sweep moves and computes.
pub fn traffic(setting: &Setting, degree: usize) -> Traffic {
    let (len, degree) = (len(setting) as f64, degree.max(1) as f64);
    Traffic { bytes: 16.0 * len, flop: 2.0 * degree * len }
}

fn sweep(share: &mut Share, coefficients: &[f64], watch: &Watch) {
    share.done = 0;
    let batch = (BATCH_FLOP / (2 * coefficients.len()) / GROUP * GROUP).clamp(GROUP, BATCH);
    for (x, y) in share.x.chunks(batch).zip(share.y.chunks_mut(batch)) {
        evaluate(coefficients, x, y);
        share.done += x.len();
        if watch.is_over() {
            break;
        }
    }
}

/// Horner's rule, for whole groups.
fn evaluate(coefficients: &[f64], x: &[f64], y: &mut [f64]) {
    let (highest, others) = coefficients.split_first().unwrap_or((&0.0, &[]));
    for (x, y) in x.as_chunks::<GROUP>().0.iter().zip(y.as_chunks_mut::<GROUP>().0) {
        let mut sums = [*highest; GROUP];
        for coefficient in others {
            sums.iter_mut().zip(x).for_each(|(sum, x)| *sum = *sum * x + coefficient);
        }
        *y = sums;
    }
}

/// The values of the table, and of the polynomials of the last repetitions at them.
struct Expected<'a> {
    table: &'a [f64],
    last: Vec<f64>,
    before: Option<Vec<f64>>,
}

impl Expected<'_> {
    /// (wrong values, digest) of one share. A value that is not a number is what was there before the first repetition.
    fn check(&self, share: &Share) -> Checked {
        let (mut wrong, mut sum) = (0u64, 0u64);
        for (offset, (x, y)) in share.x.iter().zip(&*share.y).enumerate() {
            let place = place_in_table(share.first + offset);
            let values = if offset < share.done { Some(&self.last) } else { self.before.as_ref() };
            let is_right = values.map_or(y.is_nan(), |values| *y == values[place]);
            wrong += u64::from(*x != self.table[place] || !is_right);
            let bits = x.to_bits() ^ y.to_bits().rotate_left(21);
            sum = sum.wrapping_add(bits.wrapping_mul(weight(share.first + offset)));
        }
        (wrong, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_the_values_of_the_definition() {
        let coefficients = [3.0, -2.0, 0.0, 5.0];
        let x: Vec<f64> = (0..2 * GROUP).map(|index| index as f64 - 7.0).collect();
        let mut y = vec![0.0; x.len()];
        evaluate(&coefficients, &x, &mut y);
        for (x, y) in x.iter().zip(&y) {
            assert_eq!(*y, 3.0 * x.powi(3) - 2.0 * x.powi(2) + 5.0);
        }
    }

    #[test]
    fn a_wrong_bit_is_told() {
        let table = table();
        let expected = Expected { last: table.iter().map(|x| x + 1.0).collect(), before: Some(table.clone()), table: &table };
        let wrong = |spoil: fn(&mut [f64], &mut [f64])| {
            let mut x: Vec<f64> = (100..200).map(|index| table[place_in_table(index)]).collect();
            let mut y: Vec<f64> = x.iter().enumerate().map(|(offset, x)| if offset < 60 { x + 1.0 } else { *x }).collect();
            spoil(&mut x, &mut y);
            expected.check(&Share { x: &mut x, y: &mut y, first: 100, done: 60 }).0
        };
        assert_eq!(wrong(|_, _| ()), 0);
        assert_eq!(wrong(|x, _| x[70] = f64::from_bits(x[70].to_bits() ^ 1)), 1);
        assert_eq!(wrong(|_, y| y[30] = f64::from_bits(y[30].to_bits() ^ 1)), 1);
        assert_eq!(wrong(|_, y| y[80] += 1.0), 1);
        assert_eq!(wrong(|_, y| y[99] = f64::NAN), 1);
    }
}

//! STREAM (McCalpin 1995): copy, scale, add and triad, sweeps over two or three f64 arrays: what a sweep over data larger than near
//! costs.
//!
//! Every sweep reads its sources and writes `a` once, in order: 0, 1, 1 and 2 floating-point operations for 16, 16, 24 and 24 bytes of
//! an element. Copy and scale allocate no third array, so that the data is what is swept.
//!
//! Each sweep writes other values than the one before, so that a lost write of any sweep shows in the verification: scale and triad
//! have another factor `s`; copy and add, which have none, turn each batch of `b` round by another number of cache lines. Values are
//! small integers: sums are exact. Does not use non-temporal stores: most programs do not.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, weight};
use nearfar_core::random_numbers::mix;

/// Elements between two looks at the clock: 32 KiB of each array. Threads' parts are whole batches.
const BATCH: usize = 4096;

/// Elements of a cache line.
const LINE: usize = 64 / size_of::<f64>();

/// What a sweep does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `a = b`
    Copy,
    /// `a = s * b`
    Scale,
    /// `a = b + c`
    Add,
    /// `a = b + s * c`
    Triad,
}

impl Operation {
    /// All of them, in STREAM's order.
    pub const ALL: [Operation; 4] = [Operation::Copy, Operation::Scale, Operation::Add, Operation::Triad];

    /// The name of the workload.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Copy => "copy",
            Operation::Scale => "scale",
            Operation::Add => "add",
            Operation::Triad => "triad",
        }
    }

    const fn arrays(self) -> usize {
        match self {
            Operation::Copy | Operation::Scale => 2,
            Operation::Add | Operation::Triad => 3,
        }
    }

    const fn flop_per_element(self) -> f64 {
        match self {
            Operation::Copy => 0.0,
            Operation::Scale | Operation::Add => 1.0,
            Operation::Triad => 2.0,
        }
    }

    /// Elements of each array.
    fn len(self, setting: &Setting) -> usize {
        (setting.data_bytes / self.arrays() / size_of::<f64>()).max(1)
    }

    /// How far a batch of `len` elements of `b` is turned round in a sweep.
    const fn turn(self, sweep: usize, len: usize) -> usize {
        match self {
            Operation::Copy | Operation::Add => sweep * LINE % len,
            Operation::Scale | Operation::Triad => 0,
        }
    }

    /// Writes `a`; the three are of one length, but for a `c` that is not read.
    fn apply(self, a: &mut [f64], b: &[f64], c: &[f64], scale: f64) {
        match self {
            Operation::Copy => a.copy_from_slice(b),
            Operation::Scale => a.iter_mut().zip(b).for_each(|(a, b)| *a = scale * b),
            Operation::Add => a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + c),
            Operation::Triad => a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + scale * c),
        }
    }
}

struct Share<'a> {
    a: &'a mut [f64],
    b: &'a mut [f64],
    /// Empty where the operation has two arrays.
    c: &'a mut [f64],
    first: usize,
}

fn b_at(index: usize) -> f64 {
    (mix(index as u64) >> 44) as f64
}

fn c_at(index: usize) -> f64 {
    (index & 0xffff) as f64
}

fn scale(sweep: usize) -> f64 {
    3.0 + sweep as f64
}

/// Runs `setting.repetitions` sweeps over the arrays, which together hold `setting.data_bytes`. An operation is one element of `a`; its
/// traffic is 8 bytes for each array.
pub fn stream(setting: &Setting, operation: Operation) -> Result<Report, Error> {
    let len = operation.len(setting);
    let setup = Setup::begin(setting);
    let mut arrays = [
        Buffer::<f64>::zeroed(&setting.placement, len)?,
        Buffer::<f64>::zeroed(&setting.placement, len)?,
        Buffer::<f64>::zeroed(&setting.placement, if operation.arrays() == 3 { len } else { 0 })?,
    ];
    // Initialisation sweeps as well.
    arrays.iter().for_each(|array| array.announce(Pattern::Sequential));
    let [a, b, c] = &mut arrays;
    let shares = thread_team::map(split(setting, a, b, c), |share| {
        share.a.fill(-1.0);
        share.b.iter_mut().enumerate().for_each(|(offset, b)| *b = b_at(share.first + offset));
        share.c.iter_mut().enumerate().for_each(|(offset, c)| *c = c_at(share.first + offset));
        share
    });

    let (ran, shares) = setup.run(shares, AfterLimit::End, |share, number, watch| sweep(share, operation, number, watch));

    // An unfinished sweep leaves a mixture of two sweeps' values: then only b and c can be told.
    let last = ran.finished().then(|| ran.last());
    let checked = ran.check(shares, |share| check(&share, operation, last));
    let data_bytes = operation.arrays() * len * size_of::<f64>();
    Ok(Report {
        flop_per_operation: operation.flop_per_element(),
        ..ran.report(operation.name(), "elements", data_bytes, checked)
    })
}

/// What one sweep moves and computes.
pub fn traffic(setting: &Setting, operation: Operation) -> Traffic {
    let len = operation.len(setting) as f64;
    Traffic { bytes: (operation.arrays() * size_of::<f64>()) as f64 * len, flop: operation.flop_per_element() * len }
}

fn split<'a>(setting: &Setting, a: &'a mut [f64], b: &'a mut [f64], c: &'a mut [f64]) -> Vec<Share<'a>> {
    let parts = setting.split(a, BATCH).into_iter().zip(setting.split(b, BATCH)).zip(setting.split(c, BATCH));
    parts.map(|(((first, a), (_, b)), (_, c))| Share { a, b, c, first }).collect()
}

fn sweep(share: &mut Share, operation: Operation, number: usize, watch: &Watch) -> thread_team::Done {
    let scale = scale(number);
    let mut elements = 0u64;
    let mut batches_of_c = share.c.chunks(BATCH);
    for (a, b) in share.a.chunks_mut(BATCH).zip(share.b.chunks(BATCH)) {
        let c = batches_of_c.next().unwrap_or_default();
        let (b_end, b_start) = b.split_at(operation.turn(number, b.len()));
        let (a_start, a_end) = a.split_at_mut(b_start.len());
        let (c_start, c_end) = c.split_at(b_start.len().min(c.len()));
        operation.apply(a_start, b_start, c_start, scale);
        operation.apply(a_end, b_end, c_end, scale);
        elements += b.len() as u64;
        if watch.is_over() {
            break;
        }
    }
    (elements * (operation.arrays() * size_of::<f64>()) as u64, elements)
}

/// (values that are not as expected, digest) of one share, whose values of `a` the sweep of number `last` wrote, if any did.
fn check(share: &Share, operation: Operation, last: Option<usize>) -> Checked {
    let (mut wrong, mut sum) = (0u64, 0u64);
    for (offset, (a, b)) in share.a.iter().zip(&*share.b).enumerate() {
        let index = share.first + offset;
        let c = share.c.get(offset).copied();
        let expected_c = c.map(|_| c_at(index));
        let expected_a = last.map_or(*a, |sweep| expected_a(share, operation, sweep, offset));
        wrong += u64::from(*a != expected_a || *b != b_at(index) || c != expected_c);
        let bits = a.to_bits() ^ b.to_bits().rotate_left(21) ^ c.unwrap_or(0.0).to_bits().rotate_left(42);
        sum = sum.wrapping_add(bits.wrapping_mul(weight(index)));
    }
    (wrong, sum)
}

/// What a whole sweep writes to the place `offset` of a share's `a`.
fn expected_a(share: &Share, operation: Operation, sweep: usize, offset: usize) -> f64 {
    let (batch, place) = (offset / BATCH * BATCH, offset % BATCH);
    let len = BATCH.min(share.a.len() - batch);
    let b = b_at(share.first + batch + (place + operation.turn(sweep, len)) % len);
    let c = c_at(share.first + offset);
    match operation {
        Operation::Copy => b,
        Operation::Scale => scale(sweep) * b,
        Operation::Add => b + c,
        Operation::Triad => b + scale(sweep) * c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_and_a_value_of_the_sweep_before_are_told() {
        for operation in Operation::ALL {
            let setting = Setting::new(operation.arrays() * 8 * 5001, 1, 1);
            let len = operation.len(&setting);
            let (mut a, mut b) = (vec![0.0; len], (0..len).map(b_at).collect::<Vec<_>>());
            let mut c: Vec<f64> = (0..if operation.arrays() == 3 { len } else { 0 }).map(c_at).collect();
            let shares = split(&setting, &mut a, &mut b, &mut c);
            let (_, mut shares) =
                thread_team::run(&setting, shares, AfterLimit::End, |share, _, watch| sweep(share, operation, 7, watch));
            let share = &mut shares[0];
            assert_eq!(check(share, operation, Some(7)).0, 0, "{}", operation.name());
            assert!(check(share, operation, Some(6)).0 > 4900, "{}", operation.name());
            share.a[4999] = f64::from_bits(share.a[4999].to_bits() ^ 1);
            share.b[17] = f64::NAN;
            assert_eq!(check(share, operation, Some(7)).0, 2, "{}", operation.name());
        }
    }
}

//! STREAM triad, `a = b + s * c` over three f64 arrays: what a sweep over data larger than near costs.
//!
//! `s` changes with every sweep, so that a lost write of any sweep shows in the verification. Values are small integers: sums are
//! exact. Does not use non-temporal stores: most programs do not.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, weight};
use nearfar_core::random_numbers::mix;

/// Elements between two looks at the clock: 3 * 32 KiB of traffic.
const BATCH: usize = 4096;

struct Share<'a> {
    a: &'a mut [f64],
    b: &'a mut [f64],
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

/// Runs `setting.repetitions` sweeps over three arrays that together hold `setting.data_bytes`. An operation is one element of `a`.
pub fn triad(setting: &Setting) -> Result<Report, Error> {
    let len = (setting.data_bytes / 3 / size_of::<f64>()).max(1);
    let setup = Setup::begin(setting);
    let mut arrays = [
        Buffer::<f64>::zeroed(&setting.placement, len)?,
        Buffer::<f64>::zeroed(&setting.placement, len)?,
        Buffer::<f64>::zeroed(&setting.placement, len)?,
    ];
    // Initialisation sweeps as well.
    arrays.iter().for_each(|array| array.announce(Pattern::Sequential));
    let [a, b, c] = &mut arrays;
    let shares = thread_team::map(split(setting, a, b, c), |share| {
        for (offset, ((a, b), c)) in share.a.iter_mut().zip(&mut *share.b).zip(&mut *share.c).enumerate() {
            let index = share.first + offset;
            (*a, *b, *c) = (-1.0, b_at(index), c_at(index));
        }
        share
    });

    let (ran, shares) = setup.run(shares, AfterLimit::End, sweep);

    // An unfinished sweep leaves a mixture of two scales: then only b and c can be told.
    let scale = ran.finished().then(|| scale(ran.last()));
    let checked = ran.check(shares, |share| check(&share, scale));
    Ok(Report { flop_per_operation: 2.0, ..ran.report("triad", "elements", 3 * len * size_of::<f64>(), checked) })
}

/// What one sweep moves and computes: 2 flop for 24 bytes.
pub fn traffic(setting: &Setting) -> Traffic {
    let len = (setting.data_bytes / 3 / size_of::<f64>()).max(1) as f64;
    Traffic { bytes: 24.0 * len, flop: 2.0 * len }
}

fn split<'a>(setting: &Setting, a: &'a mut [f64], b: &'a mut [f64], c: &'a mut [f64]) -> Vec<Share<'a>> {
    let parts = setting.split(a, 1).into_iter().zip(setting.split(b, 1)).zip(setting.split(c, 1));
    parts.map(|(((first, a), (_, b)), (_, c))| Share { a, b, c, first }).collect()
}

fn sweep(share: &mut Share, number: usize, watch: &Watch) -> thread_team::Done {
    let scale = scale(number);
    let mut elements = 0u64;
    for ((a, b), c) in share.a.chunks_mut(BATCH).zip(share.b.chunks(BATCH)).zip(share.c.chunks(BATCH)) {
        for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
            *a = b + scale * c;
        }
        elements += a.len() as u64;
        if watch.is_over() {
            break;
        }
    }
    (elements * 3 * size_of::<f64>() as u64, elements)
}

/// (values that are not as expected, digest) of one share.
fn check(share: &Share, scale: Option<f64>) -> Checked {
    let (mut wrong, mut sum) = (0u64, 0u64);
    for (offset, ((a, b), c)) in share.a.iter().zip(&*share.b).zip(&*share.c).enumerate() {
        let index = share.first + offset;
        let expected_a = scale.map_or(*a, |scale| b_at(index) + scale * c_at(index));
        wrong += u64::from(*a != expected_a || *b != b_at(index) || *c != c_at(index));
        let bits = a.to_bits() ^ b.to_bits().rotate_left(21) ^ c.to_bits().rotate_left(42);
        sum = sum.wrapping_add(bits.wrapping_mul(weight(index)));
    }
    (wrong, sum)
}

//! Transposing copy of a row-major matrix, `b = transposed(a) + s`: the walk by columns that no row-major layout likes.
//!
//! `a` is walked down its columns, as many at a time as a cache line holds: programs that care do that much, and the pages are visited
//! in the same order. Each page of a is needed again only after a walk over all rows. `s` changes with every sweep; values are small
//! integers, so that sums are exact.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, digest};
use nearfar_core::random_numbers::mix;

/// Columns walked at a time: a cache line.
const PANEL: usize = 64 / size_of::<f64>();

/// Rows of b, which are columns of a.
struct Share<'a> {
    rows: &'a mut [f64],
    first: usize,
    /// Rows of b that the last sweep wrote.
    done: usize,
}

fn a_at(index: usize) -> f64 {
    (mix(index as u64) >> 44) as f64
}

fn offset(sweep: usize) -> f64 {
    1.0 + sweep as f64
}

/// Copies `setting.repetitions` times between two square matrices that together take at most `setting.data_bytes`. An operation is one
/// element; its traffic is 16 bytes.
pub fn columns(setting: &Setting) -> Result<Report, Error> {
    let order = (((setting.data_bytes / 2 / size_of::<f64>()) as f64).sqrt() as usize / PANEL).max(1) * PANEL;
    let setup = Setup::begin(setting);
    let mut a = Buffer::<f64>::zeroed(&setting.placement, order * order)?;
    let mut b = Buffer::<f64>::zeroed(&setting.placement, order * order)?;
    [&a, &b].iter().for_each(|matrix| matrix.announce(Pattern::Sequential));
    thread_team::map(setting.split(&mut a, PANEL * order), |(first, rows)| {
        rows.iter_mut().enumerate().for_each(|(place, value)| *value = a_at(first + place));
    });
    let shares = thread_team::map(setting.split(&mut b, PANEL * order), |(first, rows)| {
        rows.fill(-1.0);
        Share { rows, first: first / order, done: 0 }
    });

    let source = &*a;
    let (ran, shares) =
        setup.run(shares, AfterLimit::End, |share, sweep, watch| copy(share, source, order, offset(sweep), watch));

    let last = ran.last();
    let before = last.checked_sub(1).map(offset);
    let (wrong, checksum) = ran.check(shares, |share| check(&share, order, offset(last), before));
    let (wrong_source, _) = ran.check(setting.split(&mut a, PANEL * order), |(first, rows)| {
        (rows.iter().enumerate().filter(|(place, value)| **value != a_at(first + place)).count() as u64, 0)
    });
    Ok(ran.report("columns", "elements", 2 * order * order * size_of::<f64>(), (wrong + wrong_source, checksum)))
}

fn copy(share: &mut Share, a: &[f64], order: usize, offset: f64, watch: &Watch) -> thread_team::Done {
    share.done = 0;
    for (panel, rows) in share.rows.chunks_exact_mut(PANEL * order).enumerate() {
        let column = share.first + panel * PANEL;
        for (row, source) in a.chunks_exact(order).enumerate() {
            for (step, value) in source[column..column + PANEL].iter().enumerate() {
                rows[step * order + row] = value + offset;
            }
        }
        share.done += PANEL;
        if watch.is_over() {
            break;
        }
    }
    let elements = (share.done * order) as u64;
    (2 * elements * size_of::<f64>() as u64, elements)
}

/// (wrong values, digest) of one share. Rows that the last sweep did not come to hold what the one before wrote.
fn check(share: &Share, order: usize, last: f64, before: Option<f64>) -> Checked {
    let (mut wrong, mut sum) = (0u64, 0u64);
    for (number, row) in share.rows.chunks_exact(order).enumerate() {
        let offset = if number < share.done { Some(last) } else { before };
        let column = share.first + number;
        for (place, value) in row.iter().enumerate() {
            let expected = offset.map_or(-1.0, |offset| a_at(place * order + column) + offset);
            wrong += u64::from(*value != expected);
        }
        sum = sum.wrapping_add(digest(column * order, row.iter().map(|value| value.to_bits())));
    }
    (wrong, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let mut rows: Vec<f64> = (0..64).map(|place| a_at(place % 8 * 8 + place / 8) + 1.0).collect();
        rows[17] += 1.0;
        assert_eq!(check(&Share { rows: &mut rows, first: 0, done: 8 }, 8, 1.0, None).0, 1);
    }
}

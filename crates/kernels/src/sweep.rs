//! Sweeps over one array in another order than one stream from first to last: what does a prefetcher see there?
//!
//! A reading sweep adds the numbers up, weighted by their places, and knows what must come out; an updating one changes every number
//! it visits by a function that loses nothing. So a wrong byte of any sweep shows.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::sweep_order::{Order, Route};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, weight};
use nearfar_core::random_numbers::mix;

/// Pieces between two looks at the clock.
const BATCH: usize = 64;

struct Share<'a> {
    part: &'a mut [u64],
    first: usize,
    route: Route,
    /// What a reading sweep must add up to.
    expected: u64,
    /// Whole updating sweeps done, and pieces of the one that was cut off.
    sweeps: usize,
    pieces: usize,
    wrong_sums: u64,
}

/// What updating sweep number `sweep` makes of `value`: a bijection, so that an error never vanishes.
const fn updated(value: u64, sweep: usize) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(sweep as u64 + 1)
}

/// Runs `setting.repetitions` sweeps in `order` over an array of `setting.data_bytes`, which read or, with `update`, read and write
/// what they visit. An operation is one piece visited: a cache line, or a page of a reverse sweep.
pub fn sweep(setting: &Setting, order: Order, update: bool) -> Result<Report, Error> {
    let len = (setting.data_bytes / size_of::<u64>()).max(1);
    let setup = Setup::begin(setting);
    let mut array = Buffer::<u64>::zeroed(&setting.placement, len)?;
    array.announce(Pattern::Sequential);
    let shares = thread_team::map(setting.split(&mut array, order.unit()), |(first, part)| {
        let route = order.route(part.len(), setting.threads);
        let mut expected = 0u64;
        for (offset, value) in part.iter_mut().enumerate() {
            *value = mix((first + offset) as u64);
            if route.piece_of(offset).is_some() {
                expected = expected.wrapping_add(value.wrapping_mul(weight(first + offset)));
            }
        }
        Share { part, first, route, expected, sweeps: 0, pieces: 0, wrong_sums: 0 }
    });

    let (ran, shares) =
        setup.run(
            shares,
            AfterLimit::End,
            |share, number, watch| {
                if update { change(share, number, watch) } else { add_up(share, watch) }
            },
        );

    let checked = ran.check(shares, |share| check(&share));
    Ok(ran.report(order.name(), "pieces", len * size_of::<u64>(), checked))
}

fn add_up(share: &mut Share, watch: &Watch) -> thread_team::Done {
    let (mut sum, mut numbers) = (0u64, 0);
    let pieces = share.route.pieces();
    let weighed = |index: usize, value: u64| value.wrapping_mul(weight(share.first + index));
    let mut done = 0;
    while done < pieces {
        let piece = share.route.piece(done);
        numbers += piece.len();
        let values = piece.clone().zip(&share.part[piece]);
        sum = if share.route.is_backwards() {
            values.rev().fold(sum, |sum, (index, &value)| sum.wrapping_add(weighed(index, value)))
        } else {
            values.fold(sum, |sum, (index, &value)| sum.wrapping_add(weighed(index, value)))
        };
        done += 1;
        if done % BATCH == 0 && watch.is_over() {
            break;
        }
    }
    if done == pieces && sum != share.expected {
        share.wrong_sums += 1;
    }
    ((numbers * size_of::<u64>()) as u64, done as u64)
}

fn change(share: &mut Share, sweep: usize, watch: &Watch) -> thread_team::Done {
    let mut numbers = 0;
    let pieces = share.route.pieces();
    let mut done = 0;
    while done < pieces {
        let values = &mut share.part[share.route.piece(done)];
        numbers += values.len();
        if share.route.is_backwards() {
            values.iter_mut().rev().for_each(|value| *value = updated(*value, sweep));
        } else {
            values.iter_mut().for_each(|value| *value = updated(*value, sweep));
        }
        done += 1;
        if done % BATCH == 0 && watch.is_over() {
            break;
        }
    }
    if done == pieces {
        share.sweeps += 1;
    } else {
        share.pieces = done;
    }
    (2 * (numbers * size_of::<u64>()) as u64, done as u64)
}

/// (errors, digest) of one share.
fn check(share: &Share) -> Checked {
    let (mut wrong, mut digest) = (share.wrong_sums, 0u64);
    for (offset, &value) in share.part.iter().enumerate() {
        let sweeps = share.route.piece_of(offset).map_or(0, |piece| share.sweeps + usize::from(piece < share.pieces));
        let expected = (0..sweeps).fold(mix((share.first + offset) as u64), updated);
        wrong += u64::from(value != expected);
        digest = digest.wrapping_add(value.wrapping_mul(weight(share.first + offset)));
    }
    (wrong, digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Order; 3] = [Order::Strided(8192), Order::Reverse, Order::Streams(8)];

    #[test]
    fn a_wrong_byte_is_told() {
        for order in ORDERS {
            let mut memory: Vec<u64> = (0..10_000).map(mix).collect();
            let route = order.route(memory.len(), 1);
            let visited = (0..memory.len()).filter(|&index| route.piece_of(index).is_some());
            let expected = visited.fold(0u64, |sum, index| sum.wrapping_add(memory[index].wrapping_mul(weight(index))));
            memory[route.piece(3).start] ^= 1 << 40;
            let mut share = Share { part: &mut memory, first: 0, route, expected, sweeps: 0, pieces: 0, wrong_sums: 0 };
            thread_team::run(&Setting::new(0, 1, 3), vec![&mut share], AfterLimit::End, |share, _, watch| add_up(share, watch));
            assert_eq!((share.wrong_sums, check(&share).0), (3, 4), "{order:?}");
        }
    }
}

//! Sorting random numbers in place: sweeps from both ends over halves of halves, until a piece fits into near memory, and then many
//! more over that piece.
//!
//! Each thread fills and sorts its own part. The keys change with every repetition, so that it never sorts what is sorted.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup};
use nearfar_core::random_numbers::mix;

/// Keys between two looks at the clock: 32 KiB.
const BATCH: usize = 4096;

struct Share<'a> {
    part: &'a mut [u64],
    first: usize,
    /// The last repetition, how many of its keys were written, and whether they were sorted then.
    number: usize,
    filled: usize,
    sorted: bool,
}

/// Key number `index` of repetition `number`; all keys of a repetition differ.
const fn key_of(index: usize, number: usize) -> u64 {
    mix(index as u64 ^ mix(number as u64))
}

/// Fills and sorts an array of `setting.data_bytes`, each thread its own part, `setting.repetitions` times. An operation is one key
/// sorted; its traffic is the least that any sort has: written once by filling, read and written once by sorting.
///
/// The time limit ends a repetition while keys are written, not while they are sorted: the library's sort cannot be stopped. Where
/// the limit passes meanwhile, the repetition is complete and only late, and the next one follows.
pub fn sort(setting: &Setting) -> Result<Report, Error> {
    let len = (setting.data_bytes / size_of::<u64>()).max(1);
    let setup = Setup::begin(setting);
    let mut array = Buffer::<u64>::zeroed(&setting.placement, len)?;
    array.announce(Pattern::Sequential);
    let shares = thread_team::map(setting.split(&mut array, 1), |(first, part)| {
        part.iter_mut().enumerate().for_each(|(offset, value)| *value = (first + offset) as u64);
        Share { part, first, number: 0, filled: 0, sorted: false }
    });

    let (ran, shares) = setup.run(shares, AfterLimit::End, fill_and_sort);

    let checked = ran.check(shares, |share| check(&share));
    Ok(ran.report("sort", "keys", len * size_of::<u64>(), checked))
}

fn fill_and_sort(share: &mut Share, number: usize, watch: &Watch) -> thread_team::Done {
    (share.number, share.filled, share.sorted) = (number, 0, false);
    for batch in share.part.chunks_mut(BATCH) {
        for (offset, key) in batch.iter_mut().enumerate() {
            *key = key_of(share.first + share.filled + offset, number);
        }
        share.filled += batch.len();
        if watch.is_over() {
            return ((share.filled * size_of::<u64>()) as u64, 0);
        }
    }
    share.part.sort_unstable();
    share.sorted = true;
    ((3 * share.filled * size_of::<u64>()) as u64, share.filled as u64)
}

/// (errors, digest) of one share. The digest does not tell places: those follow from the order, which is checked.
fn check(share: &Share) -> Checked {
    // What a repetition that was cut off has not overwritten is still in the order of the one before.
    let (unsorted, sorted) = share.part.split_at(if share.sorted { 0 } else { share.filled });
    let places = unsorted.iter().enumerate();
    let misplaced = places.filter(|&(offset, &key)| key != key_of(share.first + offset, share.number)).count();
    let descents = sorted.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let digest = share.part.iter().fold(0u64, |sum, &key| sum.wrapping_add(mix(key)));
    let mut wrong = (misplaced + descents) as u64;
    if share.sorted {
        let indices = share.first..share.first + share.part.len();
        let expected = indices.fold(0u64, |sum, index| sum.wrapping_add(mix(key_of(index, share.number))));
        wrong += u64::from(digest != expected);
    }
    (wrong, digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verified;
    use std::time::Duration;

    #[test]
    fn a_time_limit_ends_the_filling_and_is_verified_all_the_same() {
        let report = sort(&Setting { limit: Some(Duration::ZERO), ..Setting::new(1 << 20, 2, 2) }).expect("sort");
        assert_eq!((report.repetitions.len(), report.repetitions[0].operations), (1, 0));
        assert!(!report.repetitions[0].complete);
        assert_eq!(report.verified, Verified::Right);
    }

    #[test]
    fn a_wrong_byte_is_told() {
        let mut memory = vec![0u64; 10_000];
        let mut share = Share { part: &mut memory, first: 7, number: 0, filled: 0, sorted: false };
        thread_team::run(&Setting::new(0, 1, 2), vec![&mut share], AfterLimit::End, |share, number, watch| {
            fill_and_sort(share, number, watch)
        });
        assert_eq!(check(&share).0, 0);
        share.part.swap(10, 11);
        assert_eq!(check(&share).0, 1, "order");
        share.part.swap(10, 11);
        share.part[5000] = share.part[5001];
        assert_eq!(check(&share).0, 1, "a key lost, another there twice");
    }
}

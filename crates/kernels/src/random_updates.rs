//! Read-modify-write of 8 bytes at random positions: the access pattern that no prefetch helps and every paging system suffers from.
//!
//! Each thread updates its own part of the table, so that plain loads and stores give the same result every time. Invariant: an
//! update adds r at position i, and the sum of r * weight(i) is kept, so the whole table can be verified after any number of updates.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Setup, digest, weight};
use nearfar_core::random_numbers::{Random, below, mix};

/// Updates between two looks at the clock.
const BATCH: u64 = 64;

struct Share<'a> {
    table: &'a mut [u64],
    first: usize,
    rng: Random,
    expected: u64,
}

/// Runs `setting.repetitions` batches of `updates` updates (all threads together), each ended early by the time limit. An operation
/// is one update; its traffic is 16 bytes, 8 read and 8 written.
pub fn random_updates(setting: &Setting, updates: u64) -> Result<Report, Error> {
    let len = (setting.data_bytes / size_of::<u64>()).max(setting.threads);
    let setup = Setup::begin(setting);
    let mut table = Buffer::<u64>::zeroed(&setting.placement, len)?;
    let sums = thread_team::map(setting.split(&mut table, 1), |(first, part)| {
        for (offset, value) in part.iter_mut().enumerate() {
            *value = mix((first + offset) as u64);
        }
        digest(first, part.iter().copied())
    });

    let per_thread = updates.div_ceil(setting.threads.max(1) as u64);
    table.announce(Pattern::Random);
    let parts = setting.split(&mut table, 1).into_iter().zip(sums).enumerate();
    let shares = parts.map(|(seed, ((first, table), expected))| {
        let rng = Random::new(seed as u64);
        Share { table, first, rng, expected }
    });
    let (ran, shares) = setup.run(shares.collect(), AfterLimit::Continue, |share, _, watch| update(share, per_thread, watch));
    let expected: Vec<u64> = shares.into_iter().map(|share| share.expected).collect();

    table.announce(Pattern::Sequential);
    let shares = setting.split(&mut table, 1).into_iter().zip(expected);
    let checked = ran.check(shares.collect(), |((first, part), expected)| {
        let digest = digest(first, part.iter().copied());
        (u64::from(digest != expected), digest)
    });
    Ok(ran.report("random", "updates", len * size_of::<u64>(), checked))
}

fn update(share: &mut Share, updates: u64, watch: &Watch) -> thread_team::Done {
    let mut done = 0;
    let len = share.table.len();
    while done < updates && len > 0 {
        let batch = BATCH.min(updates - done);
        for _ in 0..batch {
            let random = share.rng.next();
            let offset = below(random, len);
            share.table[offset] = share.table[offset].wrapping_add(random);
            share.expected = share.expected.wrapping_add(random.wrapping_mul(weight(share.first + offset)));
        }
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    (done * 2 * size_of::<u64>() as u64, done)
}

//! An allocation-heavy program: many live blocks of 16 bytes to 64 KiB, of which one after the other is freed and replaced.
//!
//! Every block is filled with a tag of its own, checked when it is freed. Does not use buffers: the allocator is what is measured.

use std::io;

use crate::buffer::Placement;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::{Random, below, mix};

/// Replacements between two looks at the clock.
const BATCH: u64 = 64;
/// Sizes are equally frequent per doubling, from 2 words on.
const DOUBLINGS: usize = 12;
/// Mean words of a block: that of 2 * 2^x with x spread evenly over whole numbers, times 1.5 on average within a doubling.
const MEAN_WORDS: usize = 2 * ((1 << DOUBLINGS) - 1) / DOUBLINGS * 3 / 2;

struct Share {
    live: Vec<Vec<u64>>,
    rng: Random,
    wrong: u64,
}

fn block(random: u64) -> Vec<u64> {
    let doubling = below(random, DOUBLINGS);
    let least = 2usize << doubling;
    vec![random; least + below(mix(random), least)]
}

/// A block is right when its first, last and middle words are the same: its tag also gives its length.
fn is_right(block: &[u64], whole: bool) -> bool {
    let Some(&tag) = block.first() else { return false };
    let doubling = below(tag, DOUBLINGS);
    let least = 2usize << doubling;
    let len = least + below(mix(tag), least);
    let same = if whole { block.iter().all(|word| *word == tag) } else { block[len / 2 % block.len()] == tag };
    len == block.len() && same && block.last() == Some(&tag)
}

/// Runs `setting.repetitions` batches of `replacements` (all threads together), each ended early by the time limit, with about
/// `setting.data_bytes` alive. An operation is one replacement: a free and an allocation that is filled.
pub fn churn(setting: &Setting, replacements: u64) -> Result<Report, Error> {
    if setting.placement != Placement::Heap {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "heap blocks cannot be placed in a mapped file"));
    }
    let threads = setting.threads.max(1);
    let blocks = (setting.data_bytes / size_of::<u64>() / MEAN_WORDS / threads).max(1);
    let setup = Setup::begin(setting);
    let shares = thread_team::map((0..threads).collect(), |thread| {
        let mut rng = Random::new(thread as u64);
        Share { live: (0..blocks).map(|_| block(rng.next())).collect(), rng, wrong: 0 }
    });

    let per_thread = replacements.div_ceil(threads as u64);
    let (ran, mut shares) = setup.run(shares, AfterLimit::Continue, |share, _, watch| replace(share, per_thread, watch));

    let mut checksum = 0u64;
    if setting.verify {
        for share in &mut shares {
            share.wrong += share.live.iter().filter(|block| !is_right(block, true)).count() as u64;
            checksum = share.live.iter().flatten().fold(checksum, |sum, word| mix(sum).wrapping_add(*word));
        }
    }
    let wrong = shares.iter().map(|share| share.wrong).sum::<u64>();
    Ok(ran.report("churn", "replacements", setting.data_bytes, (wrong, checksum)))
}

fn replace(share: &mut Share, replacements: u64, watch: &Watch) -> thread_team::Done {
    let (mut bytes, mut done) = (0, 0);
    while done < replacements {
        let batch = BATCH.min(replacements - done);
        for _ in 0..batch {
            let victim = below(share.rng.next(), share.live.len());
            let slot = &mut share.live[victim];
            share.wrong += u64::from(!is_right(slot, false));
            // Freed before the new one is asked for, as most programs do.
            *slot = Vec::new();
            *slot = block(share.rng.next());
            bytes += size_of_val(&slot[..]) as u64;
        }
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    (bytes, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refused() {
        let placement = Placement::MappedFile("x".into());
        assert!(churn(&Setting { placement, ..Setting::new(8 << 20, 2, 2) }, 1).is_err());
    }

    #[test]
    fn blocks_are_as_large_as_said_and_errors_are_told() {
        let mut rng = Random::new(3);
        let blocks: Vec<_> = (0..20_000).map(|_| block(rng.next())).collect();
        let mean = blocks.iter().map(Vec::len).sum::<usize>() / blocks.len();
        assert!(mean.abs_diff(MEAN_WORDS) < MEAN_WORDS / 20, "{mean} {MEAN_WORDS}");
        assert!(blocks.iter().all(|block| is_right(block, true) && block.len() < 8192));
        let mut bad = blocks.into_iter().find(|block| block.len() > 100).expect("some are large");
        bad[50] ^= 1;
        assert!(!is_right(&bad, true));
        assert!(!is_right(&bad[1..], false));
    }
}

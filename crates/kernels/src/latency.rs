//! Touches of single pages at random, each timed by itself: what one fault costs the thread that waits for it.
//!
//! One thread, so that nobody else's fault is waited for. Does not tell what a touch met (a page in place, one without I/O, one from
//! the disk): a program cannot see that; who runs it under a pager has the pager's counters.

use std::time::Instant;

use crate::buffer::Buffer;
use crate::histogram::Histogram;
use crate::mapped_file::Pattern;
use crate::permutation::Permutation;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::mix;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Numbers in a page.
const WORDS: usize = PAGE / size_of::<u64>();
/// Touches between two looks at the time limit.
const BATCH: u64 = 16;

/// Which pages are touched.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Bytes of the pages that are used; the rest of the data is allocated and never touched.
    pub working_bytes: usize,
    /// Bytes from one of them to the next.
    pub stride: usize,
}

struct Toucher {
    order: Permutation,
    pages: usize,
    next: usize,
    times: Histogram,
    wrong: u64,
    sum: u64,
}

/// Touches `touches` pages in each of `setting.repetitions` rounds, in a random order that comes to every page before it comes to one
/// again. An operation is one touch, which reads 8 bytes.
pub fn latency(setting: &Setting, which: Pages, touches: u64) -> Result<Report, Error> {
    let step = (which.stride / PAGE).max(1) * WORDS;
    let len = (setting.data_bytes / size_of::<u64>()).max(WORDS);
    let pages = (which.working_bytes / PAGE).clamp(1, len.div_ceil(step));
    let setup = Setup::begin(setting);
    let mut memory = Buffer::<u64>::zeroed(&setting.placement, len)?;
    memory.announce(Pattern::Random);
    for (number, words) in memory.chunks_mut(step).take(pages).enumerate() {
        words.iter_mut().take(WORDS).for_each(|word| *word = mix(number as u64));
    }

    let order = Permutation::new(pages, 3);
    let toucher = Toucher { order, pages, next: 0, times: Histogram::default(), wrong: 0, sum: 0 };
    let memory = &*memory;
    let (ran, touchers) =
        setup.run(vec![toucher], AfterLimit::Continue, |toucher, _, watch| touch(toucher, memory, step, touches, watch));

    let mut wrong: u64 = touchers.iter().map(|toucher| toucher.wrong).sum();
    if setting.verify {
        let used = memory.chunks(step).take(pages).enumerate();
        wrong += used
            .flat_map(|(number, words)| words.iter().take(WORDS).filter(move |word| **word != mix(number as u64)))
            .count() as u64;
    }
    let checksum = touchers.iter().fold(0, |sum, toucher| toucher.sum.wrapping_add(sum));
    let latencies = touchers.first().map(|toucher| toucher.times.bins()).unwrap_or_default();
    Ok(Report { threads: 1, latencies, ..ran.report("latency", "touches", len * size_of::<u64>(), (wrong, checksum)) })
}

fn touch(toucher: &mut Toucher, memory: &[u64], step: usize, touches: u64, watch: &Watch) -> thread_team::Done {
    let mut done = 0;
    while done < touches {
        for _ in 0..BATCH.min(touches - done) {
            let page = toucher.order.apply(toucher.next);
            toucher.next = if toucher.next + 1 == toucher.pages { 0 } else { toucher.next + 1 };
            // Another word of the page each time, or all would fall into few cache sets.
            let index = page * step + mix(page as u64) as usize % WORDS;
            let start = Instant::now();
            let value = std::hint::black_box(memory.get(index).copied());
            toucher.times.add(start.elapsed().as_nanos() as u64);
            toucher.wrong += u64::from(value.is_some_and(|value| value != mix(page as u64)));
            toucher.sum = mix(toucher.sum).wrapping_add(value.unwrap_or(0));
            done += 1;
        }
        if watch.is_over() {
            break;
        }
    }
    (done * size_of::<u64>() as u64, done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verified;

    #[test]
    fn every_touch_is_timed_and_checked() {
        let setting = Setting::new(4 << 20, 1, 2);
        for which in [Pages { working_bytes: 4 << 20, stride: PAGE }, Pages { working_bytes: 1 << 20, stride: 16 * PAGE }] {
            let report = latency(&setting, which, 1000).expect("latency");
            assert_eq!(report.verified, Verified::Right);
            assert_eq!(report.latencies.iter().map(|(_, count)| count).sum::<u64>(), 2000);
        }
    }

    #[test]
    fn the_last_page_may_be_a_part() {
        let setting = Setting::new(10_000, 1, 1);
        let report = latency(&setting, Pages { working_bytes: 1 << 30, stride: PAGE }, 100).expect("latency");
        assert_eq!(report.verified, Verified::Right);
    }
}

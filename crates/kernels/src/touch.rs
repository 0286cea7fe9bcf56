//! Allocate, write every byte once, free: what fresh memory costs. Each repetition takes new memory.
//!
//! Does not read the data back.

use std::time::Instant;

use crate::buffer::Buffer;
use crate::report::{Repetition, Report, Verified};
use crate::thread_team::{self, Error, Setting};

/// Bytes of a page, the operation counted.
const PAGE: usize = 4096;

/// Runs `setting.repetitions` rounds of allocate, fill, free over `setting.data_bytes`. An operation is one page written.
pub fn touch(setting: &Setting) -> Result<Report, Error> {
    let len = (setting.data_bytes / size_of::<u64>()).max(1);
    let mut repetitions = Vec::with_capacity(setting.repetitions);
    for number in 0..setting.repetitions {
        let start = Instant::now();
        let mut memory = Buffer::<u64>::zeroed(&setting.placement, len)?;
        thread_team::map(setting.split(&mut memory, 1), |(_, share)| share.fill(number as u64 + 1));
        // Or the compiler may drop writes that nobody reads.
        std::hint::black_box(&*memory);
        drop(memory);
        let bytes = (len * size_of::<u64>()) as u64;
        let seconds = start.elapsed().as_secs_f64();
        repetitions.push(Repetition { seconds, bytes, operations: bytes.div_ceil(PAGE as u64), complete: true });
        if setting.limit.is_some_and(|limit| limit.as_secs_f64() <= seconds) {
            break;
        }
    }
    Ok(Report {
        workload: "touch",
        operation: "pages",
        placement: setting.placement.name(),
        data_bytes: len * size_of::<u64>(),
        threads: setting.threads,
        setup_seconds: 0.0,
        repetitions,
        verify_seconds: 0.0,
        verified: Verified::Skipped,
        checksum: 0,
        latencies: Vec::new(),
        resident_peak_bytes: 0,
        flop_per_operation: 0.0,
        parts: Vec::new(),
    })
}

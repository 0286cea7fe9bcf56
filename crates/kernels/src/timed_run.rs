//! One run of a workload: it is set up, runs its timed repetitions, and its data is read back; then there is a report.
//!
//! Invariant: the seconds of these parts never mix. Does not know what a workload does.

use std::time::Instant;

use crate::report::{Repetition, Report, Verified};
use crate::thread_team::{self, AfterLimit, Done, Setting, Watch};
use nearfar_sys::usage::{UsageOf, used};

/// What reading data back gives: (values that are not as expected, digest).
pub type Checked = (u64, u64);

/// What the word at place `index` counts for in a digest.
pub const fn weight(index: usize) -> u64 {
    2 * index as u64 + 1
}

/// The digest of words of which the first is at place `first`: digests of parts add up to that of the whole.
pub fn digest(first: usize, words: impl Iterator<Item = u64>) -> u64 {
    words.zip(first..).fold(0, |sum, (word, index)| sum.wrapping_add(word.wrapping_mul(weight(index))))
}

/// A workload that allocates and initialises its data.
#[derive(Debug)]
pub struct Setup<'a> {
    setting: &'a Setting,
    start: Instant,
}

impl<'a> Setup<'a> {
    /// The setup begins now.
    pub fn begin(setting: &'a Setting) -> Self {
        Self { setting, start: Instant::now() }
    }

    /// The setup ends, and the repetitions run as by [`thread_team::run`].
    pub fn run<S: Send>(
        self,
        shares: Vec<S>,
        after_limit: AfterLimit,
        work: impl Fn(&mut S, usize, &Watch) -> Done + Sync,
    ) -> (TimedRun<'a>, Vec<S>) {
        let setup_seconds = self.start.elapsed().as_secs_f64();
        let (repetitions, shares) = thread_team::run(self.setting, shares, after_limit, work);
        (TimedRun { setting: self.setting, setup_seconds, repetitions, end: Instant::now() }, shares)
    }
}

/// A workload that has run, and whose data is read back now.
#[derive(Debug)]
pub struct TimedRun<'a> {
    setting: &'a Setting,
    setup_seconds: f64,
    repetitions: Vec<Repetition>,
    end: Instant,
}

impl TimedRun<'_> {
    /// The number of the last repetition.
    pub fn last(&self) -> usize {
        self.repetitions.len().saturating_sub(1)
    }

    /// Whether the last repetition ended by itself.
    pub fn finished(&self) -> bool {
        self.repetitions.last().is_some_and(|last| last.complete)
    }

    /// The sums of what `check` says of each share, one thread per share; nothing where data is not to be read back.
    pub fn check<S: Send>(&self, shares: Vec<S>, check: impl Fn(S) -> Checked + Sync) -> Checked {
        let shares = if self.setting.verify { shares } else { Vec::new() };
        let add = |(wrong, digest): Checked, (bad, sum): Checked| (wrong + bad, digest.wrapping_add(sum));
        thread_team::map(shares, check).into_iter().fold((0, 0), add)
    }

    /// The end. Errors that were met before data was read back count even where it was not to be.
    pub fn report(
        self,
        workload: &'static str,
        operation: &'static str,
        data_bytes: usize,
        (wrong, checksum): Checked,
    ) -> Report {
        Report {
            workload,
            operation,
            placement: self.setting.placement.name(),
            data_bytes,
            threads: self.setting.threads.max(1),
            setup_seconds: self.setup_seconds,
            repetitions: self.repetitions,
            verify_seconds: self.end.elapsed().as_secs_f64(),
            verified: Verified::of(self.setting.verify || wrong > 0, wrong),
            checksum,
            latencies: Vec::new(),
            resident_peak_bytes: used(UsageOf::Process).resident_peak,
            flop_per_operation: 0.0,
            parts: Vec::new(),
        }
    }
}

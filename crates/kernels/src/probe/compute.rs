//! Compute roofs: floating-point operations per second of loops that do nothing else, and the clock while they run.
//!
//! Method: every thread runs its chains for about a millisecond between spin barriers, then a chain of dependent integer additions for a
//! tenth of that on the same core, which gives the clock that the arithmetic left it at; so a roof can be held against clock times
//! width times ports of this very moment, not of a data sheet. The first runs, in which the clock settles, are dropped. Every number
//! of every chain is checked exactly after each run.

use super::arithmetic_loop::{Loop, MOST_ROUNDS, Sums};
use super::error::Error;
use super::flops;
use super::team::{self, Span};
use crate::spin_barrier::SpinBarrier;
use nearfar_core::node::{Arithmetic, Compute, Figure, Isa, Precision};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time of a run.
const RUN: Duration = Duration::from_millis(1);
/// Clocks over which the clock is measured after each run.
const CLOCKS: usize = 300_000;
/// How long the clock settles before the first run that counts.
const SETTLE: Duration = Duration::from_millis(4);
/// Timed runs, whatever the budget.
const LEAST: usize = 9;
/// More tell nothing new.
const MOST: usize = 200;

/// What to measure compute roofs with.
#[derive(Clone, Debug)]
pub struct ComputeSetting<'a> {
    /// One thread on each: one CPU of every core, or one CPU alone.
    pub cpus: &'a [u32],
    /// Which roofs; those that the processor does not have are left out. See [`roofs`].
    pub rows: &'a [(Precision, Isa, Arithmetic)],
    /// Wall time for all rows together.
    pub budget: Duration,
}

/// The roofs that this processor has, by precision, width and arithmetic.
pub fn roofs() -> Vec<(Precision, Isa, Arithmetic)> {
    let mut found = Vec::new();
    for precision in [Precision::F64, Precision::F32] {
        for isa in [Isa::Scalar, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon] {
            for arithmetic in [Arithmetic::Add, Arithmetic::MultiplyAdd, Arithmetic::Fma] {
                if flops::find(precision, isa, arithmetic).is_some() {
                    found.push((precision, isa, arithmetic));
                }
            }
        }
    }
    found
}

/// Measures the rows.
///
/// # Errors
/// CPUs could not be had; nothing was measured then.
pub fn compute(setting: &ComputeSetting) -> Result<Vec<Compute>, Error> {
    let found = setting.rows.iter().filter_map(|&(precision, isa, arithmetic)| {
        flops::find(precision, isa, arithmetic).map(|work| Row { precision, isa, arithmetic, work })
    });
    let rows: Vec<Row> = found.collect();
    let budget = setting.budget / rows.len().max(1) as u32;
    let threads = setting.cpus.len();
    let barrier = SpinBarrier::new(threads);
    let (rounds, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let logs = team::run(setting.cpus, vec![(); threads], |index, ()| {
        let mut sums = Sums([0; 64 * 32]);
        let one_row = |row: &Row| {
            let once = |rounds: usize, sums: &mut Sums| {
                barrier.wait();
                let start = Instant::now();
                let right = row.work.run_checked(row.precision, rounds, sums);
                (start, Instant::now(), right)
            };
            // All threads together, or the clock would be that of one core at work.
            let (start, end, _) = once(20_000, &mut sums);
            if index == 0 {
                let one = end.duration_since(start).as_secs_f64() / 20_000.0;
                rounds.store(((RUN.as_secs_f64() / one.max(1e-10)) as usize).clamp(1000, MOST_ROUNDS), Ordering::Relaxed);
                let left = budget.saturating_sub(SETTLE);
                runs.store(team::repetitions(left, RUN + RUN / 10, LEAST, MOST), Ordering::Relaxed);
            }
            barrier.wait();
            let (rounds, runs) = (rounds.load(Ordering::Relaxed), runs.load(Ordering::Relaxed));
            let mut log = Log { operations: row.work.operations(row.arithmetic, rounds), ..Log::default() };
            for _ in 0..SETTLE.as_nanos() / RUN.as_nanos() {
                log.wrong += usize::from(!once(rounds, &mut sums).2);
            }
            for _ in 0..runs {
                let (start, end, right) = once(rounds, &mut sums);
                log.spans.push((start, end));
                log.clocks.extend(flops::clock_hz(CLOCKS));
                log.wrong += usize::from(!right);
            }
            log
        };
        rows.iter().map(one_row).collect::<Vec<Log>>()
    })?;
    let row = |(number, row): (usize, &Row)| {
        let logs: Vec<&Log> = logs.iter().map(|logs| &logs[number]).collect();
        row.judge(&logs)
    };
    Ok(rows.iter().enumerate().map(row).collect())
}

struct Row {
    precision: Precision,
    isa: Isa,
    arithmetic: Arithmetic,
    work: Loop,
}

/// What one thread has to say of one row.
#[derive(Default)]
pub(super) struct Log {
    pub spans: Vec<Span>,
    pub clocks: Vec<f64>,
    /// Operations of a run.
    pub operations: f64,
    pub wrong: usize,
}

impl Row {
    fn judge(&self, logs: &[&Log]) -> Compute {
        figures(logs, Compute { precision: self.precision, isa: self.isa, arithmetic: self.arithmetic, ..Compute::default() })
    }
}

/// Fills in the figures of a row from what its threads say.
pub(super) fn figures(logs: &[&Log], mut row: Compute) -> Compute {
    let spans: Vec<Vec<Span>> = logs.iter().map(|log| log.spans.clone()).collect();
    let operations: f64 = logs.iter().map(|log| log.operations).sum();
    let rates: Vec<f64> = team::seconds(&spans).into_iter().map(|seconds| operations / seconds).collect();
    let wrong: usize = logs.iter().map(|log| log.wrong).sum();
    let clocks: Vec<f64> = logs.iter().flat_map(|log| log.clocks.iter().copied()).collect();
    row.threads = logs.len() as u32;
    row.rate = if wrong > 0 { Figure::invalid(format!("{wrong} runs gave wrong results")) } else { Figure::of(&rates) };
    row.clock_hz = (!clocks.is_empty()).then(|| Figure::of(&clocks));
    let clock = row.clock_hz.as_ref().map(|clock| clock.median).filter(|hz| *hz > 0.0);
    row.per_clock = clock.filter(|_| row.rate.is_valid()).map(|hz| row.rate.median / hz / logs.len() as f64);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roofs_are_measured_with_their_clock() {
        let cpus = team::own_cpus();
        let rows = roofs();
        let setting = ComputeSetting { cpus: &cpus, rows: &rows, budget: Duration::ZERO };
        let measured = compute(&setting).expect("measured");
        assert_eq!(measured.len(), rows.len());
        for row in &measured {
            assert!(row.rate.is_valid() && row.rate.runs == LEAST as u32, "{row:?}");
            assert_eq!(row.threads as usize, cpus.len());
            // No processor does more: 512 bits of f32, fused, on four ports.
            assert!(row.per_clock.is_none_or(|rate| rate > 0.01 && rate < 130.0), "{row:?}");
        }
        let absent = [(Precision::F64, Isa::Neon, Arithmetic::Gemm)];
        assert_eq!(compute(&ComputeSetting { rows: &absent, ..setting }), Ok(Vec::new()));
    }

    #[test]
    fn wrong_results_are_invalid() {
        let now = Instant::now();
        let span = (now, now + Duration::from_millis(1));
        let log = Log { spans: vec![span; 9], clocks: vec![2e9; 9], operations: 8e6, wrong: 1 };
        let row = figures(&[&log], Compute::default());
        assert!(!row.rate.is_valid() && row.per_clock.is_none());
        let log = Log { wrong: 0, ..log };
        let row = figures(&[&log, &log], Compute::default());
        assert_eq!((row.rate.median, row.per_clock, row.threads), (1.6e10, Some(4.0), 2));
    }
}

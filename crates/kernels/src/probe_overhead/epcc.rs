//! The timing protocol: how often, how long, and what becomes of the samples. Knows nothing of threads.
//!
//! After EPCC OpenMP microbenchmarks v4 (delay 0.1 us, repetitions doubled until a test takes long enough for the clock, 20 outer
//! repetitions, the first one dropped).

use nearfar_core::node::{Figure, NOISY_SPREAD, Validity, median_with_interval};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Length of the delay inside of a construct.
const DELAY: Duration = Duration::from_nanos(100);
/// More constructs in one test are not needed: at less than a nanosecond each there is nothing to measure.
const MOST_REPETITIONS: u64 = 1 << 22;
/// A test that takes long enough may have been disturbed: it must do so this often before the number of repetitions is settled.
const STRIKES: u32 = 3;
/// Samples without which there is no interval of a median.
const FEWEST: usize = 6;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Shortest time of one test.
    pub test: Duration,
    /// Outer repetitions, of which the first is dropped.
    pub outer: usize,
    /// Longest time of one construct with one number of threads; afterwards it ends with the samples that there are.
    pub limit: Duration,
}

impl Effort {
    /// What EPCC takes.
    pub const FULL: Self = Self { test: Duration::from_millis(1), outer: 20, limit: Duration::from_millis(400) };
    /// For a first impression.
    pub const QUICK: Self = Self { test: Duration::from_micros(300), outer: 9, limit: Duration::from_millis(100) };
}

/// Nanoseconds of overhead per construct, one for each outer repetition.
pub type Samples = Vec<f64>;

/// Waits for about `spins` steps of a dependent chain of additions, without touching memory.
#[inline(never)]
pub fn delay(spins: u64) {
    let mut sum = 0.0f64;
    for _ in 0..spins {
        sum = black_box(sum + 1.0);
    }
    black_box(sum);
}

/// Spins of a delay of [`DELAY`], the fewest of several trials: a disturbed trial needs more time for the same spins.
pub fn spins_of_delay() -> u64 {
    const TRIAL: u64 = 20_000;
    let trial = |_| {
        let start = Instant::now();
        delay(TRIAL);
        start.elapsed().as_nanos() as u64
    };
    let fastest = (0..5).map(trial).min().unwrap_or(1).max(1);
    (TRIAL * DELAY.as_nanos() as u64 / fastest).max(1)
}

/// Overheads of a construct. `test(n)` does n constructs with a delay of `spins` in each, and returns how long they took.
pub fn overheads(effort: Effort, spins: u64, mut test: impl FnMut(u64) -> Duration) -> Samples {
    let start = Instant::now();
    let (mut repetitions, mut long_enough) = (1, 0);
    while repetitions < MOST_REPETITIONS && long_enough < STRIKES && start.elapsed() < effort.limit {
        if test(repetitions) < effort.test {
            repetitions *= 2;
        } else {
            long_enough += 1;
        }
    }
    let mut samples = Vec::with_capacity(effort.outer);
    for outer in 0..effort.outer.max(2) {
        let with = test(repetitions).as_nanos() as f64;
        let reference = reference(repetitions, spins).as_nanos() as f64;
        if outer > 0 {
            samples.push((with - reference) / repetitions as f64);
        }
        if start.elapsed() > effort.limit && samples.len() >= FEWEST {
            break;
        }
    }
    samples
}

fn reference(repetitions: u64, spins: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..repetitions {
        delay(spins);
    }
    start.elapsed()
}

/// The figure of overheads. Unlike a time, an overhead may come out as nothing or less: then it is below what can be measured
/// here, which is a result and no failure. The figure is noisy and holds 0 instead of what is negative; the reason says what came out.
pub fn figure(samples: &[f64]) -> Figure {
    if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
        return Figure::invalid("a run gave no number");
    }
    let (median, low, high) = median_with_interval(samples);
    let mut figure = Figure { median, low, high, runs: samples.len() as u32, ..Figure::default() };
    if low <= 0.0 {
        (figure.median, figure.low, figure.high) = (median.max(0.0), 0.0, high.max(0.0));
        figure.validity = Validity::Noisy;
        figure.why = format!("below what can be measured: {median:.1} ns, interval {low:.1} to {high:.1}");
        return figure;
    }
    let spread = (high - median).max(median - low) / median;
    if spread > NOISY_SPREAD {
        figure.validity = Validity::Noisy;
        figure.why = format!("runs differ by {:.0} %", spread * 100.0);
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_measure_is_no_failure() {
        let below = figure(&[-3.0, -1.0, 0.5, -2.0, 1.0, -0.5, 2.0]);
        assert_eq!((below.median, below.low, below.validity), (0.0, 0.0, Validity::Noisy));
        assert!(below.why.contains("-0.5 ns"), "{}", below.why);
        assert_eq!(figure(&[100.0, 101.0, 99.0]).validity, Validity::Valid);
        assert_eq!(figure(&[100.0, 151.0, 99.0]).validity, Validity::Noisy);
        assert!(!figure(&[]).is_valid() && !figure(&[f64::NAN]).is_valid());
    }

    #[test]
    fn repetitions_double_until_a_test_is_long_enough() {
        // A construct of 10 us that takes no real time: 128 of them are the first power of two above 1 ms.
        let mut asked = Vec::new();
        let samples = overheads(Effort::FULL, 1, |repetitions| {
            asked.push(repetitions);
            Duration::from_micros(10) * repetitions as u32
        });
        assert_eq!(asked[..8], [1, 2, 4, 8, 16, 32, 64, 128]);
        assert!(samples.len() >= FEWEST && asked[8..].iter().all(|&repetitions| repetitions == 128));
        assert!(samples.iter().all(|&sample| sample < 10_000.0));
    }

    #[test]
    fn delays_take_time() {
        assert!(spins_of_delay() < 1_000_000);
    }
}

//! Our own threads: what starting and joining them costs (std threads: not pinned, as programs use them), and barriers and
//! reductions among threads that stay, each pinned to a CPU.

use super::CONSTRUCTS;
use super::epcc::{self, Effort};
use crate::spin_barrier::{Padded, SpinBarrier};
use nearfar_core::node::{CpuList, Figure, Runtime, Threading};
use nearfar_sys::affinity;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Rounds of a check.
const CHECKED: u64 = 200;

/// Overheads for each number of threads in `counts`, on the first CPUs of `cpus`. Where threads cannot be started, rows are invalid.
pub fn own(counts: &[usize], cpus: &CpuList, effort: Effort) -> Vec<Threading> {
    let spins = epcc::spins_of_delay();
    let mut rows = Vec::new();
    for &threads in counts {
        let team = Team { threads, cpus: cpus.as_slice() };
        let broken = match team.is_broken() {
            Ok(broken) => broken.then(|| Figure::invalid("a barrier or reduction gave a wrong result")),
            Err(error) => Some(not_started(&error)),
        };
        for construct in CONSTRUCTS {
            let measured = || match construct {
                "fork-join" => figure(effort, spins, |repetitions| fork_join(threads, repetitions, spins)),
                "barrier" => figure(effort, spins, |repetitions| team.barriers(repetitions, spins)),
                _ => figure(effort, spins, |repetitions| team.reductions(repetitions, spins)),
            };
            let overhead = broken.clone().unwrap_or_else(measured);
            rows.push(Threading { runtime: Runtime::Own, construct: construct.into(), threads: threads as u32, overhead });
        }
    }
    rows
}

fn not_started(error: &io::Error) -> Figure {
    Figure::invalid(format!("a thread could not be started: {error}"))
}

/// The figure of a construct whose tests need threads.
fn figure(effort: Effort, spins: u64, mut test: impl FnMut(u64) -> io::Result<Duration>) -> Figure {
    let mut failed = None;
    let samples = epcc::overheads(effort, spins, |repetitions| {
        if failed.is_none() {
            match test(repetitions) {
                Ok(time) => return time,
                Err(error) => failed = Some(error),
            }
        }
        // Long enough for the protocol to end soon; these samples are thrown away.
        effort.limit
    });
    failed.map_or_else(|| epcc::figure(&samples), |error| not_started(&error))
}

/// The caller is one of the threads.
fn fork_join(threads: usize, repetitions: u64, spins: u64) -> io::Result<Duration> {
    let start = Instant::now();
    for _ in 0..repetitions {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                Builder::new().spawn_scoped(scope, || epcc::delay(spins))?;
            }
            epcc::delay(spins);
            io::Result::Ok(())
        })?;
    }
    Ok(start.elapsed())
}

struct Team<'a> {
    threads: usize,
    cpus: &'a [u32],
}

impl Team<'_> {
    /// Runs `work(barrier, index)` on threads that have all started, and returns how long the first one took; an error when one
    /// cannot be started.
    fn timed(&self, work: impl Fn(&SpinBarrier, usize) + Sync) -> io::Result<Duration> {
        let barrier = SpinBarrier::new(self.threads);
        // Closed until it is known whether all members exist: in a barrier, those that do would wait for the others for ever.
        let gate = RwLock::new(false);
        let member = |index: usize| {
            // Pinned as far as there are CPUs; a kernel that refuses leaves the choice to its scheduler.
            if let Some(&cpu) = self.cpus.get(index) {
                let _ = affinity::confine(&[cpu].into_iter().collect());
            }
            if !*gate.read().unwrap_or_else(PoisonError::into_inner) {
                return Duration::ZERO;
            }
            barrier.wait();
            let start = Instant::now();
            work(&barrier, index);
            start.elapsed()
        };
        std::thread::scope(|scope| {
            // An early return opens the gate without the word to go.
            let mut all_started = gate.write().unwrap_or_else(PoisonError::into_inner);
            let first = Builder::new().spawn_scoped(scope, || member(0))?;
            for index in 1..self.threads {
                let member = &member;
                Builder::new().spawn_scoped(scope, move || member(index))?;
            }
            *all_started = true;
            drop(all_started);
            Ok(first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn barriers(&self, repetitions: u64, spins: u64) -> io::Result<Duration> {
        self.timed(|barrier, _| {
            for _ in 0..repetitions {
                epcc::delay(spins);
                barrier.wait();
            }
        })
    }

    /// All threads add to one number, and all know the sum afterwards.
    fn reductions(&self, repetitions: u64, spins: u64) -> io::Result<Duration> {
        let sums = Sums::default();
        self.timed(|barrier, index| {
            for round in 0..repetitions {
                epcc::delay(spins);
                std::hint::black_box(sums.reduce(barrier, index, round, 1));
            }
        })
    }

    /// True when a thread leaves a barrier that another has not reached, or a sum is wrong.
    fn is_broken(&self) -> io::Result<bool> {
        let (arrived, broken, sums) = (AtomicU64::new(0), AtomicBool::new(false), Sums::default());
        let threads = self.threads as u64;
        self.timed(|barrier, index| {
            for round in 0..CHECKED {
                arrived.fetch_add(1, Ordering::Relaxed);
                barrier.wait();
                let seen = arrived.load(Ordering::Relaxed);
                let all_are_here = (round + 1) * threads <= seen && seen < (round + 2) * threads;
                let sum = sums.reduce(barrier, index, round, index as u64 + round);
                let sum_is_right = sum == threads * (threads - 1) / 2 + threads * round;
                if !(all_are_here && sum_is_right) {
                    broken.store(true, Ordering::Relaxed);
                }
            }
        })?;
        Ok(broken.into_inner())
    }
}

/// Three sums that take turns: while one is read, the next is added to, and the one after that is set to 0.
#[derive(Default)]
struct Sums([Padded<AtomicU64>; 3]);

impl Sums {
    fn reduce(&self, barrier: &SpinBarrier, index: usize, round: u64, value: u64) -> u64 {
        let of = |round: u64| &self.0[(round % 3) as usize].0;
        of(round).fetch_add(value, Ordering::Relaxed);
        // All have read the sum of the round before the last when they arrive here, and none adds to it before the next barrier.
        if index == 0 {
            of(round + 1).store(0, Ordering::Relaxed);
        }
        barrier.wait();
        of(round).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Effort = Effort { test: Duration::from_micros(50), outer: 7, limit: Duration::from_millis(30) };

    #[test]
    fn barriers_and_sums_are_right_with_more_threads_than_cpus() {
        for threads in [1, 2, 5] {
            assert!(!Team { threads, cpus: &[] }.is_broken().expect("threads"), "{threads}");
        }
    }

    #[test]
    fn a_thread_that_cannot_be_started_ends_the_row_and_nothing_else() {
        let mut tests = 0;
        let figure = figure(SHORT, 1, |_| {
            tests += 1;
            if tests < 3 { Ok(Duration::from_micros(60)) } else { Err(io::ErrorKind::WouldBlock.into()) }
        });
        assert!(tests == 3 && !figure.is_valid() && figure.why.contains("could not be started"), "{tests}: {figure:?}");
    }

    #[test]
    fn every_construct_gives_a_row() {
        let rows = own(&[1, 2], &affinity::of(0).expect("a mask"), SHORT);
        let named: Vec<_> = rows.iter().map(|row| (row.construct.as_str(), row.threads)).collect();
        assert_eq!(named[..4], [("fork-join", 1), ("barrier", 1), ("reduction", 1), ("fork-join", 2)]);
        assert!(rows.iter().all(|row| row.overhead.is_valid() && row.overhead.runs > 0), "{rows:?}");
        // Starting a thread takes microseconds wherever it runs.
        assert!(rows[3].overhead.median > 500.0, "{:?}", rows[3]);
    }
}

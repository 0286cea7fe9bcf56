//! Threads that run timed repetitions together, and the parameters common to all workloads.
//!
//! Invariant: no thread starts a repetition before all have ended the one before, and a time limit that any thread meets ends the
//! repetition for all. Does not pin threads: programs under nearfar rarely do.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::buffer::Placement;
use crate::report::Repetition;

/// What every workload is told.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Bytes of data, all arrays together.
    pub data_bytes: usize,
    /// Where the data lives.
    pub placement: Placement,
    /// Threads, at least 1.
    pub threads: usize,
    /// Timed repetitions.
    pub repetitions: usize,
    /// Longest wall time of one repetition; it ends early at this age.
    pub limit: Option<Duration>,
    /// Whether to read the data back and check it.
    pub verify: bool,
}

impl Setting {
    /// Of data on the heap that is read back, without a time limit.
    pub const fn new(data_bytes: usize, threads: usize, repetitions: usize) -> Self {
        Self { data_bytes, placement: Placement::Heap, threads, repetitions, limit: None, verify: true }
    }

    /// Each thread's contiguous part of `items`, cut at multiples of `unit` items, with the index of its first item.
    pub fn split<'a, T>(&self, mut items: &'a mut [T], unit: usize) -> Vec<(usize, &'a mut [T])> {
        let threads = self.threads.max(1);
        let per_thread = items.len().div_ceil(unit).div_ceil(threads) * unit;
        let mut parts = Vec::with_capacity(threads);
        let mut first = 0;
        for _ in 0..threads {
            let (own, rest) = items.split_at_mut(per_thread.min(items.len()));
            let next = first + own.len();
            parts.push((first, own));
            (first, items) = (next, rest);
        }
        parts
    }
}

/// Why a workload did not run.
pub type Error = io::Error;

/// What the end of a repetition by the time limit means for those that were to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLimit {
    /// The workload is timed by work: no further repetition.
    End,
    /// The workload is timed by the clock: the next repetition follows.
    Continue,
}

/// Tells a thread when its repetition is over time.
#[derive(Debug)]
pub struct Watch<'a> {
    end: Option<Instant>,
    number: usize,
    /// One more than the number of the last repetition that was over time: it only grows, so that it needs no reset, which would
    /// race with threads still in the old repetition.
    stopped: &'a AtomicUsize,
}

impl Watch<'_> {
    /// True when the time limit has passed, for this thread or another. Costs a clock reading (~25 ns): ask per batch.
    pub fn is_over(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) > self.number {
            return true;
        }
        let over = self.end.is_some_and(|end| Instant::now() >= end);
        if over {
            self.stopped.fetch_max(self.number + 1, Ordering::Relaxed);
        }
        over
    }
}

/// Work done by one thread in one repetition: (bytes of traffic, operations).
pub type Done = (u64, u64);

/// Runs `work(own share, number of the repetition, watch)` on one thread per element of `shares`, for each repetition; returns the
/// repetitions and the shares' final states in order.
pub fn run<S: Send>(
    setting: &Setting,
    shares: Vec<S>,
    after_limit: AfterLimit,
    work: impl Fn(&mut S, usize, &Watch) -> Done + Sync,
) -> (Vec<Repetition>, Vec<S>) {
    let (barrier, stopped) = (Barrier::new(shares.len()), AtomicUsize::new(0));
    let results = map(shares, |mut share| {
        let log = repeat(setting, &barrier, &stopped, after_limit, &mut |number, watch| work(&mut share, number, watch));
        (log, share)
    });
    let (logs, shares): (Vec<_>, _) = results.into_iter().unzip();
    (together(&logs), shares)
}

/// Runs `work` once on one thread per share, and returns the results in order.
pub fn map<S: Send, R: Send>(shares: Vec<S>, work: impl Fn(S) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = shares.iter().map(|_| None).collect();
    let work = &work;
    let mut members: Vec<Member<'_>> = Vec::with_capacity(shares.len());
    for (share, result) in shares.into_iter().zip(&mut results) {
        members.push(Box::new(move || *result = Some(work(share))));
    }
    at_once(members);
    results.into_iter().flatten().collect()
}

/// What one thread does.
type Member<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Seconds of a repetition as one thread saw it, what it did, and whether there was time for all of it.
type Logged = (f64, Done, bool);

// These are not generic: a hundred kernels would each have their own copy to be compiled.

fn at_once(members: Vec<Member<'_>>) {
    std::thread::scope(|scope| {
        let handles: Vec<_> = members.into_iter().map(|member| scope.spawn(member)).collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

/// All repetitions of one thread.
fn repeat(
    setting: &Setting,
    barrier: &Barrier,
    stopped: &AtomicUsize,
    after_limit: AfterLimit,
    work: &mut dyn FnMut(usize, &Watch) -> Done,
) -> Vec<Logged> {
    let mut log = Vec::with_capacity(setting.repetitions);
    for number in 0..setting.repetitions {
        barrier.wait();
        let start = Instant::now();
        let watch = Watch { end: setting.limit.map(|limit| start + limit), number, stopped };
        let done = work(number, &watch);
        barrier.wait();
        let seconds = start.elapsed().as_secs_f64();
        // Nobody works between this barrier and the next, so all threads read the same value here.
        let ended = stopped.load(Ordering::Relaxed) > number;
        log.push((seconds, done, !ended));
        if ended && after_limit == AfterLimit::End {
            break;
        }
    }
    log
}

/// Repetitions of all threads.
fn together(logs: &[Vec<Logged>]) -> Vec<Repetition> {
    let count = logs.iter().map(Vec::len).min().unwrap_or(0);
    let nothing = Repetition { seconds: 0.0, bytes: 0, operations: 0, complete: true };
    let add = |sum: Repetition, (seconds, (bytes, operations), complete): Logged| Repetition {
        seconds: sum.seconds.max(seconds),
        bytes: sum.bytes + bytes,
        operations: sum.operations + operations,
        complete: sum.complete && complete,
    };
    (0..count).map(|number| logs.iter().map(|log| log[number]).fold(nothing, add)).collect()
}

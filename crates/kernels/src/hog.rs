//! Takes memory bandwidth from others until it is told to stop, or, as a control, only processor time.
//!
//! One thread on each CPU that the process may use. The control does the same with registers alone, so that what sharing a core, a
//! clock or a hypervisor costs is in both, and the difference is the memory's.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use nearfar_sys::affinity;
use serde::{Deserialize, Serialize};

use crate::compute;

/// What a hog takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HogResource {
    /// Memory bandwidth: triad over arrays larger than the caches.
    Memory,
    /// Processor time alone.
    Processor,
}

/// What a hog has taken.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct HogUsage {
    /// Threads: fewer than CPUs where no more could be started. With none of them the rest is 0 as well.
    pub threads: usize,
    /// Seconds from the moment when all threads were at work.
    pub seconds: f64,
    /// Bytes that it read and wrote in them, as the program counts (no write-allocate); 0 for processor time alone.
    pub bytes: u64,
}

/// Elements between two looks at the flag.
const BATCH: usize = 4096;

/// Works on all allowed CPUs until `stop` returns. `ready` is called when all threads are at work (the arrays of memory hogs have been
/// swept once); `bytes`: of all arrays together. Neither `ready` nor `stop` is called when no thread
/// can be started.
pub fn hog(takes: HogResource, bytes: usize, ready: impl FnOnce() + Send, stop: impl FnOnce()) -> HogUsage {
    let cpus = affinity::of(0).unwrap_or_default();
    let threads = cpus.len().max(1);
    let (end, at_work, moved) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicU64::new(0));
    let member = |index: usize| {
        // A kernel that refuses leaves the choice to its scheduler.
        if let Some(&cpu) = cpus.as_slice().get(index) {
            let _ = affinity::confine(&[cpu].into_iter().collect());
        }
        match takes {
            HogResource::Memory => sweep(bytes / threads, &end, &at_work, &moved),
            HogResource::Processor => spin(&end, &at_work),
        }
    };
    std::thread::scope(|scope| {
        // A limit on threads is no reason to hang or panic: those that there are take less.
        let start_one = |index: &usize| {
            let (member, index) = (&member, *index);
            std::thread::Builder::new().spawn_scoped(scope, move || member(index)).is_ok()
        };
        let threads = (0..threads).take_while(start_one).count();
        if threads == 0 {
            return HogUsage { threads, seconds: 0.0, bytes: 0 };
        }
        while at_work.load(Ordering::Acquire) < threads {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (start, before) = (Instant::now(), moved.load(Ordering::Relaxed));
        ready();
        stop();
        let (seconds, after) = (start.elapsed().as_secs_f64(), moved.load(Ordering::Relaxed));
        end.store(true, Ordering::Relaxed);
        HogUsage { threads, seconds, bytes: after - before }
    })
}

fn sweep(bytes: usize, end: &AtomicBool, at_work: &AtomicUsize, moved: &AtomicU64) {
    let len = (bytes / 3 / size_of::<f64>()).max(BATCH);
    let (mut a, b, c) = (vec![0.5f64; len], vec![1.5f64; len], vec![2.5f64; len]);
    let mut scale = 1.0;
    for round in 0.. {
        for ((a, b), c) in a.chunks_mut(BATCH).zip(b.chunks(BATCH)).zip(c.chunks(BATCH)) {
            for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                *a = b + scale * c;
            }
            moved.fetch_add((a.len() * 3 * size_of::<f64>()) as u64, Ordering::Relaxed);
            if end.load(Ordering::Relaxed) {
                std::hint::black_box(&a);
                return;
            }
        }
        if round == 0 {
            at_work.fetch_add(1, Ordering::Release);
        }
        scale = std::hint::black_box(if scale > 1e6 { 1.0 } else { scale + 1.0 });
    }
}

fn spin(end: &AtomicBool, at_work: &AtomicUsize) {
    let mut chains = [1; 8];
    at_work.fetch_add(1, Ordering::Release);
    while !end.load(Ordering::Relaxed) {
        compute::advance(&mut chains, 1024);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn memory_hogs_move_bytes_and_the_control_none() {
        let pause = || std::thread::sleep(Duration::from_millis(20));
        let mut was_ready = false;
        let taken = hog(HogResource::Memory, 3 << 20, || was_ready = true, pause);
        assert!(was_ready && taken.bytes > 0 && taken.seconds >= 0.02 && taken.threads > 0, "{taken:?}");
        assert_eq!(hog(HogResource::Processor, 3 << 20, || {}, pause).bytes, 0);
    }
}

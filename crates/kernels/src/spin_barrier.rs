//! A barrier whose threads wait by spinning: the fastest there is while each has a CPU of its own.

use std::sync::atomic::{AtomicU32, Ordering};

/// Spins before the CPU is offered to others: two threads may share one CPU, or the hypervisor may have taken one away.
const SPINS: u32 = 4000;

/// A number on a cache line of its own (two, since lines are fetched in pairs).
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

/// A central barrier of a fixed number of threads.
#[derive(Debug)]
pub struct SpinBarrier {
    threads: u32,
    arrived: Padded<AtomicU32>,
    round: Padded<AtomicU32>,
}

impl SpinBarrier {
    /// For `threads` threads.
    pub fn new(threads: usize) -> Self {
        Self { threads: threads as u32, arrived: Padded::default(), round: Padded::default() }
    }

    /// Returns when all threads have called it as often as this one.
    pub fn wait(&self) {
        let round = self.round.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Nobody arrives for the next round before the round changes.
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0u32;
        while self.round.0.load(Ordering::Acquire) == round {
            spins += 1;
            if spins.is_multiple_of(SPINS) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

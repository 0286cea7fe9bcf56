//! Waiting on a word of memory, and a lock made of it. std's mutex would do, but it cannot be given up by a thread of another
//! process (the child of fork).

use crate::errno::call;
use std::sync::atomic::{AtomicU32, Ordering};

/// Waits until `word` is no longer `value`, somebody wakes it, or `limit_ns` passed. May return early.
pub fn wait(word: &AtomicU32, value: u32, limit_ns: u64) {
    let limit = libc::timespec { tv_sec: (limit_ns / 1_000_000_000) as i64, tv_nsec: (limit_ns % 1_000_000_000) as i64 };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let args = [word.as_ptr() as usize, operation as usize, value as usize, &raw const limit as usize, 0, 0];
    // SAFETY: reads the word and a local.
    let _ = unsafe { call(libc::SYS_futex, args) };
}

/// Wakes at most `count` threads that wait on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let args = [word.as_ptr() as usize, operation as usize, count as usize, 0, 0, 0];
    // SAFETY: does not touch the word.
    let _ = unsafe { call(libc::SYS_futex, args) };
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
/// Waiters look again after so long, whatever happens.
const LOOK_NS: u64 = 100_000_000;

/// A lock.
#[derive(Debug, Default)]
pub struct Lock {
    word: AtomicU32,
}

impl Lock {
    /// A free one.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(FREE) }
    }

    /// True when it was free, and is held now.
    pub fn try_acquire(&self) -> bool {
        self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits until it is free, and holds it.
    pub fn acquire(&self) {
        self.acquire_and_look(|| {});
    }

    /// As `acquire`; calls `look` after each wait, which takes a tenth of a second at the most.
    pub fn acquire_and_look(&self, look: impl Fn()) {
        if self.try_acquire() {
            return;
        }
        while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
            wait(&self.word, CONTENDED, LOOK_NS);
            look();
        }
    }

    /// Lets go of it.
    pub fn release(&self) {
        if self.word.swap(FREE, Ordering::Release) == CONTENDED {
            wake(&self.word, 1);
        }
    }

    /// In the child of a fork: free, whoever held it.
    pub fn reset(&self) {
        self.word.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    struct Shared(Lock, UnsafeCell<u64>);
    // SAFETY: the cell is reached under the lock.
    unsafe impl Sync for Shared {}

    #[test]
    fn one_at_a_time() {
        let shared = Shared(Lock::new(), UnsafeCell::new(0));
        let add = |shared: &Shared| {
            for _ in 0..10_000 {
                shared.0.acquire();
                // SAFETY: the lock is held.
                unsafe { *shared.1.get() += 1 };
                shared.0.release();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let shared = &shared;
                scope.spawn(move || add(shared));
            }
        });
        assert_eq!(shared.1.into_inner(), 40_000);
        assert!(shared.0.try_acquire() && !shared.0.try_acquire());
    }
}

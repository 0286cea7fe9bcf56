//! Bytes allocated, by kind. Threads count on cache lines of their own and carry over in steps, so that counting costs about a ns.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Cache lines to count on: one for each of the first threads, and the last for all others. A thread that ends leaves its own behind;
/// programs that start threads without end come down to the last one, which is right but slower.
const SHARDS: usize = 128;
const SHARED: usize = SHARDS - 1;
/// What a shard may hold before it is carried over.
const STEP: u64 = 64 << 10;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which shard the calling thread counts on.
#[inline(always)]
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            // Stays far from the end of numbers: threads ask once.
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed).min(SHARED));
        }
        shard.get()
    })
}

#[repr(align(64))]
#[derive(Debug)]
struct Shard<const N: usize>([AtomicI64; N]);

/// `N` counters.
pub struct Counters<const N: usize> {
    shards: [Shard<N>; SHARDS],
    total: Shard<N>,
}

impl<const N: usize> Counters<N> {
    /// All 0.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            shards: [const { Shard([const { AtomicI64::new(0) }; N]) }; SHARDS],
            total: Shard([const { AtomicI64::new(0) }; N]),
        }
    }

    /// The counters as the calling thread has them; to be asked for once where several are changed.
    #[inline(always)]
    pub fn mine(&self) -> Mine<'_, N> {
        let shard = shard();
        Mine { own: &self.shards[shard], total: &self.total, is_shared: shard == SHARED }
    }

    /// Adds to counter `index`. True when it was carried over, every 64 KiB or so: the moment to look at the whole.
    #[inline(always)]
    pub fn add(&self, index: usize, bytes: i64) -> bool {
        self.mine().add(index, bytes)
    }

    /// Sets counter `index` to 0, in a process of one thread.
    pub fn clear(&self, index: usize) {
        self.shards.iter().chain([&self.total]).for_each(|shard| shard.0[index].store(0, Ordering::Relaxed));
    }

    /// What counter `index` holds, exactly while nobody counts.
    pub fn exact(&self, index: usize) -> i64 {
        let own: i64 = self.shards.iter().map(|shard| shard.0[index].load(Ordering::Relaxed)).sum();
        self.total.0[index].load(Ordering::Relaxed) + own
    }
}

/// The counters as one thread has them.
pub struct Mine<'a, const N: usize> {
    own: &'a Shard<N>,
    total: &'a Shard<N>,
    is_shared: bool,
}

impl<const N: usize> Mine<'_, N> {
    /// See `Counters::add`.
    #[inline(always)]
    pub fn add(&self, index: usize, bytes: i64) -> bool {
        let own = &self.own.0[index];
        let now = own.load(Ordering::Relaxed) + bytes;
        if self.is_shared {
            own.fetch_add(bytes, Ordering::Relaxed);
        } else {
            // Nobody else writes here.
            own.store(now, Ordering::Relaxed);
        }
        now.unsigned_abs() >= STEP && self.carry(index)
    }

    #[cold]
    fn carry(&self, index: usize) -> bool {
        self.total.0[index].fetch_add(self.own.0[index].swap(0, Ordering::Relaxed), Ordering::Relaxed);
        true
    }

    /// What counter `index` holds, without what other threads have not carried over yet.
    #[inline(always)]
    pub fn about(&self, index: usize) -> i64 {
        self.total.0[index].load(Ordering::Relaxed) + self.own.0[index].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_lose_nothing() {
        static COUNTERS: Counters<2> = Counters::new();
        std::thread::scope(|scope| {
            for thread in 0..300 {
                scope.spawn(move || {
                    for round in 0..1000 {
                        COUNTERS.add(1, 1000 + round);
                        COUNTERS.add(1, -round);
                        COUNTERS.add(0, if thread % 2 == 0 { 77 } else { -77 });
                    }
                });
            }
        });
        assert_eq!((COUNTERS.exact(0), COUNTERS.exact(1)), (0, 300_000_000));
    }

    #[test]
    fn a_thread_sees_its_own_at_once() {
        static COUNTERS: Counters<1> = Counters::new();
        assert!(!COUNTERS.add(0, 10) && COUNTERS.mine().about(0) == 10);
        assert!(COUNTERS.add(0, 1 << 20) && COUNTERS.mine().about(0) == (1 << 20) + 10);
    }
}

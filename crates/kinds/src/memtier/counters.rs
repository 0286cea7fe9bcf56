//! Bytes allocated, by kind. Threads count on cache lines of their own and carry over in steps, so that counting costs about a ns.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Cache lines to count on: one for each of 127 threads at a time, and the last for all others, which is right but slower.
const SHARDS: usize = 128;
const SHARED: usize = SHARDS - 1;
/// What a shard may hold before it is carried over.
const STEP: u64 = 64 << 10;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which shards have a thread; the bit of the last is always set.
static TAKEN: [AtomicU64; SHARDS / 64] = [AtomicU64::new(0), AtomicU64::new(1 << 63)];

/// Which shard the calling thread counts on.
#[inline(always)]
fn shard() -> usize {
    let shard = SHARD.get();
    if shard == usize::MAX { take_shard() } else { shard }
}

#[cold]
#[inline(never)]
fn take_shard() -> usize {
    let free = TAKEN.iter().enumerate().find_map(|(word, taken)| {
        let lowest = |bits: u64| (bits != u64::MAX).then(|| bits | (bits + 1));
        let before = taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest).ok()?;
        Some(word * 64 + before.trailing_ones() as usize)
    });
    let shard = free.unwrap_or(SHARED);
    SHARD.set(shard);
    if shard != SHARED
        && let Some(key) = key()
    {
        // Of Rust's and C++'s own ways to be told of the end of a thread, all allocate.
        // SAFETY: a key that exists; any value but null has the destructor called.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
    }
    shard
}

/// The key whose destructor gives the shard of a thread back; `None` when there is none to be had.
fn key() -> Option<libc::pthread_key_t> {
    /// The key + 1.
    static KEY: AtomicU64 = AtomicU64::new(0);
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some((known - 1) as libc::pthread_key_t);
    }
    let mut key = 0;
    // SAFETY: writes a local; the destructor lives as long as the process.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, u64::from(key) + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(other) => {
            // SAFETY: made above, and nobody knows it.
            unsafe { libc::pthread_key_delete(key) };
            Some((other - 1) as libc::pthread_key_t)
        }
    }
}

/// Another thread may have the shard, with what is on it. A later destructor that counts takes one again, and this comes again.
unsafe extern "C" fn ended(_: *mut c_void) {
    let shard = SHARD.replace(usize::MAX);
    if let Some(taken) = TAKEN.get(shard / 64).filter(|_| shard < SHARED) {
        taken.fetch_and(!(1 << (shard % 64)), Ordering::Release);
    }
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
    pub fn mine(&self) -> ThreadCounters<'_, N> {
        let shard = shard();
        ThreadCounters { own: &self.shards[shard], total: &self.total, is_shared: shard == SHARED }
    }

    /// Adds to counter `index`. True when it was carried over, every 64 KiB or so: the moment to look at the whole.
    #[inline(always)]
    pub fn add(&self, index: usize, bytes: i64) -> bool {
        self.mine().add(index, bytes)
    }

    /// Sets counter `index` to 0, while no thread adds to it.
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
pub struct ThreadCounters<'a, const N: usize> {
    own: &'a Shard<N>,
    total: &'a Shard<N>,
    is_shared: bool,
}

impl<const N: usize> ThreadCounters<'_, N> {
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
    fn threads_that_end_leave_their_shards_to_others() {
        // Another test has 300 threads for a moment.
        let shards = (0..2000).map(|_| std::thread::spawn(shard).join().expect("no panic"));
        let own = shards.filter(|&shard| shard != SHARED).count();
        assert!(own > 1000, "{own} of 2000");
    }

    #[test]
    fn a_thread_sees_its_own_at_once() {
        static COUNTERS: Counters<1> = Counters::new();
        assert!(!COUNTERS.add(0, 10) && COUNTERS.mine().about(0) == 10);
        assert!(COUNTERS.add(0, 1 << 20) && COUNTERS.mine().about(0) == (1 << 20) + 10);
    }
}

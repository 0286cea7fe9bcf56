//! A bounded queue between two threads: one puts in, one takes out. Nothing is allocated and nobody waits, so that one side may be a
//! thread that others wait for.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Room for `N` values, a power of two. In memory of zeros it is empty.
#[repr(C)]
pub struct Ring<T: Copy, const N: usize> {
    /// Values put in so far; only the one that holds `putting` changes it.
    put: AtomicUsize,
    putting: AtomicBool,
    /// Values taken out so far; only the one that holds `taking` changes it.
    taken: AtomicUsize,
    taking: AtomicBool,
    places: [UnsafeCell<MaybeUninit<T>>; N],
}

// SAFETY: a place is written between `taken` and `put` by the one that puts in, and read by the one that takes out only after
// `put` has passed it (release, acquire), and the other way round. The two flags keep a second thread on the same side out.
unsafe impl<T: Copy + Send, const N: usize> Sync for Ring<T, N> {}

impl<T: Copy, const N: usize> Ring<T, N> {
    const MASK: usize = {
        assert!(N.is_power_of_two());
        N - 1
    };

    /// An empty one.
    pub const fn new() -> Self {
        Self {
            put: AtomicUsize::new(0),
            putting: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            taking: AtomicBool::new(false),
            places: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
        }
    }

    /// Puts `value` in; false when there is no room, or another thread is just putting something in.
    pub fn push(&self, value: T) -> bool {
        if self.putting.swap(true, Ordering::Acquire) {
            return false;
        }
        let put = self.put.load(Ordering::Relaxed);
        let fits = put.wrapping_sub(self.taken.load(Ordering::Acquire)) < N;
        if fits {
            // SAFETY: free, and ours alone until `put` says otherwise.
            unsafe { (*self.places[put & Self::MASK].get()).write(value) };
            self.put.store(put.wrapping_add(1), Ordering::Release);
        }
        self.putting.store(false, Ordering::Release);
        fits
    }

    /// Takes the oldest value out; `None` when there is none, or another thread is just taking it.
    pub fn pop(&self) -> Option<T> {
        if self.taking.swap(true, Ordering::Acquire) {
            return None;
        }
        let taken = self.taken.load(Ordering::Relaxed);
        let value = (taken != self.put.load(Ordering::Acquire)).then(|| {
            // SAFETY: written before `put` passed it, and not written again before `taken` does.
            let value = unsafe { (*self.places[taken & Self::MASK].get()).assume_init() };
            self.taken.store(taken.wrapping_add(1), Ordering::Release);
            value
        });
        self.taking.store(false, Ordering::Release);
        value
    }

    /// How many values are in.
    pub fn len(&self) -> usize {
        let taken = self.taken.load(Ordering::Acquire);
        self.put.load(Ordering::Acquire).wrapping_sub(taken).min(N)
    }

    /// True when nothing is in.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties it. In the child of a fork: no other thread is there, and one of the parent's may have been at it.
    pub fn reset(&self) {
        self.taken.store(0, Ordering::Relaxed);
        self.put.store(0, Ordering::Relaxed);
        self.putting.store(false, Ordering::Relaxed);
        self.taking.store(false, Ordering::Release);
    }
}

impl<T: Copy, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_empty() {
        let ring: Ring<u32, 4> = Ring::new();
        assert_eq!(ring.pop(), None);
        assert!((0..4).all(|value| ring.push(value)));
        assert!(!ring.push(4), "full");
        assert_eq!(ring.len(), 4);
        assert_eq!(ring.pop(), Some(0));
        assert!(ring.push(4));
        assert_eq!((0..5).map_while(|_| ring.pop()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        ring.push(9);
        ring.reset();
        assert!(ring.is_empty() && ring.pop().is_none());
    }

    #[test]
    fn what_goes_in_comes_out_in_order() {
        static RING: Ring<[u64; 3], 64> = Ring::new();
        const COUNT: u64 = 300_000;
        let taker = std::thread::spawn(|| {
            for want in 0..COUNT {
                let got = loop {
                    match RING.pop() {
                        Some(got) => break got,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(got, [want, want * 3, !want]);
            }
        });
        for value in 0..COUNT {
            while !RING.push([value, value * 3, !value]) {
                std::thread::yield_now();
            }
        }
        taker.join().unwrap();
        assert!(RING.is_empty());
    }

    #[test]
    fn two_on_a_side_lose_nothing() {
        static RING: Ring<u64, 16> = Ring::new();
        let makers = [0u64, 1].map(|first| {
            std::thread::spawn(move || {
                for value in (first..20_000).step_by(2) {
                    while !RING.push(value) {
                        std::thread::yield_now();
                    }
                }
            })
        });
        let mut sum = 0;
        let mut count = 0;
        while count < 20_000 {
            match RING.pop() {
                Some(value) => (sum, count) = (sum + value, count + 1),
                None => std::thread::yield_now(),
            }
        }
        makers.map(|maker| maker.join().unwrap());
        assert_eq!(sum, 19_999 * 20_000 / 2);
    }
}

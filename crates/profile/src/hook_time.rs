//! How long the hooks take: some are timed, at random, and stand for the others.
//!
//! Not one in so many: programs repeat themselves, and every 32nd hook of a loop of malloc and free is a free.

use nearfar_core::random_numbers::xorshift;
use nearfar_sys::{event, process};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// One hook in so many is timed, on average.
const TIMED: u64 = 32;
/// A hook takes no longer by itself: else it has waited for a CPU, or for room, which is counted apart.
const LONGEST_NS: u64 = 20_000;

static NS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Hooks of this thread that are not timed yet to come; random numbers, 0: none drawn yet.
    static NEXT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Time within all hooks.
pub fn ns() -> u64 {
    NS.load(Ordering::Relaxed)
}

/// In the child of a fork: none yet.
pub fn reset() {
    NS.store(0, Ordering::Relaxed);
}

/// Runs a hook, or a part of one.
#[inline]
pub fn timed<R>(act: impl FnOnce() -> R) -> R {
    if !NEXT.with(|next| is_next(next, || event::now_ns() ^ u64::from(process::tid()) << 40)) {
        return act();
    }
    let start = event::now_ns();
    let result = act();
    NS.fetch_add((event::now_ns() - start).min(LONGEST_NS) * TIMED, Ordering::Relaxed);
    result
}

/// Counts down, and then draws the next gap, 1 to 63. A thread begins within one.
#[inline]
fn is_next(next: &Cell<(u64, u64)>, seed: impl FnOnce() -> u64) -> bool {
    let (left, random) = next.get();
    if left > 0 {
        next.set((left - 1, random));
        return false;
    }
    let first = random == 0;
    let mut random = if first { seed() | 1 } else { random };
    let drawn = xorshift(&mut random);
    next.set(((drawn >> 32) % (2 * TIMED - 1), random));
    !first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_hook_has_its_share() {
        const PERIOD: usize = 64;
        const ROUNDS: usize = 20_000;
        let next = Cell::new((0, 0));
        let mut counts = [0u64; PERIOD];
        for hook in 0..PERIOD * ROUNDS {
            counts[hook % PERIOD] += u64::from(is_next(&next, || 12345));
        }
        let wanted = ROUNDS as u64 / TIMED;
        assert!(counts.iter().all(|count| count.abs_diff(wanted) < wanted / 4), "{wanted}: {counts:?}");
        let all: u64 = counts.iter().sum();
        assert!(all.abs_diff(wanted * PERIOD as u64) < all / 50, "{all}");
    }
}

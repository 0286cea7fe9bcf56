//! Which sizes are placed, as words that every allocation reads.

use nearfar_kinds::autohbw::SizeRange;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// No allocation is as large as this: nothing is placed.
const NOTHING: usize = usize::MAX;

static LEAST: AtomicUsize = AtomicUsize::new(NOTHING);
static MOST: AtomicUsize = AtomicUsize::new(NOTHING);
static WINDOW: OnceLock<SizeRange> = OnceLock::new();
/// Unless the program said otherwise, perhaps before we started.
static ENABLED: AtomicBool = AtomicBool::new(true);

/// True when an allocation of `size` bytes is to be placed.
#[inline(always)]
pub fn holds(size: usize) -> bool {
    size >= LEAST.load(Ordering::Relaxed) && size <= MOST.load(Ordering::Relaxed)
}

/// Places sizes of `window` from now on.
pub fn open(window: SizeRange) {
    let _ = WINDOW.set(window);
    set_enabled(ENABLED.load(Ordering::Relaxed));
}

/// The window, once there is one.
pub fn sizes() -> Option<SizeRange> {
    WINDOW.get().copied()
}

/// Places, or not. Threads that allocate meanwhile see either.
pub fn set_enabled(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
    let Some(window) = WINDOW.get() else { return };
    MOST.store(window.most, Ordering::Relaxed);
    LEAST.store(if enabled { window.least } else { NOTHING }, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_opens_and_closes() {
        assert!(!holds(1 << 20), "nothing is placed before the start");
        open(SizeRange { least: 100, most: 200 });
        assert!(holds(100) && holds(200) && !holds(99) && !holds(201));
        set_enabled(false);
        assert!(!holds(150));
        set_enabled(true);
        assert!(holds(150));
    }
}

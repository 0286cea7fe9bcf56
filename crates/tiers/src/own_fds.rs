//! Descriptors of ours that the program must not close: asked without a lock, by any thread, while the list changes.
//!
//! Invariant: a descriptor that is in the list before and after a change is in it throughout. Checked by loom (`make loom`).

use crate::sync::{AtomicI32, Ordering};

#[cfg(not(loom))]
const PLACES: usize = 64;
#[cfg(loom)]
const PLACES: usize = 3;

const NONE: i32 = -1;

/// The list.
pub struct OwnFds {
    places: [AtomicI32; PLACES],
}

impl Default for OwnFds {
    fn default() -> Self {
        Self { places: std::array::from_fn(|_| AtomicI32::new(NONE)) }
    }
}

impl OwnFds {
    /// True when `fd` is ours.
    pub fn contains(&self, fd: i32) -> bool {
        fd >= 0 && self.places.iter().any(|place| place.load(Ordering::Acquire) == fd)
    }

    /// Makes the list hold `fds`, of which the first matter most if there are too many. One caller at a time.
    pub fn set(&self, fds: &[i32]) {
        let fds = &fds[..fds.len().min(PLACES)];
        // What stays keeps its place: a list that shifts would lose one for a moment.
        for place in &self.places {
            if !fds.contains(&place.load(Ordering::Relaxed)) {
                place.store(NONE, Ordering::Release);
            }
        }
        for &fd in fds.iter().filter(|&&fd| !self.contains(fd)) {
            if let Some(place) = self.places.iter().find(|place| place.load(Ordering::Relaxed) == NONE) {
                place.store(fd, Ordering::Release);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_matter_most() {
        let own = OwnFds::default();
        own.set(&(0..100).collect::<Vec<_>>());
        assert!(own.contains(0) && own.contains(63) && !own.contains(64) && !own.contains(NONE));
        own.set(&[7, 200]);
        assert!(own.contains(7) && own.contains(200) && !own.contains(8));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn loom_what_stays_in_the_list_is_always_found() {
        loom::model(|| {
            let own = Arc::new(OwnFds::default());
            own.set(&[5, 6]);
            let other = own.clone();
            // One comes in between, one goes.
            let thread = thread::spawn(move || other.set(&[7, 6]));
            assert!(own.contains(6));
            thread.join().expect("no panic");
            assert!(own.contains(6) && own.contains(7) && !own.contains(5));
        });
    }
}

//! Atomics of the state machines that loom checks: those of `std`, or loom's own under `--cfg loom` (`make loom`).

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Lets others run, in a loop that waits for them.
pub fn pause() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// True. Under loom, false from the moment on at which the model wants the calling process dead: a step that asks must then
/// return at once, as if it had been killed.
#[inline(always)]
pub fn lives() -> bool {
    #[cfg(not(loom))]
    return true;
    #[cfg(loom)]
    death::lives()
}

/// When the calling thread of a model dies.
#[cfg(loom)]
pub mod death {
    use std::cell::Cell;

    loom::thread_local! {
        static STEPS: Cell<u32> = Cell::new(u32::MAX);
    }

    /// The thread lives for so many questions.
    pub fn after(steps: u32) {
        STEPS.with(|left| left.set(steps));
    }

    pub(super) fn lives() -> bool {
        STEPS.with(|left| match left.get() {
            u32::MAX => true,
            0 => false,
            steps => {
                left.set(steps - 1);
                true
            }
        })
    }
}

//! A lock that can be held over a fork: taken before and released on both sides, which std's guards do not allow.

use std::cell::{Cell, UnsafeCell};

thread_local! {
    /// This thread forks, and holds the locks of all heaps meanwhile.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread forks: from our first handler to our last, other handlers run that may allocate.
#[inline]
pub fn forks() -> bool {
    FORKS.get()
}

/// Says that this thread forks, and has taken all locks of this kind; or that it has released them.
pub fn set_forks(forks: bool) {
    FORKS.set(forks);
}

/// A lock without data.
pub struct Lock(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a pthread mutex is made to be shared.
unsafe impl Send for Lock {}
// SAFETY: as above.
unsafe impl Sync for Lock {}

impl Lock {
    /// A free lock.
    pub fn new() -> Self {
        Self(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)))
    }

    /// Waits for it and takes it.
    pub fn take(&self) {
        // SAFETY: an initialised mutex at a fixed address. A normal mutex does not fail.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// Releases it.
    ///
    /// # Safety
    /// This thread, or the one that forked, has taken it.
    pub unsafe fn release(&self) {
        // SAFETY: passed on to the caller.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }

    /// Runs `work` while the lock is held, which it is already where this thread forks. A panic ends the process, so no unwinding has
    /// to release it.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        if forks() {
            return work();
        }
        self.take();
        let result = work();
        // SAFETY: taken above.
        unsafe { self.release() };
        result
    }
}

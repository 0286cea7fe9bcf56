//! A lock that can be held over a fork: taken before and released on both sides, which std's guards do not allow.

use std::cell::{Cell, UnsafeCell};
use std::sync::OnceLock;

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

/// Held by the thread that makes something at its first use, which may need other first uses.
struct First(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made to be shared.
unsafe impl Sync for First {}

static FIRST: First = First(UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP));

/// What `cell` holds, made at the first call. No fork that our handlers know of falls into the making: a child would wait for a thread
/// that it does not have.
#[inline]
pub fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    cell.get().unwrap_or_else(|| once_slow(cell, make))
}

#[cold]
fn once_slow<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    // It is held already while this thread forks.
    let takes = !forks();
    if takes {
        take_first();
    }
    let made = cell.get_or_init(make);
    if takes {
        release_first();
    }
    made
}

/// Waits until nothing is being made for the first time, before a fork.
pub fn take_first() {
    // SAFETY: an initialised mutex at a fixed address.
    unsafe { libc::pthread_mutex_lock(FIRST.0.get()) };
}

/// In the parent, after `take_first`.
pub fn release_first() {
    // SAFETY: as above; this thread has taken it.
    unsafe { libc::pthread_mutex_unlock(FIRST.0.get()) };
}

/// In the child, whose thread has another number than the one that has taken it.
pub fn renew_first() {
    // SAFETY: the process has this thread only.
    unsafe { FIRST.0.get().write(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP) };
}

/// A lock without data. It stays where it is once it has been taken.
pub struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: nobody waits for a lock that can be moved, since who waits borrows it; glibc keeps no pointer to a normal mutex.
unsafe impl Send for Lock {}
// SAFETY: a pthread mutex is made to be shared.
unsafe impl Sync for Lock {}

impl Lock {
    /// A free lock.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
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

//! Who is inside nearfar: the lock, with signals blocked while it is held, and the mark on the thread that has it.

use nearfar_sys::signal::Blocked;
use nearfar_sys::{process, thread};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The lock, held. Signals stay blocked until it is dropped: a handler that touched paged memory would wait for the pager,
/// which would wait for the lock.
pub struct LockGuard<T: 'static> {
    // Dropped in this order: whose it is first, then the lock, the mark, the signals.
    holder: Noted,
    guard: MutexGuard<'static, T>,
    _mark: Mark,
    _signals: Blocked,
}

struct Mark;

impl Drop for Mark {
    fn drop(&mut self) {
        thread::come_out();
    }
}

/// Counts what is done under the lock, so that the watchdog can tell a long piece of work from many short ones.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Says that whoever holds the lock gets on.
pub fn note_turn() {
    TURNS.fetch_add(1, Ordering::Relaxed);
}

/// A number that changes as long as those who hold the lock get on.
pub fn turns() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// Other processes share our memory, and so our locks. One that is killed while it has one never opens it.
static SHARED: AtomicBool = AtomicBool::new(false);

/// From now on it is kept who has which lock, which costs a system call each time.
pub fn share() {
    SHARED.store(true, Ordering::Relaxed);
}

/// The number of the thread that has a lock, once our memory is shared (0: nobody, or not known).
#[derive(Debug, Default)]
pub struct Holder(AtomicU32);

impl Holder {
    /// Nobody.
    pub const fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// What `note` takes: this thread, or nobody while memory is not shared. To be asked before the lock is taken, since a process is
    /// killed where a system call ends.
    pub fn me() -> u32 {
        if SHARED.load(Ordering::Relaxed) { process::tid() } else { 0 }
    }

    /// Thread `who` has the lock from here on.
    pub fn note(&self, who: u32) {
        if who != 0 {
            self.0.store(who, Ordering::Release);
        }
    }

    /// Nobody any more.
    pub fn clear(&self) {
        if SHARED.load(Ordering::Relaxed) {
            self.0.store(0, Ordering::Release);
        }
    }

    /// The thread that has the lock and no longer exists.
    pub fn gone(&self) -> Option<u32> {
        let holder = self.0.load(Ordering::Acquire);
        // Asked again: it may have opened it just before its end.
        (holder != 0 && !process::exists(holder) && self.0.load(Ordering::Acquire) == holder).then_some(holder)
    }
}

/// What is protected, and who has it.
pub struct Lock<T> {
    mutex: Mutex<T>,
    holder: Holder,
}

impl<T> Lock<T> {
    /// Open.
    pub const fn new(what: T) -> Self {
        Self { mutex: Mutex::new(what), holder: Holder::none() }
    }

    /// The thread that has the lock and is gone.
    pub fn gone_holder(&self) -> Option<u32> {
        self.holder.gone()
    }
}

struct Noted(&'static Holder);

impl Noted {
    fn new(holder: &'static Holder, who: u32) -> Self {
        holder.note(who);
        Self(holder)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Takes the lock.
pub fn enter<T>(lock: &'static Lock<T>) -> LockGuard<T> {
    let signals = Blocked::all();
    thread::go_inside();
    let me = Holder::me();
    let guard = lock.mutex.lock().unwrap_or_else(PoisonError::into_inner);
    let holder = Noted::new(&lock.holder, me);
    note_turn();
    LockGuard { holder, guard, _mark: Mark, _signals: signals }
}

/// Takes the lock if nobody holds it.
pub fn try_enter<T>(lock: &'static Lock<T>) -> Option<LockGuard<T>> {
    let signals = Blocked::all();
    let me = Holder::me();
    let guard = match lock.mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let holder = Noted::new(&lock.holder, me);
    thread::go_inside();
    Some(LockGuard { holder, guard, _mark: Mark, _signals: signals })
}

/// A lock that is held while the process forks, so that the child has what it protects whole, and can open it.
pub struct HeldAcrossFork<T: 'static>(UnsafeCell<Option<LockGuard<T>>>);

// SAFETY: reached by `keep` and `give_back` alone, for which the thread has the lock. The guard stays with that thread.
unsafe impl<T: Send> Sync for HeldAcrossFork<T> {}

impl<T> HeldAcrossFork<T> {
    /// With no fork under way.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Before the fork.
    pub fn keep(&self, entered: LockGuard<T>) {
        // SAFETY: this thread holds the lock.
        unsafe { *self.0.get() = Some(entered) };
    }

    /// After the fork, in the parent and in the child. `None` if nothing was kept.
    ///
    /// # Safety
    /// By the thread that forked: it has the lock, or nobody has forked with it.
    pub unsafe fn give_back(&self) -> Option<LockGuard<T>> {
        // SAFETY: as the caller says.
        let entered = unsafe { (*self.0.get()).take() };
        // In a child it is another thread.
        entered.inspect(|entered| entered.holder.0.note(Holder::me()))
    }
}

impl<T> Default for HeldAcrossFork<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for LockGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for LockGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_is_gone_is_told() {
        let holder = Holder::none();
        std::thread::scope(|scope| {
            scope.spawn(|| holder.note(Holder::me()));
        });
        assert_eq!(holder.0.load(Ordering::Relaxed), 0, "not noted while memory is not shared");
        share();
        holder.note(Holder::me());
        assert_eq!((holder.0.load(Ordering::Relaxed), holder.gone()), (process::tid(), None), "this thread is here");
        std::thread::scope(|scope| {
            scope.spawn(|| holder.note(Holder::me()));
        });
        // A joined thread's number may stay for a moment.
        while holder.gone().is_none() {
            std::thread::yield_now();
        }
        holder.clear();
        assert_eq!(holder.gone(), None);
    }
}

//! Who is inside nearfar: the lock, with signals blocked while it is held, and the mark on the thread that has it.

use nearfar_sys::signal::Blocked;
use nearfar_sys::thread;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The lock, held. Signals stay blocked until it is dropped: a handler that touched paged memory would wait for the pager,
/// which would wait for the lock.
pub struct Entered<T: 'static> {
    // Dropped in this order: the lock first, then the mark, then the signals.
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

/// Takes the lock.
pub fn enter<T>(lock: &'static Mutex<T>) -> Entered<T> {
    let signals = Blocked::all();
    thread::go_inside();
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    note_turn();
    Entered { guard, _mark: Mark, _signals: signals }
}

/// Takes the lock if nobody holds it.
pub fn try_enter<T>(lock: &'static Mutex<T>) -> Option<Entered<T>> {
    let signals = Blocked::all();
    let guard = match lock.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    thread::go_inside();
    Some(Entered { guard, _mark: Mark, _signals: signals })
}

impl<T> Deref for Entered<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Entered<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

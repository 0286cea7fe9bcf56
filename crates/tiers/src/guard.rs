//! Who is inside nearfar: the lock, with signals blocked while it is held, and the mark on the thread that has it.

use nearfar_sys::signal::Blocked;
use nearfar_sys::thread;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Takes the lock.
pub fn enter<T>(lock: &'static Mutex<T>) -> Entered<T> {
    let signals = Blocked::all();
    thread::go_inside();
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    Entered { guard, _mark: Mark, _signals: signals }
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

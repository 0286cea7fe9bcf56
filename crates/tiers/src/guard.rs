//! Who is inside nearfar: the lock, with signals blocked while it is held, and the mark on the thread that has it.

use nearfar_sys::signal::Blocked;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// True when this thread holds the lock or is the pager.
pub fn is_inside() -> bool {
    INSIDE.with(Cell::get) > 0
}

/// Marks this thread as one of nearfar's own, for ever.
pub fn stay_inside() {
    INSIDE.with(|inside| inside.set(1));
}

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
        INSIDE.with(|inside| inside.set(inside.get() - 1));
    }
}

/// Takes the lock.
pub fn enter<T>(lock: &'static Mutex<T>) -> Entered<T> {
    let signals = Blocked::all();
    INSIDE.with(|inside| inside.set(inside.get() + 1));
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

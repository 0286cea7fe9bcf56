//! The program's user and groups, for the threads that the C library does not know (`own_thread`).
//!
//! In Linux each thread has its own; setuid(2) of the C library has all threads that it knows change theirs. Ours are told here, and
//! change theirs the next time they look, which all do at least once a second.

use crate::errno::call;
use crate::futex::{self, Lock};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

const MOST_GROUPS: usize = 1 << 12;

struct Credentials {
    users: [u32; 3],
    groups: [u32; 3],
    others: [u32; MOST_GROUPS],
    // `None`: not to be known.
    count: Option<usize>,
}

struct Told {
    lock: Lock,
    is: UnsafeCell<Credentials>,
}

// SAFETY: `is` is reached under the lock alone.
unsafe impl Sync for Told {}

static TOLD: Told = Told {
    lock: Lock::new(),
    is: UnsafeCell::new(Credentials { users: [0; 3], groups: [0; 3], others: [0; MOST_GROUPS], count: None }),
};

/// Counts the changes; who waits for one may wait on it (`wait`).
static CHANGES: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static FOLLOWED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The calling thread of the program has changed its user or groups: all of ours shall follow.
pub fn changed() {
    TOLD.lock.acquire();
    // SAFETY: the lock is held.
    let is = unsafe { &mut *TOLD.is.get() };
    let three = |array: &mut [u32; 3]| array.each_mut().map(|word| std::ptr::from_mut(word).addr());
    let (users, groups) = (three(&mut is.users), three(&mut is.groups));
    // SAFETY: the kernel writes what these pointers are for.
    unsafe {
        let _ = call(libc::SYS_getresuid, [users[0], users[1], users[2], 0, 0, 0]);
        let _ = call(libc::SYS_getresgid, [groups[0], groups[1], groups[2], 0, 0, 0]);
        is.count = call(libc::SYS_getgroups, [MOST_GROUPS, is.others.as_mut_ptr().addr(), 0, 0, 0, 0]).ok();
    }
    TOLD.lock.release();
    CHANGES.fetch_add(1, Ordering::Release);
    futex::wake(&CHANGES, i32::MAX as u32);
}

/// What the calling thread has, for one that it is about to start.
pub(crate) fn now(is_own_thread: bool) -> u32 {
    if is_own_thread { FOLLOWED.get() } else { CHANGES.load(Ordering::Acquire) }
}

/// A thread of ours begins, with what the one had that started it. There may have been changes since.
pub(crate) fn begin(has: u32) {
    FOLLOWED.set(has);
    follow();
}

/// To be called by threads of ours now and then.
pub fn follow() {
    let changes = CHANGES.load(Ordering::Acquire);
    if FOLLOWED.replace(changes) == changes {
        return;
    }
    TOLD.lock.acquire();
    // SAFETY: the lock is held.
    let is = unsafe { &*TOLD.is.get() };
    let (users, groups) = (is.users.map(|id| id as usize), is.groups.map(|id| id as usize));
    // SAFETY: integers, and a list that the kernel reads. The user last: without it groups may not be changed any more. What is refused
    // stays as it was: this thread had no more rights than the program then.
    unsafe {
        if let Some(count) = is.count {
            let _ = call(libc::SYS_setgroups, [count, is.others.as_ptr().addr(), 0, 0, 0, 0]);
        }
        let _ = call(libc::SYS_setresgid, [groups[0], groups[1], groups[2], 0, 0, 0]);
        let _ = call(libc::SYS_setresuid, [users[0], users[1], users[2], 0, 0, 0]);
    }
    TOLD.lock.release();
}

/// Waits for the next change, for a thread that has nothing else to do.
pub fn wait() {
    const LONG_NS: u64 = 1 << 60;
    futex::wait(&CHANGES, FOLLOWED.get(), LONG_NS);
    follow();
}

/// Waits on `condition` for a while, for a thread that looks again by itself.
pub fn wait_on<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let (guard, _) = condition.wait_timeout(guard, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner);
    follow();
    guard
}

/// In the child of fork: nobody else holds anything.
pub fn after_fork() {
    TOLD.lock.reset();
}

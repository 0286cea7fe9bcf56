//! Blocking all signals for a while: a handler that runs while our lock is held could touch paged memory and wait for ever.

use crate::errno::call;

unsafe extern "C" {
    // Not in the libc crate for Linux.
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
    fn pthread_setcanceltype(kind: i32, before: *mut i32) -> i32;
}

const CANCEL_DISABLE: i32 = 1;
const CANCEL_DEFERRED: i32 = 0;

/// With this signal the C library has every thread change its user and group (setuid(2) and the like), and waits until each has.
pub const SETXID: i32 = 33;

/// All signals are blocked in this thread until the guard is dropped, and it cannot be cancelled (pthread_cancel(3)): it would
/// keep what locks it holds for ever.
#[must_use]
pub struct Blocked {
    before: u64,
    cancel: i32,
    kind: i32,
}

/// Lets `signal` come to the calling thread.
pub fn unblock(signal: i32) {
    let mask = 1u64 << (signal - 1);
    // SAFETY: reads a local 8-byte mask. Raw, because the libc function leaves two signals of its own out.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_UNBLOCK as usize, &raw const mask as usize, 0, 8, 0, 0]) };
}

impl Blocked {
    /// Blocks every signal that can be blocked, in the calling thread.
    pub fn all() -> Self {
        let mask = u64::MAX;
        let mut before = 0u64;
        // SAFETY: reads and writes two local 8-byte masks. Raw, because the libc function keeps two signals of its own open.
        let _ = unsafe {
            call(
                libc::SYS_rt_sigprocmask,
                [libc::SIG_BLOCK as usize, &raw const mask as usize, &raw mut before as usize, 8, 0, 0],
            )
        };
        let (mut cancel, mut kind) = (0, 0);
        // SAFETY: writes locals; else it touches only this thread's own state. (Asynchronous while the C library is in a call that
        // can be cancelled, which is where we are when such a call is caught.)
        unsafe {
            pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel);
            pthread_setcanceltype(CANCEL_DEFERRED, &raw mut kind);
        }
        Self { before, cancel, kind }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let mut unused = 0;
        // SAFETY: puts back what `all` found. The state first: glibc 2.36 acts on what came meanwhile in either, but only the second
        // call says that the thread was cancelled.
        unsafe {
            pthread_setcancelstate(self.cancel, &raw mut unused);
            pthread_setcanceltype(self.kind, &raw mut unused);
        }
        // SAFETY: reads a field of self.
        let _ =
            unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &raw const self.before as usize, 0, 8, 0, 0]) };
    }
}

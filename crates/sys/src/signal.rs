//! Blocking all signals for a while: a handler that runs while our lock is held could touch paged memory and wait for ever.

use crate::errno::call;

/// All signals are blocked in this thread until the guard is dropped.
#[must_use]
pub struct Blocked {
    before: u64,
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
        Self { before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: reads a field of self.
        let _ =
            unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &raw const self.before as usize, 0, 8, 0, 0]) };
    }
}

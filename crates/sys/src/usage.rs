//! CPU time that threads spend outside of the kernel.

use std::sync::atomic::{AtomicU64, Ordering};

fn of(who: libc::c_int) -> u64 {
    // SAFETY: plain integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in a local structure.
    match unsafe { libc::getrusage(who, &raw mut usage) } {
        0 => usage.ru_utime.tv_sec as u64 * 1_000_000_000 + usage.ru_utime.tv_usec as u64 * 1000,
        _ => 0,
    }
}

static OF_HELPERS: AtomicU64 = AtomicU64::new(0);

/// That of the program's threads, ns: all of this process but the calling one and those that say what is theirs.
pub fn program_user_ns() -> u64 {
    of(libc::RUSAGE_SELF).saturating_sub(of(libc::RUSAGE_THREAD) + OF_HELPERS.load(Ordering::Relaxed))
}

/// The calling thread is not the program's. Takes what it said the last time and returns what it says now.
pub fn is_helper(said: u64) -> u64 {
    let now = of(libc::RUSAGE_THREAD);
    OF_HELPERS.fetch_add(now.saturating_sub(said), Ordering::Relaxed);
    now
}

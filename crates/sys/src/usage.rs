//! What threads and processes used of the CPUs and of memory (getrusage), and what of it is the program's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whose use is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Of all threads of this process.
    Process,
    /// Of the calling thread.
    Thread,
    /// Of all children that have been waited for, their own waited-for children included.
    Children,
}

/// What was used so far.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set, of children that of one of them, in bytes.
    pub resident_peak: u64,
}

/// What was used so far.
pub fn used(whose: Whose) -> Used {
    let who = match whose {
        Whose::Process => libc::RUSAGE_SELF,
        Whose::Thread => libc::RUSAGE_THREAD,
        Whose::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local; these requests cannot fail.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Used { user: duration(usage.ru_utime), system: duration(usage.ru_stime), resident_peak: usage.ru_maxrss as u64 * 1024 }
}

/// User time of threads of this process that are not the program's, ns, as far as they have said.
static HELPERS_NS: AtomicU64 = AtomicU64::new(0);

/// User time of the program's threads, ns: all of this process but the calling one and helpers.
pub fn program_user_ns() -> u64 {
    let of = |whose| used(whose).user.as_nanos() as u64;
    of(Whose::Process).saturating_sub(of(Whose::Thread) + HELPERS_NS.load(Ordering::Relaxed))
}

/// The calling thread is a helper. Takes what this returned the last time, 0 at first.
pub fn helper_worked(before_ns: u64) -> u64 {
    let now = used(Whose::Thread).user.as_nanos() as u64;
    HELPERS_NS.fetch_add(now.saturating_sub(before_ns), Ordering::Relaxed);
    now
}

/// In the child of a fork, whose times begin at 0 and which has no helpers yet.
pub fn after_fork() {
    HELPERS_NS.store(0, Ordering::Relaxed);
}

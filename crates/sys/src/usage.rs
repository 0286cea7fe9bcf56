//! What this process and its children used of the CPUs and of memory (getrusage).

use std::time::Duration;

/// Whose use is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageOf {
    /// All threads of this process.
    Process,
    /// The thread that asks.
    Thread,
    /// All children that have been waited for, their own waited-for children included.
    Children,
}

/// What was used so far.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set, in bytes; of children, that of the largest one.
    pub resident_peak: u64,
}

/// What `whose` used so far.
pub fn used(whose: UsageOf) -> Used {
    let who = match whose {
        UsageOf::Process => libc::RUSAGE_SELF,
        UsageOf::Thread => libc::RUSAGE_THREAD,
        UsageOf::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local; these requests cannot fail.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Used { user: duration(usage.ru_utime), system: duration(usage.ru_stime), resident_peak: usage.ru_maxrss as u64 * 1024 }
}

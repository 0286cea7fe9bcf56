//! Limits that the shell or the batch system set for this process (`ulimit`).

/// A limit of the calling process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Address space (`ulimit -v`).
    AddressSpace,
    /// Locked memory (`ulimit -l`).
    LockedMemory,
    /// Size of a file (`ulimit -f`).
    FileSize,
    /// Size of the main stack (`ulimit -s`).
    Stack,
    /// Open descriptors (`ulimit -n`).
    Descriptors,
}

/// The soft limit `which`; `None` when there is none.
pub fn limit(which: Limit) -> Option<u64> {
    let which = match which {
        Limit::AddressSpace => libc::RLIMIT_AS,
        Limit::LockedMemory => libc::RLIMIT_MEMLOCK,
        Limit::FileSize => libc::RLIMIT_FSIZE,
        Limit::Stack => libc::RLIMIT_STACK,
        Limit::Descriptors => libc::RLIMIT_NOFILE,
    };
    let mut now = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: writes into the local.
    let result = unsafe { libc::getrlimit(which, &mut now) };
    (result == 0 && now.rlim_cur != libc::RLIM_INFINITY).then_some(now.rlim_cur)
}

//! The systems that a workload runs under. Only what they are; `command` says how each is started.

use serde::Serialize;

/// A way to run a program that needs more memory than near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rival {
    /// No limit: all data in DRAM.
    Dram,
    /// Under `nearfar run` with near as its budget.
    Nearfar,
    /// Data in a shared mapping of a file in the far directory; page cache limited to near by a cgroup.
    MappedFile,
    /// The same, and the program tells the kernel its access pattern with madvise: what a programmer who rewrites for mmap would do.
    AdvisedFile,
    /// Memory limited to near by a cgroup, the rest in a swap file in the far directory.
    Swap,
}

impl Rival {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Rival::Dram => "all-DRAM",
            Rival::Nearfar => "nearfar",
            Rival::MappedFile => "mmap of a file",
            Rival::AdvisedFile => "mmap + madvise",
            Rival::Swap => "kernel swap",
        }
    }

    /// Whether the cgroup limits memory to near. nearfar keeps to its budget by itself; its peak is measured, not forced.
    pub const fn is_limited(self) -> bool {
        matches!(self, Rival::MappedFile | Rival::AdvisedFile | Rival::Swap)
    }

    /// Whether a failed run makes the bench fail. That others cannot do something is a result, not a fault.
    pub const fn must_succeed(self) -> bool {
        matches!(self, Rival::Dram | Rival::Nearfar)
    }
}

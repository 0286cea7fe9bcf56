//! The systems that a workload runs under. Only what they are; `command` says how each is started.

use serde::Serialize;

/// A way to run a program that needs more memory than near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Rival {
    /// No limit: all data in DRAM.
    Dram,
    /// Under `nearfar run` with near as its budget.
    Nearfar,
    /// The same with a fixed grain (`nearfar run --grain`) of so many KiB: the simplest rule, and nothing ahead.
    Grain(u32),
    /// Data in a shared mapping of a file in the far directory; page cache limited to near by a cgroup.
    MappedFile,
    /// The same, and the program tells the kernel its access pattern with madvise: what a programmer who rewrites for mmap would do.
    AdvisedFile,
    /// Memory limited to near by a cgroup, the rest in a swap file in the far directory.
    Swap,
}

/// Its name in files.
impl From<Rival> for String {
    fn from(rival: Rival) -> Self {
        match rival {
            Rival::Dram => "dram".to_owned(),
            Rival::Nearfar => "nearfar".to_owned(),
            Rival::Grain(kib) => format!("grain_{kib}k"),
            Rival::MappedFile => "mapped_file".to_owned(),
            Rival::AdvisedFile => "advised_file".to_owned(),
            Rival::Swap => "swap".to_owned(),
        }
    }
}

impl Rival {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Rival::Dram => "all-DRAM",
            Rival::Nearfar => "nearfar",
            Rival::Grain(kib) => grain_name(kib),
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

    /// The option `--grain` of `nearfar run`: what is not told is learned.
    pub fn grain(self) -> Option<String> {
        match self {
            Rival::Grain(kib) => Some(format!("{kib}K")),
            _ => None,
        }
    }

    /// Whether it runs under `nearfar run`.
    pub const fn is_nearfar(self) -> bool {
        matches!(self, Rival::Nearfar | Rival::Grain(_))
    }
}

/// The grains that are compared: every second power of two.
pub const GRAINS: [Rival; 5] = [Rival::Grain(4), Rival::Grain(16), Rival::Grain(64), Rival::Grain(256), Rival::Grain(2048)];

const fn grain_name(kib: u32) -> &'static str {
    match kib {
        4 => "grain 4K",
        16 => "grain 16K",
        64 => "grain 64K",
        256 => "grain 256K",
        2048 => "grain 2M",
        _ => "fixed grain",
    }
}

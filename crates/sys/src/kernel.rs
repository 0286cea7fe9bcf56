//! What this kernel and user may do, and why not: the facts behind `nearfar doctor` and behind every fallback.

use crate::errno::Errno;
use crate::uffd::{FaultScope, Uffd};

/// Facilities that can be switched off for tests with `NEARFAR_DENY`, and that a kernel may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied(pub u32);

/// The names of `NEARFAR_DENY`, with their bits.
pub const DENY_NAMES: &[(&str, u32)] =
    &[("move", 1), ("uffd", 2), ("io_uring", 4), ("odirect", 8), ("thp", 16), ("awake", 32), ("kernel-faults", 64)];

impl Denied {
    /// Parses `move,uffd,...`; the error is the unknown word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut bits = 0;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match DENY_NAMES.iter().find(|(name, _)| *name == word) {
                Some((_, bit)) => bits |= bit,
                None => return Err(word.to_owned()),
            }
        }
        Ok(Self(bits))
    }

    /// What is switched off, as [`Self::parse`] reads it when joined by commas.
    pub fn names(self) -> Vec<&'static str> {
        DENY_NAMES.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(name, _)| *name).collect()
    }

    /// True when facility `name` of `DENY_NAMES` is switched off.
    pub fn has(self, name: &str) -> bool {
        DENY_NAMES.iter().any(|(known, bit)| *known == name && self.0 & bit != 0)
    }
}

/// Which userfaultfd this user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// Whose faults can be served; `Err` says why there is no userfaultfd at all.
    pub scope: Result<FaultScope, Errno>,
    /// The kernel can move pages.
    pub can_move: bool,
}

/// Tries what the pager would open.
pub fn paging(denied: Denied) -> Paging {
    let full = if denied.has("kernel-faults") { Err(Errno(libc::EPERM)) } else { Uffd::open(false) };
    let uffd = full.or_else(|_| Uffd::open(true));
    match uffd {
        Ok(uffd) => Paging { scope: Ok(uffd.scope()), can_move: uffd.can_move() },
        Err(errno) => Paging { scope: Err(errno), can_move: false },
    }
}

/// The word in brackets of /sys/kernel/mm/transparent_hugepage/enabled, such as `madvise`; `None` when the file is absent.
pub fn huge_pages() -> Option<String> {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

/// Kernel release, such as `6.18.0`.
pub fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

//! The program's limits of address space and of data (`RLIMIT_AS`, `RLIMIT_DATA`), counted as the kernel would without us.
//!
//! The kernel counts all that is mapped, nearfar's own mappings too, which are large and mostly empty. So its limits are set as much
//! higher, and what the program maps by way of nearfar is compared with what the program asked for here.

use crate::errno::{Errno, call};
use crate::map;
use crate::small_file;
use std::sync::atomic::{AtomicU64, Ordering};

/// No limit.
pub const NONE: u64 = libc::RLIM_INFINITY;

/// A limit that is kept here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Address space.
    Space,
    /// Private writable memory.
    Data,
}

impl Kind {
    /// The limit with that number, if it is one of these.
    pub fn of(resource: u32) -> Option<Self> {
        match resource {
            number if number == libc::RLIMIT_AS => Some(Kind::Space),
            number if number == libc::RLIMIT_DATA => Some(Kind::Data),
            _ => None,
        }
    }

    fn resource(self) -> usize {
        match self {
            Kind::Space => libc::RLIMIT_AS as usize,
            Kind::Data => libc::RLIMIT_DATA as usize,
        }
    }

    fn kept(self) -> &'static Kept {
        &KEPT[self as usize]
    }
}

/// Soft and hard, in bytes, as the program knows them.
struct Kept {
    soft: AtomicU64,
    hard: AtomicU64,
}

static KEPT: [Kept; 2] = [const { Kept { soft: AtomicU64::new(NONE), hard: AtomicU64::new(NONE) } }; 2];

/// prlimit(2) of this process.
fn kernel(kind: Kind, new: Option<libc::rlimit64>) -> Result<libc::rlimit64, Errno> {
    let mut old = libc::rlimit64 { rlim_cur: NONE, rlim_max: NONE };
    let new = new.as_ref().map_or(0, |new| std::ptr::from_ref(new).addr());
    // SAFETY: reads and writes locals of the size that the kernel has.
    unsafe { call(libc::SYS_prlimit64, [0, kind.resource(), new, (&raw mut old).addr(), 0, 0])? };
    Ok(old)
}

/// Takes over what the program was started with. nearfar itself needs `own` bytes at most. Limits that cannot be raised by that stay.
pub fn adopt(own: u64) {
    for kind in [Kind::Space, Kind::Data] {
        let Ok(now) = kernel(kind, None) else { continue };
        kind.kept().soft.store(now.rlim_cur, Ordering::Relaxed);
        kind.kept().hard.store(now.rlim_max, Ordering::Relaxed);
        raise(kind, own);
    }
}

/// Sets the kernel's limit so that the program has what it asked for beside nearfar's own.
fn raise(kind: Kind, own: u64) {
    let soft = kind.kept().soft.load(Ordering::Relaxed);
    let Ok(now) = kernel(kind, None) else { return };
    let wanted = if soft == NONE { NONE } else { soft.saturating_add(own) };
    if wanted <= now.rlim_max {
        let _ = kernel(kind, Some(libc::rlimit64 { rlim_cur: wanted, rlim_max: now.rlim_max }));
    } else if kernel(kind, Some(libc::rlimit64 { rlim_cur: wanted, rlim_max: wanted })).is_err() {
        let _ = kernel(kind, Some(libc::rlimit64 { rlim_cur: now.rlim_max, rlim_max: now.rlim_max }));
    }
}

/// What the program is told, soft and hard.
pub fn get(kind: Kind) -> (u64, u64) {
    (kind.kept().soft.load(Ordering::Relaxed), kind.kept().hard.load(Ordering::Relaxed))
}

/// What the program asks for.
///
/// # Errors
/// As of setrlimit(2).
pub fn set(kind: Kind, soft: u64, hard: u64, own: u64) -> Result<(), Errno> {
    if soft > hard {
        return Err(Errno::EINVAL);
    }
    // SAFETY: no arguments.
    let is_root = unsafe { call(libc::SYS_geteuid, [0; 6]) } == Ok(0);
    if hard > kind.kept().hard.load(Ordering::Relaxed) && !is_root {
        return Err(Errno(libc::EPERM));
    }
    kind.kept().soft.store(soft, Ordering::Relaxed);
    kind.kept().hard.store(hard, Ordering::Relaxed);
    raise(kind, own);
    Ok(())
}

/// Bytes of address space and of data that this process has, nearfar's own left out.
fn used(kind: Kind) -> Option<u64> {
    let mut room = [0u8; 256];
    let text = small_file::read(c"/proc/self/statm", &mut room)?;
    let field = match kind {
        Kind::Space => 0,
        // Data and stacks together, which is a little more than the limit is about.
        Kind::Data => 5,
    };
    let pages: u64 = std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(field)?.parse().ok()?;
    Some((pages * nearfar_core::addr::PAGE as u64).saturating_sub(map::own_bytes() as u64))
}

/// True when the program may have `space` bytes of address space more, and `data` bytes of private writable memory.
pub fn allow(space: usize, data: usize) -> bool {
    [(Kind::Space, space), (Kind::Data, data)].into_iter().all(|(kind, more)| {
        let soft = kind.kept().soft.load(Ordering::Relaxed);
        soft == NONE || more == 0 || used(kind).is_none_or(|used| used.saturating_add(more as u64) <= soft)
    })
}

/// True when the program has this limit.
pub fn has(kind: Kind) -> bool {
    kind.kept().soft.load(Ordering::Relaxed) != NONE
}

/// True when the program has a limit.
pub fn any() -> bool {
    KEPT.iter().any(|kept| kept.soft.load(Ordering::Relaxed) != NONE)
}

/// Runs `act`, which executes another program, with the limits that the program has set; those of nearfar return if it comes back.
pub fn with_real<R>(act: impl FnOnce() -> R) -> R {
    if !any() {
        return act();
    }
    let before = [Kind::Space, Kind::Data].map(|kind| {
        let (soft, _) = get(kind);
        // Lowering the hard limit could not be undone.
        let now = kernel(kind, None).ok()?;
        let _ = kernel(kind, Some(libc::rlimit64 { rlim_cur: soft.min(now.rlim_max), rlim_max: now.rlim_max }));
        Some((kind, now))
    });
    let result = act();
    for (kind, now) in before.into_iter().flatten() {
        let _ = kernel(kind, Some(now));
    }
    result
}

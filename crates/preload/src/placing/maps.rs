//! Private anonymous mappings that the program makes itself: near by size or by call site, as a whole.

use super::{Grant, Placing, get};
use nearfar_core::addr::{Extent, PAGE, round_up};
use nearfar_core::placement::{Full, ObjectKind, Tier};
use nearfar_core::stats::Counter;
use nearfar_sys::{numa, thread};
use std::ffi::c_int;

/// What is to become of a mapping that is being made.
pub enum Mapping {
    /// As if there were no placing.
    Ordinary,
    /// It has room in near: the kernel is to make it, and `keep` or `give_up` follows.
    Near(Placed),
    /// There is no room, and the call fails with ENOMEM.
    Refused,
}

/// Room for a mapping.
pub struct Placed {
    placing: &'static Placing,
    bytes: usize,
}

/// True when some mapping is placed.
#[inline]
pub fn has_maps() -> bool {
    get().is_some_and(|placing| !placing.maps.is_empty())
}

fn is_private(flags: c_int) -> bool {
    flags & libc::MAP_TYPE == libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_GROWSDOWN == 0
}

/// Whether a new mapping goes near.
#[cold]
pub fn place_map(len: usize, prot: c_int, flags: c_int) -> Mapping {
    let Some(placing) = get().filter(|_| is_private(flags) && !thread::is_inside()) else { return Mapping::Ordinary };
    let Some(bytes) = round_up(len, PAGE).filter(|&bytes| bytes > 0) else { return Mapping::Ordinary };
    // A reservation holds nothing. Where room is counted, it must not use up what it may never touch.
    if prot == libc::PROT_NONE && (placing.room.is_limited() || placing.placement.full != Full::Spill) {
        return Mapping::Ordinary;
    }
    // Where it is paged otherwise, only what is free to lie anywhere can be kept out of the pager's sight.
    if placing.managed.is_some() && flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
        return Mapping::Ordinary;
    }
    if placing.tier(ObjectKind::Map, len, 0) != Some(Tier::Near) {
        return Mapping::Ordinary;
    }
    match placing.grant(bytes as u64) {
        Grant::Near => Mapping::Near(Placed { placing, bytes }),
        Grant::Far => Mapping::Ordinary,
        Grant::Refused => Mapping::Refused,
    }
}

impl Placed {
    /// The mapping was made at `start`, and nobody has seen it yet.
    pub fn keep(self, start: usize) {
        let range = Extent::new(start, self.bytes);
        // The kernel allows so many mappings, and each policy is one of its own: then it stays in far.
        if self.placing.near_policy.is_some_and(|policy| numa::set_range(range, &policy, true).is_err()) {
            self.placing.room.count(Counter::SpilledObjects, 1);
            self.placing.room.count(Counter::SpilledBytes, self.bytes as u64);
            return self.give_up();
        }
        self.placing.maps.insert(range);
    }

    /// The mapping could not be made.
    pub fn give_up(self) {
        self.placing.room.give(self.bytes as u64);
    }
}

/// What was placed of `range` is about to be unmapped or replaced.
#[cold]
pub fn forget_map(range: Extent) {
    // Our own mappings are not placed.
    if let Some(placing) = get().filter(|_| !thread::is_inside()) {
        let bytes = placing.maps.remove(range);
        if bytes > 0 {
            placing.room.give(bytes as u64);
        }
    }
}

/// What is to become of a mapping that mremap(2) changes: its new size decides anew.
pub enum Remap {
    /// As if there were no placing.
    Ordinary,
    /// The kernel is to do it; `done` follows.
    Kernel(Remapped),
    /// It must become paged memory, which the kernel cannot make of it: its content moves to a new mapping.
    Copy,
    /// There is no room, and the call fails with ENOMEM.
    Refused,
}

/// A change of a mapping that is or will be near.
pub struct Remapped {
    placing: &'static Placing,
    old: Extent,
    bytes: usize,
    taken: usize,
    near: bool,
}

/// Decides about a mapping that is to be `len` bytes long.
#[cold]
pub fn remap(old: Extent, len: usize) -> Remap {
    let Some(placing) = get().filter(|_| !thread::is_inside() && !old.is_empty()) else { return Remap::Ordinary };
    let Some(bytes) = round_up(len, PAGE) else { return Remap::Ordinary };
    let was_near = placing.maps.contains(old.start);
    let wants_near = match placing.managed {
        // Paged memory cannot be taken from the pager while the program may be using it.
        Some(_) => was_near,
        None => super::wants_map(len) && placing.tier(ObjectKind::Map, len, 0) == Some(Tier::Near),
    };
    if !was_near && !wants_near {
        return Remap::Ordinary;
    }
    let taken = bytes.saturating_sub(if was_near { old.len() } else { 0 });
    let near = if wants_near && taken > 0 { placing.grant(taken as u64) } else { Grant::Near };
    match (near, wants_near) {
        (Grant::Refused, _) => Remap::Refused,
        (Grant::Far, _) if placing.managed.is_some() => Remap::Copy,
        (Grant::Far, _) | (_, false) => Remap::Kernel(Remapped { placing, old, bytes, taken: 0, near: false }),
        (Grant::Near, true) => Remap::Kernel(Remapped { placing, old, bytes, taken, near: true }),
    }
}

impl Remapped {
    /// The mapping is at `start` now; `None` when the kernel refused, and it is as it was.
    pub fn done(self, start: Option<usize>) {
        let room = &self.placing.room;
        let Some(start) = start else { return room.give(self.taken as u64) };
        let before = self.placing.maps.remove(self.old);
        let new = Extent::new(start, self.bytes);
        let policy = if self.near { self.placing.near_policy } else { Some(self.placing.far_policy.unwrap_or_default()) };
        let is_set = policy.is_none_or(|policy| numa::set_range(new, &policy, true).is_ok());
        if self.near && is_set {
            self.placing.maps.insert(new);
            room.give((before + self.taken).saturating_sub(self.bytes) as u64);
        } else {
            room.give((before + self.taken) as u64);
        }
    }
}

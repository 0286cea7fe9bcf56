//! Where data are, and how much of each tier is left. Changes nothing.

use crate::ffi;
use crate::tier::Tier;
use std::ffi::CStr;

/// Bytes of a range by where their pages are; they add up to its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Where {
    /// In near memory now.
    pub near: u64,
    /// In far memory now.
    pub far: u64,
    /// Nowhere: never touched, or given back.
    pub absent: u64,
    /// Present, but the system does not tell where.
    pub unknown: u64,
}

/// Bytes of a tier; `None` where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// In all, or the part of it that this job may use.
    pub total: Option<u64>,
    /// What is left of that.
    pub free: Option<u64>,
    /// Given out by this process and not freed.
    pub used: u64,
}

/// Where the elements of a slice are; any slice, whoever allocated it.
pub fn where_is<T>(data: &[T]) -> Where {
    let mut found = ffi::Where::default();
    let bytes = size_of_val(data);
    // SAFETY: asks about addresses only, and writes a local.
    let failed = unsafe { ffi::nearfar_where(data.as_ptr().cast(), bytes, &raw mut found) };
    match failed {
        0 => Where { near: found.near_bytes, far: found.far_bytes, absent: found.absent_bytes, unknown: found.unknown_bytes },
        _ => Where { unknown: bytes as u64, ..Where::default() },
    }
}

/// How large a tier is, and what is left of it.
pub fn capacity(tier: Tier) -> Capacity {
    let mut found = ffi::Capacity::default();
    let known = |bytes| (bytes != u64::MAX).then_some(bytes);
    // SAFETY: writes a local.
    match unsafe { ffi::nearfar_capacity(tier.number(), &raw mut found) } {
        0 => Capacity { total: known(found.total_bytes), free: known(found.free_bytes), used: found.used_bytes },
        _ => Capacity::default(),
    }
}

/// 2 when near and far are different memories, 1 when the machine has one only; `None` when they were misnamed.
pub fn tiers() -> Option<u32> {
    // SAFETY: takes nothing.
    u32::try_from(unsafe { ffi::nearfar_tiers() }).ok()
}

/// What near and far are, in one line.
pub fn describe() -> &'static str {
    // SAFETY: never null, a C string that stays until the process ends.
    unsafe { CStr::from_ptr(ffi::nearfar_describe()) }.to_str().unwrap_or("near and far")
}

/// The version of libnearfar.so: 10000 times the major number, 100 times the minor, and the patch.
pub fn version() -> u32 {
    // SAFETY: takes nothing.
    unsafe { ffi::nearfar_version() }
}

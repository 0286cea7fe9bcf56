//! The C functions of nearfar.h, as they are.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct nearfar_where`.
#[repr(C)]
#[derive(Default)]
pub struct Where {
    pub near_bytes: u64,
    pub far_bytes: u64,
    pub absent_bytes: u64,
    pub unknown_bytes: u64,
    pub reserved: [u64; 4],
}

/// `struct nearfar_capacity`.
#[repr(C)]
#[derive(Default)]
pub struct Capacity {
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub used_bytes: u64,
    pub reserved: [u64; 5],
}

unsafe extern "C" {
    pub fn nearfar_malloc(size: usize, tier: c_int) -> *mut c_void;
    pub fn nearfar_calloc(count: usize, size: usize, tier: c_int) -> *mut c_void;
    pub fn nearfar_realloc(block: *mut c_void, size: usize, tier: c_int) -> *mut c_void;
    pub fn nearfar_posix_memalign(out: *mut *mut c_void, align: usize, size: usize, tier: c_int) -> c_int;
    pub fn nearfar_free(block: *mut c_void);
    pub fn nearfar_where(start: *const c_void, len: usize, out: *mut Where) -> c_int;
    pub fn nearfar_capacity(tier: c_int, out: *mut Capacity) -> c_int;
    pub fn nearfar_tiers() -> c_int;
    pub fn nearfar_describe() -> *const c_char;
    pub fn nearfar_version() -> c_uint;
}

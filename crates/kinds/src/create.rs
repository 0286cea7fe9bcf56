//! Kinds that programs make: files (PMEM), areas (FIXED), and the static ones by their traits (`memkind_create_kind`).

use crate::heap_file::HeapFile;
use crate::kind::{self, Kind};
use crate::place::{self, quietly};
use crate::range_heap::{Backing, RangeHeap};
use crate::static_kind::StaticKind;
use crate::{code, registry};
use nearfar_core::addr::{Extent, PAGE, round_up};
use nearfar_sys::map;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// `MEMKIND_PMEM_MIN_SIZE`.
const LEAST_FILE: usize = 16 << 20;
/// Addresses for a file without a limit, however large its file system says it is.
const MOST_FILE: u64 = 1 << 44;
/// `MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE`.
const CONSERVATIVE: c_uint = 1;
/// One past the last policy.
const POLICIES: c_uint = 2;

/// `struct memkind_config`.
#[repr(C)]
pub struct Config {
    dir: *const c_char,
    bytes: usize,
    policy: c_uint,
}

impl Config {
    /// `memkind_config_new`.
    pub fn make() -> *mut Self {
        Box::into_raw(Box::new(Self { dir: std::ptr::null(), bytes: 0, policy: 0 }))
    }

    /// `memkind_config_delete`.
    ///
    /// # Safety
    /// `config` is null or comes from [`Config::make`], and is not used afterwards.
    pub unsafe fn delete(config: *mut Self) {
        if !config.is_null() {
            // SAFETY: passed on to the caller.
            drop(unsafe { Box::from_raw(config) });
        }
    }

    /// `memkind_config_set_path`, `_size` and `_memory_usage_policy`. Values are judged when the kind is made.
    ///
    /// # Safety
    /// `config` is null or comes from [`Config::make`].
    pub unsafe fn set(config: *mut Self, change: impl FnOnce(&mut Self)) {
        // SAFETY: passed on to the caller.
        if let Some(config) = unsafe { config.as_mut() } {
            change(config);
        }
    }

    /// The directory; the string must live until the kind is made.
    pub fn set_dir(&mut self, dir: *const c_char) {
        self.dir = dir;
    }

    /// The limit.
    pub fn set_bytes(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// How soon freed memory goes back.
    pub fn set_policy(&mut self, policy: c_uint) {
        self.policy = policy;
    }
}

/// Bytes of the file system that holds an open file.
fn file_system_bytes(file: &HeapFile) -> Option<u64> {
    // SAFETY: all-zero bits are a statvfs, which the kernel fills.
    let mut facts: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open file, and a local to write to.
    let result = unsafe { libc::fstatvfs(file.fd(), &raw mut facts) };
    (result == 0).then(|| facts.f_blocks.saturating_mul(facts.f_frsize))
}

/// `memkind_create_pmem_with_config`, and `memkind_create_pmem` with policy 0.
///
/// # Safety
/// `dir` is null or a C string, `out` is null or can be written.
pub unsafe fn pmem(dir: *const c_char, bytes: usize, policy: c_uint, out: *mut *mut Kind) -> c_int {
    static FILES: AtomicU32 = AtomicU32::new(0);
    if dir.is_null() || out.is_null() || (bytes != 0 && bytes < LEAST_FILE) || policy >= POLICIES {
        return code::INVALID;
    }
    // SAFETY: passed on to the caller.
    let dir = unsafe { CStr::from_ptr(dir) };
    let made = quietly(|| {
        let file = HeapFile::create(dir).map_err(|_| code::INVALID)?;
        let all = file_system_bytes(&file).unwrap_or(MOST_FILE).clamp(LEAST_FILE as u64, MOST_FILE) as usize;
        let bytes = round_up(if bytes == 0 { all } else { bytes }, PAGE).ok_or(code::INVALID)?;
        let range = map::reserve(bytes).map_err(|_| code::MMAP)?;
        // SAFETY: addresses of ours, reserved just now.
        let heap = unsafe { RangeHeap::new(range, Backing::File(file)) };
        match policy {
            _ if place::hogs() => heap.give_back_from(usize::MAX),
            CONSERVATIVE => heap.give_back_from(PAGE),
            _ => {}
        }
        registry::add_dynamic(heap, &format!("pmem{:08x}", FILES.fetch_add(1, Ordering::Relaxed)))
    });
    // SAFETY: passed on to the caller.
    unsafe { give(made, out) }
}

/// `memkind_create_pmem_with_config`.
///
/// # Safety
/// `config` is null or comes from [`Config::make`], with a directory that is null or a C string; `out` is null or can be written.
pub unsafe fn pmem_with(config: *const Config, out: *mut *mut Kind) -> c_int {
    // SAFETY: passed on to the caller.
    match unsafe { config.as_ref() } {
        // SAFETY: passed on to the caller.
        Some(config) => unsafe { pmem(config.dir, config.bytes, config.policy, out) },
        None => code::INVALID,
    }
}

/// `memkind_create_fixed`.
///
/// # Safety
/// `area` to `area + bytes` is the program's, and used by nobody else while the kind lives; `out` is null or can be written.
pub unsafe fn fixed(area: *mut c_void, bytes: usize, out: *mut *mut Kind) -> c_int {
    static AREAS: AtomicU32 = AtomicU32::new(0);
    if area.is_null() || out.is_null() || area.addr().checked_add(bytes).is_none() {
        return code::INVALID;
    }
    // SAFETY: passed on to the caller.
    let heap = unsafe { RangeHeap::new(Extent::new(area.addr(), bytes), Backing::Area) };
    // An area without room for one block is a kind that gives none, as in memkind; nothing is written there before it is asked for one.
    let made = quietly(|| registry::add_dynamic(heap, &format!("fixed{:08x}", AREAS.fetch_add(1, Ordering::Relaxed))));
    // SAFETY: passed on to the caller.
    unsafe { give(made, out) }
}

/// # Safety
/// `out` can be written.
unsafe fn give(made: Result<*mut Kind, c_int>, out: *mut *mut Kind) -> c_int {
    match made {
        Ok(kind) => {
            // SAFETY: passed on to the caller.
            unsafe { out.write(kind) };
            code::SUCCESS
        }
        Err(code) => code,
    }
}

/// `memkind_destroy_kind`: frees what a program made; nothing happens to the others.
///
/// # Safety
/// Neither the kind nor its blocks are used afterwards.
pub unsafe fn destroy(kind: *mut Kind) -> c_int {
    if kind::static_kind(kind).is_some() {
        return code::SUCCESS;
    }
    // SAFETY: passed on to the caller; other pointers are not in the books.
    if unsafe { registry::remove(kind) } { code::SUCCESS } else { code::INVALID }
}

/// Bits of `memkind_memtype_t`.
const TYPE_DEFAULT: c_uint = 1;
const TYPE_HIGH_BANDWIDTH: c_uint = 2;
/// `MEMKIND_MASK_PAGE_SIZE_2MB`, a mask by name and the number 21 by value.
const PAGES_2MB: c_uint = 21;
/// `memkind_policy_t`.
const BIND_LOCAL: c_uint = 0;
const BIND_ALL: c_uint = 1;
const PREFERRED_LOCAL: c_uint = 2;
const INTERLEAVE_ALL: c_uint = 4;
const POLICY_COUNT: c_uint = 5;

/// What `memkind_create_kind` accepts: type of memory, policy, pages, kind.
const BY_TRAITS: [(c_uint, c_uint, c_uint, StaticKind); 10] = [
    (TYPE_HIGH_BANDWIDTH, BIND_LOCAL, 0, StaticKind::Hbw),
    (TYPE_HIGH_BANDWIDTH, BIND_LOCAL, PAGES_2MB, StaticKind::HbwHugetlb),
    (TYPE_HIGH_BANDWIDTH, BIND_ALL, 0, StaticKind::HbwAll),
    (TYPE_HIGH_BANDWIDTH, BIND_ALL, PAGES_2MB, StaticKind::HbwAllHugetlb),
    (TYPE_HIGH_BANDWIDTH, PREFERRED_LOCAL, 0, StaticKind::HbwPreferred),
    (TYPE_HIGH_BANDWIDTH, PREFERRED_LOCAL, PAGES_2MB, StaticKind::HbwPreferredHugetlb),
    (TYPE_HIGH_BANDWIDTH, INTERLEAVE_ALL, 0, StaticKind::HbwInterleave),
    (TYPE_DEFAULT, PREFERRED_LOCAL, 0, StaticKind::Default),
    (TYPE_DEFAULT, PREFERRED_LOCAL, PAGES_2MB, StaticKind::Hugetlb),
    (TYPE_DEFAULT | TYPE_HIGH_BANDWIDTH, INTERLEAVE_ALL, 0, StaticKind::Interleave),
];

/// `memkind_create_kind`.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn by_traits(memory: c_uint, policy: c_uint, pages: c_uint, out: *mut *mut Kind) -> c_int {
    if out.is_null() || policy >= POLICY_COUNT {
        return code::INVALID;
    }
    let wanted = (memory, policy, pages);
    let Some(kind) = BY_TRAITS.iter().find(|&&(a, b, c, _)| (a, b, c) == wanted).map(|row| row.3) else { return code::INVALID };
    let kind = match place::check(kind) {
        code::SUCCESS => kind,
        _ if policy == PREFERRED_LOCAL => StaticKind::Default,
        _ => return code::MEMTYPE_NOT_AVAILABLE,
    };
    // SAFETY: passed on to the caller.
    unsafe { out.write(kind::pointer(kind)) };
    code::SUCCESS
}

/// `memkind_get_kind_by_partition`, which the last version of memkind dropped.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn by_partition(partition: c_int, out: *mut *mut Kind) -> c_int {
    let kind = usize::try_from(partition).ok().and_then(StaticKind::of_partition);
    let (Some(kind), false) = (kind, out.is_null()) else { return code::UNAVAILABLE };
    // SAFETY: passed on to the caller.
    unsafe { out.write(kind::pointer(kind)) };
    code::SUCCESS
}

/// `memkind_check_dax_path`: whether files in `dir` can be mapped with MAP_SYNC.
///
/// # Safety
/// `dir` is null or a C string.
pub unsafe fn check_dax_path(dir: *const c_char) -> c_int {
    if dir.is_null() {
        return code::INVALID;
    }
    // SAFETY: passed on to the caller.
    let dir = unsafe { CStr::from_ptr(dir) };
    quietly(|| {
        let Ok(file) = HeapFile::create(dir) else { return code::RUNTIME };
        // SAFETY: an open file of ours.
        if unsafe { libc::posix_fallocate(file.fd(), 0, PAGE as i64) } != 0 {
            return code::RUNTIME;
        }
        let flags = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
        // SAFETY: at no fixed address.
        match unsafe { map::mmap(0, PAGE, map::RW, flags, file.fd(), 0) } {
            Ok(start) => {
                // SAFETY: mapped just now.
                let _ = unsafe { map::munmap(Extent::new(start, PAGE)) };
                code::SUCCESS
            }
            Err(_) => code::MMAP,
        }
    })
}

//! `struct memkind` and its table of operations, laid out as in memkind 1.14.0: programs hold pointers to them and may look in.
//!
//! Nothing here goes through the tables; they are there for programs that call them.

use crate::static_kind::{COUNT, StaticKind};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a name, the final 0 included.
pub const NAME_BYTES: usize = 64;

type Void = *mut c_void;

/// `struct memkind_ops`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Ops {
    pub create: Option<unsafe extern "C" fn(*mut Kind, *mut Ops, *const c_char) -> c_int>,
    pub destroy: Option<unsafe extern "C" fn(*mut Kind) -> c_int>,
    pub malloc: Option<unsafe extern "C" fn(*mut Kind, usize) -> Void>,
    pub calloc: Option<unsafe extern "C" fn(*mut Kind, usize, usize) -> Void>,
    pub posix_memalign: Option<unsafe extern "C" fn(*mut Kind, *mut Void, usize, usize) -> c_int>,
    pub realloc: Option<unsafe extern "C" fn(*mut Kind, Void, usize) -> Void>,
    pub free: Option<unsafe extern "C" fn(*mut Kind, Void)>,
    pub mmap: Option<unsafe extern "C" fn(*mut Kind, Void, usize) -> Void>,
    pub mbind: Option<unsafe extern "C" fn(*mut Kind, Void, usize) -> c_int>,
    pub madvise: Option<unsafe extern "C" fn(*mut Kind, Void, usize) -> c_int>,
    pub get_mmap_flags: Option<unsafe extern "C" fn(*mut Kind, *mut c_int) -> c_int>,
    pub get_mbind_mode: Option<unsafe extern "C" fn(*mut Kind, *mut c_int) -> c_int>,
    pub get_mbind_nodemask: Option<unsafe extern "C" fn(*mut Kind, *mut c_ulong, c_ulong) -> c_int>,
    pub get_arena: Option<unsafe extern "C" fn(*mut Kind, *mut c_uint, usize) -> c_int>,
    pub check_available: Option<unsafe extern "C" fn(*mut Kind) -> c_int>,
    pub init_once: Option<unsafe extern "C" fn()>,
    pub finalize: Option<unsafe extern "C" fn(*mut Kind) -> c_int>,
    pub malloc_usable_size: Option<unsafe extern "C" fn(*mut Kind, Void) -> usize>,
    pub update_memory_usage_policy: Option<unsafe extern "C" fn(*mut Kind, c_uint) -> c_int>,
    pub get_stat: Option<unsafe extern "C" fn(*mut Kind, c_uint, *mut usize) -> c_int>,
    pub defrag_reallocate: Option<unsafe extern "C" fn(*mut Kind, Void) -> Void>,
}

/// `struct memkind`.
#[repr(C)]
pub struct Kind {
    ops: AtomicPtr<Ops>,
    partition: c_uint,
    name: [c_char; NAME_BYTES],
    init_once: c_int,
    arena_map_len: c_uint,
    arena_map: *mut c_uint,
    arena_key: libc::pthread_key_t,
    private: *mut c_void,
    arena_map_mask: c_uint,
    arena_zero: c_uint,
}

// SAFETY: `ops` is atomic, and the rest never changes after the kind was made.
unsafe impl Sync for Kind {}

const _: () = assert!(size_of::<Ops>() == 168 && size_of::<Kind>() == 120, "as in memkind 1.14.0");

impl Kind {
    /// A kind of this partition; `name` is cut at 63 bytes. `private` is what a kind that a program made is served from.
    pub(crate) const fn new(partition: u32, name: &str, private: *mut c_void) -> Self {
        let mut bytes = [0; NAME_BYTES];
        let mut at = 0;
        while at < name.len() && at + 1 < NAME_BYTES {
            bytes[at] = name.as_bytes()[at] as c_char;
            at += 1;
        }
        Self {
            ops: AtomicPtr::new(null_mut()),
            partition,
            name: bytes,
            // What glibc has in a pthread_once_t that is done.
            init_once: 2,
            // The least that arithmetic on them stands: one arena, number 0.
            arena_map_len: 1,
            arena_map: null_mut(),
            arena_key: 0,
            private,
            arena_map_mask: 0,
            arena_zero: 0,
        }
    }

    /// As given when it was made.
    pub(crate) const fn private(&self) -> *mut c_void {
        self.private
    }

    /// Its number.
    pub const fn partition(&self) -> usize {
        self.partition as usize
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte as u8)).collect()
    }

    /// Sets the table that programs see.
    pub fn set_ops(&self, ops: &'static Ops) {
        self.ops.store(std::ptr::from_ref(ops).cast_mut(), Ordering::Release);
    }
}

/// The kinds that are there from the start, by partition.
static KINDS: [Kind; COUNT] = {
    let mut kinds = [const { Kind::new(0, "", null_mut()) }; COUNT];
    let mut at = 0;
    while at < COUNT {
        kinds[at] = Kind::new(at as u32, StaticKind::ALL[at].name(), null_mut());
        at += 1;
    }
    kinds
};

/// A `memkind_t` constant, as programs see it: a pointer in data, which may be copied into the program when it is loaded.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindPointer(*const Kind);

// SAFETY: a constant; what it points to is `Sync`.
unsafe impl Sync for KindPointer {}

impl KindPointer {
    /// The pointer to a kind that is there from the start.
    pub const fn to(kind: StaticKind) -> Self {
        // A reference to another static is fixed by the loader.
        Self(&raw const KINDS[kind as usize])
    }

    /// As C has it.
    pub const fn get(self) -> *const Kind {
        self.0
    }
}

/// The kind that is there from the start, as C has it.
pub fn pointer(kind: StaticKind) -> *mut Kind {
    std::ptr::from_ref(&KINDS[kind as usize]).cast_mut()
}

/// The kind itself.
pub fn record(kind: StaticKind) -> &'static Kind {
    &KINDS[kind as usize]
}

/// Which of the kinds that are there from the start `kind` points to, by address alone.
pub fn static_kind(kind: *const Kind) -> Option<StaticKind> {
    let offset = kind.addr().wrapping_sub(KINDS.as_ptr().addr());
    let is_one = offset.is_multiple_of(size_of::<Kind>());
    StaticKind::of_partition(offset / size_of::<Kind>()).filter(|_| is_one)
}

/// No kind.
pub const NONE: *const Kind = null();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_tell_kinds() {
        for kind in StaticKind::ALL {
            assert_eq!(static_kind(pointer(kind)), Some(kind));
            assert_eq!((record(kind).partition(), record(kind).name()), (kind as usize, kind.name().to_owned()));
        }
        assert_eq!(KindPointer::to(StaticKind::Hbw).get(), pointer(StaticKind::Hbw).cast_const());
        let beyond = record(StaticKind::HighestBandwidthLocalPreferred) as *const Kind;
        assert_eq!([NONE, beyond.wrapping_add(1), beyond.wrapping_byte_add(8)].map(static_kind), [None; 3]);
    }
}

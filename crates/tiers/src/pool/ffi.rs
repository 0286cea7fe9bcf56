//! mimalloc as pools use it: an arena over a given range that only heaps made for it allocate from.

// Linked for its C code; the functions that pools need are not among those it declares.
use libmimalloc_sys as _;
use nearfar_core::addr::Extent;
use std::ffi::{c_int, c_long, c_void};
use std::sync::Once;

/// `mi_heap_t`.
#[repr(C)]
pub struct Heap {
    _opaque: [u8; 0],
}

/// `mi_arena_id_t`.
pub type ArenaId = c_int;

// Numbers of `mi_option_t` in mimalloc 2.3.
const SHOW_ERRORS: c_int = 0;
const SHOW_STATS: c_int = 1;
const VERBOSE: c_int = 2;
const DESTROY_ON_EXIT: c_int = 22;
const ARENA_PURGE_MULT: c_int = 24;
const ALLOW_THP: c_int = 37;

unsafe extern "C" {
    fn mi_process_init();
    fn mi_option_get(option: c_int) -> c_long;
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_malloc(size: usize) -> *mut c_void;
    fn mi_manage_os_memory_ex(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_large: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        id: *mut ArenaId,
    ) -> bool;
    pub fn mi_heap_new_in_arena(arena: ArenaId) -> *mut Heap;
    pub fn mi_heap_malloc(heap: *mut Heap, size: usize) -> *mut c_void;
    pub fn mi_heap_zalloc(heap: *mut Heap, size: usize) -> *mut c_void;
    pub fn mi_heap_malloc_aligned(heap: *mut Heap, size: usize, align: usize) -> *mut c_void;
    pub fn mi_free(block: *mut c_void);
    pub fn mi_usable_size(block: *const c_void) -> usize;
    pub fn mi_collect(force: bool);
    pub fn mi_thread_done();
    /// Key of mimalloc's own destructor of threads.
    pub static _mi_heap_default_key: libc::pthread_key_t;
}

/// Sets mimalloc up for pools; settings that a program's MIMALLOC_* variables must not change, since they are meant for its own copy.
pub fn configure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (option, value) in [
            // Nothing may be printed into the program's output.
            (SHOW_ERRORS, 0),
            (SHOW_STATS, 0),
            (VERBOSE, 0),
            // What an arena gets back goes back to the kernel at once: nobody comes by later to do it, and fast memory is scarce.
            (ARENA_PURGE_MULT, 0),
            // 2: do nothing at exit, when others may still use blocks.
            (DESTROY_ON_EXIT, 2),
        ] {
            // SAFETY: option numbers of this version; sets a word of mimalloc's table.
            unsafe { mi_option_set(option, value) };
        }
        // Heaps are described in mimalloc's ordinary memory. Where that is made just now, it need not begin with a huge page: zeroing
        // it would be most of what the first allocation of a program takes. (While mimalloc starts, the option would mean something else.)
        // SAFETY: as above; a block that is given back at once.
        unsafe {
            mi_process_init();
            let before = mi_option_get(ALLOW_THP);
            mi_option_set(ALLOW_THP, 0);
            mi_free(mi_malloc(1));
            mi_option_set(ALLOW_THP, before);
        }
    });
}

/// An arena over `range`, which is reserved, readable and writable, and reads as zeros.
pub fn new_arena(range: Extent) -> Option<ArenaId> {
    let mut id = 0;
    let start = range.start as *mut c_void;
    // SAFETY: the range is the caller's to give, for the life of the process; `id` is a local.
    let made = unsafe { mi_manage_os_memory_ex(start, range.len(), true, false, true, -1, true, &raw mut id) };
    made.then_some(id)
}

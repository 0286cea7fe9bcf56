//! ONE table of what memkind exports by accident. What cannot make sense without jemalloc's arenas says that it failed.

use crate::functions::exports;
use nearfar_kinds::internal::{self, FILE, HUGE, PLAIN};
use nearfar_kinds::kind::{Kind, Ops};
use nearfar_kinds::static_kind::StaticKind;
use nearfar_kinds::{code, memory, place, tiered};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

type Void = *mut c_void;
type KindRef = *mut Kind;
type Text = *const c_char;

exports! {
    memkind_arena_create(_kind: KindRef, _ops: *mut Ops, _name: Text) -> c_int = internal::failed();
    memkind_arena_create_map(_kind: KindRef, _hooks: Void) -> c_int = internal::failed();
    memkind_arena_destroy(_kind: KindRef) -> c_int = code::SUCCESS;
    memkind_arena_malloc(kind: KindRef, size: usize) -> Void = memory::malloc(kind, size);
    memkind_arena_calloc(kind: KindRef, count: usize, size: usize) -> Void = memory::calloc(kind, count, size);
    memkind_arena_realloc(kind: KindRef, block: Void, size: usize) -> Void = memory::realloc(kind, block, size);
    memkind_arena_realloc_with_kind_detect(block: Void, size: usize) -> Void = memory::realloc(std::ptr::null(), block, size);
    memkind_arena_posix_memalign(kind: KindRef, out: *mut Void, align: usize, size: usize) -> c_int
        = memory::posix_memalign(kind, out, align, size);
    memkind_arena_free(_kind: KindRef, block: Void) -> () = memory::free(block);
    memkind_arena_free_with_kind_detect(block: Void) -> () = memory::free(block);
    memkind_arena_detect_kind(block: Void) -> KindRef = memory::detect(block);
    memkind_arena_update_memory_usage_policy(kind: KindRef, policy: c_uint) -> c_int = internal::usage_policy(kind, policy);
    memkind_bijective_get_arena(_kind: KindRef, arena: *mut c_uint, _size: usize) -> c_int = internal::tell(arena, 0);
    memkind_thread_get_arena(_kind: KindRef, arena: *mut c_uint, _size: usize) -> c_int = internal::tell(arena, 0);
    memkind_set_arena_map_len(_kind: KindRef) -> c_int = code::SUCCESS;

    memkind_default_create(_kind: KindRef, _ops: *mut Ops, _name: Text) -> c_int = internal::failed();
    memkind_default_destroy(_kind: KindRef) -> c_int = code::SUCCESS;
    memkind_default_malloc(_kind: KindRef, size: usize) -> Void = memory::malloc(internal::default(), size);
    memkind_default_calloc(_kind: KindRef, count: usize, size: usize) -> Void = memory::calloc(internal::default(), count, size);
    memkind_default_realloc(_kind: KindRef, block: Void, size: usize) -> Void = memory::realloc(internal::default(), block, size);
    memkind_default_posix_memalign(_kind: KindRef, out: *mut Void, align: usize, size: usize) -> c_int
        = memory::posix_memalign(internal::default(), out, align, size);
    memkind_default_free(_kind: KindRef, block: Void) -> () = memory::free(block);
    memkind_default_malloc_usable_size(_kind: KindRef, block: Void) -> usize = memory::usable_size(block);
    memkind_default_mmap(kind: KindRef, hint: Void, size: usize) -> Void = internal::mmap(kind, hint, size);
    memkind_default_mbind(kind: KindRef, start: Void, size: usize) -> c_int = internal::mbind(kind, start, size);
    memkind_default_init_once() -> () = ();
    memkind_default_get_mmap_flags(_kind: KindRef, out: *mut c_int) -> c_int = internal::tell(out, PLAIN);
    memkind_hugetlb_get_mmap_flags(_kind: KindRef, out: *mut c_int) -> c_int = internal::tell(out, HUGE);
    memkind_pmem_get_mmap_flags(_kind: KindRef, out: *mut c_int) -> c_int = internal::tell(out, FILE);
    memkind_default_get_mbind_mode(_kind: KindRef, out: *mut c_int) -> c_int = internal::tell(out, libc::MPOL_BIND);
    memkind_preferred_get_mbind_mode(_kind: KindRef, out: *mut c_int) -> c_int
        = internal::tell(out, libc::MPOL_PREFERRED);
    memkind_interleave_get_mbind_mode(_kind: KindRef, out: *mut c_int) -> c_int
        = internal::tell(out, libc::MPOL_INTERLEAVE);
    memkind_default_get_mbind_nodemask(_kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = internal::nodemask(StaticKind::Default, mask, bits);
    memkind_hbw_get_mbind_nodemask(_kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = internal::nodemask(StaticKind::Hbw, mask, bits);
    memkind_hbw_all_get_mbind_nodemask(_kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = internal::nodemask(StaticKind::HbwAll, mask, bits);
    memkind_dax_kmem_all_get_mbind_nodemask(_kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = internal::nodemask(StaticKind::DaxKmemAll, mask, bits);
    memkind_regular_all_get_mbind_nodemask(_kind: KindRef, mask: *mut c_ulong, bits: c_ulong) -> c_int
        = internal::nodemask(StaticKind::Regular, mask, bits);
    memkind_nohugepage_madvise(_kind: KindRef, start: Void, size: usize) -> c_int = internal::no_huge_pages(start, size);
    memkind_posix_check_alignment(_kind: KindRef, align: usize) -> c_int = internal::check_alignment(align);

    memkind_hbw_check_available(_kind: KindRef) -> c_int = place::check(StaticKind::Hbw);
    memkind_hbw_hugetlb_check_available(_kind: KindRef) -> c_int = place::check(StaticKind::HbwHugetlb);
    memkind_hugetlb_check_available_2mb(_kind: KindRef) -> c_int = place::check(StaticKind::Hugetlb);
    memkind_hbw_init_once() -> () = ();
    memkind_hbw_all_init_once() -> () = ();
    memkind_hbw_hugetlb_init_once() -> () = ();
    memkind_hbw_all_hugetlb_init_once() -> () = ();
    memkind_hbw_preferred_init_once() -> () = ();
    memkind_hbw_preferred_hugetlb_init_once() -> () = ();
    memkind_hbw_interleave_init_once() -> () = ();
    memkind_hugetlb_init_once() -> () = ();
    memkind_interleave_init_once() -> () = ();

    memkind_fixed_create(_kind: KindRef, _ops: *mut Ops, _name: Text) -> c_int = internal::failed();
    memkind_fixed_destroy(kind: KindRef) -> c_int = tiered::destroy(kind);
    memkind_fixed_mmap(_kind: KindRef, _hint: Void, _size: usize) -> Void = internal::map_failed();
    memkind_pmem_create(_kind: KindRef, _ops: *mut Ops, _name: Text) -> c_int = internal::failed();
    memkind_pmem_destroy(kind: KindRef) -> c_int = tiered::destroy(kind);
    memkind_pmem_mmap(_kind: KindRef, _hint: Void, _size: usize) -> Void = internal::map_failed();
}

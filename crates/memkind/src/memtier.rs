//! ONE table of the functions of memkind_memtier.h. A body is a one-line forward; what it forwards to is documented there.

use crate::functions::exports;
use nearfar_kinds::kind::Kind;
use nearfar_kinds::memory;
use nearfar_kinds::tiered::{self, KindBuilder, KindMemory};
use std::ffi::{c_char, c_int, c_uint, c_void};

type Void = *mut c_void;
type KindRef = *mut Kind;
type BuilderRef = *mut KindBuilder;
type MemoryRef = *mut KindMemory;

exports! {
    memtier_builder_new(policy: c_uint) -> BuilderRef = tiered::new_builder(policy);
    memtier_builder_delete(builder: BuilderRef) -> () = tiered::delete_builder(builder);
    memtier_builder_add_tier(builder: BuilderRef, kind: KindRef, ratio: c_uint) -> c_int = tiered::add_tier(builder, kind, ratio);
    memtier_builder_construct_memtier_memory(builder: BuilderRef) -> MemoryRef = tiered::build(builder);
    memtier_ctl_set(builder: BuilderRef, name: *const c_char, value: *const c_void) -> c_int = tiered::set(builder, name, value);
    memtier_delete_memtier_memory(memory: MemoryRef) -> () = tiered::delete(memory);

    memtier_malloc(memory: MemoryRef, size: usize) -> Void = tiered::malloc(memory, size);
    memtier_calloc(memory: MemoryRef, count: usize, size: usize) -> Void = tiered::calloc(memory, count, size);
    memtier_realloc(memory: MemoryRef, block: Void, size: usize) -> Void = tiered::realloc(memory, block, size);
    memtier_posix_memalign(memory: MemoryRef, out: *mut Void, align: usize, size: usize) -> c_int
        = tiered::posix_memalign(memory, out, align, size);

    memtier_kind_malloc(kind: KindRef, size: usize) -> Void = tiered::kind_malloc(kind, size);
    memtier_kind_calloc(kind: KindRef, count: usize, size: usize) -> Void = tiered::kind_calloc(kind, count, size);
    memtier_kind_realloc(kind: KindRef, block: Void, size: usize) -> Void = tiered::kind_realloc(kind, block, size);
    memtier_kind_posix_memalign(kind: KindRef, out: *mut Void, align: usize, size: usize) -> c_int
        = tiered::kind_posix_memalign(kind, out, align, size);
    memtier_kind_free(kind: KindRef, block: Void) -> () = tiered::kind_free(kind, block);
    memtier_kind_allocated_size(kind: KindRef) -> usize = tiered::allocated(kind);
    memtier_usable_size(block: Void) -> usize = memory::usable_size(block);
}

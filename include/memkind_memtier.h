/* memkind_memtier.h: memory in tiers, as memkind's header of this name declares it. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_MEMKIND_MEMTIER_H
#define NEARFAR_MEMKIND_MEMTIER_H

#include <memkind.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memtier_builder;
struct memtier_memory;

typedef enum memtier_policy_t {
    MEMTIER_POLICY_STATIC_RATIO = 0,      /* sizes held in the ratio of the tiers */
    MEMTIER_POLICY_DYNAMIC_THRESHOLD = 1, /* by size, with thresholds that move until the ratio holds */
    MEMTIER_POLICY_MAX_VALUE
} memtier_policy_t;

struct memtier_builder *memtier_builder_new(memtier_policy_t policy);
void memtier_builder_delete(struct memtier_builder *builder);
int memtier_builder_add_tier(struct memtier_builder *builder, memkind_t kind, unsigned kind_ratio);
int memtier_ctl_set(struct memtier_builder *builder, const char *name, const void *val);
struct memtier_memory *memtier_builder_construct_memtier_memory(struct memtier_builder *builder);
void memtier_delete_memtier_memory(struct memtier_memory *memory);

/* Blocks of the tier that the policy chooses. */
void *memtier_malloc(struct memtier_memory *memory, size_t size);
void *memtier_calloc(struct memtier_memory *memory, size_t num, size_t size);
void *memtier_realloc(struct memtier_memory *memory, void *ptr, size_t size);
int memtier_posix_memalign(struct memtier_memory *memory, void **memptr, size_t alignment, size_t size);

/* Blocks of one kind, counted. */
void *memtier_kind_malloc(memkind_t kind, size_t size);
void *memtier_kind_calloc(memkind_t kind, size_t num, size_t size);
void *memtier_kind_realloc(memkind_t kind, void *ptr, size_t size);
int memtier_kind_posix_memalign(memkind_t kind, void **memptr, size_t alignment, size_t size);
void memtier_kind_free(memkind_t kind, void *ptr);
size_t memtier_kind_allocated_size(memkind_t kind);
size_t memtier_usable_size(void *ptr);

static inline void memtier_free(void *ptr)
{
    memtier_kind_free(NULL, ptr);
}

#ifdef __cplusplus
}
#endif

#endif

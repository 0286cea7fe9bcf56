/* memkind.h: kinds of memory, as memkind's header of this name declares them (1.14.0 and its last commit). Part of nearfar
   (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_MEMKIND_H
#define NEARFAR_MEMKIND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program may define it to const, for the argument of memkind_malloc_usable_size. */
#ifndef MEMKIND_MALLOC_USABLE_SIZE_CONST
#define MEMKIND_MALLOC_USABLE_SIZE_CONST
#endif

#ifndef MEMKIND_DEPRECATED
#if defined(__GNUC__) || defined(__clang__)
#define MEMKIND_DEPRECATED(func) func __attribute__((deprecated))
#else
#define MEMKIND_DEPRECATED(func) func
#endif
#endif

typedef struct memkind *memkind_t;

/* Arguments of memkind_create_kind. */
typedef enum memkind_memtype_t {
    MEMKIND_MEMTYPE_DEFAULT = 1 << 0,
    MEMKIND_MEMTYPE_HIGH_BANDWIDTH = 1 << 1
} memkind_memtype_t;

typedef enum memkind_policy_t {
    MEMKIND_POLICY_BIND_LOCAL = 0,
    MEMKIND_POLICY_BIND_ALL,
    MEMKIND_POLICY_PREFERRED_LOCAL,
    MEMKIND_POLICY_INTERLEAVE_LOCAL,
    MEMKIND_POLICY_INTERLEAVE_ALL,
    MEMKIND_POLICY_MAX_VALUE
} memkind_policy_t;

typedef enum memkind_bits_t { MEMKIND_MASK_PAGE_SIZE_2MB = 21 } memkind_bits_t;

enum memkind_const {
    MEMKIND_MAX_KIND = 512,
    MEMKIND_ERROR_MESSAGE_SIZE = 128,
    MEMKIND_PMEM_MIN_SIZE = 1024 * 1024 * 16
};

enum {
    MEMKIND_SUCCESS = 0,
    MEMKIND_ERROR_UNAVAILABLE = -1,
    MEMKIND_ERROR_MBIND = -2,
    MEMKIND_ERROR_MMAP = -3,
    MEMKIND_ERROR_MALLOC = -6,
    MEMKIND_ERROR_ENVIRON = -12,
    MEMKIND_ERROR_INVALID = -13,
    MEMKIND_ERROR_TOOMANY = -15,
    MEMKIND_ERROR_BADOPS = -17,
    MEMKIND_ERROR_HUGETLB = -18,
    MEMKIND_ERROR_MEMTYPE_NOT_AVAILABLE = -20,
    MEMKIND_ERROR_OPERATION_FAILED = -21,
    MEMKIND_ERROR_ARENAS_CREATE = -22,
    MEMKIND_ERROR_RUNTIME = -255
};

typedef enum memkind_mem_usage_policy {
    MEMKIND_MEM_USAGE_POLICY_DEFAULT = 0,
    MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE = 1,
    MEMKIND_MEM_USAGE_POLICY_MAX_VALUE
} memkind_mem_usage_policy;

typedef enum memkind_stat_type {
    MEMKIND_STAT_TYPE_RESIDENT = 0,
    MEMKIND_STAT_TYPE_ACTIVE = 1,
    MEMKIND_STAT_TYPE_ALLOCATED = 2,
    MEMKIND_STAT_TYPE_MAX_VALUE
} memkind_stat_type;

typedef enum memkind_stat_print_opt {
    MEMKIND_STAT_PRINT_ALL = 0,
    MEMKIND_STAT_PRINT_JSON_FORMAT = 1 << 0,
    MEMKIND_STAT_PRINT_OMIT_GENERAL = 1 << 1,
    MEMKIND_STAT_PRINT_OMIT_MERGED_ARENA = 1 << 2,
    MEMKIND_STAT_PRINT_OMIT_DESTROYED_MERGED_ARENA = 1 << 3,
    MEMKIND_STAT_PRINT_OMIT_PER_ARENA = 1 << 4,
    MEMKIND_STAT_PRINT_OMIT_PER_SIZE_CLASS_BINS = 1 << 5,
    MEMKIND_STAT_PRINT_OMIT_PER_SIZE_CLASS_LARGE = 1 << 6,
    MEMKIND_STAT_PRINT_OMIT_MUTEX = 1 << 7,
    MEMKIND_STAT_PRINT_OMIT_EXTENT = 1 << 8
} memkind_stat_print_opt;

/* The kinds. *_PREFERRED fail where several nodes are equally near; *_HUGETLB take huge pages from the kernel's reserve. */
extern memkind_t MEMKIND_DEFAULT;                           /* where the thread's memory policy says */
extern memkind_t MEMKIND_HUGETLB;                           /* huge pages */
extern memkind_t MEMKIND_INTERLEAVE;                        /* all nodes in turn */
extern memkind_t MEMKIND_HBW;                               /* nearest nodes of high bandwidth */
extern memkind_t MEMKIND_HBW_ALL;                           /* any node of high bandwidth */
extern memkind_t MEMKIND_HBW_HUGETLB;
extern memkind_t MEMKIND_HBW_ALL_HUGETLB;
extern memkind_t MEMKIND_HBW_PREFERRED;                     /* nearest node of high bandwidth, then ordinary memory */
extern memkind_t MEMKIND_HBW_PREFERRED_HUGETLB;
extern memkind_t MEMKIND_HBW_INTERLEAVE;                    /* all nodes of high bandwidth in turn */
extern memkind_t MEMKIND_REGULAR;                           /* nodes with CPUs */
extern memkind_t MEMKIND_DAX_KMEM;                          /* nearest nodes of persistent or CXL memory */
extern memkind_t MEMKIND_DAX_KMEM_ALL;
extern memkind_t MEMKIND_DAX_KMEM_PREFERRED;
extern memkind_t MEMKIND_DAX_KMEM_INTERLEAVE;
extern memkind_t MEMKIND_HIGHEST_CAPACITY;                  /* the largest nodes */
extern memkind_t MEMKIND_HIGHEST_CAPACITY_PREFERRED;
extern memkind_t MEMKIND_HIGHEST_CAPACITY_LOCAL;            /* the largest node near the CPU */
extern memkind_t MEMKIND_HIGHEST_CAPACITY_LOCAL_PREFERRED;
extern memkind_t MEMKIND_LOWEST_LATENCY_LOCAL;              /* the quickest node near the CPU */
extern memkind_t MEMKIND_LOWEST_LATENCY_LOCAL_PREFERRED;
extern memkind_t MEMKIND_HIGHEST_BANDWIDTH_LOCAL;           /* the widest node near the CPU */
extern memkind_t MEMKIND_HIGHEST_BANDWIDTH_LOCAL_PREFERRED;

/* Kinds that are made. */
struct memkind_config;
struct memkind_config *memkind_config_new(void);
void memkind_config_delete(struct memkind_config *cfg);
/* The string must live until the kind is made. */
void memkind_config_set_path(struct memkind_config *cfg, const char *pmem_dir);
void memkind_config_set_size(struct memkind_config *cfg, size_t pmem_size);
void memkind_config_set_memory_usage_policy(struct memkind_config *cfg, memkind_mem_usage_policy policy);

int memkind_create_kind(memkind_memtype_t memtype_flags, memkind_policy_t policy, memkind_bits_t flags, memkind_t *kind);
/* A file without a name in dir; max_size 0 is no limit, else at least MEMKIND_PMEM_MIN_SIZE. */
int memkind_create_pmem(const char *dir, size_t max_size, memkind_t *kind);
int memkind_create_pmem_with_config(struct memkind_config *cfg, memkind_t *kind);
/* A heap in memory of the program's. */
int memkind_create_fixed(void *addr, size_t size, memkind_t *kind);
int memkind_destroy_kind(memkind_t kind);
int memkind_check_dax_path(const char *pmem_dir);

/* Questions. */
memkind_t memkind_detect_kind(void *ptr);
int memkind_check_available(memkind_t kind);
ssize_t memkind_get_capacity(memkind_t kind);
int memkind_update_cached_stats(void);
int memkind_get_stat(memkind_t kind, memkind_stat_type stat, size_t *value);
int memkind_stats_print(void (*write_cb)(void *, const char *), void *cbopaque, memkind_stat_print_opt opts);
int memkind_get_version(void);
void memkind_error_message(int err, char *msg, size_t size);

/* Blocks. kind may be NULL in free, realloc, malloc_usable_size and defrag_reallocate: the block's own. */
void *memkind_malloc(memkind_t kind, size_t size);
void *memkind_calloc(memkind_t kind, size_t num, size_t size);
void *memkind_realloc(memkind_t kind, void *ptr, size_t size);
int memkind_posix_memalign(memkind_t kind, void **memptr, size_t alignment, size_t size);
void memkind_free(memkind_t kind, void *ptr);
size_t memkind_malloc_usable_size(memkind_t kind, MEMKIND_MALLOC_USABLE_SIZE_CONST void *ptr);
void *memkind_defrag_reallocate(memkind_t kind, void *ptr);
int memkind_set_bg_threads(bool state);
int memkind_set_allow_zero_allocs(memkind_t kind, bool allow_zero_allocs);

/* Gone: chunks of 1 GiB, which are never available, and kinds by number. */
extern memkind_t MEMKIND_GBTLB;
extern memkind_t MEMKIND_HBW_GBTLB;
extern memkind_t MEMKIND_HBW_PREFERRED_GBTLB;
int MEMKIND_DEPRECATED(memkind_get_kind_by_partition(int partition, memkind_t *kind));

#ifdef __cplusplus
}
#endif

#endif

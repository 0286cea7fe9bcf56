/* nearfar.h: place data in near (fast, small) or far (large, slower) memory, and ask where they are.
 *
 *     double *psi = nearfar_malloc(n * sizeof *psi, NEARFAR_NEAR);
 *     ...
 *     nearfar_free(psi);
 *
 * Link with -lnearfar (pkg-config nearfar). What near and far are is decided when the program starts:
 *
 *  - under `nearfar run --near node:1 --far node:0 -- PROGRAM`: those NUMA nodes (HBM, DRAM, CXL memory, the other socket);
 *  - under `nearfar run --near 8G --far /scratch -- PROGRAM`: near blocks stay in DRAM, within the 8 GiB; far blocks are
 *    paged to the disk like the rest of the program;
 *  - otherwise: NEARFAR_NEAR=node:1 and NEARFAR_FAR=node:0 in the environment, or what the machine itself says of its nodes.
 *    On a machine with one kind of memory both tiers are that memory, and the program runs as with malloc.
 *
 * Functions that return a pointer return NULL and set errno on failure; functions that return int return 0, or -1 and set errno
 * (nearfar_posix_memalign returns the error, as posix_memalign does). All are safe to call from several threads, and in the child
 * of fork. errno is EINVAL for arguments outside their range and when NEARFAR_NEAR or NEARFAR_FAR cannot be understood (a line
 * on standard error and nearfar_describe() say why); ENOMEM when there is no memory.
 *
 * C99, C++. There is nothing here that needs nearfar at compile time but this file; nearfar.hpp adds C++ allocators.
 */
#ifndef NEARFAR_H
#define NEARFAR_H

#include <stddef.h>
#include <stdint.h>

/* Of this header; nearfar_version() tells that of the library. Binaries run with any later library of the same major number. */
#define NEARFAR_VERSION_MAJOR 0
#define NEARFAR_VERSION_MINOR 1
#define NEARFAR_VERSION_PATCH 0
#define NEARFAR_VERSION (NEARFAR_VERSION_MAJOR * 10000 + NEARFAR_VERSION_MINOR * 100 + NEARFAR_VERSION_PATCH)

#if defined(__GNUC__)
#define NEARFAR_MALLOC_LIKE __attribute__((__malloc__))
#define NEARFAR_SIZE(...) __attribute__((__alloc_size__(__VA_ARGS__)))
#else
#define NEARFAR_MALLOC_LIKE
#define NEARFAR_SIZE(...)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two memories. */
typedef enum nearfar_tier {
    NEARFAR_NEAR = 0, /* fast and small */
    NEARFAR_FAR = 1   /* large and slower */
} nearfar_tier;

/* ---- Memory. As the C functions of these names, but for the tier. ------------------------------------------------------------ */

/* At least `size` bytes, aligned for any type. Size 0 gives a pointer that can be freed. When near is full, the memory comes from
 * far, unless the job says otherwise (`nearfar run --full=fail`). */
void *nearfar_malloc(size_t size, nearfar_tier tier) NEARFAR_MALLOC_LIKE NEARFAR_SIZE(1);

/* The same for `count` times `size` bytes, which read as zeros. */
void *nearfar_calloc(size_t count, size_t size, nearfar_tier tier) NEARFAR_MALLOC_LIKE NEARFAR_SIZE(1, 2);

/* Changes the size, and the tier where the block is not in `tier`; the content stays. NULL allocates. Size 0 frees and returns NULL.
 * On failure the block stays as it was. Takes blocks of malloc too, where free() takes blocks of nearfar_malloc (see there). */
void *nearfar_realloc(void *block, size_t size, nearfar_tier tier) NEARFAR_SIZE(2);

/* `align` is a power of two and a multiple of sizeof(void *). Returns 0, EINVAL or ENOMEM; leaves errno alone. */
int nearfar_posix_memalign(void **out, size_t align, size_t size, nearfar_tier tier);

/* Gives a block of any of these functions, of either tier, back; NULL is fine. Keeps errno. free() takes such blocks too when
 * libnearfar.so stands before the C library in the order of loading: in programs linked with -lnearfar, and under `nearfar run`. */
void nearfar_free(void *block);

/* Bytes that may be used, at least what was asked for; 0 for NULL. */
size_t nearfar_usable_size(void *block);

/* Functions and structures share names, as stat(2) and its structure do, which -Wshadow of C++ takes for a mistake. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* ---- Questions. ---------------------------------------------------------------------------------------------------------------- */

/* Where the pages of a range are. The four add up to the length of the range. */
struct nearfar_where {
    uint64_t near_bytes;    /* in near memory now */
    uint64_t far_bytes;     /* in far memory now */
    uint64_t absent_bytes;  /* nowhere: never touched, or given back; swapped out by the kernel */
    uint64_t unknown_bytes; /* present, but the system does not tell where (containers often forbid move_pages) */
    uint64_t reserved[4];   /* 0 */
};

/* Asks for any memory of the process, whoever allocated it: heap, mapping, static data, stack. Touches nothing. */
int nearfar_where(const void *start, size_t len, struct nearfar_where *out);

/* How large a tier is. Figures of this moment; others allocate too. */
struct nearfar_capacity {
    uint64_t total_bytes; /* the tier, or the part of it that this job may use (in cache mode none of near, which is a cache);
                             UINT64_MAX: not limited or not known */
    uint64_t free_bytes;  /* of that, what is left; UINT64_MAX: not known */
    uint64_t used_bytes;  /* given out by this process through the functions above, and not freed */
    uint64_t reserved[5]; /* 0 */
};

/* Asks how much of a tier there is, and how much is left. */
int nearfar_capacity(nearfar_tier tier, struct nearfar_capacity *out);

/* 2 when near and far are different memories, 1 when the machine has one only; -1 with errno EINVAL when they were misnamed. */
int nearfar_tiers(void);

/* What near and far are, in one line for people: "near: node 1 (HBM, 16 GiB), far: node 0 (DRAM, 96 GiB)". Never NULL; stays
 * valid until the process ends. */
const char *nearfar_describe(void);

/* NEARFAR_VERSION of the library. */
unsigned nearfar_version(void);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#undef NEARFAR_MALLOC_LIKE
#undef NEARFAR_SIZE
#endif

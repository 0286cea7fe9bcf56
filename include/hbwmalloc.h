/* hbwmalloc.h: memory of high bandwidth, as memkind's header of this name declares it. Part of nearfar (docs/reference/memkind.md).
   SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef NEARFAR_HBWMALLOC_H
#define NEARFAR_HBWMALLOC_H

#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which memory, and what happens when it is full. */
typedef enum {
    HBW_POLICY_BIND = 1,       /* nearest nodes of high bandwidth, no others */
    HBW_POLICY_PREFERRED = 2,  /* nearest node of high bandwidth, then ordinary memory; the default */
    HBW_POLICY_INTERLEAVE = 3, /* page by page over all nodes of high bandwidth */
    HBW_POLICY_BIND_ALL = 4    /* any node of high bandwidth, no others */
} hbw_policy_t;

typedef enum {
    HBW_PAGESIZE_4KB = 1,        /* ordinary pages */
    HBW_PAGESIZE_2MB = 2,        /* from the kernel's reserve of huge pages */
    HBW_PAGESIZE_1GB_STRICT = 3, /* gone: ENOMEM */
    HBW_PAGESIZE_1GB = 4,        /* gone: ENOMEM */
    HBW_PAGESIZE_MAX_VALUE
} hbw_pagesize_t;

/* Flag of hbw_verify_memory_region: read and write a byte of each page first. */
enum { HBW_TOUCH_PAGES = 1 << 0 };

hbw_policy_t hbw_get_policy(void);
/* Once, before any allocation. 0; EPERM when another policy holds already; EINVAL for no policy. */
int hbw_set_policy(hbw_policy_t mode);
/* 0, or ENODEV. */
int hbw_check_available(void);
/* 0 when all pages are in memory of high bandwidth, -1 when one is not; EINVAL, EFAULT. */
int hbw_verify_memory_region(void *addr, size_t size, int flags);

/* As the functions of stdlib.h; a size of 0 gives NULL. */
void *hbw_malloc(size_t size);
void *hbw_calloc(size_t num, size_t size);
void *hbw_realloc(void *ptr, size_t size);
void hbw_free(void *ptr);
size_t hbw_malloc_usable_size(void *ptr);
int hbw_posix_memalign(void **memptr, size_t alignment, size_t size);
int hbw_posix_memalign_psize(void **memptr, size_t alignment, size_t size, hbw_pagesize_t pagesize);

#ifdef __cplusplus
}
#endif

#endif

/* hbwmalloc.h and memkind.h as their manuals and memkind 1.14.0 have them, on node 0 as memory of high bandwidth (MEMKIND_HBW_NODES=0). */
#include "check.h"
#include <errno.h>
#include <hbwmalloc.h>
#include <malloc.h>
#include <memkind.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static memkind_t kinds[23];

static void fill_kinds(void)
{
    memkind_t all[] = {MEMKIND_DEFAULT, MEMKIND_REGULAR, MEMKIND_INTERLEAVE, MEMKIND_HBW, MEMKIND_HBW_ALL, MEMKIND_HBW_PREFERRED,
        MEMKIND_HBW_INTERLEAVE, MEMKIND_HIGHEST_CAPACITY, MEMKIND_HIGHEST_CAPACITY_PREFERRED, MEMKIND_HIGHEST_CAPACITY_LOCAL,
        MEMKIND_HIGHEST_CAPACITY_LOCAL_PREFERRED, MEMKIND_LOWEST_LATENCY_LOCAL, MEMKIND_LOWEST_LATENCY_LOCAL_PREFERRED,
        MEMKIND_HIGHEST_BANDWIDTH_LOCAL, MEMKIND_HIGHEST_BANDWIDTH_LOCAL_PREFERRED, NULL};
    memcpy(kinds, all, sizeof all);
}

/* One kind: sizes, alignments, zeros, moves, whose block it is. */
static void use(memkind_t kind)
{
    static const size_t sizes[] = {1, 16, 100, 4096, 70000, 3 << 20};
    void *p, *q;
    size_t i, value;
    CHECK(memkind_check_available(kind) == 0);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        p = memkind_malloc(kind, sizes[i]);
        CHECK(p && (uintptr_t)p % 16 == 0 && memkind_detect_kind(p) == kind);
        CHECK(memkind_malloc_usable_size(kind, p) >= sizes[i] && memkind_malloc_usable_size(NULL, p) >= sizes[i]);
        memset(p, 7, memkind_malloc_usable_size(NULL, p));
        q = memkind_realloc(i % 2 ? kind : NULL, p, sizes[i] * 3);
        CHECK(q && memkind_detect_kind(q) == kind && ((char *)q)[0] == 7 && ((char *)q)[sizes[i] - 1] == 7);
        memkind_free(i % 2 ? kind : NULL, q);
        p = memkind_calloc(kind, 3, sizes[i]);
        CHECK(p && ((char *)p)[0] == 0 && ((char *)p)[3 * sizes[i] - 1] == 0);
        memkind_free(kind, p);
    }
    for (i = 8; i <= 1 << 21; i *= 2) {
        CHECK(memkind_posix_memalign(kind, &p, i, 1000) == 0 && (uintptr_t)p % i == 0 && memkind_detect_kind(p) == kind);
        memkind_free(NULL, p);
    }
    CHECK(memkind_posix_memalign(kind, &p, 3, 8) == EINVAL && memkind_posix_memalign(kind, &p, 4, 8) == EINVAL);
    p = &value;
    CHECK(memkind_posix_memalign(kind, &p, 8, 0) == 0 && p == NULL);
    CHECK(memkind_malloc(kind, 0) == NULL && memkind_calloc(kind, 0, 8) == NULL && memkind_calloc(kind, 8, 0) == NULL);
    errno = 0;
    CHECK(memkind_malloc(kind, SIZE_MAX) == NULL && errno == ENOMEM);
    errno = 0;
    /* memkind 1.14.0 gives a block of 8 bytes here. */
    CHECK(memkind_calloc(kind, SIZE_MAX / 4 + 2, 4) == NULL && errno == ENOMEM);
    p = memkind_malloc(kind, 100);
    CHECK(memkind_realloc(kind, p, SIZE_MAX - 100) == NULL && memkind_detect_kind(p) == kind);
    CHECK(memkind_realloc(kind, p, 0) == NULL);
    CHECK(memkind_realloc(kind, NULL, 0) == NULL);
    CHECK((p = memkind_realloc(kind, NULL, 10)) != NULL);
    CHECK(memkind_defrag_reallocate(kind, p) == NULL);
    memkind_free(kind, p);
    p = memkind_malloc(kind, 8 << 20);
    memset(p, 1, 8 << 20);
    CHECK(memkind_update_cached_stats() == 0 && memkind_get_stat(kind, MEMKIND_STAT_TYPE_ALLOCATED, &value) == 0 && value >= 8 << 20);
    CHECK(memkind_get_stat(kind, MEMKIND_STAT_TYPE_RESIDENT, &value) == 0 && value >= 8 << 20);
    memkind_free(kind, p);
    CHECK(memkind_get_stat(kind, MEMKIND_STAT_TYPE_MAX_VALUE, &value) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_destroy_kind(kind) == 0 && memkind_check_available(kind) == 0);
}

static void foreign(void)
{
    static char area[4096];
    char *p = malloc(100);
    CHECK(memkind_detect_kind(NULL) == NULL && memkind_detect_kind(p) == MEMKIND_DEFAULT);
    CHECK(memkind_detect_kind(area) == MEMKIND_DEFAULT && memkind_detect_kind(&p) == MEMKIND_DEFAULT);
    CHECK(memkind_malloc_usable_size(NULL, p) >= 100 && memkind_malloc_usable_size(NULL, NULL) == 0);
    strcpy(p, "ours");
    p = memkind_realloc(MEMKIND_HBW, p, 5000);
    CHECK(memkind_detect_kind(p) == MEMKIND_HBW && strcmp(p, "ours") == 0);
    p = memkind_realloc(MEMKIND_REGULAR, p, 50);
    CHECK(memkind_detect_kind(p) == MEMKIND_REGULAR && strcmp(p, "ours") == 0);
    /* The wrong kind does no harm. */
    memkind_free(MEMKIND_HBW_ALL, p);
    memkind_free(NULL, malloc(10));
    memkind_free(MEMKIND_HBW, malloc(1 << 20));
    hbw_free(malloc(10));
    hbw_free(NULL);
    memkind_free(NULL, NULL);
    errno = 0;
    CHECK(memkind_realloc(NULL, NULL, 10) == NULL && errno == EINVAL);
}

static void high_bandwidth(void)
{
    char *p, *q;
    CHECK(hbw_check_available() == 0 && hbw_get_policy() == HBW_POLICY_PREFERRED);
    CHECK(hbw_set_policy((hbw_policy_t)9) == EINVAL && hbw_set_policy((hbw_policy_t)0) == EINVAL);
    CHECK(hbw_set_policy(HBW_POLICY_BIND) == 0 && hbw_get_policy() == HBW_POLICY_BIND && hbw_set_policy(HBW_POLICY_BIND) == 0);
    CHECK(hbw_set_policy(HBW_POLICY_PREFERRED) == EPERM);
    p = hbw_malloc(1 << 20);
    CHECK(p && memkind_detect_kind(p) == MEMKIND_HBW && hbw_malloc_usable_size(p) >= 1 << 20);
    memset(p, 3, 1 << 20);
    CHECK(hbw_verify_memory_region(p, 1 << 20, 0) == 0 && hbw_verify_memory_region(p + 5000, 1, HBW_TOUCH_PAGES) == 0);
    CHECK(hbw_verify_memory_region(NULL, 1, 0) == EINVAL && hbw_verify_memory_region(p, 0, 0) == EINVAL);
    CHECK(hbw_verify_memory_region(p, 1, 2) == EINVAL);
    q = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hbw_verify_memory_region(q, 1 << 16, 0) == EFAULT);
    CHECK(hbw_verify_memory_region(q, 1 << 16, HBW_TOUCH_PAGES) == 0);
    p = hbw_realloc(p, 100);
    CHECK(p && p[99] == 3);
    hbw_free(p);
    errno = 0;
    CHECK(hbw_malloc(0) == NULL && hbw_calloc(0, 5) == NULL && hbw_calloc(SIZE_MAX / 4 + 2, 4) == NULL && errno == ENOMEM);
    CHECK(hbw_posix_memalign((void **)&p, 64, 10) == 0 && (uintptr_t)p % 64 == 0);
    hbw_free(p);
    CHECK(hbw_posix_memalign((void **)&p, 24, 10) == EINVAL);
    CHECK(hbw_posix_memalign((void **)&p, 64, 0) == 0 && p == NULL);
    CHECK(hbw_posix_memalign_psize((void **)&p, 4096, 10, HBW_PAGESIZE_4KB) == 0);
    hbw_free(p);
    CHECK(hbw_posix_memalign_psize((void **)&p, 4096, 10, (hbw_pagesize_t)0) == EINVAL);
    p = hbw_calloc(1000, 1000);
    CHECK(p && p[0] == 0 && p[999999] == 0);
    hbw_free(p);
}

static void traits(void)
{
    memkind_t kind;
    memkind_bits_t none = (memkind_bits_t)0;
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_BIND_LOCAL, none, &kind) == 0 && kind == MEMKIND_HBW);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_BIND_ALL, none, &kind) == 0 && kind == MEMKIND_HBW_ALL);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_PREFERRED_LOCAL, none, &kind) == 0
        && kind == MEMKIND_HBW_PREFERRED);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_DEFAULT, MEMKIND_POLICY_PREFERRED_LOCAL, none, &kind) == 0 && kind == MEMKIND_DEFAULT);
    CHECK(memkind_create_kind((memkind_memtype_t)(MEMKIND_MEMTYPE_DEFAULT | MEMKIND_MEMTYPE_HIGH_BANDWIDTH),
              MEMKIND_POLICY_INTERLEAVE_ALL, none, &kind) == 0 && kind == MEMKIND_INTERLEAVE);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_DEFAULT, MEMKIND_POLICY_BIND_ALL, none, &kind) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_create_kind((memkind_memtype_t)0, MEMKIND_POLICY_BIND_ALL, none, &kind) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_BIND_LOCAL, none, NULL) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_get_capacity(MEMKIND_DEFAULT) > 0 && memkind_get_capacity(MEMKIND_HBW) > 0);
    CHECK(memkind_get_capacity(MEMKIND_HBW_PREFERRED) == -1 && memkind_get_capacity(MEMKIND_HBW_HUGETLB) == -1);
    CHECK(memkind_get_version() == 1014000);
    CHECK(memkind_set_bg_threads(true) == 0);
    CHECK(memkind_check_available(MEMKIND_GBTLB) != 0 && memkind_malloc(MEMKIND_GBTLB, 8) == NULL);
}

static int written;

static void writer(void *opaque, const char *text)
{
    CHECK(opaque == &written && text);
    written += (int)strlen(text);
}

int main(void)
{
    char message[MEMKIND_ERROR_MESSAGE_SIZE];
    int i;
    fill_kinds();
    traits();
    high_bandwidth();
    foreign();
    for (i = 0; kinds[i]; i++)
        use(kinds[i]);
    memkind_error_message(MEMKIND_ERROR_MALLOC, message, sizeof message);
    CHECK(strcmp(message, "<memkind> Call to malloc() failed") == 0);
    memkind_error_message(MEMKIND_ERROR_MALLOC, message, 10);
    CHECK(strcmp(message, "<memkind>") == 0);
    CHECK(memkind_stats_print(writer, &written, MEMKIND_STAT_PRINT_ALL) == 0 && written > 0);
    puts("OK");
    return 0;
}

// The malloc family does what the manual pages say: errors, alignment, sizes, realloc in and across sizes, errno.
#include "check.h"
#include <limits.h>
#include <malloc.h>

// The compiler knows these functions and would fold calls that cannot succeed.
static void *(*volatile malloc_)(size_t) = malloc;
static void *(*volatile calloc_)(size_t, size_t) = calloc;
static void *(*volatile realloc_)(void *, size_t) = realloc;
static void *(*volatile reallocarray_)(void *, size_t, size_t) = reallocarray;
static void *(*volatile memalign_)(size_t, size_t) = memalign;
static void *(*volatile aligned_alloc_)(size_t, size_t) = aligned_alloc;
static int (*volatile posix_memalign_)(void **, size_t, size_t) = posix_memalign;
static void (*volatile free_)(void *) = free;

#define fails(call) do { errno = 0; void *p_ = (call); must(p_ == NULL && errno == ENOMEM); } while (0)

static void impossible_sizes(void) {
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1, 870000000000000000ul, 13000000000000000000ul};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        fails(malloc_(n));
        fails(calloc_(1, n));
        fails(calloc_(n, 1));
        fails(memalign_(64, n));
        fails(aligned_alloc_(4096, n));
        fails(valloc(n));
        fails(pvalloc(n));
        char *p = malloc_(100), *q = malloc_(3 * MIB);
        memset(p, 1, 100), memset(q, 2, 3 * MIB);
        fails(realloc_(p, n));
        fails(realloc_(q, n));
        must(p[99] == 1 && q[3 * MIB - 1] == 2);
        free_(p), free_(q);
        void *out = (void *)1234;
        must(posix_memalign_(&out, 64, n) == ENOMEM && out == (void *)1234);
    }
    fails(calloc_(SIZE_MAX / 2, 3));
    fails(calloc_((size_t)1 << 33, (size_t)1 << 33));
    fails(reallocarray_(NULL, SIZE_MAX / 2, 3));
    printf("impossible sizes\n");
}

static void alignments(void) {
    void *p = (void *)1234;
    must(posix_memalign_(&p, 0, 8) == EINVAL && posix_memalign_(&p, 3, 8) == EINVAL && posix_memalign_(&p, 4, 8) == EINVAL);
    must(posix_memalign_(&p, 24, 8) == EINVAL && posix_memalign_(&p, 4097, 8) == EINVAL && p == (void *)1234);
    static const size_t sizes[] = {0, 1, 17, 1000, 4096, 70000, 900000, 1 << 20, 3 << 20};
    for (size_t align = 8; align <= 16 * MIB; align *= 2)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void *a, *b = memalign_(align, sizes[i]), *c = aligned_alloc_(align, sizes[i]);
            must(posix_memalign_(&a, align, sizes[i]) == 0 && a && b && c && a != b && b != c);
            must((((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) & (align - 1)) == 0);
            memset(a, 1, sizes[i]), memset(b, 2, sizes[i]), memset(c, 3, sizes[i]);
            must(malloc_usable_size(a) >= sizes[i] && malloc_usable_size(b) >= sizes[i]);
            // An aligned block may grow: its bytes stay, its alignment need not.
            b = realloc_(b, sizes[i] + 100000);
            must(b && (sizes[i] == 0 || (((char *)b)[0] == 2 && ((char *)b)[sizes[i] - 1] == 2)));
            free_(a), free_(b), free_(c);
        }
    for (size_t n = 0; n < 300; n++) {
        void *a = malloc_(n), *b = calloc_(1, n), *c = realloc_(NULL, n);
        must(a && b && c && (((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) & 15) == 0);
        free_(a), free_(b), free_(c);
    }
    p = valloc(100);
    must(((uintptr_t)p & (PAGE - 1)) == 0);
    free_(p);
    p = pvalloc(PAGE + 1);
    must(((uintptr_t)p & (PAGE - 1)) == 0 && malloc_usable_size(p) >= 2 * PAGE);
    memset(p, 1, 2 * PAGE);
    free_(p);
    printf("alignments\n");
}

static void nothing(void) {
    free_(NULL);
    must(malloc_usable_size(NULL) == 0);
    void *a = malloc_(0), *b = malloc_(0), *c = calloc_(0, 8), *d = calloc_(8, 0), *e = realloc_(NULL, 0);
    must(a && b && c && d && e && a != b && b != c && c != d && d != e);
    must(realloc_(a, 0) == NULL && reallocarray_(b, 0, 8) == NULL);
    must(realloc_(malloc_(2 * MIB), 0) == NULL);
    free_(c), free_(d), free_(e);
    printf("nothing\n");
}

static void errno_is_kept(void) {
    for (size_t n = 1; n <= 64 * MIB; n *= 3) {
        char *p = malloc_(n);
        memset(p, 1, n);
        errno = 4711;
        free_(p);
        must(errno == 4711);
    }
    printf("errno is kept\n");
}

static void zeros(void) {
    for (int round = 0; round < 3; round++)
        for (size_t n = 1; n <= 20 * MIB; n = n * 3 + 1) {
            unsigned char *p = calloc_(1, n);
            must(p != NULL);
            for (size_t i = 0; i < n; i++) must(p[i] == 0);
            memset(p, 0xA5, n);
            free_(p);
        }
    printf("zeros\n");
}

static void resizing(void) {
    static const size_t sizes[] = {1, 15, 16, 17, 100, 1000, 5000, 40000, 300000, 600000, 1048575, 1048576, 1048577, 1500000, 2097152, 2097153, 9000000, 40000000};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int from = 0; from < N; from++)
        for (int to = 0; to < N; to++) {
            unsigned char *p = malloc_(sizes[from]);
            must(p != NULL && malloc_usable_size(p) >= sizes[from]);
            for (size_t i = 0; i < sizes[from]; i += 61) p[i] = (unsigned char)mix(i);
            p = realloc_(p, sizes[to]);
            must(p != NULL && malloc_usable_size(p) >= sizes[to]);
            for (size_t i = 0; i < sizes[from] && i < sizes[to]; i += 61) must(p[i] == (unsigned char)mix(i));
            memset(p, 7, malloc_usable_size(p)); // usable means usable
            free_(p);
        }
    // To and fro around the limit between small and large.
    unsigned char *p = malloc_(MIB);
    memset(p, 9, MIB);
    for (int i = 0; i < 2000; i++) {
        p = realloc_(p, MIB - (i % 2) * 64);
        must(p != NULL && p[0] == 9 && p[MIB - 65] == 9);
    }
    free_(p);
    printf("resizing\n");
}

static void many(void) {
    enum { N = 20000 };
    static uint64_t *blocks[N];
    static size_t sizes[N];
    uint64_t state = 1;
    for (int round = 0; round < 10 * N; round++) {
        int i = next_random(&state) % N;
        if (blocks[i]) verify(blocks[i], sizes[i], i, "one of many blocks");
        free_(blocks[i]);
        sizes[i] = 8 << next_random(&state) % 10;
        blocks[i] = malloc_(sizes[i]);
        must(blocks[i] != NULL);
        fill(blocks[i], sizes[i], i);
    }
    for (int i = 0; i < N; i++) {
        if (blocks[i]) verify(blocks[i], sizes[i], i, "one of many blocks at the end");
        free_(blocks[i]);
    }
    printf("many\n");
}

int main(void) {
    impossible_sizes();
    alignments();
    nothing();
    errno_is_kept();
    zeros();
    resizing();
    many();
    // The knobs of the C library's own heap exist and do no harm.
    must(malloc_trim(0) >= 0 && mallopt(M_MMAP_THRESHOLD, 128 << 10) == 1 && mallinfo2().uordblks >= 0);
    printf("OK\n");
    return 0;
}

// The whole malloc family under libautohbw.so or libmemtier.so: alignment, zeros, usable size, realloc in and
// out of a window, free of everything, errno. With an argument N:M,
// blocks of N to M bytes must lie in a heap of a kind, others in the C library's.
#include "check.h"
#include <malloc.h>

static size_t least, most = SIZE_MAX;
static int checks_place;

// The heaps of kinds have a memory policy; the C library's have none.
static int is_placed(void *block) {
    int mode = -1;
    unsigned long mask[16];
    must(syscall(SYS_get_mempolicy, &mode, mask, 1024ul, block, 2ul) == 0);
    return (mode & 0xff) != 0;
}

static void *checked(void *block, size_t size, size_t align) {
    must(block != NULL && (uintptr_t)block % align == 0);
    must(malloc_usable_size(block) >= size);
    memset(block, 0xA5, malloc_usable_size(block));
    if (checks_place) must(is_placed(block) == (size >= least && size <= most));
    return block;
}

static void *(*volatile malloc_)(size_t) = malloc;
static void *(*volatile calloc_)(size_t, size_t) = calloc;
static void *(*volatile realloc_)(void *, size_t) = realloc;
static void *(*volatile aligned_alloc_)(size_t, size_t) = aligned_alloc;
static void (*volatile free_)(void *) = free;

int main(int argc, char **argv) {
    if (argc > 1) {
        checks_place = 1;
        least = parse_size(argv[1]);
        if (strchr(argv[1], ':')) most = parse_size(strchr(argv[1], ':') + 1);
    }
    static const size_t sizes[] = {0, 1, 24, 4000, 4096, 4097, 70000, MIB, MIB + 1, 5 * MIB, 6 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        free_(checked(malloc_(n), n, 16));
        unsigned char *zeros = calloc_(n, 1);
        for (size_t at = 0; at < n; at++) must(zeros[at] == 0);
        free_(checked(zeros, n, 16));
        free_(checked(aligned_alloc_(64, n), n, 64));
        free_(checked(memalign(4096, n), n, 4096));
        free_(checked(valloc(n), n, 4096));
        void *block = pvalloc(n);
        must(block != NULL && (uintptr_t)block % 4096 == 0 && malloc_usable_size(block) >= n);
        free_(block);
        must(posix_memalign(&block, 256, n) == 0);
        free_(checked(block, n, 256));
        free_(checked(reallocarray(NULL, n, 1), n, 16));
    }
    // The size of the whole counts, not that of one element.
    free_(checked(calloc_(1 << 20, 8), 8 * MIB, 16));
    // Through all sizes and back, content kept.
    unsigned char *grown = malloc_(1);
    grown[0] = 7;
    for (size_t n = 2; n <= 16 * MIB; n *= 2) {
        grown = realloc_(grown, n);
        must(grown != NULL && malloc_usable_size(grown) >= n);
        for (size_t at = 0; at < n / 2; at += 509) must(grown[at] == (unsigned char)(at % 251 + 7));
        for (size_t at = 0; at < n; at++) grown[at] = at % 251 + 7;
    }
    for (size_t n = 8 * MIB; n >= 1; n /= 2) {
        grown = realloc_(grown, n);
        must(grown != NULL);
        for (size_t at = 0; at < n; at += 509) must(grown[at] == (unsigned char)(at % 251 + 7));
    }
    must(realloc_(grown, 0) == NULL);
    must(malloc_(0) != NULL);
    errno = 0;
    must(malloc_(SIZE_MAX - 100) == NULL && errno == ENOMEM);
    errno = 0;
    must(calloc_(SIZE_MAX / 4 + 2, 4) == NULL && errno == ENOMEM);
    errno = 77;
    free_(malloc_(2 * MIB));
    must(errno == 77);
    void *kept = (void *)1;
    must(posix_memalign(&kept, 3, 100) == EINVAL && posix_memalign(&kept, 64, SIZE_MAX / 2 + 1) == ENOMEM && kept == (void *)1);
    puts("OK");
}

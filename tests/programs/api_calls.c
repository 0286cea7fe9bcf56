// nearfar.h from C: contracts, content, threads, fork, memory given back. Says what the tiers are on standard error.
// flags: -I../../include -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "check.h"
#include <malloc.h>
#include <nearfar.h>

static const nearfar_tier TIERS[] = {NEARFAR_NEAR, NEARFAR_FAR};
// Hidden from the compiler, which warns of impossible sizes.
static volatile size_t huge = SIZE_MAX / 4 + 2;

static uint64_t used(nearfar_tier tier) {
    struct nearfar_capacity capacity;
    must(nearfar_capacity(tier, &capacity) == 0);
    return capacity.used_bytes;
}

static void contracts(nearfar_tier tier) {
    must(nearfar_malloc(0, tier) != NULL && nearfar_calloc(0, 8, tier) != NULL);
    errno = 0;
    must(nearfar_malloc(huge * 3, tier) == NULL && errno == ENOMEM);
    errno = 0;
    must(nearfar_calloc(huge, 4, tier) == NULL && errno == ENOMEM);
    errno = 0;
    must(nearfar_malloc(8, (nearfar_tier)7) == NULL && errno == EINVAL);
    void *block = (void *)1;
    errno = 0;
    must(nearfar_posix_memalign(&block, 24, 8, tier) == EINVAL && nearfar_posix_memalign(&block, 4, 8, tier) == EINVAL);
    must(nearfar_posix_memalign(&block, 64, huge * 3, tier) == ENOMEM && block == (void *)1 && errno == 0);
    for (size_t align = sizeof(void *); align <= 4 * MIB; align *= 2)
        for (size_t size = 1; size < 8 * MIB; size *= 37) {
            must(nearfar_posix_memalign(&block, align, size, tier) == 0 && (uintptr_t)block % align == 0);
            must(nearfar_usable_size(block) >= size);
            memset(block, 1, size);
            nearfar_free(block);
        }
    nearfar_free(NULL);
    must(nearfar_usable_size(NULL) == 0);
    errno = 77;
    nearfar_free(nearfar_malloc(10 * MIB, tier));
    must(errno == 77);
    // Zeros, also where something has been.
    for (size_t size = 24; size <= 24 * MIB; size *= 8) {
        char *first = nearfar_malloc(size, tier);
        memset(first, 0xff, size);
        nearfar_free(first);
        char *zeros = nearfar_calloc(size / 8, 8, tier);
        must(zeros != NULL && (uintptr_t)zeros % 16 == 0);
        verify_zero(zeros, size, "calloc");
        nearfar_free(zeros);
    }
}

static void sizes_change(nearfar_tier tier) {
    nearfar_tier other = tier == NEARFAR_NEAR ? NEARFAR_FAR : NEARFAR_NEAR;
    size_t size = 64;
    char *block = nearfar_realloc(NULL, size, tier);
    fill(block, size, 5);
    for (int step = 0; step < 40; step++) {
        size_t next = step % 3 == 2 ? size / 2 / 8 * 8 + 64 : size * 2 % (20 * MIB) / 8 * 8 + 64;
        size_t kept = next < size ? next : size;
        block = nearfar_realloc(block, next, step % 4 == 3 ? other : tier);
        must(block != NULL && nearfar_usable_size(block) >= next);
        verify(block, kept, 5, "realloc");
        fill(block, next, 5);
        size = next;
    }
    errno = 0;
    must(nearfar_realloc(block, huge * 3, tier) == NULL && errno == ENOMEM);
    verify(block, size, 5, "failed realloc");
    must(nearfar_realloc(block, 0, tier) == NULL);
    // Blocks of malloc may come, and blocks of ours may go to free and realloc.
    block = malloc(5 * MIB);
    fill(block, 5 * MIB, 6);
    block = nearfar_realloc(block, 6 * MIB, tier);
    verify(block, 5 * MIB, 6, "block of malloc");
    must(malloc_usable_size(block) >= 6 * MIB);
    block = realloc(block, 7 * MIB);
    verify(block, 5 * MIB, 6, "realloc of our block");
    free(block);
    free(nearfar_malloc(100, tier));
    nearfar_free(malloc(100));
    nearfar_free(strdup("text"));
}

static void pages_are_counted(nearfar_tier tier) {
    struct nearfar_where pages;
    size_t size = 16 * MIB;
    char *block = nearfar_calloc(1, size, tier);
    must(nearfar_where(block, size, &pages) == 0);
    must(pages.near_bytes + pages.far_bytes + pages.absent_bytes + pages.unknown_bytes == size);
    // Pools of jobs write zeros where a block has been before.
    must(getenv("NEARFAR_JOB") != NULL || pages.unknown_bytes > 0 || pages.absent_bytes >= size / 2);
    fill(block, size, 1);
    must(nearfar_where(block + 13, size - 20, &pages) == 0);
    must(pages.near_bytes + pages.far_bytes + pages.absent_bytes + pages.unknown_bytes == size - 20 && pages.absent_bytes == 0);
    fprintf(stderr, "tier %d: near %lu far %lu unknown %lu\n", tier, pages.near_bytes, pages.far_bytes, pages.unknown_bytes);
    must(nearfar_where(block, 0, &pages) == 0 && pages.near_bytes + pages.far_bytes + pages.absent_bytes == 0);
    must(nearfar_where(&pages, sizeof pages, &pages) == 0);
    errno = 0;
    must(nearfar_where(block, SIZE_MAX, &pages) == -1 && errno == EINVAL);
    must(nearfar_where(block, 1, NULL) == -1 && nearfar_capacity(tier, NULL) == -1);
    nearfar_free(block);
}

static uint64_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all, resident;
    must(file != NULL && fscanf(file, "%lu %lu", &all, &resident) == 2);
    fclose(file);
    return resident * PAGE;
}

static void memory_comes_back(nearfar_tier tier) {
    uint64_t before = used(tier), resident = resident_bytes();
    for (int round = 0; round < 5; round++) {
        void *blocks[8];
        for (int i = 0; i < 8; i++) {
            blocks[i] = nearfar_malloc(6 * MIB, tier);
            memset(blocks[i], 1, 6 * MIB);
        }
        uint64_t now = used(tier);
        must(now == 0 || now >= before + 48 * MIB);
        for (int i = 0; i < 8; i++) nearfar_free(blocks[i]);
    }
    must(used(tier) <= before + MIB);
    must(resident_bytes() < resident + 24 * MIB);
}

enum { THREADS = 4, SLOTS = 64 };
static void *_Atomic shared[SLOTS];

static void *worker(void *arg) {
    uint64_t seed = (uintptr_t)arg;
    for (int round = 0; round < 4000; round++) {
        seed = mix(seed + round);
        size_t size = 8 + seed % (round % 50 == 0 ? 3 * MIB : 3000) / 8 * 8;
        uint64_t *block = nearfar_malloc(size + 16, TIERS[seed >> 60 & 1]);
        must(block != NULL);
        block[0] = size;
        block[1] = seed;
        fill(block + 2, size, seed);
        // Another thread may free it.
        uint64_t *old = __atomic_exchange_n(&shared[seed >> 20 & (SLOTS - 1)], block, __ATOMIC_ACQ_REL);
        if (old != NULL) {
            verify(old + 2, old[0], old[1], "block of another thread");
            nearfar_free(old);
        }
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) must(pthread_create(&all[i], NULL, worker, (void *)(i + 1)) == 0);
    // Children of a process whose threads are at work.
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            worker((void *)(uintptr_t)(100 + i));
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < THREADS; i++) must(pthread_join(all[i], NULL) == 0);
    for (int i = 0; i < SLOTS; i++) nearfar_free(shared[i]);
}

int main(void) {
    must(nearfar_version() == NEARFAR_VERSION);
    must(nearfar_tiers() == 1 || nearfar_tiers() == 2);
    fprintf(stderr, "%s\n", nearfar_describe());
    for (int i = 0; i < 2; i++) {
        contracts(TIERS[i]);
        sizes_change(TIERS[i]);
        pages_are_counted(TIERS[i]);
        memory_comes_back(TIERS[i]);
    }
    threads();
    puts("OK");
    return 0;
}

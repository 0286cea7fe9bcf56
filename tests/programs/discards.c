// flags: -pthread
// MADV_DONTNEED gives zeros, MADV_FREE the old content or zeros page by page; by libc, by raw system call, in memory of malloc and mmap.
#include "check.h"

static int raw;
static int advise(void *at, size_t bytes, int advice) {
    return raw ? (int)syscall(SYS_madvise, at, bytes, advice) : madvise(at, bytes, advice);
}

static void old_or_zero(char *at, size_t bytes, uint64_t salt, size_t first) {
    for (size_t p = 0; p < bytes; p += PAGE) {
        uint64_t *w = (uint64_t *)(at + p);
        int zero = w[0] == 0;
        for (size_t i = 0; i < 512; i++) {
            uint64_t old = word(salt, first + p / 8 + i);
            if (w[i] != (zero ? 0 : old)) wrong(at, p / 8 + i, w[i], zero ? 0 : old, "page after MADV_FREE");
        }
    }
}

static void discard_parts(char *at, size_t bytes, uint64_t salt) {
    fill(at, bytes, salt);
    must(advise(at + 8 * MIB, 8 * MIB, MADV_DONTNEED) == 0);       // present or not
    verify_zero(at + 8 * MIB, 8 * MIB, "just after DONTNEED");
    fill_from(at + 8 * MIB, 8 * MIB, salt, MIB);
    push_out();
    must(advise(at + 16 * MIB, 16 * MIB, MADV_DONTNEED) == 0);     // mostly in far
    push_out();
    verify_zero(at + 16 * MIB, 16 * MIB, "DONTNEED of memory in far, after pressure");
    verify(at, 16 * MIB, salt, "before the discarded part");
    verify_from(at + 32 * MIB, bytes - 32 * MIB, salt, 32 * MIB / 8, "behind the discarded part");
    for (size_t p = 0; p < 8 * MIB; p += 3 * PAGE) must(advise(at + 36 * MIB + p, PAGE, MADV_DONTNEED) == 0); // single pages
    push_out();
    for (size_t p = 0; p + 3 * PAGE <= 8 * MIB; p += 3 * PAGE) {
        verify_zero(at + 36 * MIB + p, PAGE, "single discarded page");
        verify_from(at + 36 * MIB + p + PAGE, 2 * PAGE, salt, (36 * MIB + p + PAGE) / 8, "neighbours of a discarded page");
    }
    // One byte written after a discard: the rest of the page is zero, nothing old comes back.
    at[16 * MIB + 5 * PAGE] = 1;
    at[16 * MIB + 5 * PAGE] = 0;
    push_out();
    verify_zero(at + 16 * MIB, MIB, "discarded and touched");
    fill(at, bytes, salt + 1);
    push_out();
    must(advise(at + 8 * MIB, 16 * MIB, MADV_FREE) == 0);
    old_or_zero(at + 8 * MIB, 16 * MIB, salt + 1, MIB);
    push_out();
    old_or_zero(at + 8 * MIB, 16 * MIB, salt + 1, MIB);
    fill_from(at + 8 * MIB, 16 * MIB, salt + 1, MIB);
    push_out();
    verify(at, bytes, salt + 1, "written again after MADV_FREE");
    must(advise(at, bytes, MADV_HUGEPAGE) == 0 || errno == EINVAL);
    must(advise(at, bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    must(advise(at, bytes, MADV_WILLNEED) == 0 || errno == EBADF);
    must(advise(at, bytes, MADV_SEQUENTIAL) == 0 && advise(at, bytes, MADV_NORMAL) == 0);
    verify(at, bytes, salt + 1, "after harmless advice");
}

static volatile int done;
static void *discarder(void *arg) { // discards its own half again and again while others page
    char *at = arg;
    for (int round = 0; !done; round++) {
        fill(at, 24 * MIB, 50 + round);
        for (size_t p = 0; p < 24 * MIB; p += 64 * PAGE) {
            verify_from(at + p, 32 * PAGE, 50 + round, p / 8, "own half");
            must(advise(at + p, 32 * PAGE, MADV_DONTNEED) == 0);
            verify_zero(at + p, 32 * PAGE, "own half, discarded");
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    raw = argc > 1 && !strcmp(argv[1], "raw");
    size_t bytes = 64 * MIB;
    char *mapped = map(bytes);
    discard_parts(mapped, bytes, 11);
    char *block = malloc(bytes + PAGE), *aligned = (char *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE);
    discard_parts(aligned, bytes, 21);
    char *halves[2] = {map(24 * MIB), map(24 * MIB)};
    pthread_t handles[2];
    for (int i = 0; i < 2; i++) must(pthread_create(&handles[i], NULL, discarder, halves[i]) == 0);
    double until = seconds_now() + 3;
    while (seconds_now() < until) verify(mapped, bytes, 12, "while others discard");
    done = 1;
    for (int i = 0; i < 2; i++) pthread_join(handles[i], NULL);
    verify(aligned, bytes, 22, "block of malloc at the end");
    free(block);
    must(munmap(mapped, bytes) == 0);
    printf("OK\n");
    return 0;
}

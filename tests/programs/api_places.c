// Where blocks of nearfar.h really are, by move_pages(2): api_places NEAR-MASK FAR-MASK [MiB that near lets go before far takes over].
// flags: -I../../include -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "check.h"
#include <nearfar.h>

// Bytes of the range on nodes of the mask; what is not present is counted nowhere.
static size_t on_nodes(char *start, size_t size, unsigned long mask) {
    size_t bytes = 0;
    for (char *page = (char *)((uintptr_t)start & ~(PAGE - 1)); page < start + size; page += PAGE) {
        void *address = page;
        int status = -1;
        must(syscall(SYS_move_pages, 0, 1ul, &address, NULL, &status, 0) == 0);
        if (status >= 0 && mask >> status & 1) bytes += PAGE;
    }
    return bytes;
}

static void check(nearfar_tier tier, unsigned long mask, size_t size) {
    struct nearfar_where pages;
    char *block = nearfar_malloc(size, tier);
    must(block != NULL);
    memset(block, 1, size);
    size_t there = on_nodes(block, size, mask);
    must(nearfar_where(block, size, &pages) == 0);
    fprintf(stderr, "tier %d: %zu of %zu on the nodes %lx; near %lu far %lu absent %lu\n", tier, there, size, mask, pages.near_bytes,
            pages.far_bytes, pages.absent_bytes);
    must(there >= size);
    must((tier == NEARFAR_NEAR ? pages.near_bytes : pages.far_bytes) == size);
    nearfar_free(block);
}

int main(int argc, char **argv) {
    must(argc >= 3);
    unsigned long near = strtoul(argv[1], NULL, 16), far = strtoul(argv[2], NULL, 16);
    fprintf(stderr, "%s\n", nearfar_describe());
    must(nearfar_tiers() == 2);
    for (size_t size = 100; size < 40 * MIB; size *= 17) {
        check(NEARFAR_NEAR, near, size);
        check(NEARFAR_FAR, far, size);
    }
    struct nearfar_capacity before, after;
    // Free memory of a node is not this program's alone: one that ended just now may still give back. It has, when nothing changes.
    for (int tries = 0; tries < 50; tries++) {
        must(nearfar_capacity(NEARFAR_NEAR, &before) == 0);
        usleep(100000);
        must(nearfar_capacity(NEARFAR_NEAR, &after) == 0);
        if (after.free_bytes < before.free_bytes + MIB && before.free_bytes < after.free_bytes + MIB) break;
    }
    must(nearfar_capacity(NEARFAR_NEAR, &before) == 0);
    must(before.free_bytes <= before.total_bytes && before.total_bytes < 2048 * MIB);
    // Much, since the kernel keeps tens of MiB of freed pages in lists of each CPU, which it does not count as free, and gives from these.
    size_t much = before.free_bytes / 4 > 32 * MIB ? before.free_bytes / 4 : 32 * MIB;
    char *held = nearfar_malloc(much, NEARFAR_NEAR);
    must(held != NULL);
    memset(held, 1, much);
    must(nearfar_capacity(NEARFAR_NEAR, &after) == 0);
    fprintf(stderr, "free %lu, then %lu; used %lu of %zu\n", before.free_bytes, after.free_bytes, after.used_bytes, much);
    must(after.used_bytes >= much);
    int told = after.free_bytes + much / 2 < before.free_bytes;
    must(told);
    // A child writes its own copies to near too.
    pid_t child = fork();
    if (child == 0) {
        memset(held, 2, 32 * MIB);
        must(on_nodes(held, 32 * MIB, near) >= 32 * MIB);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    if (argc > 3) {
        // More than near has: the program goes on, and the rest is far.
        size_t size = strtoul(argv[3], NULL, 10) * MIB, step = 16 * MIB, in_far = 0;
        char *blocks[64];
        must(size / step < 64);
        for (size_t i = 0; i < size / step; i++) {
            must((blocks[i] = nearfar_malloc(step, NEARFAR_NEAR)) != NULL);
            fill(blocks[i], step, i);
        }
        for (size_t i = 0; i < size / step; i++) {
            verify(blocks[i], step, i, "block");
            in_far += on_nodes(blocks[i], step, far);
            nearfar_free(blocks[i]);
        }
        fprintf(stderr, "%zu MiB of %zu went to far\n", in_far / MIB, size / MIB);
        must(in_far > 0 && in_far < size);
    }
    puts("OK");
    return 0;
}

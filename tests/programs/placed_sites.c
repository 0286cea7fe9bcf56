// Objects told apart by where they are allocated: a plan names functions of this program.
// Usage: placed_sites NEAR FAR
// flags: -rdynamic -fno-optimize-sibling-calls
#include "check.h"

static int near_node, far_node;

static void on(const char *what, char *at, size_t bytes, int node) {
    must(at != NULL);
    memset(at, 1, bytes);
    void *page = (void *)(((uintptr_t)at + 2 * PAGE) & ~(PAGE - 1));
    int status;
    must(syscall(SYS_move_pages, 0, 1ul, &page, NULL, &status, 0) == 0);
    if (status != node) {
        printf("WRONG %s: on node %d, not %d\n", what, status, node);
        exit(1);
    }
}

char planned_array[2 * MIB], other_array[2 * MIB];

#define NOT_INLINED __attribute__((noinline, noclone))
NOT_INLINED char *allocate_wave(size_t bytes) { return malloc(bytes); }
NOT_INLINED char *allocate_other(size_t bytes) { return malloc(bytes); }
NOT_INLINED char *allocate_shared(size_t bytes) { return calloc(1, bytes); }
NOT_INLINED char *caller_near(size_t bytes) { char *at = allocate_shared(bytes); __asm__ volatile(""); return at; }
NOT_INLINED char *caller_far(size_t bytes) { char *at = allocate_shared(bytes); __asm__ volatile(""); return at; }
NOT_INLINED char *map_wave(size_t bytes) { char *at = map(bytes); __asm__ volatile(""); return at; }

int main(int argc, char **argv) {
    must(argc == 3);
    near_node = atoi(argv[1]);
    far_node = atoi(argv[2]);
    for (int round = 0; round < 3; round++) {
        char *wave = allocate_wave(2 * MIB);
        on("named function", wave, 2 * MIB, near_node);
        wave = realloc(wave, 6 * MIB); // stays with the site that it is from
        on("named function, grown", wave, 6 * MIB, near_node);
        free(wave);
        on("named function, too small", wave = allocate_wave(500 << 10), 500 << 10, far_node);
        free(wave);
        on("other function", wave = allocate_other(2 * MIB), 2 * MIB, far_node);
        free(wave);
        on("named caller", wave = caller_near(2 * MIB), 2 * MIB, near_node);
        free(wave);
        on("other caller", wave = caller_far(2 * MIB), 2 * MIB, far_node);
        free(wave);
        on("mapping of a named function", wave = map_wave(2 * MIB), 2 * MIB, near_node);
        munmap(wave, 2 * MIB);
        on("other mapping", wave = map(2 * MIB), 2 * MIB, far_node);
        munmap(wave, 2 * MIB);
    }
    on("named array", planned_array, sizeof planned_array, near_node);
    on("other array", other_array, sizeof other_array, far_node);
    printf("OK\n");
    return 0;
}

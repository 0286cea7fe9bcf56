// Flat and hybrid mode over paged far memory: objects of 1 to 5 MiB are never paged, whatever the pressure, as long as there is room.
// Usage: placed_paged spill|fail|wait ROOM: bytes of near that placed objects may have.
#include "check.h"

static uint64_t fitting_array[3 * MIB / 8], large_array[24 * MIB / 8];

static size_t present(const void *at, size_t bytes) {
    static unsigned char pages[16 * MIB / PAGE];
    uintptr_t first = ((uintptr_t)at + PAGE - 1) & ~(PAGE - 1), end = ((uintptr_t)at + bytes) & ~(PAGE - 1);
    must(mincore((void *)first, end - first, pages) == 0);
    size_t count = 0;
    for (size_t i = 0; i < (end - first) / PAGE; i++) count += pages[i] & 1;
    return count * PAGE;
}
static void all_present(const char *what, const void *at, size_t bytes) {
    size_t there = present(at, bytes), wanted = bytes & ~(PAGE - 1);
    if (there + 2 * PAGE < wanted) {
        printf("WRONG %s: %zu of %zu bytes are in memory\n", what, there, bytes);
        fflush(stdout);
        _exit(1);
    }
}

#define BLOCK (2 * MIB)
static char *blocks[1000];
static int count;
static void take(size_t bytes) {
    for (count = 0; count * BLOCK < bytes; count++) {
        must((blocks[count] = malloc(BLOCK)) != NULL);
        fill(blocks[count], BLOCK, count);
    }
}
static void check_blocks(const char *what) {
    for (int i = 0; i < count; i++) verify(blocks[i], BLOCK, i, what);
}
static void give(void) {
    for (int i = 0; i < count; i++) free(blocks[i]);
}

int main(int argc, char **argv) {
    must(argc == 3);
    size_t room = parse_size(argv[2]);
    fill(fitting_array, sizeof fitting_array, 1);
    fill(large_array, sizeof large_array, 2);
    char *mapped = map(4 * MIB);
    fill(mapped, 4 * MIB, 3);
    for (int round = 0; round < 3; round++) {
        take(room / 2);
        push_out();
        for (int i = 0; i < count; i++) all_present("block", blocks[i], BLOCK);
        all_present("static array", fitting_array, sizeof fitting_array);
        all_present("mapping", mapped, 4 * MIB);
        check_blocks("block");
        verify(large_array, sizeof large_array, 2, "large array");
        verify(fitting_array, sizeof fitting_array, 1, "static array");
        verify(mapped, 4 * MIB, 3, "mapping");
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            check_blocks("block in a child");
            for (int i = 0; i < count; i++) fill(blocks[i], BLOCK, i + 1000);
            push_out();
            for (int i = 0; i < count; i++) verify(blocks[i], BLOCK, i + 1000, "block of a child");
            verify(large_array, sizeof large_array, 2, "large array in a child");
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child);
        if (status) { printf("FAILED: the child ended with %x\n", status); exit(1); }
        check_blocks("block of the parent");
        give();
    }
    mapped = mremap(mapped, 4 * MIB, 5 * MIB, MREMAP_MAYMOVE);
    must(mapped != MAP_FAILED);
    verify(mapped, 4 * MIB, 3, "mremap");
    if (!strcmp(argv[1], "spill")) {
        // More than fits: the rest is paged.
        take(2 * room);
        push_out();
        size_t there = 0;
        for (int i = 0; i < count; i++) there += present(blocks[i], BLOCK) == BLOCK;
        fprintf(stderr, "# %zu of %d blocks of 2 MiB are in memory\n", there, count);
        must(there * BLOCK >= room / 2 && there < (size_t)count);
        check_blocks("spilled block");
        give();
    } else if (!strcmp(argv[1], "fail")) {
        int had = 0;
        while (had < 1000 && (blocks[had] = malloc(BLOCK)) != NULL) { memset(blocks[had], 1, BLOCK); had++; }
        fprintf(stderr, "# %d blocks of 2 MiB\n", had);
        must(errno == ENOMEM && had * BLOCK <= room && (had + 8) * BLOCK >= room / 2);
        must(malloc(20 * MIB) != NULL); // not meant for near
        while (had > 0) free(blocks[--had]);
        must(malloc(BLOCK) != NULL);
    }
    printf("OK\n");
    return 0;
}

// A flat job over paged far memory: near blocks stay in view while far ones are paged through what is left. 128 MiB of near.
// flags: -I../../include -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "check.h"
#include <nearfar.h>

static struct nearfar_where where(const void *start, size_t len) {
    struct nearfar_where found;
    must(nearfar_where(start, len, &found) == 0);
    must(found.near_bytes + found.far_bytes + found.absent_bytes + found.unknown_bytes == len);
    return found;
}

int main(void) {
    fprintf(stderr, "%s\n", nearfar_describe());
    struct nearfar_capacity before, after;
    must(nearfar_tiers() == 2 && nearfar_capacity(NEARFAR_NEAR, &before) == 0);
    must(before.total_bytes <= 128 * MIB && before.free_bytes >= 40 * MIB);
    char *near = nearfar_malloc(32 * MIB, NEARFAR_NEAR), *far = nearfar_malloc(300 * MIB, NEARFAR_FAR);
    must(near != NULL && far != NULL);
    fill(near, 32 * MIB, 1);
    must(nearfar_capacity(NEARFAR_NEAR, &after) == 0 && after.free_bytes + 32 * MIB <= before.free_bytes + 4 * MIB);
    for (uint64_t round = 2; round < 5; round++) {
        fill(far, 300 * MIB, round);
        verify(far, 300 * MIB, round, "far block");
        must(where(near, 32 * MIB).near_bytes == 32 * MIB);
    }
    struct nearfar_where found = where(far, 300 * MIB);
    fprintf(stderr, "far block: near %lu far %lu absent %lu\n", found.near_bytes, found.far_bytes, found.absent_bytes);
    must(found.far_bytes >= 200 * MIB && found.near_bytes <= 128 * MIB && found.absent_bytes == 0);
    verify(near, 32 * MIB, 1, "near block");
    // More than near has spills, and is right too.
    char *much = nearfar_malloc(200 * MIB, NEARFAR_NEAR);
    must(much != NULL);
    fill(much, 200 * MIB, 9);
    verify(much, 200 * MIB, 9, "spilled block");
    // From far to near and back.
    char *mover = nearfar_malloc(8 * MIB, NEARFAR_FAR);
    fill(mover, 8 * MIB, 7);
    mover = nearfar_realloc(mover, 9 * MIB, NEARFAR_NEAR);
    verify(mover, 8 * MIB, 7, "moved to near");
    must(where(mover, 8 * MIB).near_bytes == 8 * MIB);
    mover = nearfar_realloc(mover, 9 * MIB, NEARFAR_FAR);
    verify(mover, 8 * MIB, 7, "moved to far");
    nearfar_free(near);
    free(far);
    nearfar_free(much);
    nearfar_free(mover);
    must(nearfar_capacity(NEARFAR_NEAR, &after) == 0);
    must(after.used_bytes == 0 && after.free_bytes + 4 * MIB >= before.free_bytes);
    puts("OK");
    return 0;
}

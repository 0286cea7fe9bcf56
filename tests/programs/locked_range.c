// flags: -pthread
// An mlock'ed range stays resident under pressure (mincore says so) and keeps its content; munlock lets it go again.
#include "check.h"
#include <sys/resource.h>

static size_t resident(char *at, size_t bytes) {
    unsigned char *state = malloc(bytes / PAGE);
    must(mincore(at, bytes, state) == 0);
    size_t count = 0;
    for (size_t i = 0; i < bytes / PAGE; i++) count += state[i] & 1;
    free(state);
    return count;
}

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    size_t locked = 16 * MIB;
    if (limit.rlim_cur < locked && geteuid() != 0) locked = limit.rlim_cur / 2 / PAGE * PAGE;
    char *at = map(128 * MIB);
    fill(at, 128 * MIB, 3);
    char *part = at + 40 * MIB + 3 * PAGE;
    must(mlock(part, locked) == 0);
    pthread_t pressure = start_pressure(96 * MIB);
    for (int round = 0; round < 3; round++) {
        push_out();
        must(resident(part, locked) == locked / PAGE);
        verify(at, 128 * MIB, 3, "mapping with a locked part");
        must(resident(part, locked) == locked / PAGE);
    }
    must(munlock(part, locked) == 0);
    end_pressure(pressure);
    push_out();
    verify(at, 128 * MIB, 3, "after munlock");
    // Locked before it was touched.
    char *fresh = map(4 * MIB);
    if (mlock(fresh, MIB) == 0) {
        must(resident(fresh, MIB) == MIB / PAGE);
        verify_zero(fresh, 4 * MIB, "fresh locked memory");
        must(munlock(fresh, MIB) == 0);
    }
    must(mlock2(fresh, MIB, MLOCK_ONFAULT) == 0);
    fill(fresh, 4 * MIB, 4);
    push_out();
    verify(fresh, 4 * MIB, 4, "locked on fault");
    munmap(fresh, 4 * MIB);
    printf("OK\n");
    return 0;
}

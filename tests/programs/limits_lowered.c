// The program lowers what it may have while paging: malloc says no, and everything else goes on.
#include "check.h"
#include <sys/resource.h>

static void lower(int resource, size_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY};
    must(setrlimit(resource, &limit) == 0);
    must(getrlimit(resource, &limit) == 0 && limit.rlim_cur == bytes);
}

// Blocks of 4 MiB until there are no more; touched, since tables must be had for them.
static size_t blocks_until_refused(void) {
    size_t got = 0;
    for (char *block; got < 4000 && (block = malloc(4 * MIB)); got++) memset(block, 7, 4 * MIB);
    return got;
}

int main(int argc, char **argv) {
    (void)argv;
    int resource = argc > 1 ? RLIMIT_DATA : RLIMIT_AS;
    char *first = malloc(100 * MIB);
    fill(first, 100 * MIB, 1);
    lower(resource, 400 * MIB);
    must(malloc(2000 * MIB) == NULL && errno == ENOMEM);
    size_t got = blocks_until_refused();
    // 300 MiB are left, less what the program and its libraries take.
    if (got < 60 || got > 76) printf("%zu blocks\n", got);
    must(malloc(64 * MIB) == NULL);
    verify(first, 100 * MIB, 1, "with no memory left");
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    must(setrlimit(resource, &limit) == 0);
    char *more = malloc(200 * MIB);
    must(more != NULL);
    fill(more, 200 * MIB, 2);
    verify(more, 200 * MIB, 2, "after the limit is gone");
    puts("OK");
    return 0;
}

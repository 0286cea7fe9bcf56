// Allocates and touches in steps until there is no more: that must be told by NULL and ENOMEM, with all data still right.
// Then some is freed, and as much must be had again.
// arguments: how (malloc, mmap, mprotect, mremap, realloc, small), step, most, "beside" (others may have taken what was freed: then it
// must be told as well)
#include "check.h"

#define MOST 65536
static char *piece[MOST];
static const char *how;
static size_t step;

// A piece of `step` bytes, or NULL.
static char *get(int i) {
    if (!strcmp(how, "mmap")) {
        char *at = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return at == MAP_FAILED ? NULL : at;
    }
    if (!strcmp(how, "mprotect")) {
        char *at = mmap(NULL, step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(at != MAP_FAILED); // nothing is promised by that
        if (mprotect(at, step, PROT_READ | PROT_WRITE) == 0) return at;
        int why = errno;
        must(munmap(at, step) == 0);
        errno = why;
        return NULL;
    }
    (void)i;
    return malloc(step);
}
static void put(char *at) {
    if (!strcmp(how, "malloc") || !strcmp(how, "small")) free(at);
    else must(munmap(at, step) == 0);
}

// One block that grows in steps.
static int grow(size_t most) {
    int moves = !strcmp(how, "mremap");
    size_t have = step, tries = 0;
    char *at = moves ? map(step) : malloc(step);
    must(at != NULL);
    fill(at, step, 1);
    while (have < most) {
        errno = 0;
        char *more = moves ? mremap(at, have, have + step, MREMAP_MAYMOVE) : realloc(at, have + step);
        if (more == NULL || more == MAP_FAILED) {
            must(errno == ENOMEM);
            tries++;
            break;
        }
        at = more;
        fill_from(at + have, step, 1, have / 8);
        have += step;
    }
    must(tries == 1);
    fprintf(stderr, "got %zu MiB\n", have / MIB);
    verify(at, have, 1, "after the end of memory");
    printf("OK\n");
    return 0;
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "malloc";
    step = size_arg(argc, argv, 2, 4 * MIB);
    size_t most = size_arg(argc, argv, 3, 1024 * MIB);
    if (!strcmp(how, "mremap") || !strcmp(how, "realloc")) return grow(most);
    int count = 0;
    while (count < MOST && count * step < most) {
        errno = 0;
        char *at = get(count);
        if (at == NULL) {
            must(errno == ENOMEM);
            break;
        }
        piece[count] = at;
        fill(at, step, count);
        count++;
    }
    must(count * step < most && count < MOST);
    fprintf(stderr, "got %zu MiB\n", count * step / MIB);
    for (int i = 0; i < count; i++) verify(piece[i], step, i, "after the end of memory");
    // Everything can still be written.
    for (int i = 0; i < count; i++) fill(piece[i], step, i + 1000000);
    for (int i = count - 1; i >= 0; i--) verify(piece[i], step, i + 1000000, "rewritten");
    for (int i = 0; i < count; i += 2) put(piece[i]);
    // As much less a little: small blocks leave gaps.
    int again = 0;
    for (int i = 0; i < count; i += 2) {
        if (again >= count / 4) { piece[i] = NULL; continue; }
        piece[i] = get(i);
        int taken = piece[i] == NULL && argc > 4 && !strcmp(argv[4], "beside") && errno == ENOMEM;
        must(piece[i] != NULL || taken);
        if (!taken) fill(piece[i], step, i + 2000000);
        again++;
    }
    for (int i = 0; i < count; i++)
        if (piece[i]) verify(piece[i], step, i + (i % 2 ? 1000000 : 2000000), "after more memory was had");
    printf("OK\n");
    return 0;
}

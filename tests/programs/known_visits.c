// known_visits [fork]: visits chunks of a mapping in an order that a trace must show. Prints where the mapping is.
// Three rounds over 512 chunks, each in another order; the first and the last store, the second loads. With fork, a child does
// the last round, on its own copy.
#include "check.h"

#define CHUNKS 512ul
#define CHUNK (64ul << 10)

static char *base;

static void visit_all(size_t step, uint64_t salt, int store) {
    for (size_t i = 0; i < CHUNKS; i++) {
        char *at = base + i * step % CHUNKS * CHUNK;
        if (store) fill(at, CHUNK, salt);
        else verify(at, CHUNK, salt, "second round");
    }
}

int main(int argc, char **argv) {
    base = mmap(NULL, CHUNKS * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(base != MAP_FAILED);
    printf("%lx\n", (unsigned long)base);
    fflush(stdout);
    visit_all(1, 1, 1);
    visit_all(3, 1, 0);
    if (argc > 1 && !strcmp(argv[1], "fork")) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            visit_all(5, 2, 1);
            verify(base, CHUNK, 2, "in the child");
            exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
        verify(base, CHUNK, 1, "in the parent");
    } else {
        visit_all(5, 2, 1);
    }
    must(munmap(base, CHUNKS * CHUNK) == 0);
    return 0;
}

// Near is full: what happens to allocations that are meant for it, and that nothing is killed when what was given is touched.
// Usage: placed_full spill|fail|wait NEAR FAR
#include "check.h"

static int near_node, far_node;

static size_t on_node(const char *at, size_t bytes, int node) {
    size_t count = bytes / PAGE, found = 0;
    for (size_t first = 0; first < count; first += 512) {
        void *pages[512];
        int status[512];
        size_t some = count - first < 512 ? count - first : 512;
        for (size_t i = 0; i < some; i++) pages[i] = (void *)(((uintptr_t)at + (first + i) * PAGE) & ~(PAGE - 1));
        must(syscall(SYS_move_pages, 0, some, pages, NULL, status, 0) == 0);
        for (size_t i = 0; i < some; i++) found += status[i] == node;
    }
    return found * PAGE;
}

#define MOST 4096
static char *blocks[MOST];

// Takes blocks until one is refused (or `limit` bytes); the bytes had. Untouched as long as `touch` is 0.
static size_t take(size_t each, size_t limit, int touch) {
    size_t had = 0;
    for (int i = 0; i < MOST && had < limit; i++) {
        blocks[i] = malloc(each);
        if (!blocks[i]) {
            must(errno == ENOMEM);
            return had;
        }
        if (touch) memset(blocks[i], 1, each);
        had += each;
    }
    return had;
}
static void touch_all(size_t each) {
    for (int i = 0; i < MOST && blocks[i]; i++) memset(blocks[i], 1, each);
}
static void give_all(void) {
    for (int i = 0; i < MOST; i++) { free(blocks[i]); blocks[i] = NULL; }
}

static void *giver(void *arg) {
    sleep(1);
    for (int i = 0; i < MOST / 2 && blocks[i]; i++) { free(blocks[i]); blocks[i] = NULL; }
    return arg;
}

static void refused(size_t node_bytes) {
    // In vain: more than there is. Nothing else is lost by it.
    must(malloc(node_bytes * 2) == NULL && errno == ENOMEM);
    must(mmap(NULL, node_bytes * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    // All at once, touched last: nobody is killed. And again, so nothing leaks.
    size_t before = 0;
    for (int round = 0; round < 3; round++) {
        size_t had = take(2 * MIB, node_bytes * 2, 0);
        fprintf(stderr, "# round %d: %zu MiB of %zu\n", round, had / MIB, node_bytes / MIB);
        must(had < node_bytes && had > node_bytes / 2);
        if (round) must(had + 16 * MIB > before);
        before = had;
        touch_all(2 * MIB);
        must(on_node(blocks[0], 2 * MIB, near_node) == 2 * MIB);
        // A little may have become free meanwhile: page cache, pages that CPUs held.
        must(malloc(24 * MIB) == NULL);
        give_all();
    }
    // Touched as they come.
    size_t touched = take(MIB, node_bytes * 2, 1);
    must(touched < node_bytes && touched + 24 * MIB > before);
    give_all();
    // Half of it in a child, which must not have the other half twice.
    size_t half = take(2 * MIB, before / 2, 1);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        for (int i = 0; i < MOST && blocks[i]; i++) must(blocks[i][1000] == 1);
        size_t rest = take(2 * MIB, node_bytes * 2, 1);
        must(rest < node_bytes - half);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0)) { printf("FAILED: the child ended with %x\n", status); exit(1); }
    give_all();
}

static void spilled(size_t node_bytes) {
    size_t had = take(4 * MIB, node_bytes + 128 * MIB, 1), near = 0;
    must(had >= node_bytes + 128 * MIB);
    for (int i = 0; i < MOST && blocks[i]; i++) near += on_node(blocks[i], 4 * MIB, near_node);
    fprintf(stderr, "# %zu of %zu MiB are near\n", near / MIB, had / MIB);
    must(near > node_bytes / 2 && near <= node_bytes);
    give_all();
}

static void limited(size_t limit) {
    size_t had = take(2 * MIB, limit * 3, 1), near = 0;
    must(had >= limit * 3);
    for (int i = 0; i < MOST && blocks[i]; i++) near += on_node(blocks[i], 2 * MIB, near_node);
    fprintf(stderr, "# %zu MiB are near, the limit is %zu\n", near / MIB, limit / MIB);
    must(near <= limit && near + 8 * MIB >= limit);
    give_all();
}

int main(int argc, char **argv) {
    must(argc >= 5);
    near_node = atoi(argv[2]);
    far_node = atoi(argv[3]);
    size_t node_bytes = parse_size(argv[4]);
    if (!strcmp(argv[1], "spill")) spilled(node_bytes);
    if (!strcmp(argv[1], "limit")) limited(node_bytes);
    if (!strcmp(argv[1], "fail")) refused(node_bytes);
    if (!strcmp(argv[1], "wait")) {
        must(malloc(node_bytes * 2) == NULL && errno == ENOMEM); // would wait for ever
        size_t had = take(2 * MIB, node_bytes / 2, 1);
        pthread_t thread;
        must(pthread_create(&thread, NULL, giver, NULL) == 0);
        double start = seconds_now();
        char *block = malloc(node_bytes / 2 + node_bytes / 8);
        double waited = seconds_now() - start;
        fprintf(stderr, "# had %zu MiB, waited %.2f s\n", had / MIB, waited);
        must(block != NULL && waited > 0.5);
        memset(block, 1, node_bytes / 2);
        pthread_join(thread, NULL);
        free(block);
        give_all();
    }
    printf("OK\n");
    return 0;
}

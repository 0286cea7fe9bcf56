// Objects of every kind, of sizes inside and outside a range, each touched; then where every page of each lies.
// Usage: placed_kinds NEAR FAR: the nodes where objects of 1 to 5 MiB, and all others, must be.
#include "check.h"
#include <malloc.h>

static int near_node, far_node;
static char small_array[512 << 10], fitting_array[3 * MIB + 100], fitting_data[2 * MIB] = {1}, large_array[9 * MIB];

// The node of every page of [at, at + bytes), which lie inside: the first and last page may be shared.
static void check_nodes(const char *what, const char *at, size_t bytes, int node) {
    uintptr_t first = ((uintptr_t)at + PAGE - 1) & ~(PAGE - 1), end = ((uintptr_t)at + bytes) & ~(PAGE - 1);
    if (first >= end) return;
    size_t count = (end - first) / PAGE, wrong_nodes = 0;
    void **pages = malloc(count * sizeof *pages);
    int *status = malloc(count * sizeof *status);
    for (size_t i = 0; i < count; i++) pages[i] = (void *)(first + i * PAGE);
    must(syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) == 0);
    for (size_t i = 0; i < count; i++) wrong_nodes += status[i] != node;
    if (wrong_nodes) {
        printf("WRONG %s: %zu of %zu pages are not on node %d; the first page is on %d\n", what, wrong_nodes, count, node, status[0]);
        fflush(stdout);
        _exit(1);
    }
    free(pages);
    free(status);
}

static void check(const char *what, char *at, size_t bytes, int near) {
    must(at != NULL);
    fill(at, bytes, bytes);
    verify(at, bytes, bytes, what);
    check_nodes(what, at, bytes, near ? near_node : far_node);
}

static void *anonymous(size_t bytes, int flags) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    must(at != MAP_FAILED);
    return at;
}

static void *thread_body(void *arg) {
    char deep[256 << 10];
    memset(deep, 1, sizeof deep);
    __asm__ volatile("" ::"r"(deep) : "memory");
    check_nodes("thread stack", deep, sizeof deep, arg ? near_node : far_node);
    return (void *)42;
}

static void check_thread(size_t stack, void *near) {
    pthread_t thread;
    pthread_attr_t attr;
    void *result;
    must(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, stack) == 0);
    must(pthread_create(&thread, &attr, thread_body, near) == 0 && pthread_join(thread, &result) == 0);
    must(result == (void *)42);
}

static void heap(void) {
    size_t sizes[] = {100, 4096, 100 << 10, MIB - 8, MIB, MIB + 1, 3 * MIB, 5 * MIB, 5 * MIB + 8, 20 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        int near = size >= MIB && size <= 5 * MIB;
        char *block = malloc(size);
        check("malloc", block, size, near);
        must(malloc_usable_size(block) >= size);
        free(block);
        block = calloc(1, size);
        must(block != NULL);
        verify_zero(block, size, "calloc");
        check("calloc", block, size, near);
        free(block);
        void *aligned = NULL;
        must(posix_memalign(&aligned, 4096, size) == 0 && (uintptr_t)aligned % 4096 == 0);
        check("posix_memalign", aligned, size, near);
        free(aligned);
        check("aligned_alloc", aligned = aligned_alloc(256, (size + 255) & ~255ul), size, ((size + 255) & ~255ul) >= MIB && ((size + 255) & ~255ul) <= 5 * MIB);
        free(aligned);
    }
    // Through the range by realloc: there and out again.
    char *grown = malloc(1000);
    size_t last = 0;
    fill(grown, 1000, 7);
    for (size_t size = 2000; size <= 12 * MIB; size += size / 2 & ~7ul) {
        grown = realloc(grown, size);
        must(grown != NULL);
        verify(grown, 1000, 7, "realloc, the beginning");
        fill_from(grown + 1000, (size - 1000) & ~7ul, 7, 125);
        check_nodes("realloc", grown, size & ~7ul, size >= MIB && size <= 5 * MIB ? near_node : far_node);
        last = size;
    }
    for (size_t size = last; size > 1000; size -= size / 3 & ~7ul) {
        grown = realloc(grown, size);
        must(grown != NULL);
        verify(grown, size & ~7ul, 7, "realloc, shrunk");
    }
    free(grown);
    grown = realloc(NULL, 2 * MIB);
    check("realloc of nothing", grown, 2 * MIB, 1);
    must(realloc(grown, 0) == NULL);
}

static void maps(void) {
    check("mmap, small", anonymous(256 << 10, 0), 256 << 10, 0);
    check("mmap, large", anonymous(16 * MIB, 0), 16 * MIB, 0);
    char *map = anonymous(2 * MIB, 0);
    check("mmap", map, 2 * MIB, 1);
    check("mmap of a stack", anonymous(2 * MIB, MAP_STACK), 2 * MIB, 1);
    // Grown within the range, then out of it.
    map = mremap(map, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE);
    must(map != MAP_FAILED);
    verify(map, 2 * MIB, 2 * MIB, "mremap");
    check("mremap", map, 4 * MIB, 1);
    map = mremap(map, 4 * MIB, 8 * MIB, MREMAP_MAYMOVE);
    must(map != MAP_FAILED);
    verify(map, 4 * MIB, 4 * MIB, "mremap, out");
    check("mremap, out of the range", map, 8 * MIB, 0);
    map = mremap(map, 8 * MIB, 3 * MIB, MREMAP_MAYMOVE);
    check("mremap, back", map, 3 * MIB, 1);
    must(munmap(map, 3 * MIB) == 0);
    // Another mapping at the place of a near one is judged for itself.
    map = anonymous(4 * MIB, 0);
    must(mmap(map, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map);
    check("mmap, fixed", map, 256 << 10, 0);
    check("mmap, the rest", map + (256 << 10), 4 * MIB - (256 << 10), 1);
}

int main(int argc, char **argv) {
    must(argc == 3);
    near_node = atoi(argv[1]);
    far_node = atoi(argv[2]);
    check("static array, small", small_array, sizeof small_array, 0);
    check("static array", fitting_array, sizeof fitting_array & ~7ul, 1);
    must(fitting_data[0] == 1);
    check("initialised array", fitting_data, sizeof fitting_data, 1);
    check("static array, large", large_array, sizeof large_array, 0);
    heap();
    maps();
    check_thread(2 * MIB, "near");
    check_thread(8 * MIB, NULL);
    char here[64 << 10];
    memset(here, 1, sizeof here);
    check_nodes("main stack", here, sizeof here, far_node);
    // A child has the same: its copies lie where the originals do.
    char *block = malloc(2 * MIB);
    fill(block, 2 * MIB, 1);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        check("block of a parent", block, 2 * MIB, 1);
        heap();
        maps();
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    verify(block, 2 * MIB, 1, "block of the parent");
    printf("OK\n");
    return 0;
}

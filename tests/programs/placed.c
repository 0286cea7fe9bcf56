// Every kind of memory that a program has, touched, and the nodes that its pages lie on: one line each, such as "heap 1:16384".
// Arguments: MiB of the heap array (64), of the mapping (16).

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096, NODES = 64 };

static char zeros[8 * MIB];
static char data[2 * MIB] = {1};

static void tell(const char *name, char *start, size_t len) {
    long by_node[NODES] = {0}, absent = 0;
    size_t first = ((size_t)start + PAGE - 1) / PAGE, last = ((size_t)start + len) / PAGE;
    for (size_t page = first; page < last;) {
        void *pages[512];
        int status[512];
        size_t count = last - page < 512 ? last - page : 512;
        for (size_t i = 0; i < count; i++) pages[i] = (void *)((page + i) * PAGE);
        if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) < 0) {
            perror("move_pages");
            exit(1);
        }
        for (size_t i = 0; i < count; i++) {
            if (status[i] >= 0 && status[i] < NODES) by_node[status[i]]++;
            else absent++;
        }
        page += count;
    }
    flockfile(stdout);
    printf("%s", name);
    for (int node = 0; node < NODES; node++)
        if (by_node[node]) printf(" %d:%ld", node, by_node[node]);
    if (absent) printf(" absent:%ld", absent);
    printf("\n");
    funlockfile(stdout);
}

static void stack_of(const char *name) {
    char local[512 << 10];
    memset(local, 3, sizeof local);
    __asm__ volatile("" : : "r"(local) : "memory");
    tell(name, local, sizeof local);
}

static void *thread(void *unused) {
    stack_of("thread-stack");
    return unused;
}

int main(int argc, char **argv) {
    size_t heap = (argc > 1 ? atol(argv[1]) : 64) * MIB, map = (argc > 2 ? atol(argv[2]) : 16) * MIB;
    char *block = malloc(heap);
    if (!block) {
        printf("heap refused\n");
        return 3;
    }
    memset(block, 1, heap);
    tell("heap", block, heap);
    char *small[256];
    for (int i = 0; i < 256; i++) memset(small[i] = malloc(16 << 10), 2, 16 << 10);
    for (int i = 0; i < 256; i += 255) tell("small", small[i], 16 << 10);
    char *mapping = mmap(NULL, map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        printf("map refused\n");
        return 3;
    }
    memset(mapping, 1, map);
    tell("map", mapping, map);
    memset(zeros, 1, sizeof zeros);
    tell("bss", zeros, sizeof zeros);
    memset(data, 2, sizeof data);
    tell("data", data, sizeof data);
    stack_of("main-stack");
    pthread_t id;
    pthread_create(&id, NULL, thread, NULL);
    pthread_join(id, NULL);
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("cpus");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus)) printf(" %d", cpu);
    printf("\n");
    // Long enough to be seen from outside.
    usleep(argc > 3 ? 1000 * atol(argv[3]) : 0);
    return 0;
}

/* Threads, forks, blocks that change hands, and buffers of stdio that lie in the heap when the program ends. */
#include "check.h"
#include <hbwmalloc.h>
#include <memkind.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 2000

static char *handed[THREADS][64];

static void *work(void *argument)
{
    long id = (long)argument;
    unsigned seed = (unsigned)id + 1, i;
    char *mine[64] = {0};
    for (i = 0; i < ROUNDS; i++) {
        unsigned slot = rand_r(&seed) % 64;
        size_t size = 1 + rand_r(&seed) % (i % 50 ? 3000 : 200000);
        memkind_t kind = i % 3 ? MEMKIND_HBW_PREFERRED : MEMKIND_DEFAULT;
        if (mine[slot])
            CHECK(mine[slot][0] == (char)id);
        hbw_free(mine[slot]);
        mine[slot] = memkind_malloc(kind, size);
        CHECK(mine[slot]);
        memset(mine[slot], (int)id, size);
    }
    memcpy(handed[id], mine, sizeof mine);
    return NULL;
}

static void child_allocates(void)
{
    pid_t child = fork();
    int status, i;
    if (child == 0) {
        for (i = 0; i < 1000; i++) {
            char *p = hbw_malloc((size_t)i * 50 + 1);
            CHECK(p);
            p[0] = 1;
            hbw_free(p);
        }
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    FILE *file;
    long i, round, slot;
    CHECK(argc > 1);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
        child_allocates();
        for (i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        /* Blocks of threads that have ended are still good. */
        for (i = 0; i < THREADS; i++)
            for (slot = 0; slot < 64; slot++)
                if (handed[i][slot]) {
                    CHECK(handed[i][slot][0] == (char)i);
                    hbw_free(handed[i][slot]);
                }
    }
    child_allocates();
    file = fopen(argv[1], "w");
    CHECK(file && setvbuf(file, hbw_malloc(4096), _IOFBF, 4096) == 0);
    CHECK(setvbuf(stdout, memkind_malloc(MEMKIND_HBW, 4096), _IOFBF, 4096) == 0);
    for (i = 0; i < 79; i++)
        fprintf(file, "%09ld\n", i);
    puts("OK");
    /* Not closed: exit writes it. memkind has unmapped its heaps by then. */
    return 0;
}

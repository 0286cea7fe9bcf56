/* Forks beside the first use in other threads: the child must not wait for what a thread of its parent was making. */
#include "check.h"
#include <hbwmalloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 300

static void *first_use(void *argument)
{
    char *block = hbw_malloc(100);
    (void)argument;
    CHECK(block);
    block[0] = 1;
    hbw_free(block);
    return NULL;
}

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* In a process that has not used memkind yet. */
static void fork_beside_first_use(int round)
{
    pthread_t threads[THREADS];
    pid_t child;
    int i;
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, first_use, NULL) == 0);
    for (i = 0; i < round % 7; i++)
        sched_yield();
    child = fork();
    if (child == 0) {
        alarm(20);
        first_use(NULL);
        _exit(0);
    }
    wait_for(child);
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    int round;
    for (round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            fork_beside_first_use(round);
            _exit(0);
        }
        wait_for(child);
    }
    puts("OK");
    return 0;
}

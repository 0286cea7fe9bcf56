// The first calls of nearfar.h from threads, and from a child that is born meanwhile: again and again, each in a process of its own.
// flags: -I../../include -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "check.h"
#include "nearfar.h"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *first_call(void *arg) {
    (void)arg;
    nearfar_free(nearfar_malloc(100, NEARFAR_NEAR));
    return NULL;
}

// With an argument the fork takes a while, so that first calls begin after it has begun.
static void nap(void) {
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) must(pthread_atfork(nap, NULL, NULL) == 0);
    for (int round = 0; round < 300; round++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            pthread_t one, two;
            must(pthread_create(&one, NULL, first_call, NULL) == 0 && pthread_create(&two, NULL, first_call, NULL) == 0);
            pid_t grandchild = fork();
            must(grandchild >= 0);
            first_call(NULL);
            if (grandchild == 0) _exit(0);
            int status;
            must(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            pthread_join(one, NULL);
            pthread_join(two, NULL);
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    puts("OK");
    return 0;
}

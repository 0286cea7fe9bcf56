// A thread that is to be cancelled, while it allocates, pages and forks: it ends where it says so, and others go on.
#include "check.h"

static volatile int go;
static void *body(void *arg) {
    (void)arg;
    while (!go) {}
    for (int round = 0; round < 3; round++) {
        char *blocks[40];
        for (int i = 0; i < 40; i++) {
            must((blocks[i] = malloc(4 * MIB)) != NULL);
            for (size_t j = 0; j < 4 * MIB; j += PAGE) blocks[i][j] = i;
        }
        for (int i = 0; i < 40; i++) {
            for (size_t j = 0; j < 4 * MIB; j += PAGE) must(blocks[i][j] == i);
            free(blocks[i]);
        }
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) _exit(0);
        int before, status;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        must(waitpid(child, &status, 0) == child && status == 0);
        pthread_setcancelstate(before, NULL);
    }
    pthread_testcancel();
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    must(pthread_create(&thread, NULL, body, NULL) == 0 && pthread_cancel(thread) == 0);
    go = 1;
    must(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    push_out();
    puts("OK");
    return 0;
}

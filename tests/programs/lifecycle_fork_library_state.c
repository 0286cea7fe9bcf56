// flags: -pthread
// The C library touches its own heap-allocated state in the child of a fork before any handler runs: open streams, the name
// service, thread vectors. All of it has been pushed out to far memory when the fork happens.
#include "check.h"
#include <netdb.h>
#include <pwd.h>

enum { STREAMS = 300 };
static FILE *streams[STREAMS];
static void *sleeper(void *arg) { pause(); return arg; }

int main(void) {
    pthread_t handle;
    must(pthread_create(&handle, NULL, sleeper, NULL) == 0);
    char *between[STREAMS];
    for (int i = 0; i < STREAMS; i++) { // neighbours of the streams on their pages
        must((streams[i] = tmpfile()) != NULL);
        fprintf(streams[i], "stream %d\n", i);
        between[i] = malloc(3000);
        fill(between[i], 3000, i);
    }
    must(getpwuid(0) != NULL && getpwnam("nobody-of-that-name") == NULL);
    for (int round = 0; round < 3; round++) {
        push_out_with(192 * MIB);
        fflush(stdout);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            for (int i = 0; i < STREAMS; i++) {
                verify(between[i], 3000, i, "neighbour of a stream in the child");
                must(fprintf(streams[i], "from the child\n") == 15 && fflush(streams[i]) == 0);
            }
            must(getpwuid(0) != NULL && getpwnam("nobody-of-that-name") == NULL);
            pthread_t another;
            must(pthread_create(&another, NULL, sleeper, NULL) == 0);
            for (int i = 0; i < STREAMS; i++) must(fclose(streams[i]) == 0);
            exit(7);
        }
        int status;
        must(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) { printf("FAILED: child ended with status %x\n", status); return 1; }
        for (int i = 0; i < STREAMS; i++) verify(between[i], 3000, i, "neighbour of a stream in the parent");
    }
    for (int i = 0; i < STREAMS; i++) must(fprintf(streams[i], "from the parent\n") == 16 && fclose(streams[i]) == 0);
    printf("OK\n");
    return 0;
}

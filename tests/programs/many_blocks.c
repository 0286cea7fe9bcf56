// Blocks of many sizes, several times near in all, with threads, streams and forks: linked with allocators of its own by tests/allocators.rs.
#include "check.h"

#define BLOCKS 20000

static char *block[BLOCKS];
static volatile int go_on = 1;

static size_t size(size_t i) { return 64 + i * 7919 % 8000; }

static uint64_t digest(void) {
    uint64_t sum = 1;
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; at < size(i); at += 64) sum = mix(sum + (unsigned char)block[i][at]);
    return sum;
}

// Small blocks and streams come and go beside the forks.
static void *churn(void *unused) {
    while (go_on) {
        void *some[50];
        for (int i = 0; i < 50; i++) memset(some[i] = malloc(100 + i * 100), 1, 100);
        for (int i = 0; i < 50; i++) free(some[i]);
        FILE *stream = fopen("/dev/null", "w");
        fprintf(stream, "x");
        fclose(stream);
    }
    return unused;
}

int main(void) {
    FILE *streams[40];
    for (int i = 0; i < 40; i++) streams[i] = fopen("/dev/null", "w");
    for (size_t i = 0; i < BLOCKS; i++) memset(block[i] = malloc(size(i)), i & 255, size(i));
    uint64_t sum = digest();
    pthread_t thread;
    must(pthread_create(&thread, NULL, churn, NULL) == 0);
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            fprintf(streams[round], "hello");
            fflush(NULL);
            for (int i = 0; i < 200; i++) memset(malloc(5000), 3, 5000);
            must(digest() == sum);
            _exit(0);
        }
        for (size_t i = round; i < BLOCKS; i += 50) memset(block[i], i & 255, size(i));
        int status;
        must(waitpid(child, &status, 0) == child);
        if (status != 0) printf("child: status %x\n", status);
        must(status == 0 && digest() == sum);
    }
    go_on = 0;
    must(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < BLOCKS; i++) free(block[i]);
    for (int i = 0; i < 40; i++) fclose(streams[i]);
    puts("OK");
    return 0;
}

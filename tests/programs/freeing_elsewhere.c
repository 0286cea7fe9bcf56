// flags: -pthread
// Blocks are allocated in one thread and freed in another, also after the first has ended.
#include "check.h"

enum { QUEUE = 512, BLOCKS = 3000 };
typedef struct { uint64_t *at; size_t bytes; uint64_t salt; } Block;
static Block queue[QUEUE];
static size_t head, tail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static size_t size_of(uint64_t *state) {
    uint64_t dice = next_random(state) % 100;
    if (dice < 60) return 16 + (next_random(state) % 20000 & ~7ul);
    if (dice < 90) return 65536 + (next_random(state) % 500000 & ~7ul);
    return MIB + (next_random(state) % (2 * MIB) & ~7ul);
}

static void *produce(void *arg) {
    uint64_t state = (uintptr_t)arg;
    for (int i = 0; i < BLOCKS; i++) {
        Block b = {.bytes = size_of(&state), .salt = ((uintptr_t)arg << 32) + i};
        b.at = malloc(b.bytes);
        must(b.at != NULL);
        fill(b.at, b.bytes, b.salt);
        pthread_mutex_lock(&lock);
        while (tail - head == QUEUE) pthread_cond_wait(&changed, &lock);
        queue[tail++ % QUEUE] = b;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consume(void *arg) {
    for (size_t n = 0; n < (size_t)arg; n++) {
        pthread_mutex_lock(&lock);
        while (tail == head) pthread_cond_wait(&changed, &lock);
        Block b = queue[head++ % QUEUE];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        verify(b.at, b.bytes, b.salt, "block from another thread");
        free(b.at);
    }
    return NULL;
}

typedef struct { Block blocks[64]; } Bundle;
static void *leave_behind(void *arg) {
    Bundle *bundle = malloc(sizeof *bundle);
    uint64_t state = (uintptr_t)arg;
    for (int i = 0; i < 64; i++) {
        Block *b = &bundle->blocks[i];
        b->bytes = size_of(&state);
        b->salt = state;
        b->at = malloc(b->bytes);
        must(b->at != NULL);
        fill(b->at, b->bytes, b->salt);
    }
    return bundle;
}

int main(void) {
    pthread_t makers[2], takers[2];
    for (long i = 0; i < 2; i++) {
        must(pthread_create(&makers[i], NULL, produce, (void *)(i + 1)) == 0);
        must(pthread_create(&takers[i], NULL, consume, (void *)(long)BLOCKS) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(makers[i], NULL);
        pthread_join(takers[i], NULL);
    }
    Bundle *bundles[12];
    for (long i = 0; i < 12; i++) {
        pthread_t handle;
        must(pthread_create(&handle, NULL, leave_behind, (void *)(i + 100)) == 0);
        pthread_join(handle, (void **)&bundles[i]);
    }
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 64; j++) {
            Block *b = &bundles[i]->blocks[j];
            verify(b->at, b->bytes, b->salt, "block of a thread that has ended");
            free(b->at);
        }
        free(bundles[i]);
    }
    printf("OK\n");
    return 0;
}

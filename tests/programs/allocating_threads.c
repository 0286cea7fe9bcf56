// flags: -pthread
// Threads allocate and free at once for NEARFAR_TEST_SECONDS: 16 B to 8 MiB, every entry of the malloc family, content checked on free.
#include "check.h"
#include <malloc.h>

enum { THREADS = 4, SLOTS = 4096 };
typedef struct { uint64_t *at; size_t words; uint64_t salt; } Block;

static size_t live_limit;
static double until;

static void put(Block *b, uint64_t *at, size_t words, uint64_t salt) {
    must(at != NULL);
    b->at = at; b->words = words; b->salt = salt;
    fill(at, words * 8, salt);
}

static void *work(void *arg) {
    uint64_t state = 77 + (uintptr_t)arg, salt = (uintptr_t)arg << 32;
    Block *blocks = calloc(SLOTS, sizeof *blocks);
    size_t live = 0;
    while (seconds_now() < until) {
        for (int n = 0; n < 50; n++) {
            Block *b = &blocks[next_random(&state) % SLOTS];
            if (b->at) {
                verify(b->at, b->words * 8, b->salt, "block before free");
                must(malloc_usable_size(b->at) >= b->words * 8);
                live -= b->words * 8;
                if (next_random(&state) % 4 == 0) {
                    size_t words = 1 + next_random(&state) % (b->words * 2 + 2), kept = words < b->words ? words : b->words;
                    b->at = realloc(b->at, words * 8);
                    must(b->at != NULL);
                    verify(b->at, kept * 8, b->salt, "block after realloc");
                    put(b, b->at, words, ++salt);
                    live += words * 8;
                } else {
                    free(b->at);
                    b->at = NULL;
                }
                continue;
            }
            size_t bytes = 16ul << next_random(&state) % 20; // up to 8 MiB
            bytes += next_random(&state) % bytes & ~7ul;
            if (live + bytes > live_limit) bytes = 16 + (next_random(&state) % 4096 & ~7ul);
            void *at = NULL;
            switch (next_random(&state) % 6) {
                case 0: at = calloc(bytes / 8, 8); must(at); verify_zero(at, bytes, "calloc"); break;
                case 1: must(posix_memalign(&at, 64ul << next_random(&state) % 8, bytes) == 0); break;
                case 2: at = aligned_alloc(4096, (bytes + 4095) & ~4095ul); must(((uintptr_t)at & 4095) == 0); break;
                case 3: at = memalign(2 * MIB, bytes); must(((uintptr_t)at & (2 * MIB - 1)) == 0); break;
                default: at = malloc(bytes); must(((uintptr_t)at & 15) == 0);
            }
            put(b, at, bytes / 8, ++salt);
            live += bytes;
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (blocks[i].at) {
            verify(blocks[i].at, blocks[i].words * 8, blocks[i].salt, "block at the end");
            free(blocks[i].at);
        }
    free(blocks);
    return NULL;
}

int main(int argc, char **argv) {
    live_limit = size_arg(argc, argv, 1, 192 * MIB) / THREADS;
    until = seconds_now() + test_seconds();
    pthread_t handles[THREADS];
    for (long i = 0; i < THREADS; i++) must(pthread_create(&handles[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(handles[i], NULL);
    printf("OK\n");
    return 0;
}

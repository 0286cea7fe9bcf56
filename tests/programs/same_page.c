// flags: -pthread
// Many threads ask for the same absent page at the same moment, page after page: never touched, in far, just evicted. Each of them
// must be woken, also when another one's request brought the page. Half of them have every signal blocked, faults included.
#include "check.h"

enum { THREADS = 8, PAGES = 6000, ROUNDS = 4 };
static uint64_t *data;
static pthread_barrier_t barrier;
static volatile int round_now;

static void *body(void *arg) {
    size_t self = (size_t)arg;
    if (self % 2) {
        sigset_t all;
        sigfillset(&all);
        must(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    }
    for (;;) {
        pthread_barrier_wait(&barrier);
        int round = round_now;
        if (round == ROUNDS) return NULL;
        for (size_t i = 0; i < PAGES; i++) {
            // An order that no prefetch follows, the same for all.
            size_t page = (i * 2617 + (size_t)round * 911) % PAGES;
            // Each has a word of its own in the page: two read at first, the others write at first.
            volatile uint64_t *w = data + page * 512 + self;
            uint64_t expected = round == 0 ? 0 : word(round, page * 512 + self);
            uint64_t found = *w;
            if (found != expected) wrong(data, page * 512 + self, found, expected, "same page");
            *w = word(round + 1, page * 512 + self);
            if (i % 16 == 0) pthread_barrier_wait(&barrier); // together again
        }
        pthread_barrier_wait(&barrier);
    }
}

int main(void) {
    data = map(PAGES * PAGE);
    must(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++) must(pthread_create(&threads[t], NULL, body, (void *)t) == 0);
    push_out(); // paging is on from here
    for (round_now = 0;; round_now++) {
        pthread_barrier_wait(&barrier);
        if (round_now == ROUNDS) break;
        for (size_t i = 0; i < PAGES; i += 16) pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        if (round_now % 2) push_out();
    }
    for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (size_t page = 0; page < PAGES; page++)
        for (size_t t = 0; t < THREADS; t++) must(data[page * 512 + t] == word(ROUNDS, page * 512 + t));
    puts("OK");
}

// flags: -pthread
// SIGPROF and SIGALRM at a high rate, whose handlers read and write paged memory, while two threads sweep it.
#include "check.h"
#include <sys/time.h>

static uint64_t *data, *log_of_ticks;
static size_t words, log_words;
static volatile uint64_t ticks;

static void tick(int number) {
    int saved = errno;
    uint64_t n = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED), i = mix(n) % words;
    if (data[i] != word(6, i)) wrong(data, i, data[i], word(6, i), "in a timer handler");
    __atomic_add_fetch(&log_of_ticks[mix(n * 3 + number) % log_words], 1, __ATOMIC_RELAXED);
    errno = saved;
}

static void *sweep(void *arg) {
    double until = seconds_now() + 4;
    (void)arg;
    while (seconds_now() < until) verify(data, words * 8, 6, "sweep under a timer");
    return NULL;
}

int main(void) {
    words = 96 * MIB / 8;
    log_words = 64 * MIB / 8;
    data = malloc(words * 8);
    log_of_ticks = calloc(log_words, 8);
    fill(data, words * 8, 6);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    must(sigaction(SIGPROF, &action, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval interval = {{0, 1000}, {0, 1000}};
    must(setitimer(ITIMER_PROF, &interval, NULL) == 0 && setitimer(ITIMER_REAL, &interval, NULL) == 0);
    pthread_t other;
    must(pthread_create(&other, NULL, sweep, NULL) == 0);
    sweep(NULL);
    pthread_join(other, NULL);
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &off, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    signal(SIGPROF, SIG_IGN);
    signal(SIGALRM, SIG_IGN);
    uint64_t sum = 0, seen = ticks;
    for (size_t i = 0; i < log_words; i++) sum += log_of_ticks[i];
    must(sum == seen);
    must(seen > 100);
    printf("OK\n");
    return 0;
}

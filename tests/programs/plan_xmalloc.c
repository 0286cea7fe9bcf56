// Arrays that functions between malloc and the one that asks hand on, as many codes have them: plan_xmalloc [seconds]
#include "check.h"
#include <time.h>

#define HOT (24u << 20)
#define COLD HOT

__attribute__((noinline, noipa)) static void *xmalloc(size_t bytes) {
    void *block = malloc(bytes);
    must(block != NULL);
    return block;
}
__attribute__((noinline, noipa)) static double *make_hot(void) {
    double *hot = xmalloc(HOT * sizeof *hot);
    for (size_t i = 0; i < HOT; i++) hot[i] = i;
    return hot;
}
__attribute__((noinline, noipa)) static double *make_cold(void) {
    double *cold = xmalloc(COLD * sizeof *cold);
    for (size_t i = 0; i < COLD; i++) cold[i] = i;
    return cold;
}
__attribute__((noinline, noipa)) static double sum(const double *array, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += array[i];
    return sum;
}

int main(int argc, char **argv) {
    time_t begin = time(NULL), seconds = argc > 1 ? atoi(argv[1]) : 2;
    double *hot = make_hot(), *cold = make_cold(), expected = sum(hot, HOT);
    do must(sum(hot, HOT) == expected);
    while (time(NULL) < begin + seconds);
    must(sum(cold, COLD) == expected);
    puts("OK");
    return 0;
}

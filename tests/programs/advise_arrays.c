/* Arrays of different use, each allocated by a function of its own: what the advisor is to tell apart. Prints OK or the first wrong sum.
   Arguments: MiB of hot, warm and cold array, sweeps of hot, steps of computing without memory per sweep (0). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What it ends with. */
#ifndef STATUS
#define STATUS 0
#endif

/* Part of its callers in one build, a function in another. */
#ifdef __OPTIMIZE__
__attribute__((always_inline)) static inline double *allocate(size_t bytes)
#else
static double *allocate(size_t bytes)
#endif
{
    double *array = malloc(bytes);
    if (!array)
        exit(3);
    for (size_t i = 0; i < bytes / 8; i++)
        array[i] = 1.0;
    return array;
}

/* Differ, so that the compiler does not make one of them. */
static int made[3];

__attribute__((noinline)) static double *allocate_hot(size_t bytes)
{
    double *array = allocate(bytes);
    made[0]++;
    return array;
}

__attribute__((noinline)) static double *allocate_warm(size_t bytes)
{
    double *array = allocate(bytes);
    made[1]++;
    return array;
}

__attribute__((noinline)) static double *allocate_cold(size_t bytes)
{
    double *array = allocate(bytes);
    made[2]++;
    return array;
}

__attribute__((noinline)) static double sum(const double *array, size_t count)
{
    double parts[4] = {0, 0, 0, 0};
    for (size_t i = 0; i + 3 < count; i += 4)
        for (int k = 0; k < 4; k++)
            parts[k] += array[i + k];
    return parts[0] + parts[1] + parts[2] + parts[3];
}

__attribute__((noinline)) static double think(long steps)
{
    double x = 1;
    for (long i = 0; i < steps; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

int main(int argc, char **argv)
{
    size_t hot_bytes = (argc > 1 ? strtoul(argv[1], 0, 10) : 32) << 20;
    size_t warm_bytes = (argc > 2 ? strtoul(argv[2], 0, 10) : 64) << 20;
    size_t cold_bytes = (argc > 3 ? strtoul(argv[3], 0, 10) : 64) << 20;
    int sweeps = argc > 4 ? atoi(argv[4]) : 8;
    long steps = argc > 5 ? atol(argv[5]) : 0;
    double *cold = allocate_cold(cold_bytes);
    double *warm = allocate_warm(warm_bytes);
    double *hot = allocate_hot(hot_bytes);
    for (int sweep = 0; sweep < sweeps; sweep++) {
        /* The compiler may not know that nothing changes. */
        __asm__ volatile("" ::: "memory");
        if (sum(hot, hot_bytes / 8) != hot_bytes / 8.0)
            return puts("hot is wrong"), 1;
        if (sweep % 8 == 7 && sum(warm, warm_bytes / 8) != warm_bytes / 8.0)
            return puts("warm is wrong"), 1;
        if (think(steps) < 1)
            return puts("computing is wrong"), 1;
    }
    if (sum(cold, cold_bytes / 8) != cold_bytes / 8.0)
        return puts("cold is wrong"), 1;
    puts("OK");
    free(hot);
    free(warm);
    free(cold);
    return STATUS;
}

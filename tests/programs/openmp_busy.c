// flags: -fopenmp
// Every OpenMP thread computes for some seconds; with "nested", each starts an inner team of two. Touches some static data and heap.
#include "check.h"
#include <omp.h>

static double table[1 << 18];

static void compute(double until) {
    volatile double sum = 0;
    while (omp_get_wtime() < until)
        for (int i = 0; i < 1000; i++) sum += i;
}

int main(int argc, char **argv) {
    double until = omp_get_wtime() + (argc > 1 ? atof(argv[1]) : 0.5);
    int nested = argc > 2 && strcmp(argv[2], "nested") == 0;
    if (nested) omp_set_max_active_levels(2);
    char *heap = malloc(32 * MIB);
    must(heap);
    memset(heap, 1, 32 * MIB);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) table[i] = i;
    #pragma omp parallel
    {
        if (nested) {
            #pragma omp parallel num_threads(2)
            compute(until);
        } else compute(until);
    }
    must(heap[MIB] == 1 && table[7] == 7);
    puts("OK");
    return 0;
}

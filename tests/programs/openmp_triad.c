// flags: -fopenmp
// OpenMP triad over three arrays, with a verified sum; static and dynamic schedules, and a parallel random gather.
#include "check.h"
#include <omp.h>

int main(int argc, char **argv) {
    size_t n = size_arg(argc, argv, 1, 64 * MIB) / 8;
    double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8);
    must(a && b && c);
    #pragma omp parallel for
    for (size_t i = 0; i < n; i++) a[i] = 0, b[i] = i % 1000, c[i] = i % 7;
    for (int round = 0; round < 4; round++) {
        #pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
        #pragma omp parallel for schedule(dynamic, 65536)
        for (size_t i = 0; i < n; i++) b[i] = a[i] - 3.0 * c[i];
    }
    size_t bad = 0;
    double sum = 0;
    #pragma omp parallel for reduction(+ : bad, sum)
    for (size_t i = 0; i < n; i++) {
        bad += a[i] != (double)(i % 1000) + 3.0 * (i % 7) || b[i] != (double)(i % 1000);
        sum += a[i];
    }
    uint64_t gathered = 0;
    #pragma omp parallel for reduction(+ : gathered)
    for (size_t i = 0; i < 40000; i++) gathered += (uint64_t)a[mix(i) % n];
    printf("%s sum %.0f gathered %lu\n", bad == 0 ? "OK" : "WRONG", sum, gathered);
    return bad != 0;
}

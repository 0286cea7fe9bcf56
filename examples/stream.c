/* The bandwidth of memory, in the four patterns of the STREAM benchmark: three arrays of doubles, in the tier that the first
 * argument names ("near", "far"; "malloc": as the C library has it), of the MiB that the second names.
 *
 *     ./stream near 64
 *
 * Standard output has the result of the arithmetic, standard error the rates: the best of ten rounds, as STREAM prints. */
#include <nearfar.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, KERNELS = 4 };
static const char *const NAMES[KERNELS] = {"Copy", "Scale", "Add", "Triad"};
static const int ARRAYS[KERNELS] = {2, 2, 3, 3};

static double *array(const char *where, size_t n) {
    double *made = strcmp(where, "malloc") == 0 ? malloc(n * sizeof *made)
                   : nearfar_malloc(n * sizeof *made, strcmp(where, "far") == 0 ? NEARFAR_FAR : NEARFAR_NEAR);
    if (made == NULL) {
        perror("stream: no memory for an array");
        exit(1);
    }
    return made;
}

int main(int argc, char **argv) {
    const char *where = argc > 1 ? argv[1] : "near";
    size_t n = (argc > 2 ? strtoul(argv[2], NULL, 10) : 64) * (1 << 20) / sizeof(double);
    if ((strcmp(where, "near") && strcmp(where, "far") && strcmp(where, "malloc")) || n == 0) {
        fprintf(stderr, "use: stream [near|far|malloc [MiB of an array]]\n");
        return 2;
    }
    double *a = array(where, n), *b = array(where, n), *c = array(where, n);
    const double q = 3.0;
    double best[KERNELS] = {1e30, 1e30, 1e30, 1e30};
    /* Each page is touched first by the thread that works on it. */
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            double begin = omp_get_wtime();
            switch (kernel) {
            case 0:
#pragma omp parallel for
                for (size_t i = 0; i < n; i++) c[i] = a[i];
                break;
            case 1:
#pragma omp parallel for
                for (size_t i = 0; i < n; i++) b[i] = q * c[i];
                break;
            case 2:
#pragma omp parallel for
                for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
                break;
            default:
#pragma omp parallel for
                for (size_t i = 0; i < n; i++) a[i] = b[i] + q * c[i];
            }
            double seconds = omp_get_wtime() - begin;
            if (seconds < best[kernel]) best[kernel] = seconds;
        }

    struct nearfar_where pages;
    if (nearfar_where(a, n * sizeof *a, &pages) == 0)
        fprintf(stderr, "%s\narray a: %llu MiB near, %llu MiB far\n", nearfar_describe(),
                (unsigned long long)pages.near_bytes >> 20, (unsigned long long)pages.far_bytes >> 20);
    for (int kernel = 0; kernel < KERNELS; kernel++)
        fprintf(stderr, "%-6s %10.1f MB/s\n", NAMES[kernel], 1e-6 * ARRAYS[kernel] * sizeof(double) * n / best[kernel]);

    /* What every element must be by now. */
    double x = 1.0, y = 2.0, z = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        z = x;
        y = q * z;
        z = x + y;
        x = y + q * z;
    }
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += a[i] != x || b[i] != y || c[i] != z;
    printf("stream: %zu elements, a = %.6e, %zu wrong\n", n, x, wrong);
    nearfar_free(a);
    nearfar_free(b);
    nearfar_free(c);
    return wrong != 0;
}

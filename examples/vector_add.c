/* c = a + b with two arrays in near memory and one in far: C. */
#include <nearfar.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    double *a = nearfar_malloc(n * sizeof *a, NEARFAR_NEAR);
    double *b = nearfar_malloc(n * sizeof *b, NEARFAR_NEAR);
    double *c = nearfar_malloc(n * sizeof *c, NEARFAR_FAR);
    if (a == NULL || b == NULL || c == NULL) {
        perror("vector_add");
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        a[i] = (double)i;
        b[i] = 0.5 * (double)i;
    }
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += c[i];
    printf("vector add: %zu elements, sum %.1f\n", n, sum);
    nearfar_free(a);
    nearfar_free(b);
    nearfar_free(c);
    return 0;
}

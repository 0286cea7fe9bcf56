/* A plain OpenMP triad, what `nearfar probe` is held against: a = b + s * c, bytes counted as 24 per element, median of the
 * repetitions after the first. Stores are what the compiler makes of the loop, or streaming ones.
 *   cc -O3 -march=native -fopenmp triad.c -o triad;  OMP_PROC_BIND=true ./triad BYTES_PER_ARRAY SECONDS ordinary|streaming small|huge
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

enum { MOST = 1000, STAGGER = 21 * 8 };

static int ascending(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

/* Ordinary stores, and no others: the pragma keeps GCC from calling memcpy and the like for loops. */
static void ordinary(double *restrict a, const double *restrict b, const double *restrict c, double s, long n)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}

static int streaming(double *restrict a, const double *restrict b, const double *restrict c, double s, long n)
{
#ifdef __AVX__
#pragma omp parallel
    {
        __m256d factor = _mm256_set1_pd(s);
#pragma omp for schedule(static)
        for (long i = 0; i < n / 4; i++)
            _mm256_stream_pd(a + 4 * i, _mm256_add_pd(_mm256_load_pd(b + 4 * i), _mm256_mul_pd(factor, _mm256_load_pd(c + 4 * i))));
        _mm_sfence();
    }
    return 1;
#else
    return 0;
#endif
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: triad BYTES_PER_ARRAY SECONDS ordinary|streaming small|huge\n");
        return 2;
    }
    long n = atol(argv[1]) / 64 / omp_get_max_threads() * omp_get_max_threads() * 8;
    double seconds = atof(argv[2]);
    int is_streaming = strcmp(argv[3], "streaming") == 0, is_huge = strcmp(argv[4], "huge") == 0;
    size_t block = 2 << 20, bytes = ((n + STAGGER) * 3 * sizeof(double) + block - 1) / block * block;
    double *base = aligned_alloc(block, bytes);
    if (!base || madvise(base, bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) {
        perror("memory");
        return 1;
    }
    double *a = base, *b = base + n + STAGGER, *c = base + 2 * (n + STAGGER);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        a[i] = -1;
        b[i] = i % 1000;
        c[i] = i % 777;
    }
    static double rates[MOST];
    int count = -1;
    double s = 3, end = omp_get_wtime() + seconds;
    while (count < MOST && (count < 5 || omp_get_wtime() < end)) {
        s = 3 + (count + 1) % 61;
        double start = omp_get_wtime();
        if (!is_streaming)
            ordinary(a, b, c, s, n);
        else if (!streaming(a, b, c, s, n))
            return 3;
        double rate = 24.0 * n / (omp_get_wtime() - start);
        if (count >= 0)
            rates[count] = rate;
        count++;
    }
    for (long i = 0; i < n; i++)
        if (a[i] != i % 1000 + s * (i % 777)) {
            fprintf(stderr, "wrong at %ld\n", i);
            return 1;
        }
    qsort(rates, count, sizeof rates[0], ascending);
    printf("%.6e\n", rates[count / 2]);
    return 0;
}

// Reads and updates through a table of indices, as in density routines of electronic structure codes.
#include "truth.h"
#include <omp.h>

static long n, many;

static int *__attribute__((noinline)) make_table(void) {
  int *a = malloc(many * sizeof *a);
  SEE_OBJECT(__func__, a, many * sizeof *a);
  unsigned long x = 88172645463325252UL;
  for (long i = 0; i < many; i++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    SEE(a[i]) = (x >> 20) % n;
  }
  return a;
}
#define MAKE(name)                                      \
  static double *__attribute__((noinline)) name(void) { \
    double *a = malloc(n * 8);                          \
    SEE_OBJECT(#name, a, n * 8);                        \
    for (long i = 0; i < n; i++) SEE(a[i]) = i;         \
    return a;                                           \
  }
MAKE(make_source)
MAKE(make_target)
MAKE(make_stream)

static void __attribute__((noinline)) gather(const double *a, const int *at) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < many; i++) sum += SEE(a[SEE(at[i])]);
  truth_sink += sum;
}
static void __attribute__((noinline)) scatter(double *a, const int *at) {
#pragma omp parallel for
  for (long i = 0; i < many; i++) SEE(a[SEE(at[i])]) += 1;
}
static void __attribute__((noinline)) stream(const double *a) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; i++) sum += SEE(a[i]);
  truth_sink += sum;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  omp_set_num_threads(truth_threads);
  size_t size = 3 * truth_size;
  n = size / 8;
  many = n / 8;
  int *table = make_table();
  double *source = make_source(), *target = make_target(), *plain = make_stream();
  struct truth *tt = truth_of("make_table", 0), *ts = truth_of("make_source", 1), *tg = truth_of("make_target", 1), *tp = truth_of("make_stream", 0);
  tt->bytes = many * 4.0;
  ts->bytes = tg->bytes = tp->bytes = size;
  while (truth_another()) {
    gather(source, table);
    scatter(target, table);
    stream(plain);
    tt->bytes += 2 * many * 4.0;
    ts->bytes += many * (double)LINE * truth_missing(size);
    tg->bytes += 2 * many * (double)LINE * truth_missing(size);
    tp->bytes += size;
  }
  truth_print();
}

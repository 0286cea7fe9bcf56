// Arrays that are gone through in order, different numbers of times.
#include "truth.h"
#include <omp.h>

static long n;

#define MAKE(name)                                            \
  static double *__attribute__((noinline)) name(void) {       \
    double *a = malloc(n * 8);                                \
    SEE_OBJECT(#name, a, n * 8);                              \
    _Pragma("omp parallel for") for (long i = 0; i < n; i++) SEE(a[i]) = i; \
    return a;                                                 \
  }
MAKE(make_once)
MAKE(make_twice)
MAKE(make_four_times)
MAKE(make_updated)

static void __attribute__((noinline)) read_all(const double *a) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; i++) sum += SEE(a[i]);
  truth_sink += sum;
}

static void __attribute__((noinline)) update_all(double *a) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) SEE(a[i]) = SEE(a[i]) * 0.5 + 1;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  omp_set_num_threads(truth_threads);
  n = truth_size / 8;
  double *once = make_once(), *twice = make_twice(), *four = make_four_times(), *updated = make_updated();
  struct truth *t1 = truth_of("make_once", 0), *t2 = truth_of("make_twice", 0), *t4 = truth_of("make_four_times", 0), *tu = truth_of("make_updated", 0);
  t1->bytes = t2->bytes = t4->bytes = tu->bytes = truth_size;
  while (truth_another()) {
    read_all(once);
    for (int k = 0; k < 2; k++) read_all(twice);
    for (int k = 0; k < 4; k++) read_all(four);
    update_all(updated);
    t1->bytes += truth_size;
    t2->bytes += 2.0 * truth_size;
    t4->bytes += 4.0 * truth_size;
    tu->bytes += 2.0 * truth_size;
  }
  truth_print();
}

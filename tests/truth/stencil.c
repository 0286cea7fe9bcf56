// Five points in two dimensions, from one array to another, with an array of coefficients.
#include "truth.h"
#include <omp.h>

enum { WIDE = 2048 };
static long rows;

#define MAKE(name)                                      \
  static double *__attribute__((noinline)) name(void) { \
    double *a = malloc(rows * WIDE * 8);                \
    SEE_OBJECT(#name, a, rows * WIDE * 8);              \
    for (long i = 0; i < rows * WIDE; i++) SEE(a[i]) = i; \
    return a;                                           \
  }
MAKE(make_from)
MAKE(make_to)
MAKE(make_coefficients)

static void __attribute__((noinline)) step(const double *restrict u, double *restrict v, const double *restrict k) {
#pragma omp parallel for
  for (long y = 1; y < rows - 1; y++)
    for (long x = 1; x < WIDE - 1; x++) {
      long i = y * WIDE + x;
      SEE(v[i]) = SEE(k[i]) * (SEE(u[i - 1]) + SEE(u[i + 1]) + SEE(u[i - WIDE]) + SEE(u[i + WIDE]) - 4 * SEE(u[i]));
    }
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  omp_set_num_threads(truth_threads);
  rows = truth_size / 8 / WIDE;
  double *from = make_from(), *to = make_to(), *k = make_coefficients();
  struct truth *tf = truth_of("make_from", 0), *tt = truth_of("make_to", 0), *tk = truth_of("make_coefficients", 0);
  tf->bytes = tt->bytes = tk->bytes = truth_size;
  while (truth_another()) {
    step(from, to, k);
    tf->bytes += truth_size;
    tt->bytes += 2.0 * truth_size;
    tk->bytes += truth_size;
  }
  truth_print();
}

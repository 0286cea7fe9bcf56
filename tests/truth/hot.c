// An array that the cache holds and that is used most of the time, one that is never used again, and one that is read.
#include "truth.h"

static long n, few = 16384;

#define MAKE(name, count)                               \
  static double *__attribute__((noinline)) name(void) { \
    double *a = malloc((count) * 8);                    \
    SEE_OBJECT(#name, a, (count) * 8);                  \
    for (long i = 0; i < (count); i++) SEE(a[i]) = i;   \
    return a;                                           \
  }
MAKE(make_hot, few)
MAKE(make_cold, 2 * n)
MAKE(make_stream, n)

static void __attribute__((noinline)) read_all(const double *a, long count) {
  double sum = 0;
  for (long i = 0; i < count; i++) sum += SEE(a[i]);
  truth_sink += sum;
}
static void __attribute__((noinline)) update_all(double *a, long count) {
  for (long i = 0; i < count; i++) SEE(a[i]) = SEE(a[i]) * 0.5 + 1;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  n = truth_size / 8;
  double *hot = make_hot(), *cold = make_cold(), *plain = make_stream();
  struct truth *th = truth_of("make_hot", 0), *tc = truth_of("make_cold", 0), *ts = truth_of("make_stream", 0);
  tc->bytes = 2.0 * truth_size;
  ts->bytes = truth_size;
  th->bytes = 0;
  while (truth_another()) {
    for (int k = 0; k < 1000; k++) update_all(hot, few);
    for (int k = 0; k < 3; k++) read_all(plain, n);
    ts->bytes += 3.0 * truth_size;
  }
  truth_sink += SEE(cold[n]);
  truth_print();
}

// Arrays that are gone through more or less often, in two phases, of which the second needs other arrays than the first.
#include <stdio.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };
static long n;

#define MAKE(name)                                      \
  static double *__attribute__((noinline)) name(void) { \
    double *a = malloc(n * 8);                          \
    for (long i = 0; i < n; i++) a[i] = i;              \
    return a;                                           \
  }
MAKE(make_seldom)
MAKE(make_first)
MAKE(make_second)
MAKE(make_updated)

static double __attribute__((noinline)) sum_of(const double *a) {
  // Each call counts: without this a compiler sees that a second one gives the same.
  __asm__ volatile("" ::: "memory");
  double sum = 0;
  for (long i = 0; i < n; i++) sum += a[i];
  return sum;
}
static void __attribute__((noinline)) update(double *a) {
  for (long i = 0; i < n; i++) a[i] = a[i] * 0.5 + 1;
}
static double __attribute__((noinline)) compute(long count) {
  double x = 1;
  for (long i = 0; i < count; i++) x = x * 1.0000001 + 1e-9;
  return x;
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 12, size = argc > 2 ? atol(argv[2]) : 96;
  n = size * MIB / 8;
  double *seldom = make_seldom(), *first = make_first(), *second = make_second(), *updated = make_updated(), sum = 0;
  for (int phase = 0; phase < 2; phase++)
    for (long round = 0; round < rounds; round++) {
      for (int k = 0; k < 4; k++) sum += sum_of(phase ? second : first);
      update(updated);
      sum += compute(20000000);
      if (round % 6 == 0) sum += sum_of(seldom);
    }
  printf("%.12g\n", sum);
}

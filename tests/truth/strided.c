// Every fourth line, the columns of a matrix, and all of an array.
#include "truth.h"

enum { PITCH = 1024 };  // Numbers of a row: two pages.
static long n;

#define MAKE(name)                                      \
  static double *__attribute__((noinline)) name(void) { \
    double *a = malloc(n * 8);                          \
    SEE_OBJECT(#name, a, n * 8);                        \
    for (long i = 0; i < n; i++) SEE(a[i]) = i;         \
    return a;                                           \
  }
MAKE(make_strided)
MAKE(make_columns)
MAKE(make_stream)

static void __attribute__((noinline)) every(const double *a) {
  double sum = 0;
  for (long i = 0; i < n; i += 32) sum += SEE(a[i]);
  truth_sink += sum;
}
// One column of each line, so that no line is used twice before all others were.
static void __attribute__((noinline)) columns(const double *a) {
  double sum = 0;
  for (long x = 0; x < PITCH; x += 8)
    for (long i = x; i < n; i += PITCH) sum += SEE(a[i]);
  truth_sink += sum;
}
static void __attribute__((noinline)) read_all(const double *a) {
  double sum = 0;
  for (long i = 0; i < n; i++) sum += SEE(a[i]);
  truth_sink += sum;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  n = truth_size * 2 / 8;
  double size = n * 8.0;
  double *strided = make_strided(), *matrix = make_columns(), *plain = make_stream();
  struct truth *ts = truth_of("make_strided", 1), *tc = truth_of("make_columns", 1), *tp = truth_of("make_stream", 0);
  ts->bytes = tc->bytes = tp->bytes = size;
  while (truth_another()) {
    for (int k = 0; k < 4; k++) every(strided);
    columns(matrix);
    for (int k = 0; k < 2; k++) read_all(plain);
    ts->bytes += 4 * size / 4;
    tc->bytes += size;
    tp->bytes += 2 * size;
  }
  truth_print();
}

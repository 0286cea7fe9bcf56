// Work arrays that live for one round, beside one that stays.
#include "truth.h"

static long n;

static double *__attribute__((noinline)) make_stays(void) {
  double *a = malloc(n * 8);
  SEE_OBJECT(__func__, a, n * 8);
  for (long i = 0; i < n; i++) SEE(a[i]) = i;
  return a;
}
static double *__attribute__((noinline)) make_brief(void) {
  double *a = malloc(n * 8);
  SEE_OBJECT(__func__, a, n * 8);
  return a;
}

static void __attribute__((noinline)) fill(double *a) {
  for (long i = 0; i < n; i++) SEE(a[i]) = 1.5 * i;
}
static void __attribute__((noinline)) read_all(const double *a) {
  double sum = 0;
  for (long i = 0; i < n; i++) sum += SEE(a[i]);
  truth_sink += sum;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  n = truth_size / 8;
  double *stays = make_stays();
  struct truth *ts = truth_of("make_stays", 0), *tb = truth_of("make_brief", 0);
  ts->bytes = truth_size;
  while (truth_another()) {
    double *work = make_brief();
    fill(work);
    for (int k = 0; k < 3; k++) read_all(work);
    uintptr_t where = (uintptr_t)work;
    free(work);
    SEE_GONE(where, n * 8);
    for (int k = 0; k < 4; k++) read_all(stays);
    // The kernel has just put zeros there: the first write finds its line in the cache.
    tb->bytes += 4.0 * truth_size;
    ts->bytes += 4.0 * truth_size;
  }
  truth_print();
}

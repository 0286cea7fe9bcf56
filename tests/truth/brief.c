// Work arrays that live for one round, beside one that stays.
#include "truth.h"

static long n;

static double *__attribute__((noinline)) make_stays(void) {
  double *a = malloc(n * 8);
  for (long i = 0; i < n; i++) a[i] = i;
  return a;
}
static double *__attribute__((noinline)) make_brief(void) { return malloc(n * 8); }

static void __attribute__((noinline)) fill(double *a) {
  for (long i = 0; i < n; i++) a[i] = 1.5 * i;
}
static void __attribute__((noinline)) read_all(const double *a) {
  double sum = 0;
  for (long i = 0; i < n; i++) sum += a[i];
  truth_sink += sum;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  n = truth_size / 8;
  double *stays = make_stays();
  struct truth *ts = truth_of("make_stays", 0), *tb = truth_of("make_brief", 0);
  ts->bytes = truth_size;
  for (double end = truth_now() + truth_seconds; truth_now() < end;) {
    double *work = make_brief();
    fill(work);
    for (int k = 0; k < 3; k++) read_all(work);
    free(work);
    for (int k = 0; k < 4; k++) read_all(stays);
    // The kernel has just put zeros there: the first write finds its line in the cache.
    tb->bytes += 4.0 * truth_size;
    ts->bytes += 4.0 * truth_size;
  }
  truth_print();
}

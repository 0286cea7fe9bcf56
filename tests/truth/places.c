// A static array, and one on the stack of a thread.
#include "truth.h"
#include <pthread.h>

enum { COUNT = 12 << 20 };
double field[COUNT];

static void __attribute__((noinline)) read_all(const double *a) {
  double sum = 0;
  for (long i = 0; i < COUNT; i++) sum += SEE(a[i]);
  truth_sink += sum;
}
static void __attribute__((noinline)) fill(double *a) {
  for (long i = 0; i < COUNT; i++) SEE(a[i]) = 1.5 * i;
}

static void *work(void *nothing) {
  double large[COUNT];
  SEE_OBJECT("stack", large, sizeof large);
  SEE_OBJECT("field", field, sizeof field);
  fill(large);
  fill(field);
  struct truth *tf = truth_of("field", 0), *ts = truth_of("stack", 0);
  tf->bytes = ts->bytes = sizeof large;
  while (truth_another()) {
    read_all(large);
    for (int k = 0; k < 2; k++) read_all(field);
    ts->bytes += sizeof large;
    tf->bytes += 2.0 * sizeof field;
  }
  return nothing;
}

int main(int argc, char **argv) {
  truth_arguments(argc, argv);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, sizeof field + (1 << 20));
  pthread_t thread;
  if (pthread_create(&thread, &attributes, work, NULL)) return 1;
  pthread_join(thread, NULL);
  truth_print();
}

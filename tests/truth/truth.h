// The books of a program whose traffic is known: what each of its objects costs, counted where it is used.
// A line that is written costs a read (for ownership) and a write; what stays in the cache costs nothing.
#ifndef TRUTH_H
#define TRUTH_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, MOST_OBJECTS = 16 };

struct truth {
  const char *object;  // The function that allocates it, its symbol, or "stack".
  int sparse;
  double bytes;
};

static struct truth truths[MOST_OBJECTS];
static int truth_count;
static volatile double truth_sink;

static inline struct truth *truth_of(const char *object, int sparse) {
  struct truth *one = &truths[truth_count++];
  one->object = object;
  one->sparse = sparse;
  return one;
}

static inline double truth_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Bytes of the last-level cache, for random access: so much of what is accessed is there already.
static inline double truth_cache(void) {
  const char *text = getenv("TRUTH_CACHE");
  if (text) return atof(text);
  // sysconf is wrong in virtual machines.
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
  double kib = 0;
  if (file) {
    if (fscanf(file, "%lf", &kib) != 1) kib = 0;
    fclose(file);
  }
  return kib * 1024;
}

static inline double truth_missing(double footprint) {
  double share = 1 - truth_cache() / footprint;
  return share > 0 ? share : 0;
}

// argv: seconds, MiB of an array, threads, rounds (instead of seconds).
static double truth_seconds = 3;
static size_t truth_size = 96u << 20;
static int truth_threads = 1;
static long truth_rounds, truth_round;
static inline void truth_arguments(int argc, char **argv) {
  if (argc > 1) truth_seconds = atof(argv[1]);
  if (argc > 2) truth_size = (size_t)atol(argv[2]) << 20;
  if (argc > 3) truth_threads = atoi(argv[3]);
  if (argc > 4) truth_rounds = atol(argv[4]);
}

#ifdef TRUTH_TRACE
#include "trace.h"
#else
// What a loop goes through: SEE(a[i]) is a[i].
#define SEE(element) (element)
#define SEE_OBJECT(name, address, bytes) ((void)(address))
#define SEE_GONE(address, bytes) ((void)(address))
#define SEE_ROUND() ((void)0)
#define SEE_END() ((void)0)
#endif

// Whether to go on with another round, which does the same as the last.
static inline int truth_another(void) {
  static double end;
  if (!end) end = truth_now() + truth_seconds;
  if (truth_rounds ? truth_round >= truth_rounds : truth_now() >= end) return 0;
  truth_round++;
  SEE_ROUND();
  return 1;
}

static inline void truth_print(void) {
  SEE_END();
#ifndef TRUTH_TRACE
  for (int i = 0; i < truth_count; i++)
    printf("{\"object\":\"%s\",\"sparse\":%s,\"bytes\":%.0f}\n", truths[i].object, truths[i].sparse ? "true" : "false", truths[i].bytes);
  printf("{\"rounds\":%ld}\n", truth_round);
#endif
}
#endif

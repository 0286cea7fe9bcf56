// As electronic-structure codes are (RACC0MU and RPROMU of VASP): much memory for wave functions, of which each step needs a part, and
// little for what all steps go through: a potential, a charge that is gathered from and scattered to through a table.
#include <stdio.h>
#include <stdlib.h>

enum { MIB = 1 << 20, BLOCKS = 8 };
static long waves, points, entries;

static double *make_waves(void) {
  double *a = malloc(waves * 8);
  for (long i = 0; i < waves; i++) a[i] = 1e-3 * (i % 1000);
  return a;
}
static double *make_potential(void) {
  double *a = malloc(points * 8);
  for (long i = 0; i < points; i++) a[i] = 1e-6 * i;
  return a;
}
static double *make_charge(void) {
  double *a = malloc(points * 8);
  for (long i = 0; i < points; i++) a[i] = 0;
  return a;
}
// In ascending order with gaps: what of a grid is within a sphere.
static int *make_table(void) {
  int *a = malloc(entries * sizeof *a);
  for (long i = 0; i < entries; i++) a[i] = 4 * i + i % 3;
  return a;
}

// Each call counts: without this a compiler sees that a second one gives the same.
#define CALLED __asm__ volatile("" ::: "memory")

static double __attribute__((noinline)) project(const double *wave, long count) {
  CALLED;
  double sum = 0;
  for (long i = 0; i < count; i++) sum += wave[i] * wave[i];
  return sum;
}
static double __attribute__((noinline)) apply(const double *potential) {
  CALLED;
  double sum = 0;
  for (long i = 0; i < points; i++) sum += potential[i];
  return sum;
}
static void __attribute__((noinline)) scatter(double *charge, const int *table, double weight) {
  for (long i = 0; i < entries; i++) charge[table[i]] += weight;
}
static double __attribute__((noinline)) gather(const double *charge, const int *table) {
  CALLED;
  double sum = 0;
  for (long i = 0; i < entries; i++) sum += charge[table[i]];
  return sum;
}

int main(int argc, char **argv) {
  long steps = argc > 1 ? atol(argv[1]) : 24, size = argc > 2 ? atol(argv[2]) : 64;
  waves = 4 * size * MIB / 8, points = size * MIB / 8, entries = points / 4;
  double *wave = make_waves(), *potential = make_potential(), *charge = make_charge(), sum = 0;
  int *table = make_table();
  for (long step = 0; step < steps; step++) {
    long block = waves / BLOCKS;
    sum += project(wave + step % BLOCKS * block, block);
    for (int k = 0; k < 2; k++) sum += apply(potential);
    scatter(charge, table, 1e-9 * sum);
    sum += gather(charge, table);
  }
  printf("%.12g\n", sum);
}

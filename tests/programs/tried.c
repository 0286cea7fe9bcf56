// Fills so many MiB, goes through them three times and prints the sum. "pid": prints what no other run prints. "input": adds what it reads.
// "fails", "hangs": when it is managed. "wait": goes on for ever.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 200) << 17;
  const char *how = argc > 2 ? argv[2] : "";
  if (!strcmp(how, "fails") && getenv("NEARFAR_JOB")) {
    fprintf(stderr, "no luck today\n");
    return 7;
  }
  if (!strcmp(how, "hangs") && getenv("NEARFAR_JOB"))
    for (;;) pause();
  unsigned long *data = malloc(n * sizeof *data), sum = 0, input = 0;
  for (size_t i = 0; i < n; i++) data[i] = i;
  for (int lap = 0; lap < 3; lap++)
    for (size_t i = 0; i < n; i++) sum += data[i] ^ lap;
  if (!strcmp(how, "input") && scanf("%lu", &input) != 1) return 8;
  if (!strcmp(how, "wait"))
    for (;;) pause();
  printf("%lu\n", !strcmp(how, "pid") ? (unsigned long)getpid() : sum + input);
  return 0;
}

// flags: -O0 -g
// Ends by a signal, or waits to be looked at, three calls deep, with most of its data in far. A debugger must find the way to
// where it is, the variables, and what is in near.
#include "check.h"

volatile uint64_t *far_data, *near_data;
volatile uint64_t witness = 0x1234567890abcdefull; // a static variable

__attribute__((noinline)) static void innermost(const char *how) {
    volatile uint64_t local = 0xfeedfacecafebeefull;
    near_data[7] = 0x7777777777777777ull;
    if (strcmp(how, "segv") == 0) *(volatile char *)0x10 = (char)local;
    if (strcmp(how, "abort") == 0) abort();
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}

__attribute__((noinline)) static void middle(const char *how, int depth) {
    if (depth > 0) middle(how, depth - 1);
    else innermost(how);
}

int main(int argc, char **argv) {
    must(argc > 1);
    far_data = map(160 * MIB);
    fill((void *)far_data, 160 * MIB, 1);
    push_out();
    near_data = map(MIB);
    fill((void *)near_data, MIB, 3);
    middle(argv[1], 3);
}

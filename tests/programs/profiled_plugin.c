// flags: -shared -fPIC -g
// The library of profiled_thread_local.c: a static array, and thread-local ones.
#include <stdint.h>

enum { TABLE = 2000000 / 8, LOCAL = 1600000 / 8, SMALL = 4000 / 8 };
static uint64_t plugin_table[TABLE];
static __thread uint64_t plugin_small[SMALL];
static __thread uint64_t plugin_buffer[LOCAL];
static __thread uint64_t plugin_second[LOCAL / 2];

void sweep_library(int passes) {
    for (int pass = 0; pass < passes; pass++) {
        for (int at = 0; at < TABLE; at++) plugin_table[at] += at;
        for (int at = 0; at < LOCAL; at++) plugin_buffer[at] += at;
        for (int at = 0; at < LOCAL / 2; at++) plugin_second[at] += at;
        for (int at = 0; at < SMALL; at++) plugin_small[at] += at;
    }
}

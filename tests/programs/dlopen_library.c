// flags: -shared -fPIC
// The library of dlopen_static.c: a big static array and a block from malloc of its own.
#include "check.h"

static uint64_t array[96 * MIB / 8];
static uint64_t *block;

size_t array_bytes(void) { return sizeof array; }
void *array_at(void) { return array; }

__attribute__((constructor)) static void start(void) {
    block = malloc(24 * MIB);
    fill(block, 24 * MIB, 4242);
}
void check_block(void) { verify(block, 24 * MIB, 4242, "block of the library"); }
__attribute__((destructor)) static void end(void) { free(block); }

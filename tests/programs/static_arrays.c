// flags: -mcmodel=large -fno-pie -no-pie -fno-pic
// Static arrays (.bss and initialised) of 256 MiB: paged like the heap, zero at the start, no malloc and no mmap in sight.
#include "check.h"

static uint64_t big[256 * MIB / 8];
static uint64_t initialised[MIB / 8] = {[0] = 1, [100000] = 2, [131071] = 3};

int main(void) {
    for (size_t i = 0; i < sizeof big / 8; i += 512) must(big[i] == 0);
    fill(big, sizeof big, 1);
    must(initialised[0] == 1 && initialised[100000] == 2 && initialised[131071] == 3 && initialised[7] == 0);
    verify(big, sizeof big, 1, "static array");
    for (size_t i = sizeof big / 8; i-- > 0;) big[i] ^= i;
    for (size_t i = 0; i < sizeof big / 8; i++) if (big[i] != (word(1, i) ^ i)) wrong(big, i, big[i], word(1, i) ^ i, "static array, second pass");
    must(initialised[0] == 1 && initialised[100000] == 2 && initialised[131071] == 3);
    printf("OK\n");
    return 0;
}

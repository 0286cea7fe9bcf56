// pattern BYTES: fills a block with one sentence, over and over, says "ready" and sweeps over it until it is ended.
// What is in far memory then is either that sentence or encrypted.
#include "check.h"

static const char sentence[65] = "nearfar keeps this sentence to itself when it is told to do so. ";

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 128 * MIB);
    char *at = malloc(bytes);
    must(at != NULL);
    for (size_t i = 0; i + 64 <= bytes; i += 64) memcpy(at + i, sentence, 64);
    printf("ready\n");
    fflush(stdout);
    for (;;)
        for (size_t i = 0; i + 64 <= bytes; i += 4096) must(memcmp(at + i, sentence, 64) == 0);
}

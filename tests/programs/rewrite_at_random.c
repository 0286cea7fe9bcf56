// Rewrites data at random for long in a far memory that has little more room than the data: what is outdated there must go.
// arguments: data, rewrites
#include "check.h"

int main(int argc, char **argv) {
    size_t bytes = size_arg(argc, argv, 1, 96 * MIB), count = size_arg(argc, argv, 2, 100000);
    size_t pages = bytes / PAGE;
    uint64_t *data = malloc(bytes);
    uint32_t *version = calloc(pages, sizeof *version);
    must(data != NULL && version != NULL);
    for (size_t page = 0; page < pages; page++) fill(data + page * 512, PAGE, page);
    uint64_t state = 42;
    for (size_t i = 0; i < count; i++) {
        size_t page = next_random(&state) % pages;
        must(version[page] < 512);
        uint64_t *at = data + page * 512 + version[page];
        if (*at != word(page, version[page])) wrong(data, page * 512 + version[page], *at, word(page, version[page]), "not yet rewritten");
        version[page]++;
        *at = word(page + 77, version[page]);
    }
    for (size_t page = 0; page < pages; page++)
        for (size_t i = 0; i < 512; i++) {
            uint64_t expected = i < version[page] ? word(page + 77, i + 1) : word(page, i);
            if (data[page * 512 + i] != expected) wrong(data, page * 512 + i, data[page * 512 + i], expected, "at the end");
        }
    printf("OK\n");
    return 0;
}

// Far more virtual than touched: 6 GiB of malloc and calloc, 100 MiB of it touched, in runs of 32 KiB; untouched memory is zero and free.
#include "check.h"

int main(void) {
    enum { BLOCKS = 3 };
    size_t each = 2ul << 30, run = 8 * PAGE, stride = 480 * PAGE;
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = i == 1 ? calloc(1, each) : malloc(each);
        must(blocks[i] != NULL);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (size_t p = 0; p + run <= each; p += stride)
            for (size_t q = p; q < p + run; q += PAGE) *(uint64_t *)(blocks[i] + q + q / PAGE % 512 * 8) = word(i, q);
    push_out();
    for (int i = 0; i < BLOCKS; i++)
        for (size_t p = 0; p + run <= each; p += stride)
            for (size_t q = p; q < p + run; q += PAGE) {
                uint64_t found = *(uint64_t *)(blocks[i] + q + q / PAGE % 512 * 8);
                if (found != word(i, q)) wrong(blocks[i], q / 8, found, word(i, q), "touched page");
            }
    uint64_t state = 3;
    for (int n = 0; n < 3000; n++) { // pages in between read as zero (calloc's by contract; malloc's are fresh)
        size_t p = next_random(&state) % (each / PAGE) * PAGE;
        if (p % stride < run) continue;
        must(*(uint64_t *)(blocks[1] + p + p / PAGE % 512 * 8) == 0);
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    // Nonsense sizes are refused, and memory still works afterwards.
    volatile size_t nonsense[] = {(size_t)8.7e17, (size_t)1.3e19, SIZE_MAX, SIZE_MAX - 4096, (size_t)1 << 62};
    for (unsigned i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        errno = 0;
        must(malloc(nonsense[i]) == NULL && errno == ENOMEM);
        errno = 0;
        must(calloc(nonsense[i], 3) == NULL && errno == ENOMEM);
        char *small = malloc(100);
        small[99] = 7;
        must(realloc(small, nonsense[i]) == NULL && small[99] == 7);
        free(small);
        void *at;
        must(posix_memalign(&at, 4096, nonsense[i]) == ENOMEM);
    }
    printf("OK\n");
    return 0;
}

// munmap of the middle of a paged mapping, whole and ragged; a new mapping in the hole is zero and apart.
#include "check.h"

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    must(munmap(at + 32 * MIB, 16 * MIB) == 0);
    must(munmap(at + 60 * MIB + PAGE, 5 * PAGE) == 0);
    for (int i = 0; i < 50; i++) must(munmap(at + 70 * MIB + i * 7 * PAGE, PAGE) == 0);
    int ends[2]; // nobody can read in the hole
    must(pipe(ends) == 0 && write(ends[1], at + 40 * MIB, 1) == -1 && errno == EFAULT);
    push_out();
    verify(at, 32 * MIB, 1, "left of the hole");
    verify_from(at + 48 * MIB, 12 * MIB + PAGE, 1, 48 * MIB / 8, "right of the hole");
    verify_from(at + 60 * MIB + 6 * PAGE, 10 * MIB - 6 * PAGE, 1, (60 * MIB + 6 * PAGE) / 8, "behind the small hole");
    for (int i = 0; i < 50; i++) verify_from(at + 70 * MIB + (i * 7 + 1) * PAGE, 6 * PAGE, 1, (70 * MIB + (i * 7 + 1) * PAGE) / 8, "between holes");
    char *again = mmap(at + 32 * MIB, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    must(again == at + 32 * MIB);
    verify_zero(again, 16 * MIB, "new mapping in the hole");
    fill(again, 16 * MIB, 2);
    push_out();
    verify(again, 16 * MIB, 2, "mapping in the hole");
    verify(at, 32 * MIB, 1, "left of it");
    must(munmap(at, bytes) == 0); // with holes in it: allowed
    // Many mappings, unmapped in another order; far space must come back (the test looks at it).
    for (int round = 0; round < 6; round++) {
        char *list[24];
        for (int i = 0; i < 24; i++) list[i] = map(6 * MIB), fill(list[i], 6 * MIB, round * 100 + i);
        for (int i = 0; i < 24; i++) {
            int j = i * 7 % 24;
            verify(list[j], 6 * MIB, round * 100 + j, "one of many mappings");
            must(munmap(list[j], 6 * MIB) == 0);
        }
    }
    printf("OK\n");
    return 0;
}

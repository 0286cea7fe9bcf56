// realloc far beyond near: many odd steps, doubling, two vectors in turn, shrinking; the content is checked after each phase.
#include "check.h"

static uint64_t *grow(uint64_t *list, size_t *count, size_t to, uint64_t salt) {
    list = realloc(list, to * 8);
    must(list != NULL);
    fill_from(list + *count, (to - *count) * 8, salt, *count);
    *count = to;
    return list;
}

int main(int argc, char **argv) {
    size_t most = size_arg(argc, argv, 1, 192 * MIB) / 8;
    uint64_t *list = NULL;
    size_t count = 0, steps = 0;
    while (count < most) { // small steps: about 600 of 320 KiB and odd
        list = grow(list, &count, count + 40961 + steps % 7 * 13, 1);
        if (++steps % 64 == 0) verify_from(list + count / 3, 8192, 1, count / 3, "third of the growing list");
    }
    verify(list, count * 8, 1, "list grown in small steps");
    for (size_t now = count; now > 1000; now = now / 5 * 3) {
        list = realloc(list, now * 8);
        must(list != NULL);
        verify_from(list + now - 900, 900 * 8, 1, now - 900, "end of the shrunk list");
        count = now;
    }
    verify(list, count * 8, 1, "list after shrinking");
    free(list);

    list = NULL;
    count = 0;
    for (size_t to = 512; to <= most; to *= 2) list = grow(list, &count, to, 2);
    verify(list, count * 8, 2, "list grown by doubling");
    free(list);

    uint64_t *pair[2] = {NULL, NULL};
    size_t counts[2] = {0, 0};
    for (int i = 0; counts[1] < most / 2; i++) pair[i & 1] = grow(pair[i & 1], &counts[i & 1], counts[i & 1] + 300001, 3 + (i & 1));
    for (int i = 0; i < 2; i++) verify(pair[i], counts[i] * 8, 3 + i, "lists grown in turn");
    pair[0] = realloc(pair[0], counts[0] * 8 + 3 * PAGE);
    verify(pair[0], counts[0] * 8, 3, "list after a last small growth");
    free(pair[0]);
    free(pair[1]);
    printf("OK %zu\n", steps);
    return 0;
}

// mremap: grow in place or moved, shrink, MAYMOVE, FIXED, DONTUNMAP, split from the middle; the content follows, what is new is zero.
#include "check.h"

int main(void) {
    // Grow step by step, moved when needed, with something mapped behind it so that growth in place fails now and then.
    size_t bytes = 8 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    for (int i = 0; i < 12; i++) {
        size_t more = (i % 3 + 1) * 4 * MIB + i * PAGE;
        void *blocker = mmap(at + bytes, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at = mremap(at, bytes, bytes + more, MREMAP_MAYMOVE);
        must(at != MAP_FAILED);
        verify_zero(at + bytes, more, "new part after mremap");
        fill_from(at + bytes, more, 1, bytes / 8);
        bytes += more;
        if (blocker != MAP_FAILED) munmap(blocker, PAGE);
    }
    push_out();
    verify(at, bytes, 1, "grown mapping");
    // Shrink, then grow again: the part that came back is zero.
    size_t half = bytes / 2 / PAGE * PAGE;
    char *same = mremap(at, bytes, half, 0);
    must(same == at);
    verify(at, half, 1, "shrunk mapping");
    at = mremap(at, half, bytes, MREMAP_MAYMOVE);
    must(at != MAP_FAILED);
    verify_zero(at + half, bytes - half, "part that came back");
    verify(at, half, 1, "kept part");
    // Growing without MAYMOVE with a neighbour in the way must fail and change nothing.
    char *pair = map(2 * MIB);
    fill(pair, 2 * MIB, 2);
    void *none = mremap(pair, MIB, 4 * MIB, 0);
    must(none == MAP_FAILED && errno == ENOMEM);
    verify(pair, 2 * MIB, 2, "after a refused mremap");
    // FIXED: onto a place of our choice, over what was there.
    char *place = map(32 * MIB);
    fill(place, 32 * MIB, 3);
    char *moved = mremap(at, 16 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place + 8 * MIB);
    must(moved == place + 8 * MIB);
    push_out();
    verify(place, 8 * MIB, 3, "before the moved part");
    verify(moved, 16 * MIB, 1, "moved part");
    verify_from(place + 24 * MIB, 8 * MIB, 3, 24 * MIB / 8, "behind the moved part");
    verify_from(at + 16 * MIB, half - 16 * MIB, 1, 16 * MIB / 8, "rest of the source");
    int ends[2]; // the source is gone: nobody can read there
    must(pipe(ends) == 0 && write(ends[1], at, 1) == -1 && errno == EFAULT);
    // A piece of the middle, grown elsewhere.
    char *middle = mremap(place + 4 * MIB, MIB, 3 * MIB, MREMAP_MAYMOVE);
    must(middle != MAP_FAILED && middle != place + 4 * MIB);
    verify_from(middle, MIB, 3, 4 * MIB / 8, "piece of the middle");
    verify_zero(middle + MIB, 2 * MIB, "new part of the piece");
    // DONTUNMAP: the content moves, the source stays mapped and is zero.
    char *source = map(24 * MIB);
    fill(source, 24 * MIB, 4);
    push_out();
    char *copy = mremap(source, 24 * MIB, 24 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    must(copy != MAP_FAILED && copy != source);
    verify(copy, 24 * MIB, 4, "moved by DONTUNMAP");
    verify_zero(source, 24 * MIB, "source after DONTUNMAP");
    fill(source, 24 * MIB, 5);
    push_out();
    verify(copy, 24 * MIB, 4, "moved by DONTUNMAP, later");
    verify(source, 24 * MIB, 5, "source after DONTUNMAP, refilled");
    // Nonsense is refused.
    must(mremap(source + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    must(mremap(source, 24 * MIB, 0, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    must(mremap(source, 24 * MIB, 1ul << 50, MREMAP_MAYMOVE) == MAP_FAILED && (errno == ENOMEM || errno == EINVAL));
    verify(source, 24 * MIB, 5, "after nonsense");
    printf("OK\n");
    return 0;
}

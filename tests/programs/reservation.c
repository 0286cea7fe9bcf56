// A big PROT_NONE reservation whose parts are committed by MAP_FIXED or mprotect and given back the same ways, as runtimes do.
#include "check.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int faults;
static void on_segv(int number) { (void)number; faults++; siglongjmp(back, 1); }
static void must_fault(char *at) {
    int before = faults;
    if (sigsetjmp(back, 1) == 0) (void)*(volatile char *)at;
    must(faults == before + 1);
}

int main(void) {
    signal(SIGSEGV, on_segv);
    size_t reserved = 8ul << 30, part = 4 * MIB;
    enum { PARTS = 41 };
    char *base = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(base != MAP_FAILED);
    must_fault(base);
    must_fault(base + reserved - 1);
    char *parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        parts[i] = base + (size_t)i * 190 * MIB + i * PAGE;
        if (i % 2) must(mmap(parts[i], part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == parts[i]);
        else must(mprotect(parts[i], part, PROT_READ | PROT_WRITE) == 0);
        verify_zero(parts[i], part, "freshly committed");
        fill(parts[i], part, 100 + i);
        must_fault(parts[i] + part);
        if (i > 0) must_fault(parts[i] - 1);
    }
    push_out();
    for (int i = 0; i < PARTS; i++) verify(parts[i], part, 100 + i, "committed part");
    for (int i = 0; i < PARTS; i += 3) { // decommit
        if (i % 2) must(mmap(parts[i], part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == parts[i]);
        else must(madvise(parts[i], part, MADV_DONTNEED) == 0 && mprotect(parts[i], part, PROT_NONE) == 0);
        must_fault(parts[i] + part / 2);
    }
    push_out();
    for (int i = 0; i < PARTS; i++)
        if (i % 3) verify(parts[i], part, 100 + i, "part that stayed");
    for (int i = 0; i < PARTS; i += 3) { // commit again: zero
        must(mprotect(parts[i], part, PROT_READ | PROT_WRITE) == 0);
        verify_zero(parts[i], part, "committed again");
        fill(parts[i], part / 2, 200 + i);
    }
    for (int i = 1; i < PARTS; i += 3) { // overlaid while committed and in far: zero
        must(mmap(parts[i] + MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == parts[i] + MIB);
        verify_zero(parts[i] + MIB, MIB, "overlaid part");
    }
    push_out();
    for (int i = 0; i < PARTS; i++) {
        if (i % 3 == 0) verify(parts[i], part / 2, 200 + i, "first half"), verify_zero(parts[i] + part / 2, part / 2, "second half");
        else if (i % 3 == 1) {
            verify(parts[i], MIB, 100 + i, "before the overlay");
            verify_zero(parts[i] + MIB, MIB, "overlay");
            verify_from(parts[i] + 2 * MIB, 2 * MIB, 100 + i, 2 * MIB / 8, "behind the overlay");
        } else verify(parts[i], part, 100 + i, "part that stayed");
    }
    must(munmap(base, reserved) == 0);
    must_fault(parts[2]);
    printf("OK %d\n", faults);
    return 0;
}

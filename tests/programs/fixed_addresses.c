// Holes are holes: their faults, mincore, and mappings at fixed addresses, also over blocks of malloc and where nobody was given addresses.
#include "check.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int code;

static void caught(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    code = info->si_code;
    siglongjmp(back, 1);
}

static int code_of(volatile char *at) {
    code = 0;
    if (!sigsetjmp(back, 1)) *at = 1;
    return code;
}

static char *shared(char value) {
    char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED);
    return memset(at, value, MIB);
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    // Before there is a hole that they would fill.
    char *seven = shared(7), *eight = shared(8), *nine = shared(9), *at = map(8 * MIB);
    fill(at, 8 * MIB, 1);
    must(munmap(at + 2 * MIB, MIB) == 0);
    must(mprotect(at + 4 * MIB, MIB, PROT_NONE) == 0);
    must(code_of(at + 4 * MIB) == SEGV_ACCERR);
    // Where the kernel pages, what is not mapped is reserved.
    if (argc == 1) {
        must(code_of(at + 2 * MIB) == SEGV_MAPERR);
        unsigned char pages[MIB / PAGE];
        must(syscall(SYS_mincore, at + 2 * MIB, MIB, pages) == -1 && errno == ENOMEM);
        must(mmap(at + 2 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == at + 2 * MIB);
        must(munmap(at + 2 * MIB, MIB) == 0);
    }
    must(mremap(seven, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at + 2 * MIB) == at + 2 * MIB && at[2 * MIB + 5] == 7);
    // Over what has content, and over a block.
    must(mremap(eight, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, at + 6 * MIB) == at + 6 * MIB && at[6 * MIB + 5] == 8);
    char *block = malloc(64 * MIB), *middle = (char *)(((uintptr_t)block + 4 * MIB) & ~(MIB - 1));
    memset(block, 2, 64 * MIB);
    must(mremap(nine, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, middle) == middle && middle[5] == 9);
    int anonymous = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
    must(mmap(middle + 2 * MIB, MIB, PROT_READ | PROT_WRITE, anonymous, -1, 0) == middle + 2 * MIB && middle[2 * MIB + 5] == 0);
    char *other = malloc(100 * MIB);
    fill(other, 100 * MIB, 3);
    long sum = 0;
    for (size_t i = 0; i < 64 * MIB; i += PAGE) sum += block[i];
    must(sum == 2 * 62 * 256 + 9 * 256);
    verify(at, 2 * MIB, 1, "beside what was replaced");
    free(block);
    block = malloc(64 * MIB);
    fill(block, 64 * MIB, 4);
    verify(other, 100 * MIB, 3, "the other block");
    verify(block, 64 * MIB, 4, "the block that came after");
    // Addresses that nearfar may have kept for itself.
    for (uintptr_t addr = 0x300000000000; addr < 0x400000000000; addr += 0x10000000000) {
        char *own = mmap((void *)addr, MIB, PROT_READ | PROT_WRITE, anonymous, -1, 0);
        must(own == (char *)addr);
        fill(own, MIB, addr);
        verify(own, MIB, addr, "at an address of its own");
        must(munmap(own, MIB) == 0);
    }
    verify(block, 64 * MIB, 4, "a block, in the end");
    puts("OK");
    return 0;
}

// Reserves a range and maps other things over parts of it, as virtual machines do: a file, shared memory, code, single pages.
// Calls on the whole range then work as without nearfar: nothing of it is a gap.
#include "check.h"
#include <fcntl.h>

int main(void) {
    size_t size = 64 * MIB;
    char *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(at != MAP_FAILED);
    int file = open("/proc/self/exe", O_RDONLY);
    must(file >= 0);
    must(mmap(at + 8 * MIB, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == at + 8 * MIB);
    must(mmap(at + 12 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + 12 * MIB);
    must(mmap(at + 16 * MIB, MIB, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + 16 * MIB);
    for (size_t p = 20 * MIB; p < 24 * MIB; p += 4 * PAGE)
        must(mmap(at + p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + p);
    must(mprotect(at + 32 * MIB, 32 * MIB, PROT_READ | PROT_WRITE) == 0);
    fill(at + 32 * MIB, 32 * MIB, 1);
    unsigned char *state = malloc(size / PAGE);
    must(state != NULL && mincore(at, size, state) == 0);
    must(msync(at, size, MS_ASYNC) == 0);
    must(madvise(at, 24 * MIB, MADV_RANDOM) == 0);
    must(mprotect(at + 12 * MIB, MIB, PROT_READ) == 0);
    must(mprotect(at + 20 * MIB, 4 * MIB, PROT_READ) == 0);
    push_out();
    verify(at + 32 * MIB, 32 * MIB, 1, "the writable part");
    must(munmap(at, size) == 0);
    must(mincore(at, size, state) == -1 && errno == ENOMEM);
    printf("OK\n");
    return 0;
}

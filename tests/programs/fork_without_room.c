// A fork when the process may have no more mappings, and one when it may have no more address space: the child has all data.
#include "check.h"
#include <sys/resource.h>

static void both(char *at, size_t bytes, uint64_t salt, const char *what) {
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        verify(at, bytes, salt, what);
        fill(at, bytes / 2, salt + 1);
        verify(at, bytes / 2, salt + 1, what);
        verify_from(at + bytes / 2, bytes / 2, salt, bytes / 16, what);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    must(status == 0);
    verify(at, bytes, salt, what);
}

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    // Alternating protection: each page is a mapping of its own.
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    size_t most = 0;
    must(file != NULL && fscanf(file, "%zu", &most) == 1);
    fclose(file);
    most += 1000 + most % 2;
    char *many = mmap(NULL, most * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(many != MAP_FAILED);
    size_t count = 0;
    while (count < most && mprotect(many + count * PAGE, PAGE, PROT_READ) == 0) count += 2;
    must(count < most && errno == ENOMEM);
    both(at, bytes, 1, "no mappings");
    must(munmap(many, most * PAGE) == 0);
    fill(at, bytes, 2);
    struct rlimit limit = {0, 0};
    must(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = 1;
    must(setrlimit(RLIMIT_AS, &limit) == 0);
    must(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    both(at, bytes, 2, "no address space");
    // posix_memalign(3) of glibc says why.
    void *block;
    // The compiler knows that the standard does not ask for that.
    int (*volatile get)(void **, size_t, size_t) = posix_memalign;
    errno = 0;
    must(get(&block, 64, 64 * MIB) == ENOMEM);
    must(errno == ENOMEM);
    puts("OK");
    return 0;
}

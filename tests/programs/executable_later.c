// Memory that is written first and executed then, as a just-in-time compiler does it, beside data that is paged.
#include "check.h"
int main(void) {
#ifdef __x86_64__
    static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3}; // lea eax, [rdi + 1]; ret
#elif defined(__aarch64__)
    static const unsigned char code[] = {0x00, 0x04, 0x00, 0x11, 0xc0, 0x03, 0x5f, 0xd6}; // add w0, w0, 1; ret
#endif
    size_t bytes = 96 * MIB;
    char *data = malloc(bytes);
    fill(data, bytes, 1);
    char *at = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED);
    fill(at + 2 * MIB, 2 * MIB, 2);
    memcpy(at, code, sizeof code);
    push_out();
    must(mprotect(at, MIB, PROT_READ | PROT_EXEC) == 0);
    __builtin___clear_cache(at, at + sizeof code);
    must(((int (*)(int))at)(41) == 42);
    push_out();
    must(((int (*)(int))at)(1) == 2);
    must(mprotect(at, MIB, PROT_READ | PROT_WRITE) == 0);
    memset(at, 0, MIB);
    verify(at + 2 * MIB, 2 * MIB, 2, "beside the code");
    pid_t child = fork();
    if (child == 0) {
        verify(at + 2 * MIB, 2 * MIB, 2, "beside the code, in a child");
        verify_zero(at, MIB, "where the code was, in a child");
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    must(munmap(at, 4 * MIB) == 0);
    char *again = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(again != MAP_FAILED);
    verify_zero(again, 4 * MIB, "a mapping where code was");
    verify(data, bytes, 1, "the data");
    printf("OK\n");
    return 0;
}

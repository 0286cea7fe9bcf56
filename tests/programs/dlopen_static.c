// flags: -ldl -pthread
// dlopen of a library with a big static array and a constructor that allocates: paged, and zeros again after dlclose and dlopen.
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    must(argc > 1);
    uint64_t *mine = malloc(48 * MIB);
    fill(mine, 48 * MIB, 1);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) { printf("dlopen: %s\n", dlerror()); return 1; }
        size_t (*bytes)(void) = (size_t (*)(void))dlsym(library, "array_bytes");
        void *(*at)(void) = (void *(*)(void))dlsym(library, "array_at");
        void (*check_block)(void) = (void (*)(void))dlsym(library, "check_block");
        must(bytes && at && check_block);
        verify_zero(at(), bytes(), "static array of a library just opened");
        fill(at(), bytes(), 10 + round);
        push_out();
        verify(at(), bytes(), 10 + round, "static array of the library");
        check_block();
        must(dlclose(library) == 0);
        verify(mine, 48 * MIB, 1, "memory of the program after dlclose");
    }
    printf("OK\n");
    return 0;
}

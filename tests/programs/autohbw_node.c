// Where pages lie, and the interface that switches placing off: blocks of the window are bound to node 0 by policy, others are not.
// flags: -ldl
#include "check.h"
#include <dlfcn.h>

static int policy_of(void *addr) {
    int mode = -1;
    unsigned long mask[16];
    must(syscall(SYS_get_mempolicy, &mode, mask, 1024ul, addr, 2ul) == 0);
    return mode & 0xff;
}
static int node_of(void *addr) {
    int status = -1000;
    must(syscall(SYS_move_pages, 0, 1ul, &addr, NULL, &status, 0) == 0);
    return status;
}
static char *touched(size_t n) {
    char *block = malloc(n);
    must(block != NULL);
    memset(block, 1, n);
    return block;
}

int main(void) {
    void (*disable)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "disableAutoHBW");
    void (*enable)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "enableAutoHBW");
    char *inside = touched(2 * MIB), *outside = touched(1000), *larger = touched(9 * MIB);
    for (size_t at = 0; at < 2 * MIB; at += 4096) must(node_of(inside + at) == 0);
    must(policy_of(inside) != 0 && policy_of(outside) == 0 && policy_of(larger) == 0);
    if (disable != NULL) {
        disable();
        must(policy_of(touched(2 * MIB + 1)) == 0);
        enable();
        must(policy_of(touched(2 * MIB + 2)) != 0);
    }
    puts("OK");
}

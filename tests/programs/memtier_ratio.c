// flags: -ldl
// Blocks of one size under libmemtier.so with tiers DRAM and node 0 in the ratio of the arguments: shares by address, realloc in place.
#include "check.h"
static int is_far(void *addr) {
    int mode = -1;
    unsigned long mask[16];
    must(syscall(SYS_get_mempolicy, &mode, mask, 1024ul, addr, 2ul) == 0);
    return (mode & 0xff) != 0;
}
int main(int argc, char **argv) {
    must(argc == 3);
    double near = atof(argv[1]), far = atof(argv[2]);
    static char *blocks[4000];
    size_t count[2] = {0, 0};
    for (int i = 0; i < 4000; i++) {
        // By the size of the whole.
        blocks[i] = i % 2 ? calloc(100, 50) : malloc(5000);
        must(blocks[i] != NULL);
        count[is_far(blocks[i])]++;
    }
    double share = (double)count[1] / 4000, wanted = far / (near + far);
    if (share < wanted - 0.05 || share > wanted + 0.05) {
        printf("%f of the blocks are far, not %f\n", share, wanted);
        return 1;
    }
    for (int i = 0; i < 4000; i++) {
        int before = is_far(blocks[i]);
        memset(blocks[i], i, 5000);
        blocks[i] = realloc(blocks[i], 300000);
        must(blocks[i] != NULL && is_far(blocks[i]) == before && blocks[i][4999] == (char)i);
        free(blocks[i]);
    }
    puts("OK");
}

// One page in each of many blocks of a large reservation: the tables follow what is touched.
#include "check.h"

int main(void) {
    size_t pages = 20000, stride = (1ul << 40) / pages & ~(PAGE - 1);
    char *at = mmap(NULL, 1ul << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(at != MAP_FAILED);
    for (size_t i = 0; i < pages; i++) fill(at + i * stride, PAGE, i);
    for (size_t i = 0; i < pages; i++) verify(at + i * stride, PAGE, i, "sparse");
    puts("OK");
    return 0;
}

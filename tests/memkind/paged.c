/* In a paged job high bandwidth is near and everything else far; with an argument, it must not be. */
#include "check.h"
#include <hbwmalloc.h>
#include <memkind.h>
#include <string.h>

static int tier(const void *block)
{
    return (int)(((const size_t *)block)[-3] - 0x6e656172);
}

int main(int argc, char **argv)
{
    char *p;
    (void)argv;
    CHECK(hbw_check_available() == (argc > 1 ? 19 : 0));
    if (argc > 1) {
        p = hbw_malloc(100000);
        CHECK(p && memkind_detect_kind(p) == MEMKIND_DEFAULT && hbw_malloc_usable_size(p) < 200000);
        hbw_free(p);
        puts("OK");
        return 0;
    }
    p = hbw_malloc(1000);
    CHECK(p && tier(p) == 0 && hbw_malloc_usable_size(p) == 1000);
    strcpy(p, "kept");
    p = hbw_realloc(p, 5000);
    CHECK(tier(p) == 0 && strcmp(p, "kept") == 0);
    hbw_free(p);
    p = hbw_calloc(10, 10);
    CHECK(tier(p) == 0 && p[99] == 0);
    hbw_free(p);
    CHECK(hbw_posix_memalign((void **)&p, 4096, 10) == 0 && tier(p) == 0 && (size_t)p % 4096 == 0);
    hbw_free(p);
    p = memkind_malloc(MEMKIND_DEFAULT, 10);
    CHECK(tier(p) == 1);
    p = memkind_realloc(MEMKIND_HBW, p, 20);
    CHECK(tier(p) == 0);
    memkind_free(NULL, p);
    CHECK(memkind_malloc(MEMKIND_HBW_HUGETLB, 10) == NULL && memkind_check_available(MEMKIND_HBW_HUGETLB) != 0);
    puts("OK");
    return 0;
}

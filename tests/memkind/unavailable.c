/* No memory of high bandwidth: what is asked for strictly fails with the documented codes, what is preferred is ordinary memory.
   The argument is the code that is expected of the kinds. */
#include "check.h"
#include <errno.h>
#include <hbwmalloc.h>
#include <memkind.h>
#include <string.h>

int main(int argc, char **argv)
{
    int code = argc > 1 ? atoi(argv[1]) : 0;
    memkind_t kind;
    char *p;
    CHECK(hbw_check_available() == ENODEV);
    CHECK(memkind_check_available(MEMKIND_HBW) == code && memkind_check_available(MEMKIND_HBW_INTERLEAVE) == code);
    CHECK(memkind_get_capacity(MEMKIND_HBW) == -1);
    errno = 0;
    CHECK(memkind_malloc(MEMKIND_HBW, 10) == NULL && errno == ENOMEM);
    CHECK(memkind_calloc(MEMKIND_HBW_ALL, 1, 10) == NULL);
    CHECK(memkind_posix_memalign(MEMKIND_HBW, (void **)&p, 8, 10) == ENOMEM);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_BIND_LOCAL, (memkind_bits_t)0, &kind)
        == MEMKIND_ERROR_MEMTYPE_NOT_AVAILABLE);
    CHECK(memkind_create_kind(MEMKIND_MEMTYPE_HIGH_BANDWIDTH, MEMKIND_POLICY_PREFERRED_LOCAL, (memkind_bits_t)0, &kind) == 0
        && kind == MEMKIND_DEFAULT);
    p = hbw_malloc(5000);
    CHECK(p && memkind_detect_kind(p) == MEMKIND_DEFAULT);
    memset(p, 1, 5000);
    /* memkind 1.14.0 compares with a mask that nobody has filled. */
    CHECK(hbw_verify_memory_region(p, 5000, 0) == -1);
    hbw_free(p);
    CHECK(memkind_malloc(MEMKIND_REGULAR, 10) != NULL);
    puts("OK");
    return 0;
}

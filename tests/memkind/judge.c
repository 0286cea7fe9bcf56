/* A stand-in for a program of memkind's tests, as GoogleTest makes them: for `nearfar bench memkind --suite`. */
#include "check.h"
#include <string.h>

int memkind_get_version(void);

static int passed(void)
{
    puts("[  PASSED  ] 1 test.");
    return 0;
}

static int failed(const char *why)
{
    printf("/tree/judge.c:7: Failure\n%s\n[  FAILED  ] 1 test\n", why);
    return 1;
}

int main(int count, char **words)
{
    const char *test = count > 1 ? strchr(words[count - 1], '=') : NULL;
    CHECK(test);
    if (count == 3) {
        puts(strstr(test, "Same") ? "Same." : "Other.");
        puts(strstr(test, "Same") ? "  both  # GetParam() = 1\n  neither" : "  theirs\n  ours\n  DISABLED_no");
        return 0;
    }
    if (strcmp(test, "=Same.both") == 0)
        return passed();
    if (strcmp(test, "=Other.theirs") == 0)
        return memkind_get_version() == 7 ? passed() : failed("the version");
    if (strcmp(test, "=Other.ours") == 0 && memkind_get_version() == 7)
        abort();
    return strcmp(test, "=Other.ours") == 0 ? passed() : failed("never");
}

// The environment lies in memory that is far, and the locale is not "C": what the C library looks up for a message is there.
#include "check.h"
#include <locale.h>

extern char **environ;

int main(void) {
    must(setlocale(LC_ALL, "C.UTF-8") != NULL);
    char *at = map(MIB);
    char **list = (char **)at;
    size_t count = 0;
    for (; environ[count]; count++) list[count] = strcpy(at + PAGE * (1 + count), environ[count]);
    must(PAGE * (1 + count) < MIB && count * 8 < PAGE);
    list[count] = NULL;
    environ = list;
    for (int i = 0; i < 20; i++) push_out();
    must(getenv("PATH") != NULL);
    puts("OK");
    return 0;
}

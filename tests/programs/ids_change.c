// The C library has every thread take part in a change of user or group, and waits for each.
#include "check.h"
#include <grp.h>

int main(void) {
    void *at = map(96 * MIB);
    fill(at, 96 * MIB, 1);
    must(setgid(getgid()) == 0);
    must(setuid(getuid()) == 0);
    verify(at, 96 * MIB, 1, "after setgid and setuid");
    if (geteuid() == 0) {
        // Without the rights that opened them, /proc/self and the like can be read no more.
        must(setgroups(0, NULL) == 0 && setegid(65534) == 0 && seteuid(65534) == 0);
    }
    fill(at, 96 * MIB, 2);
    verify(at, 96 * MIB, 2, "as another user");
    puts("OK");
    return 0;
}

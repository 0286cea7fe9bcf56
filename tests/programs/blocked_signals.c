// Writes memory for ever, with all signals blocked, as Redis and others do in threads.
#include "check.h"

int main(void) {
    sigset_t all;
    sigfillset(&all);
    must(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    volatile char *at = malloc(200 * MIB);
    for (char value = 1;; value++)
        for (size_t i = 0; i < 200 * MIB; i += 64) at[i] = value;
}

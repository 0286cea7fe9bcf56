// Fork handlers of a library whose constructor runs before nearfar's: they may touch memory before the fork, and after it in both
// processes. Built twice: with -DLIBRARY as the library, then as the program that is linked with it.
#include "check.h"

extern void (*looks_at_fork)(void);

#ifdef LIBRARY
void (*looks_at_fork)(void);
static void look(void) {
    if (looks_at_fork) looks_at_fork();
}
__attribute__((constructor)) static void start(void) { pthread_atfork(look, look, look); }
#else
static char *at;
static size_t bytes = 48 * MIB;
static void look(void) { verify(at, bytes, 1, "in a fork handler"); }

int main(void) {
    at = map(bytes);
    fill(at, bytes, 1);
    push_out();
    looks_at_fork = look;
    pid_t child = fork();
    must(child >= 0);
    verify(at, bytes, 1, child ? "in the parent" : "in the child");
    if (child == 0) _exit(0);
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    puts("OK");
    return 0;
}
#endif

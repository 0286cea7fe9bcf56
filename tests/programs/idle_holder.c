// Fills so much memory, then waits for a command, without touching the memory before it has ended: idle_holder fork|vfork BYTES COMMAND...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t bytes = strtoul(argv[2], NULL, 10);
    unsigned char *held = malloc(bytes);
    memset(held, 7, bytes);
    (void)argc;
    pid_t child = strcmp(argv[1], "vfork") ? fork() : vfork();
    if (child == 0) {
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    size_t wrong = 0;
    for (size_t at = 0; at < bytes; at += 512) wrong += held[at] != 7;
    printf("%zu wrong, child %d\n", wrong, status);
    return wrong != 0 || status != 0;
}

// Fills so much memory, then waits for a command, without touching the memory before it has ended: idle_holder BYTES COMMAND...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    size_t bytes = strtoul(argv[1], NULL, 10);
    unsigned char *held = malloc(bytes);
    memset(held, 7, bytes);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    size_t wrong = 0;
    for (size_t at = 0; at < bytes; at += 512) wrong += held[at] != 7;
    printf("%zu wrong, child %d\n", wrong, status);
    return wrong != 0 || status != 0;
}

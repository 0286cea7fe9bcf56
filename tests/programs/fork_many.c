// Twenty children at once, each reads all data and writes a part of it; then two hundred short ones, one after another.
#include "check.h"

int main(int argc, char **argv) {
    enum { CHILDREN = 20 };
    size_t bytes = size_arg(argc, argv, 1, 80 * MIB), part = bytes / CHILDREN / PAGE * PAGE;
    char *data = malloc(bytes);
    fill(data, bytes, 1);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        must(children[i] >= 0);
        if (children[i] == 0) {
            fill(data + i * part, part, 100 + i);
            verify(data, i * part, 1, "before the part of a child");
            verify(data + i * part, part, 100 + i, "part of a child");
            verify_from(data + (i + 1) * part, bytes - (i + 1) * part, 1, (i + 1) * part / 8, "behind the part of a child");
            _exit(i);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        must(waitpid(children[i], &status, 0) == children[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != i) { printf("child %d ended with status %x\n", i, status); return 1; }
    }
    verify(data, bytes, 1, "parent after its children");
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            size_t at = (size_t)i * 977 % (bytes / PAGE) * PAGE;
            verify_from(data + at, PAGE, 1, at / 8, "page in a short child");
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    verify(data, bytes, 1, "parent at the end");
    printf("OK\n");
    return 0;
}

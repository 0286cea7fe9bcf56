// A process that pages goes into another root (which only root may), where the far directory has no name, and forks there.
#include "check.h"
#include <fcntl.h>

int main(void) {
    char dir[] = "/tmp/nearfar-root-XXXXXX";
    size_t bytes = 96 * MIB;
    char *at = map(bytes);
    fill(at, bytes, 1);
    must(mkdtemp(dir) != NULL);
    int parent = open("/tmp", O_PATH | O_DIRECTORY);
    must(parent >= 0 && chroot(dir) == 0);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            verify(at, bytes, 1, "in the child");
            fill(at, bytes, 2);
            // And one of its own.
            pid_t other = fork();
            must(other >= 0);
            verify(at, bytes, 2, "in both");
            if (other == 0) _exit(0);
            int status;
            must(waitpid(other, &status, 0) == other && status == 0);
            _exit(0);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    verify(at, bytes, 1, "in the parent");
    must(unlinkat(parent, dir + 5, AT_REMOVEDIR) == 0);
    puts("OK");
    return 0;
}

// process_vm_readv and process_vm_writev between a parent and its child (spawned before any fork of data): both sides are paged.
#include "check.h"
#include <sys/prctl.h>
#include <sys/uio.h>

static size_t bytes = 96 * MIB;
typedef struct { pid_t pid; char *at; } Address;

static void copy_all(pid_t pid, char *mine, char *theirs, int writing) {
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < 16 * MIB ? bytes - done : 16 * MIB;
        struct iovec local[2] = {{mine + done, piece / 2}, {mine + done + piece / 2, piece - piece / 2}}, remote = {theirs + done, piece};
        ssize_t n = writing ? process_vm_writev(pid, local, 2, &remote, 1, 0) : process_vm_readv(pid, local, 2, &remote, 1, 0);
        if (n <= 0) { printf("process_vm_%s: %zd (%s)\n", writing ? "writev" : "readv", n, strerror(errno)); fflush(stdout); _exit(1); }
        done += n;
    }
}

static void exchange(int from, int to, uint64_t mine, uint64_t theirs, const char *who) {
    char *own = malloc(bytes), *copy = malloc(bytes), go;
    fill(own, bytes, mine);
    push_out_with(64 * MIB);
    Address here = {getpid(), own}, there;
    must(write(to, &here, sizeof here) == sizeof here);
    must(read(from, &there, sizeof there) == sizeof there);
    copy_all(there.pid, copy, there.at, 0);
    verify(copy, bytes, theirs, who);
    must(write(to, "r", 1) == 1 && read(from, &go, 1) == 1); // both have read
    fill(copy, bytes, mine + 10);
    copy_all(there.pid, copy, there.at, 1);
    must(write(to, "w", 1) == 1 && read(from, &go, 1) == 1); // both have written
    push_out_with(64 * MIB);
    verify(own, bytes, theirs + 10, "memory written by the other process");
    must(write(to, "e", 1) == 1 && read(from, &go, 1) == 1);
    free(own);
    free(copy);
}

int main(void) {
    int down[2], up[2];
    must(pipe(down) == 0 && pipe(up) == 0);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        exchange(down[0], up[1], 2, 1, "memory of the parent");
        _exit(0);
    }
    exchange(up[0], down[1], 1, 2, "memory of the child");
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("OK\n");
    return 0;
}

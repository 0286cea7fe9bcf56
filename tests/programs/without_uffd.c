// without_uffd PROGRAM ARGUMENTS: runs it under a seccomp filter that denies userfaultfd with EPERM, as container runtimes do by default.
// Opening /dev/userfaultfd cannot be told apart by a filter; with "hide" first, a mount namespace of its own hides it (root only).
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int first = 1;
    if (argc > 1 && !strcmp(argv[1], "hide")) {
        first = 2;
        if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) { perror("mount namespace"); return 99; }
        if (access("/dev/userfaultfd", F_OK) == 0 && mount("/dev/null", "/dev/userfaultfd", NULL, MS_BIND, NULL)) { perror("/dev/userfaultfd"); return 99; }
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) { perror("seccomp"); return 99; }
    if (argc <= first) return 99;
    execvp(argv[first], argv + first);
    perror(argv[first]);
    return 99;
}

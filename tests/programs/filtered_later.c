// The program denies itself mincore and openat, as sandboxes do, when paging has long begun: nearfar must not guess what is there.
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

int main(void) {
    size_t bytes = 96 * MIB, words = bytes / 8;
    uint64_t *at = map(bytes), random = 1;
    fill(at, bytes, 1);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mincore, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    for (int i = 0; i < 3000; i++) {
        size_t index = next_random(&random) % words;
        uint64_t found = at[index];
        if (found != word(1, index)) wrong(at, index, found, word(1, index), "with calls denied");
        at[index] = word(1, index);
    }
    puts("OK");
    return 0;
}

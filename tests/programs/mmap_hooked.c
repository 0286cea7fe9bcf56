// A library puts its own code into mmap, as UCX does for MPI: a lock of the C library, which knows nothing of threads that are not its own.
// The child then needs the near memory that this idle process holds, whose pager begins in a thread of its own.
#include "check.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long calls;

static void *hook(void *at, size_t len, int prot, int flags, int fd, off_t offset) {
    must(pthread_rwlock_rdlock(&lock) == 0);
    calls++;
    must(pthread_rwlock_unlock(&lock) == 0);
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

static void put_into(void *function) {
    char *page = (char *)((uintptr_t)function & -PAGE);
    must(mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    // jmp [rip]: the next eight bytes are where to.
    memcpy(function, "\xff\x25\x00\x00\x00\x00", 6);
    void *to = (void *)hook;
    memcpy((char *)function + 6, &to, sizeof to);
}

int main(int argc, char **argv) {
    size_t mine = size_arg(argc, argv, 1, 40 * MIB), theirs = size_arg(argc, argv, 2, 100 * MIB);
    char *at = malloc(mine);
    must(at != NULL);
    fill(at, mine, 1);
    put_into((void *)mmap);
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(page != MAP_FAILED && calls > 0);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0) {
        char *other = malloc(theirs);
        must(other != NULL);
        for (int sweep = 0; sweep < 3; sweep++) {
            fill(other, theirs, 2 + sweep);
            verify(other, theirs, 2 + sweep, "of the child");
        }
        _exit(0);
    }
    int status;
    must(waitpid(pid, &status, 0) == pid && status == 0);
    verify(at, mine, 1, "of the idle one");
    puts("OK");
    return 0;
}

// flags: -pthread
// What system calls on paged-out memory must keep: every kind of buffer, interruption and restart by signals, longjmp out of a
// blocked call, signal masks and stacks, children made in every way, and calls that were under way when paging began.
#include "check.h"
#include <aio.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

extern char **environ;
static int blocked[2]; // a pipe that a thread reads before paging begins
static char *early;

static void *reads_early(void *arg) {
    (void)arg;
    must(read(blocked[0], early, MIB) == 5 && memcmp(early, "early", 5) == 0);
    return NULL;
}

// A copy of text in a page that is pushed out afterwards.
static char *far_text(const char *text) {
    char *at = map(MIB);
    fill(at, MIB, 3);
    strcpy(at + 5 * PAGE - 4, text); // across two pages
    push_out();
    return at + 5 * PAGE - 4;
}

static void vectors(void) {
    int file = open("vectors", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *one = map(MIB), *two = map(MIB);
    fill(one, MIB, 11), fill(two, MIB, 12);
    push_out();
    struct iovec iov[2] = {{one, MIB}, {two, MIB}};
    must(writev(file, iov, 2) == 2 * (long)MIB);
    memset(one, 0, MIB), memset(two, 0, MIB);
    push_out();
    must(syscall(SYS_preadv, file, iov, 2, 0, 0) == 2 * (long)MIB);
    verify(one, MIB, 11, "preadv"), verify(two, MIB, 12, "preadv");
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int round = 0; round < 8; round++) {
        fill(one, 64 << 10, round);
        push_out_with(16 * MIB);
        struct iovec out = {one, 64 << 10}, in = {two + round * 4096, 64 << 10};
        struct msghdr send = {.msg_iov = &out, .msg_iovlen = 1}, receive = {.msg_iov = &in, .msg_iovlen = 1};
        must(sendmsg(pair[0], &send, 0) == 64 << 10);
        must(recvmsg(pair[1], &receive, MSG_WAITALL) == 64 << 10);
        verify(in.iov_base, 64 << 10, round, "recvmsg");
    }
    // Streams of the C library: its own calls, past any function of the program's.
    FILE *stream = fdopen(file, "r+");
    rewind(stream);
    push_out();
    must(fread(two, 1, MIB, stream) == MIB);
    verify(two, MIB, 11, "fread");
    char *buffer = map(2 * MIB);
    setvbuf(stream, buffer, _IOFBF, 2 * MIB);
    push_out();
    must(fseek(stream, MIB, SEEK_SET) == 0 && fread(two, 1, 1000, stream) == 1000);
    verify(two, 1000, 12, "buffer of a stream");
    fclose(stream);
}

static void asynchronous(void) {
    int file = open("aio", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *at = map(MIB);
    fill(at, MIB, 21);
    push_out();
    struct aiocb block = {.aio_fildes = file, .aio_buf = at, .aio_nbytes = MIB, .aio_sigevent.sigev_notify = SIGEV_NONE};
    must(aio_write(&block) == 0);
    while (aio_error(&block) == EINPROGRESS) usleep(1000);
    must(aio_error(&block) == 0 && aio_return(&block) == (long)MIB);
    memset(at, 0, MIB);
    push_out();
    must(aio_read(&block) == 0);
    while (aio_error(&block) == EINPROGRESS) usleep(1000);
    must(aio_return(&block) == (long)MIB);
    verify(at, MIB, 21, "aio_read");
    close(file);
}

static sigjmp_buf out;
static volatile sig_atomic_t alarms;
static int pipes[2];
static void noted(int signal) {
    (void)signal;
    alarms++;
    if (alarms == 40) must(write(pipes[1], "x", 1) == 1);
}
static void leaves(int signal) { (void)signal; siglongjmp(out, 1); }

static void interrupted(void) {
    char *at = map(MIB);
    must(pipe(pipes) == 0);
    struct itimerval soon = {{0, 20000}, {0, 20000}}, once = {{0, 0}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = noted};
    sigfillset(&action.sa_mask);
    must(sigaction(SIGALRM, &action, NULL) == 0);
    fill(at, MIB, 31);
    push_out();
    must(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    must(read(pipes[0], at + 5000, 100) == -1 && errno == EINTR && alarms >= 1);
    action.sa_flags = SA_RESTART;
    must(sigaction(SIGALRM, &action, NULL) == 0);
    must(read(pipes[0], at + 9000, 100) == 1 && at[9000] == 'x' && alarms >= 40);
    must(setitimer(ITIMER_REAL, &never, NULL) == 0);
    action.sa_handler = leaves;
    action.sa_flags = SA_ONSTACK;
    must(sigaction(SIGALRM, &action, NULL) == 0);
    for (volatile int round = 0; round < 40; round++) {
        if (round % 8 == 0) push_out_with(32 * MIB);
        if (sigsetjmp(out, 1) == 0) {
            must(setitimer(ITIMER_REAL, &once, NULL) == 0);
            (void)!read(pipes[0], at + round * 9000, 100);
            must(!"the read returned");
        }
    }
    sigset_t *all = map(MIB), *old = all + 1000, now;
    fill(all, MIB, 5);
    sigfillset(all);
    push_out();
    must(sigprocmask(SIG_SETMASK, all, old) == 0 && sigismember(old, SIGUSR1) == 0);
    must(sigprocmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGUSR1) == 1);
    must(write(pipes[1], at, 10) == 10); // with everything blocked
    must(sigprocmask(SIG_SETMASK, old, NULL) == 0 && sigprocmask(SIG_BLOCK, NULL, &now) == 0 && sigismember(&now, SIGUSR1) == 0);
    stack_t none;
    must(sigaltstack(NULL, &none) == 0 && none.ss_flags == SS_DISABLE);
    must(signal(SIGSYS, SIG_IGN) == SIG_DFL && raise(SIGSYS) == 0 && signal(SIGSYS, SIG_DFL) == SIG_IGN);
    munmap(at, MIB);
}

static void children(void) {
    char *command = far_text("test \"$FAR\" = yes && exit 7");
    must(putenv(far_text("FAR=yes")) == 0);
    push_out();
    int status = system(command);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    push_out();
    FILE *stream = popen(far_text("echo piped"), "r");
    char line[20];
    must(stream && fgets(line, sizeof line, stream) && strcmp(line, "piped\n") == 0 && pclose(stream) == 0);
    for (int way = 0; way < 6; way++) {
        char **argv = map(MIB);
        char *program = far_text("/bin/sh");
        argv[0] = program, argv[1] = far_text("-c"), argv[2] = command, argv[3] = NULL;
        char *on_stack[] = {argv[0], argv[1], argv[2], NULL};
        push_out();
        pid_t child;
        if (way == 0) must(posix_spawn(&child, program, NULL, NULL, argv, environ) == 0);
        if (way == 1 && (child = vfork()) == 0) { execv(program, on_stack); _exit(1); }
        if (way == 3 && (child = fork()) == 0) { execl(program, argv[0], argv[1], argv[2], NULL); _exit(1); }
        if (way == 4 && (child = vfork()) == 0) { execlp("sh", argv[0], "-e", "-u", "-f", "-C", argv[1], argv[2], NULL); _exit(1); }
        if (way == 5 && (child = fork()) == 0) { execle(program, argv[0], "-e", "-u", "-f", argv[1], argv[2], NULL, environ); _exit(1); }
        if (way == 2 && (child = fork()) == 0) { execve(program, argv, environ); _exit(1); }
        must(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
}

typedef struct { pthread_mutex_t lock; pthread_cond_t changed; int turn; } Shared;
static void *takes_turns(void *arg) {
    Shared *shared = arg;
    for (int round = 0; round < 200; round++) {
        pthread_mutex_lock(&shared->lock);
        while (shared->turn % 2 == 0) pthread_cond_wait(&shared->changed, &shared->lock);
        shared->turn++;
        pthread_cond_signal(&shared->changed);
        pthread_mutex_unlock(&shared->lock);
    }
    return NULL;
}

static void locks(void) {
    Shared *shared = map(MIB);
    pthread_mutex_init(&shared->lock, NULL);
    pthread_cond_init(&shared->changed, NULL);
    pthread_t thread, pressure = start_pressure(96 * MIB);
    must(pthread_create(&thread, NULL, takes_turns, shared) == 0);
    for (int round = 0; round < 200; round++) {
        pthread_mutex_lock(&shared->lock);
        while (shared->turn % 2 == 1) pthread_cond_wait(&shared->changed, &shared->lock);
        shared->turn++;
        pthread_cond_signal(&shared->changed);
        pthread_mutex_unlock(&shared->lock);
    }
    must(pthread_join(thread, NULL) == 0 && shared->turn == 400);
    end_pressure(pressure);
}

int main(void) {
    pthread_t reader;
    early = malloc(2 * MIB);
    must(pipe(blocked) == 0 && pthread_create(&reader, NULL, reads_early, NULL) == 0);
    usleep(50000);
    push_out(); // paging begins
    must(write(blocked[1], "early", 5) == 5 && pthread_join(reader, NULL) == 0);
    must(read(-1, early, 10) == -1 && errno == EBADF);
    must(read(blocked[0], (void *)0x300000000010, 0) == 0);
    vectors();
    asynchronous();
    interrupted();
    locks();
    children();
    printf("OK\n");
    return 0;
}

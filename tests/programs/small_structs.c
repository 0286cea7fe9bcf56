// flags: -pthread
// The kernel fills and reads small structures that lie in paged-out memory: stat, poll, epoll, select, getdents, futexes, timers, paths.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>

static char *arena;
static size_t arena_bytes = 64 * MIB, used;
static uint64_t state = 9;

// A place of its own, in a page that was just pushed out or soon will be, at a random offset, sometimes across two pages.
static void *place(size_t bytes) {
    used = (used + 97 * PAGE) % (arena_bytes - 64 * PAGE);
    size_t inside = next_random(&state) % 4 == 0 ? PAGE - bytes / 2 : next_random(&state) % (PAGE / 2);
    return arena + (used + inside) / 16 * 16;
}

static void *waker(void *arg) {
    uint32_t *futex = arg;
    usleep(20000);
    __atomic_store_n(futex, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, futex, FUTEX_WAKE, 1, NULL, NULL, 0);
    return NULL;
}

int main(void) {
    arena = map(arena_bytes);
    fill(arena, arena_bytes, 1);
    pthread_t pressure = start_pressure(96 * MIB);
    int file = open("small.txt", O_RDWR | O_CREAT | O_TRUNC, 0600), event = eventfd(0, 0);
    must(file >= 0 && event >= 0 && write(file, "0123456789", 10) == 10);
    for (int round = 0; round < 30; round++) {
        if (round % 10 == 0) push_out();
        struct stat *info = place(sizeof *info);
        must(fstat(file, info) == 0 && info->st_size == 10);
        char *path = place(64);
        strcpy(path, "small.txt");
        push_out_with(8 * MIB);
        must(stat(path, info) == 0 && info->st_size == 10 && access(path, R_OK) == 0);
        struct pollfd *polled = place(2 * sizeof *polled);
        polled[0] = (struct pollfd){.fd = file, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = event, .events = POLLIN};
        must(poll(polled, 2, 0) == 1 && polled[0].revents == POLLIN && polled[1].revents == 0);
        fd_set *set = place(sizeof *set);
        FD_ZERO(set);
        FD_SET(event, set);
        struct timeval *wait = place(sizeof *wait);
        *wait = (struct timeval){0, 1000};
        must(select(event + 1, set, NULL, NULL, wait) == 0);
        int epoll = epoll_create1(0);
        struct epoll_event *asked = place(sizeof *asked), *got = place(8 * sizeof *got);
        asked->events = EPOLLOUT;
        asked->data.u64 = 77;
        must(epoll_ctl(epoll, EPOLL_CTL_ADD, event, asked) == 0 && epoll_wait(epoll, got, 8, 100) == 1 && got->data.u64 == 77);
        close(epoll);
        char *text = place(16);
        memset(text, 'x', 16);
        struct iovec *vector = place(2 * sizeof *vector);
        vector[0] = (struct iovec){text, 4};
        vector[1] = (struct iovec){text + 4, 6};
        must(preadv(file, vector, 2, 0) == 10 && !memcmp(text, "0123456789xxxxxx", 16));
        struct utsname *names = place(sizeof *names);
        must(uname(names) == 0 && !strcmp(names->sysname, "Linux"));
        struct rusage *usage = place(sizeof *usage);
        must(getrusage(RUSAGE_SELF, usage) == 0 && usage->ru_maxrss > 0);
        char *directory = place(3000);
        must(getcwd(directory, 3000) != NULL && directory[0] == '/');
        must(readlink("/proc/self/exe", directory, 3000) > 0);
        struct timespec *time = place(sizeof *time);
        *time = (struct timespec){0, 1000};
        must(nanosleep(time, NULL) == 0 && clock_gettime(CLOCK_REALTIME, time) == 0 && time->tv_sec > 1000000);
        sigset_t *mask = place(sizeof *mask), *old = place(sizeof *old);
        sigemptyset(mask);
        sigaddset(mask, SIGUSR1);
        must(sigprocmask(SIG_BLOCK, mask, old) == 0 && !sigismember(old, SIGUSR1));
        must(sigprocmask(SIG_SETMASK, old, mask) == 0 && sigismember(mask, SIGUSR1));
        int *pair = place(2 * sizeof *pair);
        must(pipe(pair) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        int *option = place(sizeof *option);
        socklen_t *length = place(sizeof *length);
        *length = sizeof *option;
        must(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, option, length) == 0 && *option == SOCK_STREAM);
        close(pair[0]);
        close(pair[1]);
        DIR *listing = opendir(".");
        int found = 0;
        for (struct dirent *entry; (entry = readdir(listing));) found |= !strcmp(entry->d_name, "small.txt");
        closedir(listing);
        must(found);
        uint32_t *futex = place(64);
        futex = (uint32_t *)(((uintptr_t)futex + 63) / 64 * 64);
        *futex = 0;
        pthread_t other;
        must(pthread_create(&other, NULL, waker, futex) == 0);
        while (__atomic_load_n(futex, __ATOMIC_SEQ_CST) == 0) syscall(SYS_futex, futex, FUTEX_WAIT, 0, NULL, NULL, 0);
        pthread_join(other, NULL);
    }
    // Locks and conditions in paged memory.
    pthread_mutex_t *lock = (pthread_mutex_t *)(arena + 20 * MIB);
    pthread_mutex_init(lock, NULL);
    for (int i = 0; i < 20; i++) { pthread_mutex_lock(lock); push_out_with(4 * MIB); pthread_mutex_unlock(lock); }
    end_pressure(pressure);
    unlink("small.txt");
    printf("OK\n");
    return 0;
}

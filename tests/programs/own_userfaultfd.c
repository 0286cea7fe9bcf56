// A program that pages a mapping of its own with userfaultfd, before or while the rest of its memory is paged.
#include "check.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#define BYTES (4 * MIB)

static int fd;

static void *serve(void *page) {
    for (int served = 0; served < 8; served++) {
        struct uffd_msg message;
        must(read(fd, &message, sizeof message) == sizeof message && message.event == UFFD_EVENT_PAGEFAULT);
        memset(page, 40 + served, PAGE);
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address & ~(PAGE - 1), .src = (uintptr_t)page, .len = PAGE};
        must(ioctl(fd, UFFDIO_COPY, &copy) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Half of it has content.
    fill(at, BYTES / 2, 1);
    char *others = map(96 * MIB);
    if (argc > 1) fill(others, 96 * MIB, 2);
    fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0) { puts("OK"); return 0; }
    struct uffdio_api api = {.api = UFFD_API};
    must(ioctl(fd, UFFDIO_API, &api) == 0);
    struct uffdio_register ask = {.range = {(uintptr_t)at, BYTES}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(ioctl(fd, UFFDIO_REGISTER, &ask) == 0);
    fill(others, 96 * MIB, 3);
    verify(at, BYTES / 2, 1, "content from before");
    pthread_t thread;
    must(pthread_create(&thread, NULL, serve, map(PAGE)) == 0);
    for (int i = 0; i < 8; i++) must(at[BYTES / 2 + i * 7 * PAGE + 5] == 40 + i);
    must(pthread_join(thread, NULL) == 0);
    verify(others, 96 * MIB, 3, "the rest");
    verify(at, BYTES / 2, 1, "content from before, later");
    must(munmap(at, BYTES) == 0);
    fill(others, 96 * MIB, 4);
    verify(others, 96 * MIB, 4, "the rest, later");
    puts("OK");
    return 0;
}

// Preloaded: walking the list of loaded objects takes a millisecond, with the loader's lock held, so that a fork falls into it.
// flags: -shared -fPIC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int (*Visit)(struct dl_phdr_info *, size_t, void *);
struct Walk { Visit visit; void *data; int slept; };

static int slowly(struct dl_phdr_info *object, size_t size, void *data) {
    struct Walk *walk = data;
    struct timespec millisecond = {0, 1000000};
    if (!walk->slept++) syscall(SYS_nanosleep, &millisecond, 0);
    return walk->visit(object, size, walk->data);
}

int dl_iterate_phdr(Visit visit, void *data) {
    static int (*next)(Visit, void *);
    if (!next) next = (int (*)(Visit, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    struct Walk walk = {visit, data, 0};
    return next(slowly, &walk);
}

// Linked with the library, without a job: nothing has happened, and nothing is different.
// flags: -I../../include -Wl,--no-as-needed -L../release -lnearfar -Wl,-rpath,$ORIGIN/../release
#include "check.h"
#include <dirent.h>
#include <nearfar.h>

extern void *__libc_malloc(size_t);

static int entries(const char *path) {
    DIR *dir = opendir(path);
    must(dir != NULL);
    int count = 0;
    while (readdir(dir) != NULL) count++;
    closedir(dir);
    return count;
}

// Descriptors of ours would lead to nameless files, segments or a userfaultfd.
static void no_descriptors_of_ours(void) {
    for (int fd = 0; fd < 256; fd++) {
        char path[64], target[512];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len < 0) continue;
        target[len] = 0;
        must(strstr(target, "userfaultfd") == NULL && strstr(target, "memfd:") == NULL && strstr(target, "io_uring") == NULL);
    }
}

// Address space in KiB.
static unsigned long reserved(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages;
    must(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * 4;
}

int main(void) {
    must(entries("/proc/self/task") == 3);
    int descriptors = entries("/proc/self/fd");
    no_descriptors_of_ours();
    unsigned long before = reserved();
    must(before < 64 * 1024);
    // One heap: small blocks of both names are neighbours.
    uintptr_t ours = (uintptr_t)malloc(40), theirs = (uintptr_t)__libc_malloc(40);
    must((ours > theirs ? ours - theirs : theirs - ours) < MIB);
    // The first call makes the tiers.
    must(nearfar_malloc(10, NEARFAR_NEAR) != NULL && reserved() > before);
    must(entries("/proc/self/task") == 3 && entries("/proc/self/fd") == descriptors);
    puts("OK");
    return 0;
}

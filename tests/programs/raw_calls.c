// System calls that pass every library: raw mbind, raw madvise, raw mmap and munmap beside paged memory; none may break it.
#include "check.h"

int main(void) {
    size_t bytes = 96 * MIB;
    char *at = malloc(bytes + PAGE), *aligned = (char *)(((uintptr_t)at + PAGE - 1) / PAGE * PAGE);
    fill(aligned, bytes, 1);
    unsigned long nodes = 1;
    for (size_t p = 0; p < bytes; p += 32 * MIB) {
        long done = syscall(SYS_mbind, aligned + p, 32 * MIB, 1 /* MPOL_PREFERRED */, &nodes, 8 * sizeof nodes, 0);
        must(done == 0 || errno == ENOSYS || errno == EPERM);
    }
    push_out();
    verify(aligned, bytes, 1, "after raw mbind");
    must(syscall(SYS_madvise, aligned + 8 * MIB, 8 * MIB, MADV_DONTNEED) == 0);
    verify_zero(aligned + 8 * MIB, 8 * MIB, "after raw DONTNEED");
    fill_from(aligned + 8 * MIB, 4 * MIB, 1, MIB);
    push_out();
    verify(aligned, 12 * MIB, 1, "refilled after raw DONTNEED");
    verify_zero(aligned + 12 * MIB, 4 * MIB, "left zero after raw DONTNEED");
    must(syscall(SYS_madvise, aligned + 32 * MIB, 16 * MIB, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    must(syscall(SYS_madvise, aligned + 32 * MIB, 16 * MIB, MADV_DONTFORK) == 0);
    must(syscall(SYS_madvise, aligned + 32 * MIB, 16 * MIB, MADV_DOFORK) == 0);
    char *raw = (char *)syscall(SYS_mmap, NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(raw != MAP_FAILED);
    fill(raw, 16 * MIB, 2);
    push_out();
    verify(raw, 16 * MIB, 2, "raw mapping");
    must(syscall(SYS_munmap, raw, 16 * MIB) == 0);
    char *old_break = (char *)syscall(SYS_brk, 0);
    must(old_break != NULL);
    void *more = sbrk(24 * MIB);
    must(more != (void *)-1);
    char *heap = (char *)(((uintptr_t)more + 63) / 64 * 64);
    fill(heap, 23 * MIB, 3);
    push_out();
    verify(heap, 23 * MIB, 3, "memory of brk");
    verify_from(aligned + 16 * MIB, bytes - 16 * MIB, 1, 2 * MIB, "the rest, untouched by all that");
    free(at);
    printf("OK\n");
    return 0;
}

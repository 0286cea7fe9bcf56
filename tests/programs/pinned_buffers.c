// Buffers that io_uring keeps pinned (IORING_REGISTER_BUFFERS) lie in paged memory: they cannot be moved out of the way, all else
// can; reads and writes through them are right, and afterwards they are ordinary memory again. Exit code 77: no io_uring here.
#include "check.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/uio.h>

enum { BUFFERS = 16, EACH = 256 * 1024 };

static int ring;
static unsigned char *sq, *cq;
static struct io_uring_params params;
static struct io_uring_sqe *entries;

static void start(void) {
    ring = syscall(SYS_io_uring_setup, 32, &params);
    if (ring < 0) _exit(77);
    size_t sq_bytes = params.sq_off.array + params.sq_entries * 4;
    size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    sq = mmap(NULL, sq_bytes, prot, flags, ring, IORING_OFF_SQ_RING);
    cq = mmap(NULL, cq_bytes, prot, flags, ring, IORING_OFF_CQ_RING);
    entries = mmap(NULL, params.sq_entries * sizeof *entries, prot, flags, ring, IORING_OFF_SQES);
    must(sq != MAP_FAILED && cq != MAP_FAILED && entries != MAP_FAILED);
}

static void transfer(int opcode, int file, int index, void *buffer, off_t at) {
    unsigned *tail = (unsigned *)(sq + params.sq_off.tail), mask = *(unsigned *)(sq + params.sq_off.ring_mask);
    unsigned slot = *tail & mask;
    entries[slot] = (struct io_uring_sqe){.opcode = opcode, .fd = file, .off = at, .addr = (uint64_t)buffer, .len = EACH, .buf_index = index};
    ((unsigned *)(sq + params.sq_off.array))[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    unsigned *head = (unsigned *)(cq + params.cq_off.head);
    must(*head != __atomic_load_n((unsigned *)(cq + params.cq_off.tail), __ATOMIC_ACQUIRE));
    struct io_uring_cqe *done = (struct io_uring_cqe *)(cq + params.cq_off.cqes) + (*head & *(unsigned *)(cq + params.cq_off.ring_mask));
    must(done->res == EACH);
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

int main(void) {
    start();
    char *data = map(64 * MIB);
    fill(data, 64 * MIB, 1);
    push_out();
    struct iovec pieces[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) pieces[i] = (struct iovec){.iov_base = data + i * 4 * MIB + 12 * PAGE, .iov_len = EACH};
    int registered = syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, pieces, BUFFERS);
    if (registered < 0 && errno == ENOMEM) _exit(77); // RLIMIT_MEMLOCK
    must(registered == 0);
    int file = open("pinned.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(file >= 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BUFFERS; i++) transfer(IORING_OP_WRITE_FIXED, file, i, pieces[i].iov_base, (off_t)i * EACH);
        push_out();
        // In reverse: each buffer gets what another one held.
        for (int i = 0; i < BUFFERS; i++) transfer(IORING_OP_READ_FIXED, file, i, pieces[i].iov_base, (off_t)(BUFFERS - 1 - i) * EACH);
        push_out();
    }
    must(syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0);
    push_out();
    // An odd number of reversals: buffer i holds what was in buffer 15 - i.
    for (int i = 0; i < BUFFERS; i++) {
        int from = BUFFERS - 1 - i;
        verify_from(pieces[i].iov_base, EACH, 1, (from * 4 * MIB + 12 * PAGE) / 8, "a pinned buffer");
        fill_from(pieces[i].iov_base, EACH, 1, (i * 4 * MIB + 12 * PAGE) / 8);
    }
    push_out();
    verify(data, 64 * MIB, 1, "around pinned buffers");
    unlink("pinned.dat");
    puts("OK");
}

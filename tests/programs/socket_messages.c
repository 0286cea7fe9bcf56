// flags: -pthread
// sendmsg and recvmsg of big paged buffers over a socket pair, stream and datagram, with vectors and control data; pipes and splice too.
#include "check.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

static size_t bytes = 96 * MIB;
static int ends[2], packets[2], pipes[2];

static void *send_all(void *arg) {
    (void)arg;
    char *buffer = malloc(bytes);
    fill(buffer, bytes, 1);
    push_out_with(64 * MIB);
    size_t done = 0;
    for (int n = 0; done < bytes; n++) {
        size_t left = bytes - done, piece = left < 8 * MIB ? left : 8 * MIB, third = piece / 3;
        struct iovec parts[3] = {{buffer + done, third}, {buffer + done + third, third}, {buffer + done + 2 * third, piece - 2 * third}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
        ssize_t put = sendmsg(ends[0], &message, 0);
        must(put > 0);
        done += put;
    }
    // Datagrams, each with a file descriptor whose control buffer is paged as well.
    for (size_t at = 0; at < bytes; at += MIB) {
        char *control = malloc(MIB + 4096); // of its own, so that it lies in a page of its own
        memset(control, 0, 4096);
        struct iovec part = {buffer + at, 60000};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        int file = pipes[0];
        memcpy(CMSG_DATA(header), &file, sizeof file);
        must(sendmsg(packets[0], &message, 0) == 60000);
        free(control);
    }
    for (size_t at = 0; at < bytes;) {
        struct iovec part = {buffer + at, bytes - at};
        ssize_t put = writev(pipes[1], &part, 1);
        must(put > 0);
        at += put;
    }
    verify(buffer, bytes, 1, "buffer of the sender");
    free(buffer);
    return NULL;
}

int main(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, packets) == 0 && pipe(pipes) == 0);
    pthread_t sender;
    must(pthread_create(&sender, NULL, send_all, NULL) == 0);
    char *buffer = malloc(bytes);
    memset(buffer, 0x77, bytes); // content that must vanish
    push_out_with(64 * MIB);
    for (size_t done = 0; done < bytes;) {
        size_t left = bytes - done, half = left / 2;
        struct iovec parts[2] = {{buffer + done, half}, {buffer + done + half, left - half}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t got = recvmsg(ends[1], &message, MSG_WAITALL);
        if (got <= 0) { printf("recvmsg: %zd (%s)\n", got, strerror(errno)); return 1; }
        done += got;
    }
    verify(buffer, bytes, 1, "stream received");
    memset(buffer, 0, bytes);
    for (size_t at = 0; at < bytes; at += MIB) {
        char *control = malloc(MIB + 4096);
        memset(control, 0xff, 4096);
        struct iovec part = {buffer + at, 65536};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof(int))};
        must(recvmsg(packets[1], &message, 0) == 60000);
        int file;
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
        must(file > 2 && close(file) == 0);
        free(control);
        verify_from(buffer + at, 60000, 1, at / 8, "datagram received");
    }
    memset(buffer, 0, bytes);
    for (size_t done = 0; done < bytes;) {
        struct iovec part = {buffer + done, bytes - done};
        ssize_t got = readv(pipes[0], &part, 1);
        must(got > 0);
        done += got;
    }
    verify(buffer, bytes, 1, "pipe received");
    pthread_join(sender, NULL);
    printf("OK\n");
    return 0;
}

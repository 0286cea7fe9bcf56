// A socket that sends from the program's pages without a copy, where it may: what arrives is what they held.
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#define MSG_ZEROCOPY 0x4000000
#endif

int main(void) {
    size_t bytes = 2 * MIB;
    char *at = map(64 * MIB), *got = malloc(bytes);
    fill(at, 64 * MIB, 1);
    int listener = socket(AF_INET, SOCK_STREAM, 0), from = socket(AF_INET, SOCK_STREAM, 0), one = 1, room = 8 << 20;
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    must(bind(listener, (void *)&name, len) == 0 && getsockname(listener, (void *)&name, &len) == 0 && listen(listener, 1) == 0);
    setsockopt(from, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    must(connect(from, (void *)&name, len) == 0);
    int to = accept(listener, NULL, NULL);
    must(to >= 0);
    int flags = setsockopt(from, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0 ? MSG_ZEROCOPY : 0;
    ssize_t sent = send(from, at, bytes, flags | MSG_DONTWAIT);
    must(sent > 0);
    push_out();
    for (ssize_t done = 0; done < sent;) {
        ssize_t n = recv(to, got + done, sent - done, 0);
        must(n > 0);
        done += n;
    }
    verify(got, sent / 8 * 8, 1, "through the socket");
    puts("OK");
    return 0;
}

// The workhorse: threads write, sweep, discard and realloc over one big buffer whose right content is known at every moment.
//
//   verify_mix [bytes=256M] [threads=4] [seconds=5 | ops=N] [seed=1] [buffer=malloc|mmap|bss] [discard=1] [realloc=1] [kernel=1]
//
// Line i (64 bytes) has a version in a shadow array that lies in shared memory, which nearfar leaves alone. Version 0 is "all zero".
// Version u writes the whole line when u % 4 == 1 and otherwise one of its eight words, and every word is an invertible mix of
// (its index, the version that wrote it): a wrong word therefore says whose word and which version it is.
// Prints OK, or the first wrong address and what was found there (exit 1).
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, WORDS = 8, PAGE = 4096, BLOCK = 65536, CHUNK = 2 << 20, LAST_VERSION = 252 };

static size_t bytes = 256 << 20, op_limit = 0;
static int threads = 4, use_discard = 1, use_realloc = 1, use_kernel = 1;
static double seconds = 5;
static uint64_t seed = 1;
static const char *buffer_kind = "malloc";

#define BSS_BYTES (768ul << 20)
static uint64_t bss_buffer[BSS_BYTES / 8] __attribute__((aligned(4096)));

static uint64_t *words;    // the buffer under test
static uint8_t *shadow;    // version of each line
static size_t lines;
static volatile int stop;

static uint64_t mix(uint64_t x) {
    x ^= x >> 31; x *= 0x7fb5d329728ea185ull; x ^= x >> 27; x *= 0x81dadef4bc2dd44dull; x ^= x >> 33;
    return x;
}
static uint64_t inverse(uint64_t odd) { // of an odd number modulo 2^64, by Newton
    uint64_t x = odd;
    for (int i = 0; i < 6; i++) x *= 2 - odd * x;
    return x;
}
static uint64_t unshift(uint64_t y, int by) {
    uint64_t x = y;
    for (int i = 0; i < 64 / by + 1; i++) x = y ^ (x >> by);
    return x;
}
static uint64_t unmix(uint64_t x) {
    x = unshift(x, 33); x *= inverse(0x81dadef4bc2dd44dull); x = unshift(x, 27); x *= inverse(0x7fb5d329728ea185ull);
    return unshift(x, 31);
}

static uint64_t value(size_t word, int version) { return mix((word << 8 | (uint64_t)version) + 1); }
static int next_version(int v) { return v == LAST_VERSION ? 1 : v + 1; }
static int writes_all(int version) { return version % 4 == 1; }
static int word_written(size_t line, int version) { return (line * 31 + (size_t)version * 5) & 7; }

static uint64_t expected(size_t line, int k, int version) {
    if (version == 0) return 0;
    int u = version;
    while (!writes_all(u) && word_written(line, u) != k) u--;
    return value(line * WORDS + k, u);
}

static const char *operation[64]; // what each thread was doing, for the report

static void report(size_t line, int k, uint64_t found, int version, int thread, const char *where) {
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once); // never unlocked: the first report wins
    uint64_t *at = &words[line * WORDS + k];
    uint64_t plain = unmix(found) - 1;
    printf("WRONG at %p (buffer %p + 0x%zx, page %zu, chunk %zu), thread %d, %s\n", (void *)at, (void *)words, (size_t)((char *)at - (char *)words),
           line * LINE / PAGE, line * LINE / CHUNK, thread, where);
    printf("  found %016lx, expected %016lx (line version %d)\n", found, expected(line, k, version), version);
    if (found == 0) printf("  found is zero: lost or never brought in\n");
    else if (plain >> 8 < lines * WORDS) {
        printf("  found is word %lu (own index %zu) of version %lu: %s\n", plain >> 8, line * WORDS + k, plain & 255,
               plain >> 8 == line * WORDS + k ? "stale content" : "content of another place");
    } else printf("  found was never written by this program\n");
    size_t wrong_in_page = 0, zero_in_page = 0, first = line * LINE / PAGE * (PAGE / LINE);
    for (size_t i = first; i < first + PAGE / LINE && i < lines; i++)
        for (int j = 0; j < WORDS; j++) {
            wrong_in_page += words[i * WORDS + j] != expected(i, j, shadow[i]);
            zero_in_page += words[i * WORDS + j] == 0;
        }
    printf("  in its page: %zu of 512 words wrong, %zu zero; read again: %016lx\n", wrong_in_page, zero_in_page, *(volatile uint64_t *)at);
    for (int t = 0; t < threads && t < 64; t++) printf("  thread %d: %s\n", t, operation[t] ? operation[t] : "-");
    fflush(stdout);
    _exit(1);
}

static void check(size_t line, int thread, const char *where) {
    int version = shadow[line];
    for (int k = 0; k < WORDS; k++) {
        uint64_t found = words[line * WORDS + k];
        if (found != expected(line, k, version)) report(line, k, found, version, thread, where);
    }
}

static void advance(size_t line) {
    int version = next_version(shadow[line]);
    uint64_t *w = &words[line * WORDS];
    if (writes_all(version)) {
        for (int k = 0; k < WORDS; k++) w[k] = value(line * WORDS + k, version);
    } else {
        int k = word_written(line, version);
        w[k] = value(line * WORDS + k, version);
    }
    shadow[line] = version;
}

// Who may write a line: chunks alternate between lines interleaved over threads, whole pages, and whole 64 KiB blocks.
static int owner(size_t line) {
    size_t at = line * LINE;
    switch (at / CHUNK % 4) {
        case 0: case 1: return line % threads;
        case 2: return at / PAGE % threads;
        default: return at / BLOCK % threads;
    }
}
static size_t owned_unit(size_t line) { // bytes around a line that have the same owner
    switch (line * LINE / CHUNK % 4) {
        case 0: case 1: return LINE;
        case 2: return PAGE;
        default: return BLOCK;
    }
}

typedef struct { uint64_t state; int id; int pipe[2]; int file; } Thread;

static uint64_t rnd(Thread *t) {
    t->state = t->state * 6364136223846793005ull + 1442695040888963407ull;
    return mix(t->state);
}

static size_t own_line(Thread *t) {
    for (;;) {
        size_t line = rnd(t) % lines;
        if (rnd(t) % 4 == 0) line %= lines / 8 + 1; // a hot eighth
        if (owner(line) == t->id) return line;
    }
}

static void unit_of(size_t line, size_t *first, size_t *end) {
    size_t unit = owned_unit(line) / LINE;
    *first = line / unit * unit;
    *end = *first + unit < lines ? *first + unit : lines;
}

static void sweep(Thread *t) {
    size_t span = lines / (1 + rnd(t) % 8), first = rnd(t) % (lines - span + 1);
    int backward = rnd(t) % 3 == 0, writing = rnd(t) % 2;
    size_t step = rnd(t) % 4 == 0 ? 1 + rnd(t) % 200 : 1;
    for (size_t n = 0; n < span && !stop; n += step) {
        size_t line = backward ? first + span - 1 - n : first + n;
        if (owner(line) != t->id) continue;
        check(line, t->id, "sweep");
        if (writing) advance(line);
    }
}

static void zero_unit(Thread *t, int by_discard) {
    size_t first, end, line = own_line(t);
    unit_of(line, &first, &end);
    if ((end - first) * LINE < PAGE) return;
    for (size_t i = first; i < end; i++) check(i, t->id, "before discard");
    char *at = (char *)&words[first * WORDS];
    size_t len = (end - first) * LINE / PAGE * PAGE;
    if (by_discard) {
        if (((uintptr_t)at & (PAGE - 1)) != 0) return;
        if (madvise(at, len, MADV_DONTNEED) != 0) { printf("madvise: %s\n", strerror(errno)); _exit(1); }
    } else memset(at, 0, len);
    for (size_t i = first; i < first + len / LINE; i++) shadow[i] = 0;
    if (rnd(t) % 2)
        for (size_t i = first; i < end; i++) check(i, t->id, by_discard ? "after discard" : "after memset");
}

static void grow(Thread *t) {
    size_t most = bytes / threads / 16 / 8, count = 0, step = most / (2 + rnd(t) % 30) + 1;
    uint64_t *list = NULL, salt = rnd(t);
    while (count < most && !stop) {
        list = realloc(list, (count + step) * 8);
        if (!list) { printf("realloc of %zu failed\n", (count + step) * 8); _exit(1); }
        for (size_t i = count; i < count + step; i++) list[i] = mix(salt + i);
        count += step;
    }
    if (rnd(t) % 2 && count > 1) { count = count / 2; list = realloc(list, count * 8); }
    for (size_t i = 0; i < count; i++)
        if (list[i] != mix(salt + i)) {
            printf("WRONG in a realloc'd list %p at %zu of %zu: found %016lx\n", (void *)list, i, count, list[i]);
            fflush(stdout);
            _exit(1);
        }
    free(list);
}

// The kernel as reader and writer: a unit goes out to a file or a socket and comes back to the same place.
static void through_kernel(Thread *t) {
    size_t first, end, line = own_line(t);
    unit_of(line, &first, &end);
    char *at = (char *)&words[first * WORDS];
    size_t len = (end - first) * LINE;
    for (size_t i = first; i < end; i++) advance(i);
    if (rnd(t) % 2) {
        if (pwrite(t->file, at, len, 0) != (ssize_t)len) { printf("pwrite: %s\n", strerror(errno)); _exit(1); }
        if (rnd(t) % 2) memset(at, 0x55, len);
        for (size_t i = 0; i < 3; i++) { volatile uint64_t other = words[own_line(t) * WORDS]; (void)other; }
        if (pread(t->file, at, len, 0) != (ssize_t)len) { printf("pread: %s\n", strerror(errno)); _exit(1); }
    } else {
        for (size_t done = 0; done < len;) {
            size_t piece = len - done < 32768 ? len - done : 32768;
            if (write(t->pipe[1], at + done, piece) != (ssize_t)piece) { printf("write: %s\n", strerror(errno)); _exit(1); }
            memset(at + done, 0xAA, piece);
            size_t got = 0;
            while (got < piece) {
                ssize_t n = read(t->pipe[0], at + done + got, piece - got);
                if (n <= 0) { printf("read: %s\n", strerror(errno)); _exit(1); }
                got += n;
            }
            done += piece;
        }
    }
    for (size_t i = first; i < end; i++) check(i, t->id, "after kernel");
}

static void *work(void *arg) {
    Thread *t = arg;
    const char **now = &operation[t->id % 64];
    for (size_t n = 0; !stop && (op_limit == 0 || n < op_limit); n++) {
        unsigned dice = rnd(t) % 1000;
        if (dice < 550) {
            *now = "random line";
            for (int i = 0; i < 32; i++) {
                size_t line = own_line(t);
                check(line, t->id, "random line");
                if (rnd(t) % 4) advance(line);
            }
        } else if (dice < 800) {
            *now = "unit";
            size_t first, end, line = own_line(t);
            unit_of(line, &first, &end);
            for (size_t i = first; i < end; i++) { check(i, t->id, "unit"); advance(i); }
        } else if (dice < 860) {
            *now = "memset zero";
            zero_unit(t, 0);
        } else if (dice < 920) {
            *now = "discard";
            if (use_discard) zero_unit(t, 1);
        } else if (dice < 990) {
            *now = "kernel";
            if (use_kernel) through_kernel(t);
        } else if (dice < 996) {
            *now = "realloc";
            if (use_realloc) grow(t);
        } else {
            *now = "sweep";
            sweep(t);
        }
    }
    *now = "done";
    return NULL;
}

static size_t parse(const char *text) {
    char *end;
    double number = strtod(text, &end);
    switch (*end) { case 'K': number *= 1 << 10; break; case 'M': number *= 1 << 20; break; case 'G': number *= 1 << 30; break; }
    return number;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        if (!eq) { fprintf(stderr, "key=value expected, not %s\n", argv[i]); return 2; }
        size_t n = eq - argv[i];
        if (!strncmp(argv[i], "bytes", n)) bytes = parse(eq + 1);
        else if (!strncmp(argv[i], "threads", n)) threads = atoi(eq + 1);
        else if (!strncmp(argv[i], "seconds", n)) seconds = atof(eq + 1);
        else if (!strncmp(argv[i], "ops", n)) op_limit = parse(eq + 1);
        else if (!strncmp(argv[i], "seed", n)) seed = strtoull(eq + 1, NULL, 0);
        else if (!strncmp(argv[i], "buffer", n)) buffer_kind = eq + 1;
        else if (!strncmp(argv[i], "discard", n)) use_discard = atoi(eq + 1);
        else if (!strncmp(argv[i], "realloc", n)) use_realloc = atoi(eq + 1);
        else if (!strncmp(argv[i], "kernel", n)) use_kernel = atoi(eq + 1);
        else { fprintf(stderr, "unknown: %s\n", argv[i]); return 2; }
    }
    bytes = bytes / CHUNK * CHUNK;
    lines = bytes / LINE;
    if (bytes == 0 || threads < 1) return 2;
    if (!strcmp(buffer_kind, "bss")) {
        if (bytes > BSS_BYTES) { fprintf(stderr, "bss holds %lu\n", BSS_BYTES); return 2; }
        words = bss_buffer;
    } else if (!strcmp(buffer_kind, "mmap")) {
        words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (words == MAP_FAILED) { perror("mmap"); return 2; }
    } else {
        char *raw = malloc(bytes + PAGE);
        if (!raw) { perror("malloc"); return 2; }
        words = (uint64_t *)(((uintptr_t)raw + PAGE - 1) / PAGE * PAGE);
    }
    shadow = mmap(NULL, lines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shadow == MAP_FAILED) { perror("mmap"); return 2; }

    for (size_t i = 0; i < lines; i += 509) check(i, -1, "fresh memory");
    for (size_t i = 0; i < lines; i++) advance(i);

    Thread *list = calloc(threads, sizeof *list);
    pthread_t *handles = calloc(threads, sizeof *handles);
    for (int i = 0; i < threads; i++) {
        list[i].state = seed * 1000003 + i;
        list[i].id = i;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, list[i].pipe)) { perror("socketpair"); return 2; }
        list[i].file = memfd_create("verify_mix", 0);
        if (pthread_create(&handles[i], NULL, work, &list[i])) { perror("pthread_create"); return 2; }
    }
    if (op_limit == 0) {
        struct timespec wait = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };
        while (nanosleep(&wait, &wait) && errno == EINTR) {}
        stop = 1;
    }
    for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    for (size_t i = 0; i < lines; i++) check(i, -1, "final");
    printf("OK\n");
    return 0;
}

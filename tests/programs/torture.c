// All at once, from one seed: threads with objects of known content that they make, write, verify, move, shrink, grow, protect, discard and
// free; forks whose children do the same; processes that share the memory (clone with CLONE_VM) and do it beside their maker; threads that
// are cancelled inside system calls; timer signals and signals between threads, whose handlers use paged memory; the kernel reading and
// writing it. No memory (ENOMEM) is no failure: what was wanted is then left out.
//
//   torture [bytes=96M] [threads=4] [seconds=10] [seed=1] [forks=1] [signals=1] [sharers=1] [cancels=1]
#include "check.h"
#include <sched.h>
#include <sys/time.h>

enum { OBJECTS = 24, MOST_THREADS = 64 };

struct object {
    char *at;
    size_t bytes; // whole pages
    uint64_t salt;
    int mapped; // else from malloc
};

struct worker {
    struct object objects[OBJECTS];
    uint64_t dice;
    size_t most, held; // bytes
    pthread_t thread;
    unsigned long steps, forks, sharers, cancels;
};

static size_t bytes = 96 * MIB;
static int threads = 4, use_forks = 1, use_signals = 1, use_sharers = 1, use_cancels = 1;
static double seconds = 10;
static uint64_t seed = 1;
static double end;
static struct worker workers[MOST_THREADS];
static int is_child;

// What handlers use: paged memory of known content, and a page that they count in.
static char *known;
static const size_t known_bytes = 4 * MIB;
static volatile unsigned long *counts;
static volatile unsigned long handled;

static void on_signal(int signal) {
    int before = errno;
    static volatile size_t next;
    size_t page = __atomic_fetch_add(&next, 7, __ATOMIC_RELAXED) % (known_bytes / PAGE);
    verify_from(known + page * PAGE, PAGE, 77, page * 512, "in a handler");
    __atomic_fetch_add(&counts[page * 8 % 512 + (signal == SIGUSR1)], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
    errno = before;
}

static size_t roll(struct worker *w, size_t sides) { return next_random(&w->dice) % sides; }

// Most are small, some large.
static size_t some_bytes(struct worker *w) {
    size_t most = w->most / 4 / PAGE;
    size_t pages = roll(w, 4) == 0 ? 1 + roll(w, most) : 1 + roll(w, 1 + most / 16);
    return pages * PAGE;
}

static void drop(struct worker *w, struct object *o) {
    if (o->mapped) must(munmap(o->at, o->bytes) == 0);
    else free(o->at);
    w->held -= o->bytes;
    o->at = NULL;
}

static void make(struct worker *w, struct object *o) {
    o->bytes = some_bytes(w);
    o->mapped = roll(w, 2);
    o->salt = roll(w, 1ul << 40) + 1;
    if (w->held + o->bytes > w->most) return;
    if (o->mapped) {
        o->at = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (o->at == MAP_FAILED) o->at = NULL;
    } else o->at = malloc(o->bytes);
    if (!o->at) return;
    fill(o->at, o->bytes, o->salt);
    w->held += o->bytes;
}

// A part, page by page.
static void part_of(struct worker *w, struct object *o, size_t *first, size_t *count) {
    size_t pages = o->bytes / PAGE;
    *first = roll(w, pages);
    *count = 1 + roll(w, pages - *first < 64 ? pages - *first : 64);
}

static void check(struct object *o, const char *what) { verify(o->at, o->bytes, o->salt, what); }

static void resize(struct worker *w, struct object *o) {
    size_t wanted = some_bytes(w), kept = wanted < o->bytes ? wanted : o->bytes;
    if (w->held - o->bytes + wanted > w->most) return;
    char *at;
    if (!o->mapped) at = realloc(o->at, wanted);
    else if (roll(w, 2)) {
        at = mremap(o->at, o->bytes, wanted, MREMAP_MAYMOVE);
    } else {
        // To a place of its choice.
        char *place = mmap(NULL, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        at = place == MAP_FAILED ? MAP_FAILED : mremap(o->at, o->bytes, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        if (at == MAP_FAILED && place != MAP_FAILED) munmap(place, wanted);
    }
    if (at == NULL || at == MAP_FAILED) return;
    w->held += wanted - o->bytes;
    if (o->mapped && wanted > kept) verify_zero(at + kept, wanted - kept, "new after mremap");
    o->at = at;
    o->bytes = wanted;
    verify(at, kept, o->salt, "moved");
    fill_from(at + kept, wanted - kept, o->salt, kept / 8);
}

static void discard(struct worker *w, struct object *o) {
    size_t first, count;
    if (!o->mapped) return;
    part_of(w, o, &first, &count);
    char *at = o->at + first * PAGE;
    must(madvise(at, count * PAGE, MADV_DONTNEED) == 0);
    verify_zero(at, count * PAGE, "discarded");
    fill_from(at, count * PAGE, o->salt, first * 512);
}

static void protect(struct worker *w, struct object *o) {
    size_t first, count;
    if (!o->mapped) return;
    part_of(w, o, &first, &count);
    char *at = o->at + first * PAGE;
    if (mprotect(at, count * PAGE, PROT_READ) != 0) return;
    verify_from(at, count * PAGE, o->salt, first * 512, "read only");
    must(mprotect(at, count * PAGE, PROT_READ | PROT_WRITE) == 0);
}

// Out by the kernel and in again, to another place in the same object's content.
static void through_a_pipe(struct worker *w, struct object *o) {
    int fds[2];
    size_t first, count;
    part_of(w, o, &first, &count);
    if (pipe(fds) != 0) return;
    for (size_t page = first; page < first + count; page++) {
        char *at = o->at + page * PAGE;
        for (size_t done = 0; done < PAGE;) {
            ssize_t n = write(fds[1], at + done, PAGE - done);
            must(n > 0 || errno == EINTR);
            done += n > 0 ? n : 0;
        }
        memset(at, 0, PAGE);
        for (size_t done = 0; done < PAGE;) {
            ssize_t n = read(fds[0], at + done, PAGE - done);
            must(n > 0 || errno == EINTR);
            done += n > 0 ? n : 0;
        }
    }
    close(fds[0]);
    close(fds[1]);
    verify_from(o->at + first * PAGE, count * PAGE, o->salt, first * 512, "through a pipe");
}

static void rewrite(struct worker *w, struct object *o) {
    if (roll(w, 4)) {
        size_t first, count;
        part_of(w, o, &first, &count);
        verify_from(o->at + first * PAGE, count * PAGE, o->salt, first * 512, "part");
        return;
    }
    check(o, "before it is written");
    o->salt++;
    fill(o->at, o->bytes, o->salt);
}

static void step(struct worker *w);

static void end_well(pid_t child) {
    int status;
    pid_t got;
    do got = waitpid(child, &status, __WALL);
    while (got < 0 && errno == EINTR);
    must(got == child);
    if (status == 0) return;
    printf("FAILED child: status %x\n", status);
    fflush(stdout);
    // What stopped the child stops all.
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void fork_one(struct worker *w) {
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        is_child = 1;
        // Only this thread is here; its objects are as they were. The timer is not inherited.
        for (int i = 0; i < OBJECTS; i++)
            if (w->objects[i].at && roll(w, 2)) check(&w->objects[i], "in a child");
        size_t steps = roll(w, 40);
        for (size_t i = 0; i < steps; i++) step(w);
        fflush(NULL);
        _exit(0);
    }
    end_well(child);
    w->forks++;
}

// In a process of its own, in the same memory: while it runs its maker only waits, but for handlers, which leave errno as it was.
static int in_shared_memory(void *arg) {
    struct worker *w = arg;
    for (int i = 0; i < OBJECTS; i++)
        if (w->objects[i].at && roll(w, 3) == 0) rewrite(w, &w->objects[i]);
    struct object *o = &w->objects[roll(w, OBJECTS)];
    if (o->at) drop(w, o);
    make(w, o);
    return 0;
}

static void share_one(struct worker *w) {
    static const size_t stack_bytes = 256 << 10;
    char *stack = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return;
    // Its handlers are ours, and so are the counts of signals; it is sent none.
    pid_t child = clone(in_shared_memory, stack + stack_bytes, CLONE_VM | SIGCHLD, w);
    if (child > 0) {
        end_well(child);
        w->sharers++;
    }
    must(munmap(stack, stack_bytes) == 0);
}

// Reads from a pipe that says nothing more, into paged memory.
struct reader {
    int fd;
    char *into;
};

static void *read_for_ever(void *arg) {
    struct reader *reader = arg;
    for (;;) must(read(reader->fd, reader->into, PAGE) > 0);
}

static void cancel_one(struct worker *w) {
    int fds[2];
    struct reader reader = {.into = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    if (reader.into == MAP_FAILED) return;
    if (pipe(fds) == 0) {
        pthread_t thread;
        reader.fd = fds[0];
        must(write(fds[1], "said", 4) == 4);
        if (pthread_create(&thread, NULL, read_for_ever, &reader) == 0) {
            if (roll(w, 2)) usleep(roll(w, 300));
            void *result;
            must(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
            w->cancels++;
        }
        close(fds[0]);
        close(fds[1]);
    }
    must(munmap(reader.into, PAGE) == 0);
}

static void step(struct worker *w) {
    struct object *o = &w->objects[roll(w, OBJECTS)];
    w->steps++;
    if (!o->at) return make(w, o);
    switch (roll(w, 16)) {
    case 0: check(o, "before it goes"); return drop(w, o);
    case 1: case 2: return resize(w, o);
    case 3: return discard(w, o);
    case 4: return protect(w, o);
    case 5: return through_a_pipe(w, o);
    case 6:
        if (use_signals && !is_child) pthread_kill(workers[roll(w, threads)].thread, SIGUSR1);
        return;
    default: return rewrite(w, o);
    }
}

static pthread_barrier_t together;

static void *work(void *arg) {
    struct worker *w = arg;
    w->thread = pthread_self();
    // All are there before one sends another a signal, and until none does.
    pthread_barrier_wait(&together);
    while (seconds_now() < end) {
        step(w);
        if (use_forks && roll(w, 60) == 0) fork_one(w);
        if (use_sharers && roll(w, 60) == 0) share_one(w);
        if (use_cancels && roll(w, 60) == 0) cancel_one(w);
    }
    pthread_barrier_wait(&together);
    return NULL;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        must(value != NULL);
        size_t n = parse_size(++value);
        if (!strncmp(argv[i], "bytes", 5)) bytes = n;
        else if (!strncmp(argv[i], "threads", 7)) threads = n < MOST_THREADS ? n : MOST_THREADS;
        else if (!strncmp(argv[i], "seconds", 7)) seconds = atof(value);
        else if (!strncmp(argv[i], "seed", 4)) seed = strtoull(value, NULL, 10);
        else if (!strncmp(argv[i], "forks", 5)) use_forks = n;
        else if (!strncmp(argv[i], "signals", 7)) use_signals = n;
        else if (!strncmp(argv[i], "sharers", 7)) use_sharers = n;
        else if (!strncmp(argv[i], "cancels", 7)) use_cancels = n;
        else must(!"an argument of the list above");
    }
    end = seconds_now() + seconds;
    known = map(known_bytes);
    fill(known, known_bytes, 77);
    counts = map(PAGE);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    must(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    struct itimerval often = {{0, 10000}, {0, 10000}};
    if (use_signals) must(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < threads; i++) {
        workers[i].most = bytes / threads;
        workers[i].dice = seed * 1000003 + i;
    }
    must(pthread_barrier_init(&together, NULL, threads) == 0);
    pthread_t started[MOST_THREADS];
    for (int i = 0; i < threads; i++) must(pthread_create(&started[i], NULL, work, &workers[i]) == 0);
    unsigned long steps = 0, forks = 0, sharers = 0, cancels = 0, counted = 0;
    for (int i = 0; i < threads; i++) {
        must(pthread_join(started[i], NULL) == 0);
        steps += workers[i].steps;
        forks += workers[i].forks;
        sharers += workers[i].sharers;
        cancels += workers[i].cancels;
    }
    for (int i = 0; i < threads; i++)
        for (int j = 0; j < OBJECTS; j++)
            if (workers[i].objects[j].at) check(&workers[i].objects[j], "at the end");
    verify(known, known_bytes, 77, "what handlers read");
    // No handler runs any more.
    struct itimerval never = {{0, 0}, {0, 0}};
    must(setitimer(ITIMER_REAL, &never, NULL) == 0);
    usleep(20000);
    for (size_t i = 0; i < PAGE / 8; i++) counted += counts[i];
    must(counted == handled);
    fprintf(stderr, "torture: %lu steps, %lu forks, %lu sharers, %lu cancels, %lu signals\n", steps, forks, sharers, cancels, handled);
    puts("OK");
    return 0;
}

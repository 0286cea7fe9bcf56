// flags: -pthread
// Code runs on stacks that lie in paged memory (coroutines, a thread's own stack, signal stacks, static arrays) and from there
// allocates, maps, resizes, forks and spawns, again and again after the rest of the stack has been pushed out.
#include "check.h"
#include <spawn.h>
#include <ucontext.h>

enum { STACK = 256 << 10, COROUTINES = 24 };
static ucontext_t main_context, contexts[COROUTINES];
static char static_stack[4 * MIB];
static int finished;
extern char **environ;

static void must_end_well(pid_t child) {
    int status;
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// Uses much stack, so that calls from here and from above it alternate between warm and cold pages.
static uint64_t deep(int depth, uint64_t salt) {
    volatile uint64_t frame[400];
    for (int i = 0; i < 400; i++) frame[i] = word(salt, i + depth);
    uint64_t sum = depth ? deep(depth - 1, salt) : 0;
    for (int i = 0; i < 400; i++) must(frame[i] == word(salt, i + depth));
    return sum + frame[7];
}

static void act(uint64_t salt) {
    char *large = malloc(2 * MIB), *small = malloc(2000), *mapped = map(MIB);
    fill(large, 2 * MIB, salt), fill(small, 2000, salt), fill(mapped, MIB, salt);
    large = realloc(large, 5 * MIB);
    verify(large, 2 * MIB, salt, "block grown on a paged stack");
    must(mprotect(mapped, MIB, PROT_READ) == 0);
    verify(mapped, MIB, salt, "mapping made on a paged stack");
    must(munmap(mapped, MIB) == 0);
    verify(small, 2000, salt, "small block made on a paged stack");
    free(large), free(small);
}

// Calls from just above a page that has gone cold, so that it is first touched deep inside the call.
static __attribute__((noinline)) void act_at_edge(uint64_t salt, size_t above) {
    char here, *low = (char *)(((uintptr_t)&here - 2 * PAGE) & ~(PAGE - 1)) + above;
    char *room = __builtin_alloca(&here - low);
    __asm__ volatile("" : : "r"(room) : "memory");
    act(salt);
}

static void forks(uint64_t salt) {
    static char *volatile data; // not on the stack
    data = malloc(4 * MIB);
    fill(data, 4 * MIB, salt);
    pid_t child = fork();
    if (child == 0) {
        deep(20, salt);
        verify(data, 4 * MIB, salt, "data in a child that runs on a paged stack");
        act(salt + 1);
        _exit(0);
    }
    must_end_well(child);
    char *argv[] = {"true", NULL};
    must(posix_spawnp(&child, "true", NULL, NULL, argv, environ) == 0);
    must_end_well(child);
    verify(data, 4 * MIB, salt, "data of the parent on a paged stack");
    free(data);
}

static void coroutine(int number) {
    for (int round = 0; round < 3; round++) {
        volatile uint64_t local[100];
        for (int i = 0; i < 100; i++) local[i] = word(number, i);
        for (size_t above = 64; above <= 2048; above *= 2) {
            act_at_edge(number * 10 + round, above);
            if (above % 3 == number % 3) swapcontext(&contexts[number], &main_context);
        }
        deep(30, number);
        act(number * 10 + round);
        if (number % 8 == round) forks(number);
        swapcontext(&contexts[number], &main_context); // the others run, and this stack cools down
        for (int i = 0; i < 100; i++) must(local[i] == word(number, i));
    }
    finished++;
}

static void *thread(void *arg) {
    deep(100, (uintptr_t)arg);
    act((uintptr_t)arg);
    push_out_with(64 * MIB);
    act((uintptr_t)arg + 1);
    forks((uintptr_t)arg + 2);
    return arg;
}

static volatile int handled;
static void handler(int signal) {
    (void)signal;
    deep(10, 77);
    act(78); // fine here: the signal is raised where no allocation is under way
    handled++;
}

int main(void) {
    for (int i = 0; i < COROUTINES; i++) {
        must(getcontext(&contexts[i]) == 0);
        contexts[i].uc_stack.ss_sp = i % 3 == 0 ? malloc(STACK) : i % 3 == 1 ? map(STACK) : static_stack + i / 3 * STACK;
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    static int ended[COROUTINES];
    while (finished < COROUTINES) {
        for (int i = 0; i < COROUTINES; i++) {
            int before = finished;
            if (!ended[i]) swapcontext(&main_context, &contexts[i]);
            ended[i] |= finished > before;
        }
        push_out_with(96 * MIB);
    }
    must(finished == COROUTINES);
    printf("coroutines\n");
    for (int i = 0; i < 4; i++) {
        pthread_attr_t attr;
        pthread_t handle;
        char *stack = i % 2 ? malloc(2 * MIB) : map(2 * MIB);
        must(pthread_attr_init(&attr) == 0 && pthread_attr_setstack(&attr, (void *)(((uintptr_t)stack + 15) & ~15ul), 2 * MIB - PAGE) == 0);
        must(pthread_create(&handle, &attr, thread, (void *)(long)(1000 + i)) == 0 && pthread_join(handle, NULL) == 0);
    }
    printf("threads\n");
    stack_t own = {.ss_sp = malloc(STACK), .ss_size = STACK}, none = {.ss_flags = SS_DISABLE};
    must(sigaltstack(&own, NULL) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        must(raise(SIGUSR1) == 0);
        push_out_with(96 * MIB);
    }
    must(handled == 5 && sigaltstack(&none, NULL) == 0);
    printf("signal stacks\nOK\n");
    return 0;
}

// flags: -pthread
// A program with its own SIGSEGV and SIGBUS handlers: real faults must reach them untouched, while nearfar pages its memory.
#include "check.h"
#include <fcntl.h>
#include <setjmp.h>

enum { PAGES = 64 };
static uint64_t *data;          // paged memory that the handlers touch
static size_t words;
static char *guarded, *file_map;
static volatile int maperr, accerr, adrerr, onstack;
static char *volatile low_address = (char *)0x10;
static __thread char *stack_low, *stack_high;
static __thread sigjmp_buf back;

static void check_stack(void) {
    char here;
    if (&here >= stack_low && &here < stack_high) __atomic_add_fetch(&onstack, 1, __ATOMIC_RELAXED);
    else must(!"the handler did not run on its alternate stack");
}

static void on_segv(int number, siginfo_t *info, void *context) {
    (void)context;
    must(number == SIGSEGV);
    check_stack();
    char *at = info->si_addr;
    size_t i = mix((uintptr_t)at + accerr) % words; // touches memory that may be in far, in the handler
    if (data[i] != word(9, i)) wrong(data, i, data[i], word(9, i), "in the SIGSEGV handler");
    if (at == low_address) {
        must(info->si_code == SEGV_MAPERR);
        __atomic_add_fetch(&maperr, 1, __ATOMIC_RELAXED);
        siglongjmp(back, 1);
    }
    if (at < guarded || at >= guarded + PAGES * PAGE) { printf("unexpected address %p, code %d\n", (void *)at, info->si_code); fflush(stdout); _exit(1); }
    must(info->si_code == SEGV_ACCERR);
    __atomic_add_fetch(&accerr, 1, __ATOMIC_RELAXED);
    must(mprotect((void *)((uintptr_t)at & ~(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    must(number == SIGBUS);
    check_stack();
    must(info->si_code == BUS_ADRERR);
    must((char *)info->si_addr == file_map + PAGE + 123);
    __atomic_add_fetch(&adrerr, 1, __ATOMIC_RELAXED);
    siglongjmp(back, 1);
}

static void own_stack(void) {
    stack_low = malloc(64 * 1024);
    stack_high = stack_low + 64 * 1024;
    stack_t alternate = {.ss_sp = stack_low, .ss_size = 64 * 1024};
    must(sigaltstack(&alternate, NULL) == 0);
}

static void *faults(void *arg) {
    (void)arg;
    own_stack();
    for (int i = 0; i < 300; i++) {
        if (sigsetjmp(back, 1) == 0) {
            *(volatile char *)low_address = 1;
            must(!"writing to address 16 went through");
        }
        size_t at = mix(i) % words;
        must(data[at] == word(9, at));
    }
    return NULL;
}

int main(void) {
    words = 128 * MIB / 8;
    data = malloc(words * 8);
    fill(data, words * 8, 9);
    own_stack();
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    action.sa_sigaction = on_bus;
    must(sigaction(SIGBUS, &action, NULL) == 0);
    must(sigaction(SIGBUS, NULL, &old) == 0 && old.sa_sigaction == on_bus && (old.sa_flags & SA_ONSTACK));
    must(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_sigaction == on_segv);
    pthread_t pressure = start_pressure(96 * MIB), other;
    must(pthread_create(&other, NULL, faults, NULL) == 0);

    // A guarded block amid a paged region: protect, fault, the handler opens the page, the write goes through; as a collector does.
    char *region = map(16 * MIB);
    fill(region, 16 * MIB, 3);
    guarded = region + 8 * MIB;
    for (int round = 0; round < 20; round++) {
        must(mprotect(guarded, PAGES * PAGE, round % 2 ? PROT_READ : PROT_NONE) == 0);
        for (int i = 0; i < PAGES; i++) {
            volatile uint64_t *at = (volatile uint64_t *)(guarded + i * PAGE + 8 * (round % 512));
            uint64_t content = word(3, (guarded - region) / 8 + i * 512 + round % 512);
            *at = content;
            must(*at == content);
        }
    }
    verify(region, 16 * MIB, 3, "region with a guarded part");

    // A file mapping past the end of its file.
    int file = memfd_create("short", 0);
    must(file >= 0 && ftruncate(file, 100) == 0);
    file_map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, 0);
    must(file_map != MAP_FAILED);
    for (int i = 0; i < 20; i++)
        if (sigsetjmp(back, 1) == 0) {
            char volatile byte = *(volatile char *)(file_map + PAGE + 123);
            (void)byte;
            must(!"reading past the end of a file went through");
        }
    pthread_join(other, NULL);

    // With the handler gone once (SA_RESETHAND, as crash reporters do), the second fault ends the process with that signal.
    fflush(stdout);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)low_address = 1;
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    end_pressure(pressure);
    verify(data, words * 8, 9, "data at the end");
    printf("OK maperr %d accerr %d adrerr %d onstack %d\n", maperr, accerr, adrerr, onstack);
    return 0;
}

// longjmp and siglongjmp out of code that touches paged memory, out of a fault handler too, many times.
#include "check.h"
#include <setjmp.h>

static uint64_t *data;
static size_t words;
static jmp_buf plain;
static sigjmp_buf saved;
static char *forbidden;

#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noinline)) static void touch_and_jump(size_t at, int depth) {
    volatile uint64_t local[64];
    local[depth % 64] = data[at % words];
    if (local[depth % 64] != word(5, at % words)) wrong(data, at % words, local[depth % 64], word(5, at % words), "before longjmp");
    if (depth == 0) longjmp(plain, 1);
    touch_and_jump(at * 7 + 11, depth - 1);
}

static void handler(int number) {
    (void)number;
    siglongjmp(saved, 1);
}

int main(void) {
    words = 160 * MIB / 8;
    data = malloc(words * 8);
    fill(data, words * 8, 5);
    forbidden = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(forbidden != MAP_FAILED);
    struct sigaction action = {.sa_handler = handler};
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    volatile int jumps = 0, faults = 0;
    volatile uint64_t state = 1;
    for (volatile int i = 0; i < 4000; i++) {
        state = mix(state + i);
        if (setjmp(plain) == 0) touch_and_jump(state, i % 20);
        jumps++;
        if (sigsetjmp(saved, 1) == 0) {
            volatile uint64_t sum = data[state % words];
            sum += forbidden[i % PAGE];
            must(!"reading a PROT_NONE page went through");
        }
        faults++;
    }
    verify(data, words * 8, 5, "after all jumps");
    printf("OK %d %d\n", jumps, faults);
    return 0;
}

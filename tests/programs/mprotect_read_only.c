// flags: -pthread
// Read-only pages keep their content under pressure; a write to one reaches the program's handler as SEGV_ACCERR; PROT_NONE hides and keeps.
#include "check.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile int caught;
static char *volatile fault_at;

static void on_segv(int number, siginfo_t *info, void *context) {
    (void)number; (void)context;
    must(info->si_code == SEGV_ACCERR);
    fault_at = info->si_addr;
    caught++;
    siglongjmp(back, 1);
}

static void must_fault(char *at, int writing) {
    int before = caught;
    if (sigsetjmp(back, 1) == 0) {
        if (writing) *(volatile char *)at = 1;
        else (void)*(volatile char *)at;
    }
    must(caught == before + 1);
    must(fault_at == at);
}

int main(void) {
    size_t bytes = 96 * MIB;
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    char *at = map(bytes);
    fill(at, bytes, 7);
    must(mprotect(at + 16 * MIB, 32 * MIB, PROT_READ) == 0);
    must(mprotect(at + 64 * MIB, 16 * MIB, PROT_NONE) == 0);
    pthread_t pressure = start_pressure(96 * MIB);
    for (int round = 0; round < 3; round++) {
        push_out();
        verify(at, 64 * MIB, 7, "readable part");
        verify_from(at + 80 * MIB, 16 * MIB, 7, 80 * MIB / 8, "part behind PROT_NONE");
        for (int i = 0; i < 64; i++) {
            must_fault(at + 16 * MIB + i * 509 * 1024, 1);
            must_fault(at + 64 * MIB + i * 253 * 1024 + 7, i & 1);
        }
    }
    must(mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
    verify(at, bytes, 7, "everything, opened again");
    fill(at, bytes, 8);
    // Page by page, in turns.
    for (size_t i = 0; i < 16 * MIB; i += 2 * PAGE) must(mprotect(at + i, PAGE, PROT_READ) == 0);
    push_out();
    verify(at, bytes, 8, "striped protection");
    must_fault(at + 2 * PAGE, 1);
    at[PAGE] ^= 0;
    must(mprotect(at, 16 * MIB, PROT_READ | PROT_WRITE) == 0);
    fill(at, bytes, 9);
    end_pressure(pressure);
    verify(at, bytes, 9, "after all");
    // The same in memory of malloc.
    char *block = malloc(40 * MIB), *aligned = (char *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE);
    fill(aligned, 39 * MIB, 10);
    must(mprotect(aligned + 8 * MIB, 8 * MIB, PROT_READ) == 0);
    push_out();
    verify(aligned, 39 * MIB, 10, "block of malloc, partly read-only");
    must_fault(aligned + 9 * MIB, 1);
    must(mprotect(aligned + 8 * MIB, 8 * MIB, PROT_READ | PROT_WRITE) == 0);
    aligned[9 * MIB] ^= 1;
    aligned[9 * MIB] ^= 1;
    verify(aligned, 39 * MIB, 10, "block of malloc, opened");
    free(block);
    printf("OK %d\n", caught);
    return 0;
}

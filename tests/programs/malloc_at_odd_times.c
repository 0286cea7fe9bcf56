// flags: -pthread
// Allocation before main, in constructors and destructors, in thread-exit destructors, in fork handlers registered before
// everybody else's, and in atexit functions: blocks live across all of these and keep their bytes.
#include "check.h"

enum { SIZES = 5 };
static const size_t sizes[SIZES] = {40, 3000, 200 << 10, 1 << 20, 5 << 20};
typedef struct { uint64_t *at[SIZES]; uint64_t salt; } Set;

static void set_make(Set *s, uint64_t salt) {
    s->salt = salt;
    for (int i = 0; i < SIZES; i++) {
        s->at[i] = malloc(sizes[i]);
        must(s->at[i] != NULL);
        fill(s->at[i], sizes[i], salt + i);
    }
}
static void set_check(Set *s, const char *what) {
    for (int i = 0; i < SIZES; i++) verify(s->at[i], sizes[i], s->salt + i, what);
}
static void set_drop(Set *s, const char *what) {
    set_check(s, what);
    for (int i = 0; i < SIZES; i++) free(s->at[i]);
}

static Set from_preinit, from_constructor, for_exit;
static int prepared, parents, children;
static void *prepare_blocks[2];

// Registered twice, before any library had its turn and after all of them had: they only allocate, and free what they
// allocated.
static void prepare(void) {
    void *small = prepare_blocks[prepared++ % 2] = malloc(100);
    must(small != NULL);
    memset(small, 1, 100);
    char *large = calloc(1, 2 * MIB);
    must(large != NULL && large[MIB] == 0);
    memset(large, 1, 2 * MIB);
    large = realloc(large, 3 * MIB);
    must(large != NULL && large[2 * MIB - 1] == 1);
    free(large);
}
static void in_parent(void) {
    free(prepare_blocks[parents++ % 2]);
    free(malloc(3 * MIB));
}
static void in_child(void) {
    free(prepare_blocks[children++ % 2]);
    free(malloc(3 * MIB));
}

static void preinit(void) {
    set_make(&from_preinit, 100);
    must(pthread_atfork(prepare, in_parent, in_child) == 0);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(void) = preinit;

__attribute__((constructor)) static void construct(void) {
    set_make(&from_constructor, 200);
    must(pthread_atfork(prepare, in_parent, in_child) == 0);
}
__attribute__((destructor)) static void destruct(void) {
    set_drop(&for_exit, "block freed in a destructor");
    Set late;
    set_make(&late, 400);
    set_drop(&late, "block of a destructor");
    printf("destructor\n");
    fflush(stdout);
}
static void at_exit(void) {
    Set late;
    set_make(&late, 500);
    set_drop(&late, "block of an exit function");
    printf("exit function\n");
}

static pthread_key_t key;
static int rounds_left = 3;
static void thread_ends(void *value) {
    set_drop(value, "block freed while its thread ends");
    Set *again = malloc(sizeof *again);
    set_make(again, 600);
    if (rounds_left-- > 0) pthread_setspecific(key, again);
    else { set_drop(again, "block made while its thread ends"); free(again); }
    free(value);
}
static void *thread(void *arg) {
    Set *own = malloc(sizeof *own);
    set_make(own, 700);
    pthread_setspecific(key, own);
    return arg;
}

int main(void) {
    set_check(&from_preinit, "block from before all constructors");
    set_check(&from_constructor, "block of a constructor");
    set_make(&for_exit, 300);
    atexit(at_exit);
    must(pthread_key_create(&key, thread_ends) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t handle;
        rounds_left = 3;
        must(pthread_create(&handle, NULL, thread, NULL) == 0 && pthread_join(handle, NULL) == 0);
    }
    for (int i = 0; i < 5; i++) {
        fflush(stdout);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0) {
            set_drop(&from_preinit, "early block in a child");
            set_drop(&from_constructor, "constructor's block in a child");
            _exit(prepared == 2 * (i + 1) && children == 2 && parents == 2 * i ? 0 : 1);
        }
        int status;
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    must(prepared == 10 && parents == 10 && children == 0);
    for (int i = 0; i < SIZES; i++) {
        // Grown here, though they come from before anything was managed.
        from_preinit.at[i] = realloc(from_preinit.at[i], 4 * sizes[i]);
        must(from_preinit.at[i] != NULL);
        verify(from_preinit.at[i], sizes[i], 100 + i, "early block after growing");
    }
    set_drop(&from_preinit, "early block at the end");
    set_drop(&from_constructor, "constructor's block at the end");
    printf("main\n");
    return 0;
}

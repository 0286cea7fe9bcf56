// A child started with an environment of the caller's making stays under the job if the parent is, keeps every variable it was
// given, and gets no other: through each function that takes an environment, from fork and from vfork children.
#include "check.h"
#include <fcntl.h>
#include <spawn.h>

extern char **environ;
static const char *self;

static int is_ours(const char *variable) {
    return strncmp(variable, "NEARFAR_JOB=", 12) == 0 || strncmp(variable, "LD_PRELOAD=", 11) == 0;
}

// As a child: argv[2] says whether the parent is under a job, argv[3] how many variables it gave, argv[4] a library it gave.
static int child(char **argv) {
    int managed = atoi(argv[2]), given = atoi(argv[3]), found = 0;
    const char *job = getenv("NEARFAR_JOB"), *preload = getenv("LD_PRELOAD");
    for (char **v = environ; *v; v++) found += !is_ours(*v);
    if (found != given) return 20;
    for (int i = 0; i < given; i++) {
        char name[32], expected[32];
        snprintf(name, sizeof name, "V%d", i);
        snprintf(expected, sizeof expected, "value %d", i);
        const char *value = getenv(name);
        if (!value || strcmp(value, expected) != 0) return 21;
    }
    if (managed != (job != NULL)) return 22;
    if (managed == 1 && (!preload || !strstr(preload, "libnearfar.so"))) return 23;
    if (argv[4][0] && (!preload || !strstr(preload, argv[4]))) return 24;
    char *data = malloc(8 * MIB);
    fill(data, 8 * MIB, 3);
    verify(data, 8 * MIB, 3, "data of the child");
    return 0;
}

enum { EXECVE, EXECVPE, FEXECVE, EXECVEAT, EXECV, EXECVP, SPAWN, SPAWNP, WAYS };
static const char *const names[] = {"execve", "execvpe", "fexecve", "execveat", "execv", "execvp", "posix_spawn", "posix_spawnp"};

static void start(int way, char **argv, char **env, int fd) {
    switch (way) {
    case EXECVE: execve(self, argv, env); break;
    case EXECVPE: execvpe(self, argv, env); break;
    case FEXECVE: fexecve(fd, argv, env); break;
    case EXECVEAT: execveat(fd, "", argv, env, AT_EMPTY_PATH); break;
    case EXECV: environ = env; execv(self, argv); break;
    case EXECVP: environ = env; execvp(self, argv); break;
    }
    _exit(99);
}

static void try(int way, int by_vfork, int given, const char *library) {
    static char texts[4000][32], preload[200], managed[2], count[16];
    static char *env[4002];
    snprintf(managed, sizeof managed, "%d", getenv("NEARFAR_JOB") != NULL);
    snprintf(count, sizeof count, "%d", given);
    int n = 0;
    for (; n < given; n++) {
        snprintf(texts[n], sizeof texts[n], "V%d=value %d", n, n);
        env[n] = texts[n];
    }
    if (*library) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
        env[n++] = preload;
    }
    env[n] = NULL;
    char *argv[] = {(char *)self, "child", managed, count, (char *)library, NULL};
    int fd = open(self, O_RDONLY), status;
    must(fd >= 0);
    fflush(stdout);
    pid_t pid;
    char **environ_before = environ;
    if (way == SPAWN) must(posix_spawn(&pid, self, NULL, NULL, argv, env) == 0);
    else if (way == SPAWNP) must(posix_spawnp(&pid, self, NULL, NULL, argv, env) == 0);
    else {
        pid = by_vfork ? vfork() : fork();
        must(pid >= 0);
        if (pid == 0) start(way, argv, env, fd);
        environ = environ_before; // a vfork child has set ours
    }
    must(waitpid(pid, &status, 0) == pid);
    if (status != 0) {
        printf("FAILED: %s (%s, %d variables, library \"%s\"): status %x\n", names[way], by_vfork ? "vfork" : "fork", given, library, status);
        exit(1);
    }
    close(fd);
}

int main(int argc, char **argv) {
    self = realpath("/proc/self/exe", NULL);
    if (argc > 1) return child(argv);
    static char data[4 * MIB];
    fill(data, sizeof data, 9);
    for (int way = 0; way < WAYS; way++)
        for (int by_vfork = 0; by_vfork < 2; by_vfork++) {
            try(way, by_vfork, 0, "");
            try(way, by_vfork, 5, "");
            try(way, by_vfork, 5, "libm.so.6");
            try(way, by_vfork, 3000, "");
            verify(data, sizeof data, 9, "data of the parent");
        }
    // Failing calls come back, with the right error, and may be followed by others.
    char *nothing[] = {NULL};
    must(execve("/nonexistent", argv, nothing) == -1 && errno == ENOENT);
    must(execvp("nonexistent-program", argv) == -1 && errno == ENOENT);
    must(execv("/", argv) == -1 && errno == EACCES);
    must(fexecve(-1, argv, nothing) == -1 && errno == EINVAL);
    pid_t pid;
    must(posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, nothing) == ENOENT);
    printf("OK\n");
    return 0;
}

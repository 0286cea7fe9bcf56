// fork+exec, vfork+exec, posix_spawn, system and popen from a program with paged data; also of itself, which is paged in turn.
#include "check.h"
#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static void must_exit(pid_t child, int code) {
    int status;
    must(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) { printf("child ended with status %x, not exit %d\n", status, code); fflush(stdout); _exit(1); }
}

int main(int argc, char **argv) {
    if (argc > 1) { // as the child: needs more than near as well
        size_t bytes = parse_size(argv[1]);
        char *data = malloc(bytes);
        fill(data, bytes, 5);
        verify(data, bytes, 5, "data of an executed child");
        printf("child %s\n", argv[1]);
        return 7;
    }
    size_t bytes = 112 * MIB;
    char *data = malloc(bytes);
    fill(data, bytes, 1);
    char *self[] = {argv[0], "96M", NULL}, *echo[] = {"sh", "-c", "echo from a shell; exit 4", NULL};
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { execv(argv[0], self); _exit(99); }
    must_exit(child, 7);
    child = vfork();
    if (child == 0) { execvp("sh", echo); _exit(99); }
    must_exit(child, 4);
    child = vfork();
    if (child == 0) _exit(11);
    must_exit(child, 11);
    child = vfork();
    if (child == 0) { execl("/nonexistent", "nonexistent", NULL); _exit(12); }
    must_exit(child, 12);
    must(posix_spawn(&child, argv[0], NULL, NULL, self, environ) == 0);
    must_exit(child, 7);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "spawned.txt", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    must(posix_spawnp(&child, "sh", &actions, NULL, echo, environ) == 0);
    must_exit(child, 4);
    must(posix_spawn(&child, "/nonexistent", NULL, NULL, echo, environ) == ENOENT);
    verify(data, bytes, 1, "data after spawning");
    must(WEXITSTATUS(system("cat spawned.txt; rm spawned.txt; exit 3")) == 3);
    FILE *stream = popen("echo from popen; cat", "w");
    must(stream != NULL && fwrite(data + 50 * MIB, 1, 0, stream) == 0 && fputs("through cat\n", stream) >= 0);
    must(pclose(stream) == 0);
    stream = popen("head -c 1000000 /dev/zero | wc -c", "r");
    char line[100];
    must(stream != NULL && fgets(line, sizeof line, stream) && atoi(line) == 1000000 && pclose(stream) == 0);
    // The child of a fork keeps its data across its own spawning.
    child = fork();
    if (child == 0) {
        fill(data, MIB, 2);
        must(WEXITSTATUS(system("exit 5")) == 5);
        verify(data, MIB, 2, "written part in a child after system");
        verify_from(data + MIB, bytes - MIB, 1, MIB / 8, "data in a child after system");
        execv(argv[0], self);
        _exit(99);
    }
    must_exit(child, 7);
    verify(data, bytes, 1, "data at the end");
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "echo replaced; exit 6", NULL); // an exec that replaces a process with paged data
    return 1;
}

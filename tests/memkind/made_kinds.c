/* Kinds that programs make: files and areas. The directory is the first argument. */
#include "check.h"
#include <errno.h>
#include <memkind.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT (32u << 20)

static char area[8 << 20];

/* Fills the kind with blocks, checks that they are distinct, and frees them. */
static size_t fill(memkind_t kind, size_t size)
{
    static char *blocks[200000];
    size_t count = 0, i;
    while (count < 200000 && (blocks[count] = memkind_malloc(kind, size))) {
        memset(blocks[count], (int)(count % 251), size);
        count++;
    }
    for (i = 0; i < count; i++) {
        CHECK(blocks[i][0] == (char)(i % 251) && blocks[i][size - 1] == (char)(i % 251));
        CHECK(memkind_detect_kind(blocks[i]) == kind);
        memkind_free(i % 2 ? kind : NULL, blocks[i]);
    }
    return count * size;
}

static void use(memkind_t kind, size_t limit)
{
    static const size_t sizes[] = {100, 4000, 64 << 10, 1 << 20};
    size_t i, bytes, value;
    char *p, *q;
    int round;
    for (round = 0; round < 3; round++)
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            bytes = fill(kind, sizes[i]);
            CHECK(bytes <= limit && bytes >= limit / 2);
        }
    CHECK(memkind_get_stat(kind, MEMKIND_STAT_TYPE_ALLOCATED, &value) == 0 && value == 0);
    errno = 0;
    CHECK(memkind_malloc(kind, limit + 1) == NULL && errno == ENOMEM);
    CHECK(memkind_posix_memalign(kind, (void **)&p, 1 << 16, 100) == 0 && (size_t)p % (1 << 16) == 0);
    memkind_free(kind, p);
    p = memkind_calloc(kind, 1000, 10);
    CHECK(p && p[0] == 0 && p[9999] == 0);
    strcpy(p, "kept");
    q = memkind_realloc(kind, p, 1 << 20);
    CHECK(q && strcmp(q, "kept") == 0);
    q = memkind_realloc(NULL, q, 20);
    CHECK(q && strcmp(q, "kept") == 0 && memkind_detect_kind(q) == kind);
    /* To another kind and back. */
    q = memkind_realloc(MEMKIND_DEFAULT, q, 30);
    CHECK(strcmp(q, "kept") == 0 && memkind_detect_kind(q) == MEMKIND_DEFAULT);
    q = memkind_realloc(kind, q, 30);
    CHECK(strcmp(q, "kept") == 0 && memkind_detect_kind(q) == kind);
    memkind_free(NULL, q);
    CHECK(memkind_malloc(kind, 0) == NULL);
    CHECK(memkind_check_available(kind) == 0);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "/tmp";
    memkind_t kind, many[40];
    struct memkind_config *config;
    pid_t child;
    int i, status;
    CHECK(memkind_create_pmem(dir, MEMKIND_PMEM_MIN_SIZE - 1, &kind) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_create_pmem("/no/such/directory", 0, &kind) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_create_pmem(dir, LIMIT, &kind) == 0);
    CHECK(memkind_get_capacity(kind) == LIMIT);
    use(kind, LIMIT);
    /* From an example of memkind's: 16 MB fit beside 8 MB and a little, twice 16 MB do not. */
    {
        void *little = memkind_malloc(kind, 512), *eight = memkind_malloc(kind, 8 << 20), *sixteen = memkind_malloc(kind, 16 << 20);
        CHECK(little && eight && sixteen && memkind_malloc(kind, 16 << 20) == NULL);
        memkind_free(kind, little);
        memkind_free(kind, eight);
        memkind_free(kind, sixteen);
    }
    /* A child must not find a lock that somebody held; it may not use the parent's file. */
    child = fork();
    if (child == 0) {
        memkind_t own;
        CHECK(memkind_create_pmem(dir, LIMIT, &own) == 0);
        fill(own, 1000);
        _exit(memkind_destroy_kind(own));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(memkind_destroy_kind(kind) == 0);
    CHECK(memkind_create_pmem(dir, 0, &kind) == 0 && memkind_get_capacity(kind) > (ssize_t)LIMIT);
    memset(memkind_malloc(kind, 50 << 20), 1, 50 << 20);
    CHECK(memkind_destroy_kind(kind) == 0);
    config = memkind_config_new();
    CHECK(memkind_create_pmem_with_config(config, &kind) == MEMKIND_ERROR_INVALID);
    memkind_config_set_path(config, dir);
    memkind_config_set_size(config, LIMIT);
    memkind_config_set_memory_usage_policy(config, MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE);
    CHECK(memkind_create_pmem_with_config(config, &kind) == 0);
    memkind_config_delete(config);
    use(kind, LIMIT);
    CHECK(memkind_destroy_kind(kind) == 0);
    CHECK(memkind_create_fixed(NULL, 100, &kind) == MEMKIND_ERROR_INVALID);
    CHECK(memkind_create_fixed(area, sizeof area, &kind) == 0 && memkind_get_capacity(kind) > 0);
    use(kind, sizeof area);
    CHECK((char *)memkind_malloc(kind, 10) >= area && (char *)memkind_malloc(kind, 10) < area + sizeof area);
    CHECK(memkind_destroy_kind(kind) == 0);
    /* memkind has failed at the 15th and at the 30th. */
    for (i = 0; i < 40; i++)
        CHECK(memkind_create_pmem(dir, MEMKIND_PMEM_MIN_SIZE, &many[i]) == 0 && memkind_malloc(many[i], 1000));
    for (i = 0; i < 40; i++)
        CHECK(memkind_destroy_kind(many[i]) == 0);
    CHECK(memkind_check_dax_path("/no/such/directory") != 0);
    puts("OK");
    return 0;
}

/* What memkind's own tests found to be otherwise here (#19): areas that overlap or have no room, counts of kinds that are gone, settings
   of tiers. */
#include "check.h"
#include <memkind.h>
#include <memkind_memtier.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define AREA ((size_t)8 << 20)
#define BLOCKS 200
#define THRESHOLD "policy.dynamic_threshold."

static char area[AREA + 64];

/* Kinds over the same memory, of which one is used at a time, as when a program maps an area where a forgotten kind had its own. */
static void overlapping(size_t used)
{
    memkind_t kinds[4];
    char *blocks[BLOCKS];
    size_t i, round, size;
    for (i = 0; i < 4; i++)
        CHECK(memkind_create_fixed(area + 4 * i, AREA, &kinds[i]) == 0 && memkind_get_capacity(kinds[i]) == (ssize_t)AREA);
    for (round = 0; round < 20; round++) {
        for (i = 0; i < BLOCKS; i++) {
            size = (i * 37 + round) % 3000 + 1;
            blocks[i] = memkind_malloc(kinds[used], size);
            CHECK(blocks[i] && memkind_detect_kind(blocks[i]) == kinds[used]);
            memset(blocks[i], (int)i, size);
        }
        for (i = 0; i < BLOCKS; i += 2)
            CHECK((blocks[i] = memkind_realloc(i % 4 ? kinds[used] : NULL, blocks[i], 5000 + i)));
        for (i = 0; i < BLOCKS; i++) {
            CHECK(blocks[i][0] == (char)i);
            memkind_free(i % 3 ? kinds[used] : NULL, blocks[i]);
        }
    }
    for (i = 0; i < 4; i++)
        CHECK(memkind_destroy_kind(kinds[i]) == 0);
}

static void without_room(void)
{
    static const size_t sizes[] = {0, 1, 25, 87};
    memkind_t kind;
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(memkind_create_fixed(area, sizes[i], &kind) == 0 && memkind_get_capacity(kind) == (ssize_t)sizes[i]);
        CHECK(memkind_malloc(kind, 4096) == NULL && memkind_destroy_kind(kind) == 0);
    }
    /* What mmap(2) of 0 bytes gives. */
    CHECK(memkind_create_fixed(MAP_FAILED, 0, &kind) == 0 && memkind_get_capacity(kind) == 0 && memkind_destroy_kind(kind) == 0);
}

static void counts_of_kinds_that_are_gone(void)
{
    memkind_t kind;
    CHECK(memkind_create_pmem(".", 0, &kind) == 0 && memtier_kind_malloc(kind, 512));
    CHECK(memtier_kind_allocated_size(kind) == 512 && memkind_destroy_kind(kind) == 0);
    CHECK(memtier_kind_allocated_size(kind) == 0);
    CHECK(memkind_create_pmem(".", 0, &kind) == 0 && memtier_kind_allocated_size(kind) == 0);
    CHECK(memkind_destroy_kind(kind) == 0);
}

static struct memtier_builder *two_tiers(memtier_policy_t policy, unsigned first, unsigned second)
{
    struct memtier_builder *builder = memtier_builder_new(policy);
    CHECK(builder && memtier_builder_add_tier(builder, MEMKIND_DEFAULT, first) == 0);
    CHECK(memtier_builder_add_tier(builder, MEMKIND_REGULAR, second) == 0);
    return builder;
}

static void settings(void)
{
    static const char *const shares[] = {THRESHOLD "degree", THRESHOLD "trigger"};
    struct memtier_memory *memory;
    struct memtier_builder *builder = two_tiers(MEMTIER_POLICY_STATIC_RATIO, 1, 4);
    size_t val = 8000, max = 9000, i;
    unsigned count = 5;
    float share = -1.5f;
    CHECK(memtier_ctl_set(builder, THRESHOLD "check_cnt", &count) == -1);
    memtier_builder_delete(builder);
    /* Before there are tiers there are no thresholds; what was refused is forgotten. */
    builder = memtier_builder_new(MEMTIER_POLICY_DYNAMIC_THRESHOLD);
    CHECK(memtier_ctl_set(builder, THRESHOLD "thresholds[0].val", &val) == -1);
    CHECK(memtier_ctl_set(builder, THRESHOLD "thresholds[0].max", &max) == -1);
    CHECK(memtier_builder_add_tier(builder, MEMKIND_DEFAULT, 1) == 0 && memtier_builder_add_tier(builder, MEMKIND_REGULAR, 2) == 0);
    CHECK(memtier_builder_add_tier(builder, MEMKIND_HIGHEST_CAPACITY, 3) == 0);
    CHECK(memtier_ctl_set(builder, THRESHOLD "thresholds[2].val", &val) == -1);
    CHECK((memory = memtier_builder_construct_memtier_memory(builder)));
    memtier_delete_memtier_memory(memory);
    CHECK(memtier_ctl_set(builder, THRESHOLD "thresholds[1].val", &val) == 0);
    CHECK(memtier_ctl_set(builder, THRESHOLD "thresholds[1].max", &max) == 0);
    CHECK((memory = memtier_builder_construct_memtier_memory(builder)));
    memtier_delete_memtier_memory(memory);
    memtier_builder_delete(builder);
    for (i = 0; i < 2; i++) {
        builder = two_tiers(MEMTIER_POLICY_DYNAMIC_THRESHOLD, 1, 2);
        CHECK(memtier_ctl_set(builder, shares[i], &share) == 0 && !memtier_builder_construct_memtier_memory(builder));
        memtier_builder_delete(builder);
    }
}

/* Blocks of one size, which all lie on one side of the threshold. */
static void ratio_of_one_size(void)
{
    struct memtier_builder *builder = two_tiers(MEMTIER_POLICY_DYNAMIC_THRESHOLD, 3, 1);
    struct memtier_memory *memory = memtier_builder_construct_memtier_memory(builder);
    double ratio, worst = 0;
    void **blocks = calloc(10000, sizeof *blocks);
    int i;
    CHECK(memory && blocks);
    for (i = 0; i < 10000; i++) {
        CHECK((blocks[i] = memtier_malloc(memory, 1024)));
        ratio = (double)memtier_kind_allocated_size(MEMKIND_REGULAR) / (double)memtier_kind_allocated_size(MEMKIND_DEFAULT);
        ratio = ratio > 1.0 / 3 ? ratio * 3 - 1 : 1 - ratio * 3;
        if (i >= 1000 && ratio > worst)
            worst = ratio;
    }
    printf("off the ratio by %.3f at most\n", worst);
    CHECK(worst < 0.2);
    for (i = 0; i < 10000; i++)
        memtier_free(blocks[i]);
    free(blocks);
    memtier_delete_memtier_memory(memory);
    memtier_builder_delete(builder);
}

static void shrunk_by_half(void)
{
    void *block = memtier_kind_malloc(MEMKIND_REGULAR, 1024);
    CHECK((block = memtier_kind_realloc(MEMKIND_REGULAR, block, 512)) && memtier_usable_size(block) == 512);
    CHECK(memtier_kind_allocated_size(MEMKIND_REGULAR) == 512);
    memtier_kind_free(MEMKIND_REGULAR, block);
    CHECK(memtier_kind_allocated_size(MEMKIND_REGULAR) == 0);
}

int main(void)
{
    size_t i;
    for (i = 0; i < 4; i++)
        overlapping(i);
    without_room();
    counts_of_kinds_that_are_gone();
    settings();
    ratio_of_one_size();
    shrunk_by_half();
    puts("OK");
    return 0;
}

/* Stands in for libnearfar.so in a paged job: the tier is in the first bytes before each block. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 64

int nearfar_paged_tiers(void)
{
    return 1;
}

int nearfar_posix_memalign(void **out, size_t align, size_t size, int tier)
{
    char *block;
    size_t ahead = align > HEAD ? align : HEAD;
    if (size > SIZE_MAX / 4 || posix_memalign((void **)&block, ahead, size + ahead))
        return ENOMEM;
    ((size_t *)(block + ahead))[-1] = size;
    ((size_t *)(block + ahead))[-2] = ahead;
    ((size_t *)(block + ahead))[-3] = 0x6e656172 + (size_t)tier;
    *out = block + ahead;
    return 0;
}

void *nearfar_malloc(size_t size, int tier)
{
    void *block;
    return nearfar_posix_memalign(&block, 16, size, tier) ? NULL : block;
}

void *nearfar_calloc(size_t count, size_t size, int tier)
{
    void *block = nearfar_malloc(count * size, tier);
    return block ? memset(block, 0, count * size) : NULL;
}

void nearfar_free(void *block)
{
    if (block)
        free((char *)block - ((size_t *)block)[-2]);
}

size_t nearfar_usable_size(void *block)
{
    return ((size_t *)block)[-1];
}

void *nearfar_realloc(void *block, size_t size, int tier)
{
    void *new = nearfar_malloc(size, tier);
    if (new && block) {
        memcpy(new, block, nearfar_usable_size(block) < size ? nearfar_usable_size(block) : size);
        nearfar_free(block);
    }
    return new;
}

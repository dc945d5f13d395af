/* use_counts.c -- see use_counts.h. */
#include "sim/policy/use_counts.h"

size_t use_counts_bytes(uint32_t keys)
{
    return key_heap_bytes(keys) + (size_t)keys * (sizeof(uint64_t) + sizeof(uint32_t));
}

void use_counts_start(struct use_counts *u, void *memory, uint32_t keys)
{
    u->used_at = memory;
    key_heap_start(&u->members, u->used_at + keys, keys);
    u->count = (uint32_t *)((char *)(u->used_at + keys) + key_heap_bytes(keys));
    u->keys = keys;
}

/* Fewest uses first, then the oldest last use: 20 bits of count over 44 bits of time. */
static void place(struct use_counts *u, uint32_t key)
{
    const uint64_t time_bits = 44, most = (UINT64_C(1) << 20) - 1;
    uint64_t count = u->count[key] < most ? u->count[key] : most;
    key_heap_put(&u->members, key,
                 (most - count) << time_bits | ((UINT64_C(1) << time_bits) - 1 - u->used_at[key]));
}

void use_counts_again(struct use_counts *u, uint32_t key)
{
    u->used_at[key] = ++u->uses;
    place(u, key);
}

void use_counts_add(struct use_counts *u, uint32_t key)
{
    u->count[key] += u->count[key] < UINT32_MAX;
    use_counts_again(u, key);
}

uint32_t use_counts_take(struct use_counts *u, const struct guard *g)
{
    return key_heap_take(&u->members, g);
}

void use_counts_halve(struct use_counts *u)
{
    for (uint32_t key = 0; key < u->keys; key++)
        u->count[key] /= 2;
    for (uint32_t key = 0; key < u->keys; key++)
        if (key_heap_has(&u->members, key))
            place(u, key);
}

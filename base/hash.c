/* hash.c -- see hash.h: the hashes that need a loop. */
#include "base/hash.h"

#include <string.h>

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x00000100000001b3)

uint64_t hash_text(const char *text)
{
    uint64_t h = FNV_OFFSET;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        h = (h ^ *c) * FNV_PRIME;
    return hash_mix(h);
}

#define LANES      8
#define LINE_BYTES (8 * LANES)

static uint64_t load_word(const unsigned char *p)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

static void add_line(uint64_t lane[LANES], const unsigned char *line)
{
    for (int i = 0; i < LANES; i++) {
        uint64_t x = lane[i] ^ load_word(line + 8 * i);
        lane[i] = (x << 29 | x >> 35) * UINT64_C(0xd6e8feb86659fd93);
    }
}

uint64_t hash_bytes(const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    uint64_t lane[LANES], h = hash_mix(count);
    for (int i = 0; i < LANES; i++)
        lane[i] = HASH_SEED + (uint64_t)i;
    size_t left = count;
    for (; left >= LINE_BYTES; left -= LINE_BYTES, p += LINE_BYTES)
        add_line(lane, p);
    if (left > 0) {
        unsigned char last[LINE_BYTES] = {0};
        memcpy(last, p, left);
        add_line(lane, last);
    }
    for (int i = 0; i < LANES; i++)
        h = hash_add(h, lane[i]);
    return h;
}

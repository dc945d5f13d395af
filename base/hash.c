/* hash.c -- see hash.h; the text hash is here because only it needs a loop. */
#include "base/hash.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x00000100000001b3)

uint64_t hash_text(const char *text)
{
    uint64_t h = FNV_OFFSET;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        h = (h ^ *c) * FNV_PRIME;
    return hash_mix(h);
}

/* hash.h -- 64-bit fingerprints over fields (never over structs or pointers). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_SEED UINT64_C(0x9e3779b97f4a7c15)

/* splitmix64's finaliser: a bijection that spreads every bit. */
static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Order-dependent: hash_add(hash_add(h, a), b) differs from b before a. */
static inline uint64_t hash_add(uint64_t h, uint64_t field)
{
    return hash_mix(h + UINT64_C(0x9e3779b97f4a7c15)) ^
           hash_mix(field * UINT64_C(0xd6e8feb86659fd93) + h);
}

uint64_t hash_text(const char *text); /* FNV-1a, then mixed */

/* Checksum of a string of bytes, as fast as memory is read: eight lanes, lane i (0..7) from HASH_SEED + i. Of each
 * 64 bytes, the last filled with zeros, lane i takes the little-endian word i:
 *     lane = rotate_left(lane ^ word, 29) * 0xd6e8feb86659fd93
 * and the result is hash_add of the lanes, in order, to hash_mix(count). Against damage, not against malice. */
uint64_t hash_bytes(const void *bytes, size_t count);

#endif

/* fixed.c -- see fixed.h.
 *
 * Both transcendental functions work one binary digit of the logarithm at a time: log2 squares the
 * mantissa and reads off whether it passed 2, exp2 multiplies the constants 2^(1/2), 2^(1/4), ... of
 * the digits that are set. Thirty-two 128-bit multiplications are slower than a polynomial, but the
 * error is bounded by inspection and nothing on a hot path calls them.
 */
#include "base/fixed.h"

#include <assert.h>
#include <stdbool.h>

typedef unsigned __int128 wide;

/* 2^(2^-i) for i = 1..32 in Q63, rounded to nearest. */
static const uint64_t root_q63[32] = {
    UINT64_C(0xb504f333f9de6484), UINT64_C(0x9837f0518db8a96f), UINT64_C(0x8b95c1e3ea8bd6e7),
    UINT64_C(0x85aac367cc487b15), UINT64_C(0x82cd8698ac2ba1d7), UINT64_C(0x8164d1f3bc030773),
    UINT64_C(0x80b1ed4fd999ab6c), UINT64_C(0x8058d7d2d5e5f6b1), UINT64_C(0x802c6436d0e04f51),
    UINT64_C(0x8016302f17467628), UINT64_C(0x800b179c82028fd1), UINT64_C(0x80058baf7fee3b5d),
    UINT64_C(0x8002c5d00fdcfcb7), UINT64_C(0x800162e61bed4a49), UINT64_C(0x8000b17292f702a4),
    UINT64_C(0x800058b92abbae02), UINT64_C(0x80002c5c8dade4d7), UINT64_C(0x8000162e44eaf636),
    UINT64_C(0x80000b1721fa7c19), UINT64_C(0x8000058b90de7e4d), UINT64_C(0x800002c5c8678f37),
    UINT64_C(0x80000162e431dba0), UINT64_C(0x800000b1721872d1), UINT64_C(0x80000058b90c1aa9),
    UINT64_C(0x8000002c5c8605a4), UINT64_C(0x800000162e4300e6), UINT64_C(0x8000000b17217ff8),
    UINT64_C(0x800000058b90bfdd), UINT64_C(0x80000002c5c85fe7), UINT64_C(0x8000000162e42ff2),
    UINT64_C(0x80000000b17217f8), UINT64_C(0x8000000058b90bfc),
};

int64_t fixed_log2_q32(uint64_t x)
{
    assert(x >= 1);
    int whole = 63 - __builtin_clzll(x);
    uint64_t mantissa_q63 = x << (63 - whole);
    uint64_t digits_q33 = 0; /* one digit more than the result, to round it */
    for (int i = 0; i < 33; i++) {
        wide square_q62 = ((wide)mantissa_q63 * mantissa_q63) >> 64;
        bool passed_two = square_q62 >> 63;
        digits_q33 = digits_q33 << 1 | passed_two;
        mantissa_q63 = (uint64_t)(passed_two ? square_q62 : square_q62 << 1);
    }
    return whole * FIXED_ONE + (int64_t)((digits_q33 + 1) >> 1);
}

uint64_t fixed_exp2_q32(int64_t e_q32)
{
    int64_t whole = e_q32 >> 32;
    uint32_t digits = (uint32_t)e_q32;
    if (whole >= 32)
        return UINT64_MAX;
    if (whole < -32)
        return 0;
    uint64_t power_q63 = UINT64_C(1) << 63;
    for (int i = 0; i < 32; i++)
        if (digits >> (31 - i) & 1)
            power_q63 = (uint64_t)(((wide)power_q63 * root_q63[i]) >> 63);
    int shift = (int)(31 - whole); /* 0..63 */
    wide half = shift ? (wide)1 << (shift - 1) : 0;
    return (uint64_t)(((wide)power_q63 + half) >> shift);
}

uint64_t fixed_sqrt_u64(uint64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 62; bit; bit >>= 2) {
        if (x >= root + bit) {
            x -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return root;
}

uint64_t fixed_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    assert(c > 0);
    wide quotient = (wide)a * b / c;
    return quotient > UINT64_MAX ? UINT64_MAX : (uint64_t)quotient;
}

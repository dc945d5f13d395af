/* fixed.h -- logarithm, exponential and square root in fixed point, from integers alone.
 *
 * Wherever chance, heat or a printed entropy needs a transcendental function the result must not
 * depend on a libm. These are the same bits everywhere: the logarithm is within 2^-32, the power
 * within half a unit of its last place or 2^-57 of itself, whichever is more. */
#ifndef BASE_FIXED_H
#define BASE_FIXED_H

#include <stdint.h>

#define FIXED_ONE ((int64_t)1 << 32) /* Q32 */

/* log2(x) in Q32; x >= 1. */
int64_t fixed_log2_q32(uint64_t x);
/* 2^e in Q32; saturates at UINT64_MAX, 0 below 2^-32. */
uint64_t fixed_exp2_q32(int64_t e_q32);
/* Floor of the square root. */
uint64_t fixed_sqrt_u64(uint64_t x);
/* Sum, product and maximum; the first two saturate. */
static inline uint64_t fixed_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
static inline uint64_t fixed_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
static inline uint64_t fixed_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
/* floor(a * b / c) through 128 bits; saturates; c > 0. */
uint64_t fixed_mul_div(uint64_t a, uint64_t b, uint64_t c);

#endif

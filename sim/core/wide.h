/* wide.h -- 128-bit integers for sums that must be exact: bytes per second times nanoseconds.
 *
 * A counter in nano-bytes (bytes/s x ns) of a 64-bit amount of bytes needs 94 bits, a sum of levels
 * over time needs 128. Both compilers this project builds with know the type on every 64-bit
 * target.
 */
#ifndef SIM_CORE_WIDE_H
#define SIM_CORE_WIDE_H

#include <stdint.h>

typedef unsigned __int128 wide;

#define NS_PER_S UINT64_C(1000000000)
#define NEVER_NS UINT64_MAX /* an instant that does not come */

static inline wide wide_mul(uint64_t a, uint64_t b)
{
    return (wide)a * b;
}

/* ceil(a / b), b > 0. */
static inline wide wide_div_up(wide a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* The first instant, at or after now_ns, at which `left` nano-units have passed at `rate_per_s`:
 * now + ceil(left / rate). NEVER_NS if that is not within 64 bits, or the rate is 0 and something
 * is left. */
static inline uint64_t wide_end_ns(uint64_t now_ns, wide left, uint64_t rate_per_s)
{
    if (left == 0)
        return now_ns;
    if (rate_per_s == 0)
        return NEVER_NS;
    wide end = now_ns + wide_div_up(left, rate_per_s);
    return end < NEVER_NS ? (uint64_t)end : NEVER_NS;
}

#endif

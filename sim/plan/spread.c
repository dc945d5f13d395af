/* spread.c -- see spread.h. */
#include "sim/plan/spread.h"

#include "base/fixed.h"
#include "base/pcg.h"

#include <stdio.h>
#include <stdlib.h>

#define ONE UINT64_C(1000000000)

void spread_draw(uint64_t *factor, size_t count, uint64_t seed, const char *path,
                 const struct value *v)
{
    char name[128];
    struct pcg p;
    snprintf(name, sizeof name, "plan/%s", path);
    pcg_stream(&p, seed, name);
    int64_t width = fixed_log2_q32(ONE + value_spread(v)) - fixed_log2_q32(ONE);
    for (size_t i = 0; i < count; i++) {
        /* Q32 times Q16, divided by 1.6449: magnitudes stay below 2^32 * 2^19. */
        int64_t exponent = width * pcg_gauss_q16(&p) / 65536 * 10000 / 16449;
        factor[i] = fixed_mul_div(fixed_exp2_q32(exponent), ONE, UINT64_C(1) << 32);
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t spread_quantile(uint64_t *x, size_t count, unsigned per_cent)
{
    qsort(x, count, sizeof *x, ascending);
    size_t i = count * per_cent / 100;
    return x[i < count ? i : count - 1];
}

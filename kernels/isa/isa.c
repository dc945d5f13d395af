/* isa.c -- choosing among the instruction sets that isa_list() of this architecture's file names. */
#include "kernels/isa/isa.h"

#include "kernels/isa/isa_list.h"

#include <assert.h>
#include <string.h>

size_t isa_count(void)
{
    return isa_list_count;
}

const struct isa *isa_at(size_t i)
{
    assert(i < isa_list_count);
    return isa_list[i];
}

static const struct isa *best(void)
{
    size_t i = isa_list_count - 1;
    while (i > 0 && !isa_list[i]->supported())
        i--;
    return isa_list[i];
}

enum status isa_choose(const struct isa **out, const char *name, struct diag *dg)
{
    if (!strcmp(name, "auto")) {
        *out = best();
        return ST_OK;
    }
    for (size_t i = 0; i < isa_list_count; i++)
        if (!strcmp(name, isa_list[i]->name)) {
            if (!isa_list[i]->supported())
                return diag_set(dg, ST_UNSUPPORTED, "isa %s: this processor lacks it (%s)", name,
                                isa_list[i]->summary);
            *out = isa_list[i];
            return ST_OK;
        }
    char known[64] = "auto";
    for (size_t i = 0; i < isa_list_count; i++) {
        strcat(known, ", ");
        strcat(known, isa_list[i]->name);
    }
    return diag_set(dg, ST_MISSING, "isa %s: this program has %s", name, known);
}

void isa_product(const struct isa *isa, float *y, size_t y_stride, const struct weights *w,
                 const struct activations *x, size_t row_begin, size_t row_end)
{
    isa_product_fn *fn = x->quantised ? isa->product8[w->layout][w->format->id] : NULL;
    (fn ? fn : isa->product_f32)(y, y_stride, w, x, row_begin, row_end);
}

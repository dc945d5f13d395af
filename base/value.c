/* value.c -- see value.h. */
#include "base/value.h"

#include <assert.h>
#include <string.h>

#define PERCENT UINT64_C(10000000)

static const struct {
    const char *name;
    uint64_t spread;
} kinds[KIND_MAX] = {
    [KIND_DATASHEET] = {"datasheet", 12 * PERCENT}, [KIND_MEASURED] = {"measured", 5 * PERCENT},
    [KIND_FITTED] = {"fitted", 7 * PERCENT},        [KIND_ASSUMED] = {"assumed", 30 * PERCENT},
    [KIND_DERIVED] = {"derived", 10 * PERCENT},
};

const char *value_kind_name(enum value_kind kind)
{
    assert((size_t)kind < KIND_MAX);
    return kinds[kind].name;
}

enum status value_kind_parse(enum value_kind *out, const char *text, struct diag *dg)
{
    for (int k = 0; k < KIND_MAX; k++) {
        if (!strcmp(text, kinds[k].name)) {
            *out = (enum value_kind)k;
            return ST_OK;
        }
    }
    return diag_set(dg, ST_PARSE,
                    "'%.80s': unknown kind (datasheet measured fitted assumed derived)", text);
}

uint64_t value_spread(const struct value *v)
{
    assert((size_t)v->kind < KIND_MAX);
    return v->spread_given ? v->spread : kinds[v->kind].spread;
}

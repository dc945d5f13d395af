/* maxmin.c -- see maxmin.h. */
#include "sim/core/maxmin.h"

#include "sim/core/wide.h"

#include <assert.h>

#define NO_RESOURCE UINT32_MAX

/* The resource that offers the smallest share to its open flows; NO_RESOURCE when none has any. */
static uint32_t tightest(const struct maxmin *p, const uint32_t *resources, size_t count)
{
    uint32_t best = NO_RESOURCE;
    for (size_t i = 0; i < count; i++) {
        const struct maxmin_resource *r = &p->resource[resources[i]];
        if (!r->open_weight)
            continue;
        if (best == NO_RESOURCE || wide_mul(r->left_Bps, p->resource[best].open_weight) <
                                       wide_mul(p->resource[best].left_Bps, r->open_weight))
            best = resources[i];
    }
    return best;
}

static void fix(const struct maxmin *p, struct maxmin_class *c, uint64_t rate_Bps)
{
    c->fixed = true;
    c->rate_Bps = rate_Bps;
    for (uint32_t i = 0; i < c->member_count; i++) {
        struct maxmin_resource *r = &p->resource[p->member[c->first_member + i]];
        wide used = wide_mul(c->flows, rate_Bps);
        assert(used <= r->left_Bps);
        r->left_Bps -= (uint64_t)used;
        r->open_weight -= wide_mul(c->flows, c->weight);
    }
}

static bool crosses(const struct maxmin *p, const struct maxmin_class *c, uint32_t resource)
{
    for (uint32_t i = 0; i < c->member_count; i++)
        if (p->member[c->first_member + i] == resource)
            return true;
    return false;
}

/* Fixes all open classes whose cap is reached at or below the share left / open_weight. Taking one
 * away only raises the level of the others, so one pass at one level is as good as one by one. */
static bool fix_capped(const struct maxmin *p, const uint32_t *classes, size_t count,
                       const struct maxmin_resource at)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        struct maxmin_class *c = &p->classes[classes[i]];
        if (c->fixed || wide_mul(c->cap_Bps, at.open_weight) > wide_mul(at.left_Bps, c->weight))
            continue;
        fix(p, c, c->cap_Bps);
        any = true;
    }
    return any;
}

static void fix_crossing(const struct maxmin *p, const uint32_t *classes, size_t count,
                         uint32_t resource)
{
    const struct maxmin_resource at = p->resource[resource];
    for (size_t i = 0; i < count; i++) {
        struct maxmin_class *c = &p->classes[classes[i]];
        if (!c->fixed && crosses(p, c, resource))
            fix(p, c, (uint64_t)(wide_mul(at.left_Bps, c->weight) / at.open_weight));
    }
}

void maxmin_solve(const struct maxmin *p, const uint32_t *resources, size_t resource_count,
                  const uint32_t *classes, size_t class_count)
{
    for (size_t i = 0; i < resource_count; i++) {
        struct maxmin_resource *r = &p->resource[resources[i]];
        r->left_Bps = r->capacity_Bps;
        r->open_weight = 0;
    }
    for (size_t i = 0; i < class_count; i++) {
        struct maxmin_class *c = &p->classes[classes[i]];
        assert(c->weight > 0 && c->member_count > 0);
        c->rate_Bps = 0;
        c->fixed = c->flows == 0;
        for (uint32_t m = 0; m < c->member_count; m++)
            p->resource[p->member[c->first_member + m]].open_weight +=
                wide_mul(c->flows, c->weight);
    }
    for (uint32_t r; (r = tightest(p, resources, resource_count)) != NO_RESOURCE;)
        if (!fix_capped(p, classes, class_count, p->resource[r]))
            fix_crossing(p, classes, class_count, r);
}

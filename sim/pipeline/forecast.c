/* forecast.c -- see forecast.h. */
#include "sim/pipeline/forecast.h"

#include "base/fixed.h"
#include "sim/plan/spread.h"

#include <stdlib.h>
#include <string.h>

enum { STRETCH = 24, VALUES_MAX = 256 };

uint64_t forecast_rate(const struct pipeline_result *r)
{
    return r->decode_ns ? fixed_mul_div(r->tokens, UINT64_C(1000000000000000), r->decode_ns) : 0;
}

/* The device's values and their draws. */
struct inputs {
    struct value *value[VALUES_MAX];
    uint64_t amount[VALUES_MAX];  /* as described */
    uint64_t *factor[VALUES_MAX]; /* `draws` of them each */
    size_t count;
    uint64_t draws, seed;
    bool no_memory;
    char *assumed;
    size_t assumed_room;
};

static bool matters(const struct value *v)
{
    return v->dim == DIM_RATE || v->dim == DIM_TIME || v->dim == DIM_COMPUTE ||
           v->dim == DIM_FREQUENCY || v->dim == DIM_RATIO;
}

static void collect(void *self, const char *path, struct value *v)
{
    struct inputs *in = self;
    if (!v->given)
        return;
    if (v->kind == KIND_ASSUMED) {
        size_t used = strlen(in->assumed);
        if (used + strlen(path) + 2 < in->assumed_room) {
            strcpy(in->assumed + used, used ? " " : "");
            strcat(in->assumed, path);
        }
    }
    if (!matters(v) || in->count == VALUES_MAX)
        return;
    uint64_t *factor = calloc(in->draws ? in->draws : 1, sizeof *factor);
    in->no_memory |= !factor;
    if (!factor)
        return;
    spread_draw(factor, in->draws, in->seed, path, v);
    in->value[in->count] = v;
    in->amount[in->count] = v->amount;
    in->factor[in->count++] = factor;
}

static void apply(const struct inputs *in, uint64_t draw)
{
    for (size_t i = 0; i < in->count; i++) {
        uint64_t x = fixed_mul_div(in->amount[i], in->factor[i][draw], RATIO_ONE);
        bool share = in->value[i]->dim == DIM_RATIO;
        in->value[i]->amount = x == 0 ? 1 : share && x > RATIO_ONE ? RATIO_ONE : x;
    }
}

static void restore(const struct inputs *in)
{
    for (size_t i = 0; i < in->count; i++)
        in->value[i]->amount = in->amount[i];
}

static enum status draw_interval(struct forecast *out, const struct pipeline_setup *setup,
                                 struct inputs *in, struct diag *dg)
{
    struct pipeline_setup s = *setup;
    struct pipeline_result x;
    s.token = NULL;
    s.timeline = NULL;
    if (s.tokens > STRETCH)
        s.tokens = STRETCH;
    uint64_t *rate = calloc(in->draws, sizeof *rate);
    if (!rate)
        return diag_no_memory(dg);
    enum status st = pipeline_run(&x, &s, dg);
    uint64_t plain = st == ST_OK ? forecast_rate(&x) : 0, full = forecast_rate(&out->result);
    for (uint64_t d = 0; st == ST_OK && plain > 0 && d < in->draws; d++) {
        apply(in, d);
        st = pipeline_run(&x, &s, dg);
        if (st == ST_OK)
            rate[d] = fixed_mul_div(full, forecast_rate(&x), plain);
    }
    restore(in);
    if (st == ST_OK && plain > 0) {
        out->low = spread_quantile(rate, in->draws, 5);
        out->high = spread_quantile(rate, in->draws, 95);
        out->low = out->low < full ? out->low : full; /* few draws may all lie on one side */
        out->high = out->high > full ? out->high : full;
    }
    free(rate);
    return st;
}

enum status forecast_run(struct forecast *out, const struct pipeline_setup *setup, uint64_t draws,
                         struct diag *dg)
{
    *out = (struct forecast){0};
    struct inputs in = {.draws = draws,
                        .seed = setup->seed,
                        .assumed = out->assumed,
                        .assumed_room = sizeof out->assumed};
    device_each_value(setup->device, collect, &in);
    enum status st = in.no_memory ? diag_no_memory(dg) : pipeline_run(&out->result, setup, dg);
    if (st == ST_OK && draws > 0)
        st = draw_interval(out, setup, &in, dg);
    for (size_t i = 0; i < in.count; i++)
        free(in.factor[i]);
    return st;
}

/* plan_bench.c -- see plan_bench.h. */
#include "tests/plan_bench.h"

#include "models/quant.h"
#include "models/state.h"
#include "tests/support.h"

struct bench bench_of(const char *model, const char *device, const char *quant)
{
    struct diag dg;
    struct bench b = {.r = {.place = {.context = 4096,
                                      .state_bits = STATE_BITS_F16,
                                      .lanes = 4,
                                      .pieces = 3,
                                      .chunk = 512},
                            .lanes = 4,
                            .pieces = 3,
                            .presets = "sim/trace/presets",
                            .preset = "uniform",
                            .prompt = 512,
                            .seed = 1}};
    assert_ok(model_load(&b.m, model, "models/desc", NULL, 0, &dg));
    assert_ok(device_load(&b.d, device, "devices/desc", NULL, 0, &dg));
    if (quant)
        assert_ok(model_requantise(b.m, quant, &dg));
    return b;
}

void bench_free(struct bench *b)
{
    model_free(b->m);
    device_free(b->d);
}

struct plan *plan_of(const struct bench *b)
{
    struct diag dg;
    struct plan *p;
    assert_ok(plan_new(&p, b->m, b->d, &b->r, &dg));
    return p;
}

/* bench_sim.c -- `memwall bench sim`: the event queue on the hold model, and whole runs of two models. */
#include "cli/bench_report.h"
#include "cli/commands.h"

#include "base/stats.h"
#include "models/state.h"
#include "sim/core/hold.h"
#include "sim/pipeline/pipeline.h"
#include "sim/trace/preset.h"

static const struct option options[] = {
    {"repeats", OPTION_COUNT, "N", "runs, of which the median counts", "3", NULL, 1, 64, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

static enum status hold_rate(double *rate, uint64_t repeats, uint64_t seed, struct diag *dg)
{
    enum { PENDING = 1000, EVENTS = 5000000 };
    double sample[64];
    struct hold *h;
    enum status st = hold_new(&h, PENDING, seed, dg);
    if (st != ST_OK)
        return st;
    for (uint64_t i = 0; i < repeats; i++) {
        double start = bench_now_s();
        hold_run(h, EVENTS);
        sample[i] = EVENTS / (bench_now_s() - start);
    }
    hold_free(h);
    *rate = stats_median(sample, repeats);
    return ST_OK;
}

struct case_of {
    const char *name, *model, *quant, *device, *profile;
    uint64_t tokens;
};

struct loaded {
    struct model *model;
    struct device *device;
    struct engine_profile *profile;
    struct preset *preset;
};

static enum status load(struct loaded *x, const struct case_of *c, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    *x = (struct loaded){0};
    enum status st = model_load(&x->model, c->model,
                                catalogue_dir(folder, sizeof folder, "models/desc"), NULL, 0, dg);
    if (st == ST_OK)
        st = model_requantise(x->model, c->quant, dg);
    if (st == ST_OK)
        st = device_load(&x->device, c->device,
                         catalogue_dir(folder, sizeof folder, "devices/desc"), NULL, 0, dg);
    if (st == ST_OK)
        st = profile_load(&x->profile, c->profile,
                          catalogue_dir(folder, sizeof folder, "sim/pipeline/profiles"), NULL, 0,
                          dg);
    if (st == ST_OK)
        st = preset_load(&x->preset, x->model->router,
                         catalogue_dir(folder, sizeof folder, "sim/trace/presets"), NULL, 0, dg);
    return st;
}

static void unload(struct loaded *x)
{
    model_free(x->model);
    device_free(x->device);
    profile_free(x->profile);
    preset_free(x->preset);
}

static enum status run_seconds(double *seconds, const struct case_of *c, uint64_t repeats,
                               uint64_t seed, struct diag *dg)
{
    double sample[64];
    struct loaded x;
    enum status st = load(&x, c, dg);
    for (uint64_t i = 0; st == ST_OK && i < repeats; i++) {
        struct pipeline_result result;
        struct pipeline_setup s = {
            .model = x.model,
            .device = x.device,
            .profile = x.profile,
            .params = &x.preset->params,
            .tokens = c->tokens,
            .policy = cache_policy_find(x.profile->policy),
            .overlap = -1,
            .state_bits = STATE_BITS_F16,
            .seed = seed,
        };
        double start = bench_now_s();
        st = pipeline_run(&result, &s, dg);
        sample[i] = bench_now_s() - start;
    }
    unload(&x);
    if (st == ST_OK)
        *seconds = stats_median(sample, repeats);
    return st;
}

static enum status bench_sim(struct args *a, struct diag *dg)
{
    static const struct case_of cases[] = {
        {"qwen3_1000_tokens", "qwen3-30b-a3b", "q4_k_m", "oneplus-15r", "bigmoeonedge", 1000},
        {"kimi_k3_100_tokens", "kimi-k3", "native", "epyc-7763", "kimi-k3-in-c", 100},
    };
    struct report *r;
    double value;
    uint64_t repeats = args_count(a, "repeats");
    enum status st = bench_open(&r, a, dg);
    if (st != ST_OK)
        return st;
    st = hold_rate(&value, repeats, args_count(a, "seed"), dg);
    if (st == ST_OK)
        bench_row(r, "hold_1000", value, "events/s", 15e6);
    for (size_t i = 0; st == ST_OK && i < sizeof cases / sizeof *cases; i++) {
        st = run_seconds(&value, &cases[i], repeats, args_count(a, "seed"), dg);
        if (st == ST_OK)
            bench_row(r, cases[i].name, value, "s", 1.0);
    }
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

const struct command command_bench_sim = {
    .name = "bench sim",
    .summary = "events a second on the hold model, seconds of two whole runs",
    .usage = "[--repeats N]",
    .example = "memwall bench sim --format csv",
    .options = options,
    .run = bench_sim,
};

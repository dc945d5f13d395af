#include "validate/claim.h"

#include "models/state.h"
#include "sim/pipeline/forecast.h"
#include "sim/roofline/estimate.h"
#include "sim/roofline/ridge.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- what a claim may ask for ---- */

struct asked {
    const struct published_row *row;
    const struct published_folders *folders;
    struct model *model; /* NULL where the claim names none */
    struct device *device;
    double figure, low, high; /* low, high: of a range of runs; 0 if there is one figure */
};

static double seconds(double bytes, double Bps)
{
    return (double)time_for((uint64_t)bytes, (uint64_t)Bps) / 1e9;
}

static enum status load_other(struct model **m, const struct asked *a, const char *name,
                              const char *quant, struct diag *dg)
{
    enum status st = model_load(m, name, a->folders->models, NULL, 0, dg);
    return st == ST_OK && quant ? model_requantise(*m, quant, dg) : st;
}

/* ---- bytes of models and of state ---- */

static enum status expert_megabytes(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = (double)model_expert_bytes_max(a->model) / 1e6;
    return ST_OK;
}

static enum status routed_gigabytes(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = (double)model_token_cycle_bytes(a->model) / 1e9;
    return ST_OK;
}

static enum status all_gigabytes(struct asked *a, struct diag *dg)
{
    (void)dg;
    uint64_t dense = model_weight_bytes(a->model) - model_experts_bytes(a->model);
    a->figure = (double)(dense + model_token_cycle_bytes(a->model)) / 1e9;
    return ST_OK;
}

static double state_per_token(const struct model *m, const char *format)
{
    return (double)state_millibytes_per_token(m, state_bits_find(format)) / 1e3;
}

/* DeepSeek-V2 with 6 bits an element against DeepSeek-67B with 16. */
static enum status v2_saving(struct asked *a, struct diag *dg)
{
    struct model *base = NULL;
    enum status st = load_other(&base, a, "deepseek-67b", NULL, dg);
    if (st == ST_OK)
        a->figure = 100 - 100 * ((double)state_millibytes_per_token(a->model, 6 * 16) / 1e3) /
                              state_per_token(base, "f16");
    model_free(base);
    return st;
}

static enum status v4_pro_share(struct asked *a, struct diag *dg)
{
    struct model *base = NULL;
    enum status st = load_other(&base, a, "deepseek-v3.2", NULL, dg);
    if (st == ST_OK)
        a->figure = 100 * state_per_token(a->model, "f16") / state_per_token(base, "f16");
    model_free(base);
    return st;
}

static enum status v41_bytes(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = state_per_token(a->model, "mxfp4");
    return ST_OK;
}

static enum status v41_share(struct asked *a, struct diag *dg)
{
    struct model *base = NULL;
    enum status st = load_other(&base, a, "deepseek-v4-flash", NULL, dg);
    if (st == ST_OK)
        a->figure = state_per_token(a->model, "mxfp4") / state_per_token(base, "fp8");
    model_free(base);
    return st;
}

static enum status edge0_state(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = 3300 * state_per_token(a->model, "f16") / 1048576;
    return ST_OK;
}

/* ---- rooflines ---- */

static enum status decode_bounds(struct bounds *out, struct tally *y, struct machine *m,
                                 const struct asked *a, const char *quant, struct diag *dg)
{
    struct machine_choice choice = {.cards = 1, .rates = RATES_PEAK, .eight_bit = quant != NULL};
    struct workload load = {0};
    struct workload_request ask = {
        .sequences = 1, .tokens = 1, .logits = 1, .state_bits = STATE_BITS_F16};
    struct regime g = {.profile = PROFILE_PERFECT, .hit_ratio = RATIO_ONE, .lanes = 1, .pieces = 1};
    enum status st = quant ? model_requantise(a->model, quant, dg) : ST_OK;
    if (st == ST_OK)
        st = machine_init(m, a->device, &choice, dg);
    if (st == ST_OK)
        st = workload_init(&load, a->model, &ask, dg);
    if (st == ST_OK) {
        estimate_tally(y, &load, m, &g);
        estimate_bounds(out, &load, m, &g);
    }
    workload_free(&load);
    return st;
}

static enum status dense_bound(struct asked *a, struct diag *dg)
{
    struct bounds b;
    struct tally y;
    struct machine m;
    enum status st = decode_bounds(&b, &y, &m, a, "mlx4-g64", dg);
    if (st == ST_OK)
        a->figure = 1e9 / (double)b.lower_ns;
    return st;
}

static enum status share_of_peak(struct asked *a, struct diag *dg)
{
    struct bounds b;
    struct tally y;
    struct machine m;
    enum status st = decode_bounds(&b, &y, &m, a, NULL, dg);
    if (st == ST_OK)
        a->figure = 100 * (double)y.ops / ((double)b.lower_ns / 1e9 * (double)m.peak_ops);
    return st;
}

static enum status ridge(struct asked *a, struct diag *dg)
{
    struct machine m;
    struct machine_choice choice = {.cards = 1, .rates = RATES_PEAK};
    enum status st = machine_init(&m, a->device, &choice, dg);
    if (st == ST_OK)
        a->figure = (double)ridge_e3(&m, TIER_DRAM) / 1e3;
    return st;
}

/* ---- arithmetic on stated figures ---- */

static enum status essay_ceiling(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = seconds(25e9, 5e9);
    return ST_OK;
}

static enum status terabyte(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = seconds(1e12, 5e9);
    return ST_OK;
}

static enum status long_answer(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = 500 * 300 / 3600.0;
    return ST_OK;
}

/* The mixture over one look-up (SYSTEMS 1.3). */
static enum status mixed_read(struct asked *a, struct diag *dg)
{
    uint64_t chance[2];
    (void)dg;
    miss_distribution(chance, 1, UINT64_C(710000000));
    a->figure = (1.0 * (double)chance[0] + 5.8 * (double)chance[1]) / 4294967296.0;
    return ST_OK;
}

static enum status backend_sum(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = 30 + 34 + 20;
    return ST_OK;
}

/* Embedding and attention resident, a predictor of 1.25 %, a quarter of the FFN (SYSTEMS 2(c)). */
static enum status dram_share(struct asked *a, struct diag *dg)
{
    (void)dg;
    const struct model *m = a->model;
    double all = (double)model_weight_bytes(m), attention = 0, ffn = 0;
    for (size_t i = 0; i < m->layer_count; i++) {
        attention += (double)m->layers[i].weight_bytes[GROUP_ATTENTION];
        ffn += (double)m->layers[i].weight_bytes[GROUP_DENSE_FFN];
    }
    a->figure = 100 * ((double)m->bytes_embedding + attention + 0.24 * ffn) / all + 1.25;
    return ST_OK;
}

static enum status power_ratio(struct asked *a, struct diag *dg)
{
    (void)dg;
    a->figure = 549.0 / 95.0;
    return ST_OK;
}

/* ---- iso-curves: a range of runs that the unpublished parameters span ---- */

static enum status iso_rate(double *rate, struct asked *a, uint64_t top_k, const char *quant,
                            const char *flash, int overlap, struct diag *dg)
{
    char bandwidth[64];
    const char *override = bandwidth;
    struct device *phone = NULL;
    struct pipeline_result x;
    struct published_run r = {0};
    struct published_row row = {.model = a->row->model,
                                .device = a->row->device,
                                .profile = a->row->profile,
                                .quant = "mlx4-g64",
                                .expert_quant = quant,
                                .engine = "",
                                .cache_policy = "none",
                                .io_mode = "direct",
                                .overlap = "",
                                .prefetch = "none",
                                .flash_kind = "",
                                .metric = "decode_rate",
                                .rule = "bracket",
                                .top_k = {(double)top_k, true},
                                .dense_bytes = {5.5e9, true},
                                .dram_bytes = {9e9, true},
                                .hit_ratio = {0, true}};
    snprintf(bandwidth, sizeof bandwidth, "storage.0.bandwidth=%s", flash);
    enum status st = published_assemble(&r, &row, PUBLISHED_HITS, a->folders, 1, dg);
    if (st == ST_OK)
        st = device_load(&phone, row.device, a->folders->devices, &override, 1, dg);
    if (st == ST_OK) {
        r.setup.device = phone;
        r.setup.overlap = overlap;
        r.setup.tokens = 4;
        st = pipeline_run(&x, &r.setup, dg);
    }
    if (st == ST_OK)
        *rate = (double)forecast_rate(&x) / 1e6;
    device_free(phone);
    published_run_free(&r);
    return st;
}

/* The figure is the published one if the range holds it, else the nearer end. */
static void bracket(struct asked *a)
{
    double low = a->row->value_low.value, high = a->row->value_high.value;
    a->figure = a->low > low ? a->low : a->high < high ? a->high : (low + high) / 2;
}

static enum status phone_today(struct asked *a, struct diag *dg)
{
    enum status st = iso_rate(&a->low, a, 10, "mlx4-g64", "1.6 GB/s", OVERLAP_SERIAL, dg);
    if (st == ST_OK)
        st = iso_rate(&a->high, a, 4, "mlx2-g64", "4 GB/s", OVERLAP_SERIAL, dg);
    bracket(a);
    return st;
}

static enum status phone_tomorrow(struct asked *a, struct diag *dg)
{
    enum status st = iso_rate(&a->low, a, 10, "mlx4-g64", "15 GB/s", OVERLAP_SERIAL, dg);
    if (st == ST_OK)
        st = iso_rate(&a->high, a, 4, "mlx4-g64", "20 GB/s", OVERLAP_EXPERT, dg);
    bracket(a);
    return st;
}

/* ---- the table ---- */

struct claim {
    const char *id;
    enum status (*find)(struct asked *a, struct diag *dg);
};
static const struct claim claims[] = {
    {"V01", expert_megabytes}, {"V02", routed_gigabytes},
    {"V03", all_gigabytes},    {"V06", essay_ceiling},
    {"V07", terabyte},         {"V08", long_answer},
    {"V15", mixed_read},       {"V18", phone_today},
    {"V19", phone_tomorrow},   {"V22", backend_sum},
    {"V23", dram_share},       {"V24", dense_bound},
    {"V25", dense_bound},      {"V26", power_ratio},
    {"V29", share_of_peak},    {"V30", ridge},
    {"V31", v2_saving},        {"V32", v4_pro_share},
    {"V33", v41_bytes},        {"V34a", v41_share},
    {"V38", edge0_state},
};

enum status claim_find(struct published_outcome *o, const struct published_folders *f,
                       struct diag *dg)
{
    struct asked a = {.row = o->row, .folders = f};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        if (!is(claims[i].id, o->row->id))
            continue;
        enum status st = ST_OK;
        if (*o->row->model)
            st = model_load(&a.model, o->row->model, f->models, NULL, 0, dg);
        if (st == ST_OK && *o->row->device)
            st = device_load(&a.device, o->row->device, f->devices, NULL, 0, dg);
        if (st == ST_OK)
            st = claims[i].find(&a, dg);
        model_free(a.model);
        device_free(a.device);
        o->predicted = a.figure;
        o->low = a.low;
        o->high = a.high;
        o->predicted_given = st == ST_OK;
        return st;
    }
    return diag_set(dg, ST_UNSUPPORTED, "no mechanism of this program gives the figure");
}

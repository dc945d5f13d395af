/* roofline.c -- `memwall roofline`: the bound of one pass and which resource sets it.
 *
 * Rates are those of the data sheets unless --rates reached: a bound is made of peaks. Dense weights of a
 * model with routed experts that do not fit are read again every pass, and a note says so. A dense model
 * that does not fit is refused, unless the caller says that the card is hypothetical or that several share it.
 */
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/roofline_print.h"

#include "base/fixed.h"
#include "sim/trace/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rate_names[] = {"peak", "reached", NULL};

static const struct option options[] = {
    SCENARIO_OPTIONS,
    {"batch", OPTION_COUNT, "N", "sequences decoded at once", "1", NULL, 1, 65536, false},
    {"prefill", OPTION_COUNT, "N", "a chunk of N prompt tokens instead of a decode step", NULL,
     NULL, 1, 1048576, false},
    {"context", OPTION_COUNT, "N", "tokens of state there are already", "0", NULL, 0, 0, false},
    {"hit-ratio", OPTION_TEXT, "H", "share of expert look-ups that need no read (0.71, 71%)", NULL,
     NULL, 0, 0, false},
    {"cache", OPTION_SIZE, "SIZE", "expert cache: its hit ratio by the model's routing preset",
     NULL, NULL, 0, 0, false},
    {"dram", OPTION_SIZE, "SIZE", "memory the run may use; the cache is what is left", NULL, NULL,
     1, 0, false},
    {"tp", OPTION_COUNT, "N", "equal cards that share each layer", "1", NULL, 1, 1024, false},
    {"hypothetical", OPTION_FLAG, NULL, "go on although the model does not fit", NULL, NULL, 0, 0,
     false},
    {"rates", OPTION_CHOICE, "peak|reached", "data sheet, or measured and customary shares", "peak",
     rate_names, 0, 0, false},
    {"want", OPTION_TEXT, "RATE", "what each tier would need for this rate, as 5tok/s", NULL, NULL,
     0, 0, false},
    {"measured", OPTION_TEXT, "RATE", "a measured rate: prints its share of the bound", NULL, NULL,
     0, 0, false},
    {"summary", OPTION_FLAG, NULL, "bounds, ridges and crossovers instead of operations", NULL,
     NULL, 0, 0, false},
    {"row", OPTION_FLAG, NULL, "one row: the bounds of a token and the bytes it moves", NULL, NULL,
     0, 0, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

/* ---- from the command line to a picture ---------------------------------------------------- */

static uint64_t pass_tokens(const struct args *a)
{
    return args_given(a, "prefill") ? args_count(a, "prefill") : args_count(a, "batch");
}

static enum status set_machine(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    const struct model *m = p->s.model;
    uint64_t bytes = model_weight_bytes(m);
    struct machine_choice choice = {
        .unit = args_text(a, "unit"),
        .cards = args_count(a, "tp"),
        .need_bytes = bytes,
        .rates = args_count(a, "rates") == 0 ? RATES_PEAK : RATES_REACHED,
        .eight_bit = bytes / 10 < model_params_total(m) / 8,
    };
    return machine_init(&p->machine, p->s.device, &choice, dg);
}

/* With experts and a drive there is a bound even if dense weights do not fit: they are read again. */
static enum status place_streamed(struct roofline_picture *p, const struct args *a,
                                  struct placement_request *r, struct diag *dg)
{
    struct diag first = *dg;
    if (args_given(a, "dense") || args_flag(a, "hypothetical") || !p->machine.flash_given ||
        model_experts(p->s.model) == 0)
        return ST_MISFIT;
    r->stream_dense = true;
    enum status st = placement_find(&p->place, p->s.model, p->s.device, &p->machine, r, dg);
    if (st == ST_MISFIT)
        *dg = first;
    p->dense_streams = st == ST_OK;
    return st;
}

static enum status set_place(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    struct placement_request r = {
        .memory = args_count(a, "dram"),
        .cache = args_count(a, "cache"),
        .cache_given = args_given(a, "cache"),
        .context =
            args_count(a, "context") * (args_given(a, "prefill") ? 1 : args_count(a, "batch")),
        .state_bits = p->s.state_bits,
        .lanes = args_count(a, "lanes"),
        .pieces = args_count(a, "pieces"),
        .chunk = pass_tokens(a),
        .stream_dense = args_count(a, "dense") == 1,
    };
    enum status st = placement_find(&p->place, p->s.model, p->s.device, &p->machine, &r, dg);
    if (st == ST_MISFIT)
        st = place_streamed(p, a, &r, dg);
    p->placed = st == ST_OK;
    if (st != ST_MISFIT)
        return st;
    if (!args_flag(a, "hypothetical")) {
        struct diag first = *dg;
        if (args_count(a, "tp") > 1)
            return st;
        return diag_set(dg, st, "%s (--hypothetical goes on as if it did, --tp N shares it)",
                        first.text);
    }
    note(a, "hypothetical: %s", dg->text);
    p->place.experts = model_experts_bytes(p->s.model);
    p->place.dense = model_weight_bytes(p->s.model) - p->place.experts;
    p->place.experts_on_unit = true;
    return ST_OK;
}

/* Counting a curve takes milliseconds: a capture keeps it. */
static enum status preset_curve(struct hit_curve *curve, const struct args *a, const char *preset,
                                uint64_t experts, uint64_t k, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX], key[128];
    snprintf(key, sizeof key, "%s %llu %llu", preset, (unsigned long long)experts,
             (unsigned long long)k);
    struct hit_curve *kept = shelf_find(a, "curve", key);
    if (kept) {
        *curve = *kept;
        return ST_OK;
    }
    enum status st = hit_curve_preset(
        curve, catalogue_dir(folder, sizeof folder, "sim/trace/presets"), preset, experts, k, dg);
    kept = st == ST_OK && args_capture(a) ? malloc(sizeof *kept) : NULL;
    if (!kept)
        return st;
    *kept = *curve;
    if (!shelf_put(a, "curve", key, kept, free))
        free(kept);
    return st;
}

/* Routing of the model's preset where it matters: for hits of a cache, or for a union of tokens. */
static enum status set_curve(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    const struct model *m = p->s.model;
    uint64_t experts = model_experts(m), k = model_top_k(m);
    bool matters = pass_tokens(a) > 1 || args_given(a, "cache") || args_given(a, "dram");
    hit_curve_uniform(&p->curve, experts, k);
    const char *preset = m->router ? m->router : PRESET_CUSTOMARY;
    if (!matters || !experts || strcmp(preset, "uniform") == 0)
        return ST_OK;
    if (!m->router)
        note(a, "%s names no routing preset: taken as %s", m->name, preset);
    return preset_curve(&p->curve, a, preset, experts, k, dg);
}

/* As stated; from the cache if one was asked for; all if everything is resident; else none. */
static enum status set_hits(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    const struct model *m = p->s.model;
    const char *text = args_text(a, "hit-ratio");
    bool sized = args_given(a, "cache") || args_given(a, "dram");
    p->regime.hit_ratio = !p->placed || p->place.fits ? RATIO_ONE : 0;
    if (!text && p->placed && !p->place.fits && sized && pass_tokens(a) == 1)
        p->regime.hit_ratio = hit_curve_ratio(&p->curve, p->place.cache, model_token_cycle_bytes(m),
                                              model_moe_layers(m), model_experts_bytes(m));
    if (!text && !p->place.fits && args_given(a, "cache") && pass_tokens(a) > 1)
        return diag_set(dg, ST_USAGE,
                        "--cache gives the hit ratio of decoding one sequence; with "
                        "--batch and --prefill state --hit-ratio");
    if (!text)
        return ST_OK;
    struct diag why;
    if (quantity_parse(&p->regime.hit_ratio, DIM_RATIO, text, QUANTITY_BARE_ALLOWED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--hit-ratio: %s", why.text);
    if (p->regime.hit_ratio > RATIO_ONE)
        return diag_set(dg, ST_USAGE, "--hit-ratio: at most 1, not %s", text);
    return ST_OK;
}

static enum status set_regime(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    p->regime = (struct regime){
        .profile = PROFILE_SERIAL,
        .lanes = args_count(a, "lanes"),
        .pieces = args_count(a, "pieces"),
        .copies = args_count(a, "copies"),
        .stream_trunk = p->place.stream_trunk,
        .stream_bytes = p->place.stream_bytes,
        .experts_on_unit = p->place.experts_on_unit,
    };
    enum status st = set_curve(p, a, dg);
    if (st == ST_OK)
        st = set_hits(p, a, dg);
    if (st != ST_OK)
        return st;
    struct workload_request r = {
        .sequences = args_given(a, "prefill") ? 1 : args_count(a, "batch"),
        .tokens = args_given(a, "prefill") ? args_count(a, "prefill") : 1,
        .context = args_count(a, "context"),
        .logits = args_given(a, "prefill") ? 1 : args_count(a, "batch"),
        .state_bits = p->s.state_bits,
        .distinct_e3 = hit_curve_union_e3,
        .distinct_self = &p->curve,
    };
    st = workload_init(&p->load, p->s.model, &r, dg);
    if (st != ST_OK)
        return st;
    estimate_tally(&p->tally, &p->load, &p->machine, &p->regime);
    estimate_bounds(&p->bounds, &p->load, &p->machine, &p->regime);
    if (p->tally.flash_bytes && !p->machine.flash_given)
        return diag_set(dg, ST_MISSING,
                        "%s: storage.0.bandwidth is needed: what does not fit streams from there",
                        p->s.device->origin);
    return ST_OK;
}

/* A measured rate above the bound refutes the bound's inputs; it is no result. */
static enum status set_measured(struct roofline_picture *p, const char *text, struct diag *dg)
{
    uint64_t ns;
    enum status st = scenario_token_time(&ns, "measured", text, dg);
    if (st != ST_OK)
        return st;
    double least_ns = (double)p->bounds.lower_ns / (double)p->load.tokens;
    double share = least_ns / (double)ns;
    if (share > 1)
        return diag_set(dg, ST_RANGE,
                        "--measured: %s is %.2f times the bound of %.3g tok/s set by %s: an "
                        "efficiency above 1 says that a byte count or a rate is wrong",
                        text, share, 1e9 / least_ns, p->bounds.binds);
    p->efficiency = share;
    return ST_OK;
}

static enum status set_rates(struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    const char *want = args_text(a, "want"), *measured = args_text(a, "measured");
    enum status st = want ? scenario_token_time(&p->wanted_ns, "want", want, dg) : ST_OK;
    p->efficiency = -1;
    return st == ST_OK && measured ? set_measured(p, measured, dg) : st;
}

/* ---- the command --------------------------------------------------------------------------- */

static enum status run(struct args *a, struct diag *dg)
{
    struct roofline_picture p = {0};
    if (args_given(a, "prefill") && args_given(a, "batch"))
        return diag_set(dg, ST_USAGE, "--prefill and --batch exclude each other");
    if (args_given(a, "cache") && args_given(a, "hit-ratio"))
        return diag_set(dg, ST_USAGE,
                        "--cache gives the hit ratio: leave --hit-ratio out, or --cache");
    enum status st = scenario_load(&p.s, a, dg);
    if (st == ST_OK)
        st = set_machine(&p, a, dg);
    if (st == ST_OK)
        st = set_place(&p, a, dg);
    if (st == ST_OK)
        st = set_regime(&p, a, dg);
    if (st == ST_OK)
        st = set_rates(&p, a, dg);
    if (st == ST_OK)
        st = roofline_print(&p, a, dg);
    workload_free(&p.load);
    scenario_free(&p.s);
    return st;
}

const struct command command_roofline = {
    .name = "roofline",
    .summary = "operations, intensity and bounds of one pass: which resource sets the speed",
    .usage =
        "MODEL --device D [--batch N | --prefill N] [--context N] [--hit-ratio H] [--want RATE]",
    .example = "memwall roofline qwen3-30b-a3b --device oneplus-15r --quant q4_k_m --cache 4GiB",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .columns = roofline_row_columns,
    .column_count = ROOFLINE_ROW_COLUMNS,
    .row_flag = "row",
    .run = run,
};

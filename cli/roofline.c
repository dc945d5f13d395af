/* roofline.c -- `memwall roofline`: the bound of one pass and which resource sets it.
 *
 * Rates are those of the data sheets unless --rates reached: a bound is made of peaks. A model that does
 * not fit is refused, unless the caller says that the card is hypothetical or that several share it.
 */
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/scenario.h"
#include "sim/plan/hit_curve.h"
#include "sim/plan/placement.h"
#include "sim/roofline/op_table.h"
#include "sim/roofline/ridge.h"

#include "base/fixed.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

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
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};

struct picture {
    struct scenario s;
    struct machine machine;
    struct placement place;
    bool placed; /* false: hypothetical */
    struct workload load;
    struct regime regime;
    struct tally tally;
    struct bounds bounds;
    uint64_t wanted_ns; /* of a token; 0: nothing wanted */
    double efficiency;  /* of the measured rate; below 0: none given */
};

/* ---- from the command line to a picture ---------------------------------------------------- */

static uint64_t pass_tokens(const struct args *a)
{
    return args_given(a, "prefill") ? args_count(a, "prefill") : args_count(a, "batch");
}

static enum status set_machine(struct picture *p, const struct args *a, struct diag *dg)
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

static enum status set_place(struct picture *p, const struct args *a, struct diag *dg)
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
    p->placed = st == ST_OK;
    if (st == ST_OK || !args_flag(a, "hypothetical")) {
        if (st == ST_MISFIT && args_count(a, "tp") == 1) {
            struct diag first = *dg;
            return diag_set(dg, st, "%s (--hypothetical goes on as if it did, --tp N shares it)",
                            first.text);
        }
        return st;
    }
    say("hypothetical: %s", dg->text);
    p->place.experts = model_experts_bytes(p->s.model);
    p->place.dense = model_weight_bytes(p->s.model) - p->place.experts;
    p->place.experts_on_unit = true;
    return ST_OK;
}

static enum status curve_ratio(uint64_t *ratio, const struct picture *p, uint64_t cache,
                               struct diag *dg)
{
    const struct model *m = p->s.model;
    struct hit_curve c;
    char folder[CATALOGUE_PATH_MAX];
    uint64_t experts = model_experts(m), k = model_top_k(m);
    hit_curve_uniform(&c, experts, k);
    enum status st = ST_OK;
    if (experts && m->router && strcmp(m->router, "uniform") != 0)
        st = hit_curve_preset(&c, catalogue_dir(folder, sizeof folder, "sim/trace/presets"),
                              m->router, experts, k, dg);
    if (st == ST_OK)
        *ratio = hit_curve_ratio(&c, cache, model_token_cycle_bytes(m), model_moe_layers(m),
                                 model_experts_bytes(m));
    return st;
}

/* As stated; from the cache if one was asked for; all if everything is resident; else none. */
static enum status set_hits(struct picture *p, const struct args *a, struct diag *dg)
{
    const char *text = args_text(a, "hit-ratio");
    p->regime.hit_ratio = !p->placed || p->place.fits ? RATIO_ONE : 0;
    if (!text) {
        if (p->placed && !p->place.fits && (args_given(a, "cache") || args_given(a, "dram")))
            return curve_ratio(&p->regime.hit_ratio, p, p->place.cache, dg);
        return ST_OK;
    }
    struct diag why;
    if (quantity_parse(&p->regime.hit_ratio, DIM_RATIO, text, QUANTITY_BARE_ALLOWED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--hit-ratio: %s", why.text);
    if (p->regime.hit_ratio > RATIO_ONE)
        return diag_set(dg, ST_USAGE, "--hit-ratio: at most 1, not %s", text);
    return ST_OK;
}

static enum status set_regime(struct picture *p, const struct args *a, struct diag *dg)
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
    enum status st = set_hits(p, a, dg);
    if (st != ST_OK)
        return st;
    struct workload_request r = {
        .sequences = args_given(a, "prefill") ? 1 : args_count(a, "batch"),
        .tokens = args_given(a, "prefill") ? args_count(a, "prefill") : 1,
        .context = args_count(a, "context"),
        .logits = args_given(a, "prefill") ? 1 : args_count(a, "batch"),
        .state_bits = p->s.state_bits,
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

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double token_rate(uint64_t tokens, uint64_t ns)
{
    return ns ? (double)tokens * 1e9 / (double)ns : 0;
}

/* A measured rate above the bound refutes the bound's inputs; it is no result. */
static enum status set_measured(struct picture *p, const char *text, struct diag *dg)
{
    uint64_t ns;
    enum status st = scenario_token_time(&ns, "measured", text, dg);
    if (st != ST_OK)
        return st;
    double share = seconds(p->bounds.lower_ns) / (double)p->load.tokens / seconds(ns);
    if (share > 1)
        return diag_set(dg, ST_RANGE,
                        "--measured: %s is %.2f times the bound of %.3g tok/s set by %s: an "
                        "efficiency above 1 says that a byte count or a rate is wrong",
                        text, share, token_rate(p->load.tokens, p->bounds.lower_ns),
                        p->bounds.binds);
    p->efficiency = share;
    return ST_OK;
}

static enum status set_rates(struct picture *p, const struct args *a, struct diag *dg)
{
    const char *want = args_text(a, "want"), *measured = args_text(a, "measured");
    enum status st = want ? scenario_token_time(&p->wanted_ns, "want", want, dg) : ST_OK;
    p->efficiency = -1;
    return st == ST_OK && measured ? set_measured(p, measured, dg) : st;
}

/* ---- the operations ------------------------------------------------------------------------ */

static const struct column op_columns[] = {
    {"op", CELL_TEXT, 0, false},
    {"flop", CELL_COUNT, 0, false},
    {"flash_bytes", CELL_COUNT, 0, false},
    {"dram_bytes", CELL_COUNT, 0, false},
    {"link_bytes", CELL_COUNT, 0, true},
    {"flop_per_flash_byte", CELL_NUMBER, 3, false},
    {"flop_per_dram_byte", CELL_NUMBER, 3, false},
    {"flop_per_link_byte", CELL_NUMBER, 3, true},
    {"flash_s", CELL_NUMBER, 9, true},
    {"dram_s", CELL_NUMBER, 9, true},
    {"link_s", CELL_NUMBER, 9, true},
    {"compute_s", CELL_NUMBER, 9, true},
    {"bound_s", CELL_NUMBER, 9, false},
    {"binds", CELL_TEXT, 0, false},
};

static void put_intensity(struct report *r, uint64_t ops, uint64_t bytes)
{
    if (bytes)
        report_number(r, (double)fixed_mul_div(ops, 1000, bytes) / 1000.0);
    else
        report_empty(r);
}

static void put_row(struct report *r, const struct op_row *row)
{
    report_text(r, row->name);
    report_count(r, row->ops);
    report_count(r, row->flash_bytes);
    report_count(r, row->dram_bytes);
    report_count(r, row->link_bytes);
    put_intensity(r, row->ops, row->flash_bytes);
    put_intensity(r, row->ops, row->dram_bytes);
    put_intensity(r, row->ops, row->link_bytes);
    report_number(r, seconds(row->flash_ns));
    report_number(r, seconds(row->dram_ns));
    report_number(r, seconds(row->link_ns));
    report_number(r, seconds(row->compute_ns));
    report_number(r, seconds(row->bound_ns));
    report_text(r, row->binds);
}

static const struct column people_columns[] = {
    {"op", CELL_TEXT, 0, false},
    {"operations", CELL_TEXT, 0, false},
    {"flash", CELL_TEXT, 0, false},
    {"DRAM", CELL_TEXT, 0, false},
    {"link", CELL_TEXT, 0, false},
    {"FLOP/B flash", CELL_NUMBER, 2, false},
    {"FLOP/B DRAM", CELL_NUMBER, 2, false},
    {"at least", CELL_TEXT, 0, false},
    {"binds", CELL_TEXT, 0, false},
};

static void put_size(struct report *r, uint64_t bytes)
{
    char text[QUANTITY_TEXT_MAX];
    report_text(r, bytes ? quantity_round(text, bytes, DIM_SIZE) : "-");
}

static void put_people_row(struct report *r, const struct op_row *row)
{
    char text[QUANTITY_TEXT_MAX], *per;
    quantity_round(text, row->ops, DIM_COMPUTE);
    per = strstr(text, "/s");
    if (per)
        *per = 0;
    report_text(r, row->name);
    report_text(r, row->ops ? text : "-");
    put_size(r, row->flash_bytes);
    put_size(r, row->dram_bytes);
    put_size(r, row->link_bytes);
    put_intensity(r, row->ops, row->flash_bytes);
    put_intensity(r, row->ops, row->dram_bytes);
    report_text(r, quantity_round(text, row->bound_ns, DIM_TIME));
    report_text(r, row->binds);
}

static enum status print_ops(const struct picture *p, const struct args *a, struct diag *dg)
{
    struct op_row rows[OP_ROWS + 1];
    size_t count = op_table(rows, &p->load, &p->machine, &p->regime);
    const struct bounds *b = &p->bounds;
    bool people = args_count(a, "format") == 0;
    struct report *r;
    enum status st = people ? report_open(&r, a, people_columns, COUNT(people_columns), dg)
                            : report_open(&r, a, op_columns, COUNT(op_columns), dg);
    if (st != ST_OK)
        return st;
    rows[count++] = (struct op_row){
        "total",     p->tally.ops, p->tally.flash_bytes, p->tally.memory_bytes, p->tally.link_bytes,
        b->flash_ns, b->memory_ns, b->link_ns,           b->compute_ns,         b->lower_ns,
        b->binds};
    for (size_t i = 0; i < count; i++)
        people ? put_people_row(r, &rows[i]) : put_row(r, &rows[i]);
    return report_close(r, dg);
}

/* ---- the summary --------------------------------------------------------------------------- */

static const struct column summary_columns[] = {
    {"name", CELL_TEXT, 0, false},
    {"value", CELL_NUMBER, 6, false},
    {"unit", CELL_TEXT, 0, false},
    {"how", CELL_TEXT, 0, false},
};

static void put(struct report *r, const char *name, double value, const char *unit, const char *how)
{
    report_text(r, name);
    report_number(r, value);
    report_text(r, unit);
    report_text(r, how);
}

static void put_bounds(struct report *r, const struct picture *p)
{
    const struct bounds *b = &p->bounds;
    uint64_t tokens = p->load.tokens;
    char how[128];
    snprintf(how, sizeof how, "the longest of bytes/rate and FLOP/peak: %s", b->binds);
    put(r, "lower_bound", seconds(b->lower_ns), "s", how);
    put(r, "upper_bound", seconds(b->upper_ns), "s", "everything one after the other");
    put(r, "tok_per_s_at_most", token_rate(tokens, b->lower_ns), "tok/s", "tokens / lower_bound");
    put(r, "tok_per_s_serial", token_rate(tokens, b->upper_ns), "tok/s", "tokens / upper_bound");
    put(r, "share_of_peak", 100.0 * seconds(b->compute_ns) / seconds(b->lower_ns), "%",
        "FLOP / (lower_bound * FLOP/s)");
    if (!p->tally.expert_bytes)
        return;
    put(r, "hit_ratio", (double)p->regime.hit_ratio / 1e9, "1", "of expert look-ups");
    put(r, "expert_bytes", (double)p->tally.expert_bytes / 1e9, "GB", "routed experts of the pass");
}

static void put_tier(struct report *r, const struct picture *p, enum tier t)
{
    char name[48];
    if (!tier_rate(&p->machine, t) || t == TIER_COMPUTE)
        return;
    snprintf(name, sizeof name, "ridge_%s", tier_name(t));
    put(r, name, (double)ridge_e3(&p->machine, t) / 1000.0, "FLOP/B", "FLOP/s / rate of the tier");
    if (!tier_amount(&p->tally, t))
        return;
    snprintf(name, sizeof name, "intensity_%s", tier_name(t));
    put(r, name, (double)intensity_e3(&p->tally, t) / 1000.0, "FLOP/B",
        "FLOP / bytes moved on the tier");
}

static void put_crossovers(struct report *r, const struct picture *p)
{
    const struct tally *y = &p->tally;
    uint64_t reached = device_dram_rate(p->s.device).amount, now = p->machine.memory_Bps;
    struct weights_only w, v;
    if (!y->flash_bytes)
        return;
    uint64_t flash = tier_rate(&p->machine, TIER_FLASH);
    put(r, "crossover_flash", (double)crossover_Bps(y->flash_bytes, y->memory_bytes, now) / 1e9,
        "GB/s", "flash bytes * DRAM rate / all DRAM bytes: above it DRAM binds");
    weights_only(&w, y, p->place.dense, flash, now);
    weights_only(&v, y, p->place.dense, flash, reached);
    put(r, "weights_only_crossover", (double)w.crossover_Bps / 1e9, "GB/s",
        "counting only the trunk and the experts read");
    put(r, "weights_only_crossover_reached", (double)v.crossover_Bps / 1e9, "GB/s",
        "the same at the DRAM rate reached");
    put(r, "weights_only_io", token_rate(p->load.tokens, w.flash_ns), "tok/s", "flash alone");
    put(r, "weights_only_serial", token_rate(p->load.tokens, w.serial_ns), "tok/s",
        "flash, then DRAM");
    put(r, "weights_only_overlap", token_rate(p->load.tokens, w.overlap_ns), "tok/s",
        "the longer of flash and DRAM");
}

static void put_needs(struct report *r, const struct picture *p, uint64_t token_ns)
{
    uint64_t wanted = fixed_mul_div(token_ns, p->load.tokens, 1), rate;
    for (int t = 0; t < TIER_COUNT; t++)
        for (int serial = 0; serial < 2; serial++) {
            char name[64];
            bool flop = t == TIER_COMPUTE;
            if (!tier_amount(&p->tally, (enum tier)t))
                continue;
            snprintf(name, sizeof name, "need_%s_%s", tier_name((enum tier)t),
                     serial ? "serial" : "overlap");
            report_text(r, name);
            if (tier_need(&rate, (enum tier)t, serial, &p->load, &p->machine, &p->regime, wanted))
                report_number(r, (double)rate / (flop ? 1e12 : 1e9));
            else
                report_empty(r);
            report_text(r, flop ? "TFLOP/s" : "GB/s");
            report_text(r, "least rate of this tier alone; empty: not by this alone");
        }
}

static enum status print_summary(const struct picture *p, const struct args *a, struct diag *dg)
{
    struct report *r;
    enum status st = report_open(&r, a, summary_columns, COUNT(summary_columns), dg);
    if (st != ST_OK)
        return st;
    put_bounds(r, p);
    for (int t = 0; t < TIER_COUNT; t++)
        put_tier(r, p, (enum tier)t);
    put_crossovers(r, p);
    if (p->efficiency >= 0)
        put(r, "efficiency", p->efficiency, "1", "measured rate / tok_per_s_at_most");
    if (p->wanted_ns)
        put_needs(r, p, p->wanted_ns);
    return report_close(r, dg);
}

/* ---- the command --------------------------------------------------------------------------- */

static enum status print_all(const struct picture *p, const struct args *a, struct diag *dg)
{
    bool table = args_count(a, "format") == 0;
    bool summary =
        args_flag(a, "summary") || (!table && (args_given(a, "want") || args_given(a, "measured")));
    enum status st = summary ? ST_OK : print_ops(p, a, dg);
    if (st != ST_OK || (!summary && !table))
        return st;
    if (!summary)
        printf("\n");
    return print_summary(p, a, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    struct picture p = {0};
    if (args_given(a, "prefill") && args_given(a, "batch"))
        return diag_set(dg, ST_USAGE, "--prefill and --batch exclude each other");
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
        st = print_all(&p, a, dg);
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
    .run = run,
};

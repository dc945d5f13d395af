/* roofline_print.c -- see roofline_print.h. */
#include "cli/roofline_print.h"

#include "base/fixed.h"
#include "cli/capture.h"
#include "sim/roofline/op_table.h"
#include "sim/roofline/ridge.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double token_rate(uint64_t tokens, uint64_t ns)
{
    return ns ? (double)tokens * 1e9 / (double)ns : 0;
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

static enum status print_ops(const struct roofline_picture *p, const struct args *a,
                             struct diag *dg)
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

/* ---- the row ------------------------------------------------------------------------------- */

const struct column roofline_row_columns[ROOFLINE_ROW_COLUMNS] = {
    {"model", CELL_TEXT, 0, false},
    {"device", CELL_TEXT, 0, false},
    {"quant", CELL_TEXT, 0, true},
    {"unit", CELL_TEXT, 0, true},
    {"tokens", CELL_COUNT, 0, true},
    {"decode_tok_per_s", CELL_NUMBER, 6, false},
    {"decode_tok_per_s_serial", CELL_NUMBER, 6, false},
    {"bound", CELL_TEXT, 0, false},
    {"hit_ratio", CELL_RATIO, 0, false},
    {"flash_bytes_per_token", CELL_COUNT, 0, false},
    {"dram_bytes_per_token", CELL_COUNT, 0, true},
    {"link_bytes_per_token", CELL_COUNT, 0, true},
    {"flop_per_token", CELL_COUNT, 0, true},
    {"flop_per_flash_byte", CELL_NUMBER, 3, true},
    {"flop_per_dram_byte", CELL_NUMBER, 3, true},
    {"flash_s_per_token", CELL_NUMBER, 9, true},
    {"dram_s_per_token", CELL_NUMBER, 9, true},
    {"link_s_per_token", CELL_NUMBER, 9, true},
    {"compute_s_per_token", CELL_NUMBER, 9, true},
    {"crossover_flash_Bps", CELL_COUNT, 0, true},
    {"cache_bytes", CELL_COUNT, 0, true},
    {"weight_bytes", CELL_COUNT, 0, true},
    {"efficiency", CELL_RATIO, 0, true}, /* of --measured */
};

static enum status print_row(const struct roofline_picture *p, const struct args *a,
                             struct diag *dg)
{
    const struct tally *y = &p->tally;
    const struct bounds *b = &p->bounds;
    uint64_t n = p->load.tokens;
    struct report *r;
    enum status st = report_open(&r, a, roofline_row_columns, ROOFLINE_ROW_COLUMNS, dg);
    if (st != ST_OK)
        return st;
    report_text(r, p->s.model->name);
    report_text(r, p->s.device->name);
    report_text(r, p->s.model->quant.name ? p->s.model->quant.name : "");
    report_text(r, p->machine.unit);
    report_count(r, n);
    report_number(r, token_rate(n, b->lower_ns));
    report_number(r, token_rate(n, b->upper_ns));
    report_text(r, b->binds);
    report_ratio(r, (double)p->regime.hit_ratio / 1e9);
    report_count(r, y->flash_bytes / n);
    report_count(r, y->memory_bytes / n);
    report_count(r, y->link_bytes / n);
    report_count(r, y->ops / n);
    put_intensity(r, y->ops, y->flash_bytes);
    put_intensity(r, y->ops, y->memory_bytes);
    report_number(r, seconds(b->flash_ns) / (double)n);
    report_number(r, seconds(b->memory_ns) / (double)n);
    report_number(r, seconds(b->link_ns) / (double)n);
    report_number(r, seconds(b->compute_ns) / (double)n);
    if (y->flash_bytes)
        report_count(r, crossover_Bps(y->flash_bytes, y->memory_bytes, p->machine.memory_Bps));
    else
        report_empty(r);
    report_count(r, p->place.cache);
    report_count(r, p->place.weights);
    report_ratio(r, p->efficiency >= 0 ? p->efficiency : 0.0 / 0.0);
    return report_close(r, dg);
}

/* ---- the summary --------------------------------------------------------------------------- */

static const struct column summary_columns[] = {
    {"name", CELL_TEXT, 0, false},
    {"value", CELL_NUMBER, 6, false},
    {"unit", CELL_TEXT, 0, false},
    {"how", CELL_TEXT, 0, false},
};

static const struct column summary_people_columns[] = {
    {"name", CELL_TEXT, 0, false},
    {"value", CELL_TEXT, 0, false},
    {"how", CELL_TEXT, 0, false},
};

struct summary {
    struct report *r;
    bool people;
};

/* Three digits and the unit. */
static void number_text(char text[QUANTITY_TEXT_MAX], double value, const char *unit)
{
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    for (double least = 0.9995; decimals < 9 && value > 0 && value < least; least /= 10)
        decimals++;
    snprintf(text, QUANTITY_TEXT_MAX, "%.*f %s", decimals, value,
             strcmp(unit, "1") == 0 ? "" : unit);
}

static void value_text(char text[QUANTITY_TEXT_MAX], double value, const char *unit)
{
    static const struct {
        const char *unit;
        double base;
        enum dimension dim;
    } kinds[] = {{"s", 1e9, DIM_TIME},
                 {"GB", 1e9, DIM_SIZE},
                 {"GB/s", 1e9, DIM_RATE},
                 {"TFLOP/s", 1e12, DIM_COMPUTE}};
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(unit, kinds[i].unit) == 0 && value * kinds[i].base < 1e19) {
            quantity_round(text, (uint64_t)(value * kinds[i].base + 0.5), kinds[i].dim);
            return;
        }
    number_text(text, value, unit);
}

static void put(struct summary *s, const char *name, double value, const char *unit,
                const char *how)
{
    char text[QUANTITY_TEXT_MAX];
    report_text(s->r, name);
    if (s->people) {
        value_text(text, value, unit);
        report_text(s->r, text);
    } else {
        report_number(s->r, value);
        report_text(s->r, unit);
    }
    report_text(s->r, how);
}

static void put_none(struct summary *s, const char *name, const char *unit, const char *how)
{
    report_text(s->r, name);
    if (s->people) {
        report_text(s->r, "not by this alone");
    } else {
        report_empty(s->r);
        report_text(s->r, unit);
    }
    report_text(s->r, how);
}

static void put_bounds(struct summary *s, const struct roofline_picture *p)
{
    const struct bounds *b = &p->bounds;
    uint64_t tokens = p->load.tokens;
    char how[128];
    snprintf(how, sizeof how, "the longest of bytes/rate and FLOP/peak: %s", b->binds);
    put(s, "lower_bound", seconds(b->lower_ns), "s", how);
    put(s, "upper_bound", seconds(b->upper_ns), "s", "everything one after the other");
    put(s, "tok_per_s_at_most", token_rate(tokens, b->lower_ns), "tok/s", "tokens / lower_bound");
    put(s, "tok_per_s_serial", token_rate(tokens, b->upper_ns), "tok/s", "tokens / upper_bound");
    put(s, "share_of_peak",
        100.0 * seconds(time_for(p->tally.ops, p->machine.peak_ops)) / seconds(b->lower_ns), "%",
        "FLOP / (lower_bound * FLOP/s)");
    if (!p->tally.expert_bytes)
        return;
    put(s, "hit_ratio", (double)p->regime.hit_ratio / 1e9, "1", "of expert look-ups");
    put(s, "expert_bytes", (double)p->tally.expert_bytes / 1e9, "GB", "routed experts of the pass");
}

static void put_tier(struct summary *s, const struct roofline_picture *p, enum tier t)
{
    char name[48];
    if (!tier_rate(&p->machine, t) || t == TIER_COMPUTE)
        return;
    snprintf(name, sizeof name, "ridge_%s", tier_name(t));
    put(s, name, (double)ridge_e3(&p->machine, t) / 1000.0, "FLOP/B", "FLOP/s / rate of the tier");
    if (!tier_amount(&p->tally, t))
        return;
    snprintf(name, sizeof name, "intensity_%s", tier_name(t));
    put(s, name, (double)intensity_e3(&p->tally, t) / 1000.0, "FLOP/B",
        "FLOP / bytes moved on the tier");
}

static void put_crossovers(struct summary *s, const struct roofline_picture *p)
{
    const struct tally *y = &p->tally;
    uint64_t reached = device_dram_rate(p->s.device).amount, now = p->machine.memory_Bps;
    struct weights_only w, v;
    if (!y->flash_bytes)
        return;
    uint64_t flash = tier_rate(&p->machine, TIER_FLASH);
    put(s, "crossover_flash", (double)crossover_Bps(y->flash_bytes, y->memory_bytes, now) / 1e9,
        "GB/s", "flash bytes * DRAM rate / all DRAM bytes: above it DRAM binds");
    weights_only(&w, y, p->place.dense, flash, now);
    weights_only(&v, y, p->place.dense, flash, reached);
    put(s, "weights_only_crossover", (double)w.crossover_Bps / 1e9, "GB/s",
        "counting only the trunk and the experts read");
    put(s, "weights_only_crossover_reached", (double)v.crossover_Bps / 1e9, "GB/s",
        "the same at the DRAM rate reached");
    put(s, "weights_only_io", token_rate(p->load.tokens, w.flash_ns), "tok/s", "flash alone");
    put(s, "weights_only_serial", token_rate(p->load.tokens, w.serial_ns), "tok/s",
        "flash, then DRAM");
    put(s, "weights_only_overlap", token_rate(p->load.tokens, w.overlap_ns), "tok/s",
        "the longer of flash and DRAM");
}

static void put_needs(struct summary *s, const struct roofline_picture *p, uint64_t token_ns)
{
    uint64_t wanted = fixed_mul(token_ns, p->load.tokens), rate;
    for (int t = 0; t < TIER_COUNT; t++)
        for (int serial = 0; serial < 2; serial++) {
            char name[64];
            bool flop = t == TIER_COMPUTE;
            if (!tier_amount(&p->tally, (enum tier)t))
                continue;
            snprintf(name, sizeof name, "need_%s_%s", tier_name((enum tier)t),
                     serial ? "serial" : "overlap");
            const char *unit = flop ? "TFLOP/s" : "GB/s";
            const char *how = s->people ? "least rate of this tier alone"
                                        : "least rate of this tier alone; empty: not by this alone";
            if (tier_need(&rate, (enum tier)t, serial, &p->load, &p->machine, &p->regime, wanted))
                put(s, name, (double)rate / (flop ? 1e12 : 1e9), unit, how);
            else
                put_none(s, name, unit, how);
        }
}

static enum status print_summary(const struct roofline_picture *p, const struct args *a,
                                 struct diag *dg)
{
    struct summary s = {.people = args_count(a, "format") == 0};
    enum status st =
        s.people ? report_open(&s.r, a, summary_people_columns, COUNT(summary_people_columns), dg)
                 : report_open(&s.r, a, summary_columns, COUNT(summary_columns), dg);
    if (st != ST_OK)
        return st;
    put_bounds(&s, p);
    for (int t = 0; t < TIER_COUNT; t++)
        put_tier(&s, p, (enum tier)t);
    put_crossovers(&s, p);
    if (p->efficiency >= 0)
        put(&s, "efficiency", p->efficiency, "1", "measured rate / tok_per_s_at_most");
    if (p->wanted_ns)
        put_needs(&s, p, p->wanted_ns);
    return report_close(s.r, dg);
}

static void tell_misfit(const struct roofline_picture *p, const struct args *a)
{
    char need[QUANTITY_TEXT_MAX], given[QUANTITY_TEXT_MAX], again[QUANTITY_TEXT_MAX];
    note(
        a,
        "%s does not fit: dense weights, state and one layer's experts take %s, %s is given; %s of "
        "dense weights are read again every pass (--dense resident refuses that)",
        p->s.model->name, quantity_round(need, p->place.minimum, DIM_SIZE),
        quantity_round(given, p->place.given, DIM_SIZE),
        quantity_round(again, p->tally.streamed_bytes, DIM_SIZE));
}

enum status roofline_print(const struct roofline_picture *p, const struct args *a, struct diag *dg)
{
    bool table = args_count(a, "format") == 0;
    bool summary =
        args_flag(a, "summary") || (!table && (args_given(a, "want") || args_given(a, "measured")));
    if (p->dense_streams)
        tell_misfit(p, a);
    if (args_flag(a, "row"))
        return print_row(p, a, dg);
    enum status st = summary ? ST_OK : print_ops(p, a, dg);
    if (st != ST_OK || (!summary && !table))
        return st;
    if (!summary)
        printf("\n");
    return print_summary(p, a, dg);
}

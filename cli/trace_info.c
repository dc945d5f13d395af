/* trace_info.c -- `memwall trace info`: how skewed, repetitive and predictable a routing trace is.
 *
 * For people a figure a line, overall and in the first, middle and last routed layer, as the overall column
 * is what one reads first; with --layers, and in CSV and JSON, a row a layer, as that is what one sorts
 * and plots. */
#include "cli/commands.h"
#include "cli/report.h"

#include "sim/trace/trace_measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_LAYERS = 3, FORMAT_TABLE = 0 };

static void print_summary(const struct trace *t, const struct trace_stats *s)
{
    printf("%s: %" PRIu32 " layers (%" PRIu64 " routed) x %" PRIu32 " experts, top %" PRIu32 "\n",
           t->model, t->layers, s->routed_layers, t->experts, t->top_k);
    printf("%" PRIu64 " turns, %" PRIu64 " passes, %" PRIu64 " prefill and %" PRIu64
           " decode tokens, %" PRIu64 " routing rows, %" PRIu64 " predictions\n\n",
           s->turns, s->passes, s->prefill_tokens, s->decode_tokens, s->rows, s->guesses);
}

/* The first, middle and last routed layer; fewer if there are fewer. */
static size_t pick_layers(const struct trace_stats *s, uint32_t picked[SHOWN_LAYERS])
{
    uint64_t wanted[SHOWN_LAYERS] = {0, s->routed_layers / 2, s->routed_layers - 1};
    uint64_t ordinal = 0;
    size_t count = 0;
    for (uint32_t l = 0; l < s->layers; l++) {
        if (s->layer[l].tokens == 0)
            continue;
        for (size_t i = 0; i < SHOWN_LAYERS; i++)
            if (wanted[i] == ordinal && (count == 0 || picked[count - 1] != l))
                picked[count++] = l;
        ordinal++;
    }
    return count;
}

/* One line a measure; measures that are undefined everywhere are left out. */
static enum status print_measures(const struct args *a, const struct trace_stats *s,
                                  struct diag *dg)
{
    uint32_t picked[SHOWN_LAYERS];
    char names[SHOWN_LAYERS][24];
    size_t count = pick_layers(s, picked);
    struct column columns[2 + SHOWN_LAYERS] = {{.name = "measure", .type = CELL_TEXT},
                                               {.name = "all", .type = CELL_RATIO}};
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "layer_%" PRIu32, picked[i]);
        columns[2 + i] = (struct column){.name = names[i], .type = CELL_RATIO};
    }
    struct report *r;
    enum status st = report_open(&r, a, columns, 2 + count, dg);
    if (st != ST_OK)
        return st;
    for (size_t m = 0; m < trace_measure_count(); m++) {
        double overall = trace_measure(&s->overall, m);
        if (overall != overall)
            continue;
        report_text(r, trace_measure_name(m));
        report_ratio(r, overall);
        for (size_t i = 0; i < count; i++)
            report_ratio(r, trace_measure(&s->layer[picked[i]], m));
    }
    return report_close(r, dg);
}

static bool is_for_people(const char *name)
{
    static const char *const chosen[] = {
        "entropy_ratio", "zipf_exponent", "overlap_lag1",    "overlap_lag8", "overlap_lag32",
        "distinct_32",   "recency_top_k", "recency_quarter", "coactivation", "recall_1"};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (!strcmp(chosen[i], name))
            return true;
    return false;
}

static void report_layer(struct report *r, const char *label, const struct trace_layer_stats *s)
{
    report_text(r, label);
    report_count(r, s->tokens);
    for (size_t m = 0; m < trace_measure_count(); m++)
        report_ratio(r, trace_measure(s, m));
}

static enum status print_layers(const struct args *a, const struct trace_stats *s, struct diag *dg)
{
    size_t count = 2 + trace_measure_count();
    struct column *columns = calloc(count, sizeof *columns);
    if (!columns)
        return diag_no_memory(dg);
    columns[0] = (struct column){.name = "layer", .type = CELL_TEXT};
    columns[1] = (struct column){.name = "tokens", .type = CELL_COUNT};
    for (size_t m = 0; m + 2 < count; m++)
        columns[2 + m] = (struct column){.name = trace_measure_name(m),
                                         .type = CELL_RATIO,
                                         .wide_only = !is_for_people(trace_measure_name(m))};
    struct report *r;
    enum status st = report_open(&r, a, columns, count, dg);
    if (st == ST_OK) {
        report_layer(r, "all", &s->overall);
        for (uint32_t l = 0; l < s->layers; l++) {
            char label[16];
            snprintf(label, sizeof label, "%" PRIu32, l);
            if (s->layer[l].tokens)
                report_layer(r, label, &s->layer[l]);
        }
        st = report_close(r, dg);
    }
    free(columns);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    struct trace *t;
    struct trace_stats *s = NULL;
    enum status st = trace_load(&t, args_positional(a, 0), dg);
    if (st != ST_OK)
        return st;
    st = trace_stats_new(&s, t, dg);
    if (st == ST_OK) {
        bool table = args_count(a, "format") == FORMAT_TABLE;
        if (table)
            print_summary(t, s);
        st = table && !args_flag(a, "layers") ? print_measures(a, s, dg) : print_layers(a, s, dg);
    }
    trace_stats_free(s);
    trace_free(t);
    return st;
}

static const struct option options[] = {
    {.name = "layers", .type = OPTION_FLAG, .help = "a row for every layer (CSV and JSON always)"},
    {0}};

const struct command command_trace_info = {
    .name = "trace info",
    .summary = "skew, repetition and predictability of a routing trace",
    .usage = "TRACE [--layers]",
    .example = "memwall trace info tests/data/demo.trace.csv",
    .options = options,
    .no_set = true,
    .positional_min = 1,
    .positional_max = 1,
    .run = run,
};

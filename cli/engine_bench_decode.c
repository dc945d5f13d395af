/* engine_bench_decode.c -- `memwall engine bench decode`: how close decoding with overlap comes to what its own parts allow: each
 * layer's fixed part and the longer of its reads and its experts, one after another, every term from the same run. */
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/report.h"

#include "base/stats.h"

#include <stdlib.h>

static const struct option options[] = {
    {"tokens", OPTION_COUNT, "N", "tokens to decode", "64", NULL, 4, 100000, false},
    ENGINE_OPTIONS,
    PREFETCH_OPTIONS,
    PREFETCH_WHEN_OPTION,
    {"route", OPTION_TEXT, "TRACE", "force this recorded routing", NULL, NULL, 0, 0, false},
    {0},
};

static const struct column columns[] = {
    {"model", CELL_TEXT, 0, false},       {"cache_bytes", CELL_COUNT, 0, false},
    {"tokens", CELL_COUNT, 0, false},     {"token_s_p50", CELL_NUMBER, 9, false},
    {"fixed_s", CELL_NUMBER, 9, false},   {"reads_s", CELL_NUMBER, 9, false},
    {"experts_s", CELL_NUMBER, 9, false}, {"head_s", CELL_NUMBER, 9, false},
    {"bound_s", CELL_NUMBER, 9, false},   {"ratio", CELL_RATIO, 0, false},
    {"hit_ratio", CELL_RATIO, 0, false},
};

enum term { WALL, FIXED, READS, EXPERTS, HEAD, BOUND, RATIO, TERMS };

struct decode_bench {
    double *sample[TERMS];
    size_t count;
};

static void on_pass(void *self, const struct engine_pass *p)
{
    struct decode_bench *b = self;
    const uint64_t *ns = p->sums.operation_ns;
    if (p->phase != PHASE_DECODE)
        return;
    double term[TERMS] = {
        [WALL] = (double)p->wall_ns,
        [FIXED] = (double)(ns[OPERATION_FIXED] + ns[OPERATION_SHARED]),
        [READS] = (double)p->sums.read_span_ns,
        [EXPERTS] = (double)ns[OPERATION_EXPERT],
        [HEAD] = (double)ns[OPERATION_HEAD],
    };
    term[BOUND] = term[FIXED] + (double)p->sums.overlap_ns + term[HEAD];
    term[RATIO] = term[WALL] / term[BOUND];
    for (int t = 0; t < TERMS; t++)
        b->sample[t][b->count] = term[t];
    b->count++;
}

static enum status decode(struct engine *e, size_t tokens, struct diag *dg)
{
    size_t vocab = engine_weights(e)->model->vocab;
    float *logits = calloc(vocab, sizeof *logits);
    enum status st = logits ? ST_OK : diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < tokens; i++)
        st = engine_step(e, engine_made_up_token(i, vocab), logits, dg);
    free(logits);
    return st;
}

static enum status print(const struct args *a, const struct engine *e, struct decode_bench *b,
                         struct diag *dg)
{
    struct report *r;
    const struct decide_counts *c = experts_counts(engine_experts(e));
    enum status st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    report_text(r, engine_weights(e)->model->name);
    report_count(r, experts_decisions(engine_experts(e))->budget_bytes);
    report_count(r, b->count);
    for (int t = 0; t < RATIO; t++)
        report_number(r, stats_median(b->sample[t], b->count) / 1e9);
    report_ratio(r, stats_median(b->sample[RATIO], b->count));
    report_ratio(r, c->lookups ? (double)c->hits / (double)c->lookups : 0.0 / 0.0);
    return report_close(r, dg);
}

static enum status run(struct args *a, struct diag *dg)
{
    struct decode_bench b = {.count = 0};
    struct engine *e = NULL;
    size_t tokens = args_count(a, "tokens");
    struct engine_setup s = {.model = args_positional(a, 0),
                             .route = args_text(a, "route"),
                             .on_pass = on_pass,
                             .on_pass_self = &b};
    enum status st = engine_options_read(&s, a, dg);
    if (s.context == 0)
        s.context = tokens;
    for (int t = 0; t < TERMS; t++) {
        b.sample[t] = calloc(tokens, sizeof *b.sample[t]);
        if (!b.sample[t] && st == ST_OK)
            st = diag_no_memory(dg);
    }
    if (st == ST_OK)
        st = engine_open(&e, &s, dg);
    if (st == ST_OK)
        st = decode(e, tokens, dg);
    if (st == ST_OK)
        st = print(a, e, &b, dg);
    engine_close(e);
    for (int t = 0; t < TERMS; t++)
        free(b.sample[t]);
    return st;
}

const struct command command_engine_bench_decode = {
    .name = "engine bench decode",
    .summary = "decoding with overlap beside the sum of its own parts",
    .usage = "MODEL.gguf [--tokens N] [--cache SIZE]",
    .example = "memwall engine bench decode models/tiny/tiny-q4_0.gguf --cache 4MiB",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = run,
};

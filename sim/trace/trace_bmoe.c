/* trace_bmoe.c -- BigMoeOnEdge `route_trace v1` files: the same rows with other columns.
 *
 * Their `step` counts tokens of a turn; all prompt tokens of one layer stand together, so a pass begins
 * where turn or phase changes, where the layer falls back, or, while decoding, where step changes. The
 * column expert_bytes is 0 on rows recorded as hits: sizes come from the preamble. Such a file has no end
 * mark; a last token with fewer than n_expert_used slots is taken for a truncated file. */
#include "sim/trace/trace_file.h"

#include <stdlib.h>
#include <string.h>

enum column { TURN, PHASE, STEP, LAYER, SLOT, EXPERT, WEIGHT, COLUMNS };
static const struct csv_column columns[COLUMNS] = {
    [TURN] = {"turn", true},     [PHASE] = {"phase", true}, [STEP] = {"step", true},
    [LAYER] = {"layer", true},   [SLOT] = {"slot", true},   [EXPERT] = {"expert", true},
    [WEIGHT] = {"weight", true},
};

struct reading {
    const char *path;
    struct trace_builder *builder;
    struct trace_layer *layer;
    char *model;
    uint64_t layers, experts, top_k;
    uint32_t layers_seen;
    uint32_t pass;
    uint64_t last[COLUMNS]; /* the row before */
    bool begun;
};

static enum status on_comment(void *self, size_t line, const char *text, size_t length,
                              struct diag *dg)
{
    struct reading *r = self;
    bool model = length >= 8 && memcmp(text, "# model=", 8) == 0;
    bool layer = length >= 8 && memcmp(text, "# layer=", 8) == 0;
    if (r->begun && (model || layer))
        return diag_set(dg, ST_PARSE, "%s:%zu: '%.8s' was expected before the rows", r->path, line,
                        text);
    if (model && r->model)
        return diag_set(dg, ST_PARSE, "%s:%zu: '# model=' was expected only once", r->path, line);
    if (model) {
        enum status st = trace_comment_model(&r->model, r->path, line, text, length, false, dg);
        if (st != ST_OK)
            return st;
        if (!trace_comment_u64(text, length, "n_layer", &r->layers) ||
            !trace_comment_u64(text, length, "n_expert", &r->experts) ||
            !trace_comment_u64(text, length, "n_expert_used", &r->top_k))
            return diag_set(
                dg, ST_PARSE,
                "%s:%zu: expected model=, n_layer=, n_expert= and n_expert_used=", r->path, line);
        return ST_OK;
    }
    if (layer)
        return trace_comment_layer(r->path, line, text, length, r->layer, &r->layers_seen, dg);
    return ST_OK;
}

/* The file's name without its folders and ending: traces carry a model, not somebody's path. */
static const char *model_name(char *model)
{
    char *slash = strrchr(model, '/');
    char *name = slash ? slash + 1 : model;
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = 0;
    return name;
}

static enum status begin(struct reading *r, size_t line, struct diag *dg)
{
    if (!r->model || r->layers != r->layers_seen)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: '# model=' and one '# layer=' line a layer must come first",
                        r->path, line);
    if (r->experts > TRACE_EXPERTS_MAX || r->top_k > r->experts || r->top_k == 0)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: n_expert must be 1..%d and n_expert_used 1..n_expert", r->path,
                        line, TRACE_EXPERTS_MAX);
    r->begun = true;
    const char *name = model_name(r->model);
    if (!*name)
        return diag_set(dg, ST_PARSE, "%s:%zu: model= was expected to name a file", r->path, line);
    struct diag why;
    enum status st = trace_builder_new(&r->builder, name, (uint32_t)r->layers, (uint32_t)r->experts,
                                       (uint32_t)r->top_k, r->layer, &why);
    return st == ST_OK ? st : diag_set(dg, st, "%s:%zu: %s", r->path, line, why.text);
}

static bool is_new_pass(const uint64_t *last, const uint64_t *now)
{
    return now[TURN] != last[TURN] || now[PHASE] != last[PHASE] || now[LAYER] < last[LAYER] ||
           (now[PHASE] == PHASE_DECODE && now[STEP] != last[STEP]);
}

static enum status on_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    uint64_t n[COLUMNS];
    int64_t weight;
    for (int c = TURN; c <= EXPERT; c++)
        if (!csv_u64(f[c], &n[c]) || n[c] > UINT32_MAX)
            return diag_set(dg, ST_PARSE, "%s:%zu: %s: a whole number expected", r->path, line,
                            columns[c].name);
    if (!trace_weight_parse(f[WEIGHT], &weight))
        return diag_set(dg, ST_PARSE, "%s:%zu: weight: a decimal number expected", r->path, line);
    enum status st = ST_OK;
    if (!r->begun)
        st = begin(r, line, dg);
    else if (is_new_pass(r->last, n))
        r->pass++;
    if (st != ST_OK)
        return st;
    struct diag why;
    st = trace_builder_row(r->builder, (uint32_t)n[TURN], (uint32_t)n[PHASE], r->pass,
                           (uint32_t)n[STEP], (uint32_t)n[LAYER], (uint32_t)n[SLOT],
                           (uint32_t)n[EXPERT], weight, &why);
    if (st != ST_OK)
        return diag_set(dg, st, "%s:%zu: %s", r->path, line, why.text);
    memcpy(r->last, n, sizeof n);
    return ST_OK;
}

enum status trace_read_bmoe(struct trace **out, const char *path, struct diag *dg)
{
    struct reading r = {.path = path};
    r.layer = calloc(TRACE_LAYERS_MAX, sizeof *r.layer);
    if (!r.layer)
        return diag_no_memory(dg);
    enum status st = csv_read(path, columns, COLUMNS, true, on_row, on_comment, &r, dg);
    if (st == ST_OK && !r.builder)
        st = diag_set(dg, ST_PARSE, "%s: no rows", path);
    if (st == ST_OK && r.last[SLOT] + 1 != r.top_k)
        st = diag_set(dg, ST_PARSE, "%s: truncated: the last token has %u of %u slots", path,
                      (unsigned)r.last[SLOT] + 1, (unsigned)r.top_k);
    if (st == ST_OK) {
        st = trace_builder_finish(r.builder, out, dg);
        r.builder = NULL;
    }
    trace_builder_free(r.builder);
    free(r.model);
    free(r.layer);
    return st;
}

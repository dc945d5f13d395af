/* engine_heads.c -- `memwall engine heads`: trains the heads that foretell which experts a later
 * layer will take, from what the model's routers see and choose in a text, and tells how well they
 * do on what they have not seen. */
#include "cli/commands.h"
#include "cli/engine_passage.h"
#include "cli/outputs.h"
#include "cli/report.h"

#include "base/progress.h"
#include "kernels/heads/heads_fit.h"

#include <stdio.h>
#include <stdlib.h>

static const struct option options[] = {
    {.name = "text",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "text to learn from",
     .min = 1},
    {.name = "tokens",
     .type = OPTION_TEXT,
     .argument = "ID[,ID]",
     .help = "token ids to learn from, for a model without vocabulary"},
    {.name = "out",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "heads to write; without it they are only measured",
     .min = 1},
    {.name = "distance",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "layers ahead",
     .fallback = "1",
     .min = 1,
     .max = 4096},
    {.name = "ridge",
     .type = OPTION_TEXT,
     .argument = "X",
     .help = "how strongly heads are drawn to the early router, above 0",
     .fallback = "0.01"},
    PASSAGE_OPTIONS,
    {0}};

static const struct column columns[] = {
    {"layer", CELL_TEXT, 0, false},
    {"target", CELL_TEXT, 0, false},
    {"tokens", CELL_COUNT, 0, false},
    {"held_out_tokens", CELL_COUNT, 0, false},
    {"recall_gate_ratio", CELL_RATIO, 0, false},
    {"recall_heads_ratio", CELL_RATIO, 0, false},
};

static void print_row(struct report *rep, const char *layer, const char *target,
                      const struct heads *h, const struct recording *r, double early, double found)
{
    report_text(rep, layer);
    report_text(rep, target);
    report_count(rep, h->tokens);
    report_count(rep, r->tokens - h->tokens);
    report_ratio(rep, early);
    report_ratio(rep, found);
}

/* A row for each pair of layers, and one for all of them. */
static enum status print_recall(const struct args *a, const struct heads *h,
                                const struct recording *r, struct diag *dg)
{
    struct report *rep;
    double early = 0, found = 0;
    enum status st = report_open(&rep, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < h->count; i++) {
        const struct head *head = &h->head[i];
        char layer[24], target[24];
        snprintf(layer, sizeof layer, "%zu", head->source);
        snprintf(target, sizeof target, "%zu", head->source + h->distance);
        print_row(rep, layer, target, h, r, (double)head->recall_early, (double)head->recall);
        early += (double)head->recall_early / (double)h->count;
        found += (double)head->recall / (double)h->count;
    }
    print_row(rep, "all", "all", h, r, early, found);
    return report_close(rep, dg);
}

static enum status read_ridge(double *out, const struct args *a, struct diag *dg)
{
    char *end;
    const char *text = args_text(a, "ridge");
    *out = strtod(text, &end);
    if (*text == 0 || *end || !(*out > 0 && *out <= 1e12))
        return diag_set(dg, ST_USAGE,
                        "--ridge: a number above 0, at most 1e12, is expected, not '%s'", text);
    return ST_OK;
}

static enum status read_passage(struct token_list *tokens, struct args *a, const char *model,
                                struct diag *dg)
{
    if (args_given(a, "text") == args_given(a, "tokens"))
        return diag_set(dg, ST_USAGE, "one of --text and --tokens is expected");
    return passage_read(tokens, a, model, args_text(a, "text"), dg);
}

static enum status learn(struct args *a, struct engine *e, struct recording *r,
                         const struct token_list *tokens, size_t window, double ridge,
                         struct diag *dg)
{
    struct heads *h = NULL;
    struct progress bar = {.label = "reading"};
    enum status st =
        recording_run(r, e, tokens->ids, tokens->count, window, passage_progress, &bar, dg);
    progress_end(&bar);
    bar = (struct progress){.label = "layers"};
    if (st == ST_OK)
        st = heads_fit(&h, r, engine_compute(e), ridge, passage_progress, &bar, dg);
    progress_end(&bar);
    if (st == ST_OK && args_given(a, "out"))
        st = heads_save(h, args_text(a, "out"), dg);
    if (st == ST_OK)
        st = print_recall(a, h, r, dg);
    heads_free(h);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", NULL};
    static const char *const read[] = {"text", NULL};
    const char *model = args_positional(a, 0);
    struct token_list tokens = {0};
    struct recording r = {0};
    struct engine_setup s;
    struct engine *e = NULL;
    size_t window = 0;
    double ridge;
    enum status st = read_ridge(&ridge, a, dg);
    if (st == ST_OK)
        st = outputs_check(a, written, read, dg);
    if (st == ST_OK)
        st = read_passage(&tokens, a, model, dg);
    passage_setup(&s, a, model);
    recording_attach(&r, &s, args_count(a, "distance"));
    if (st == ST_OK)
        st = passage_window(&window, &s, a, dg);
    if (st == ST_OK)
        st = engine_open(&e, &s, dg);
    if (st == ST_OK)
        st = learn(a, e, &r, &tokens, window, ridge, dg);
    recording_free(&r);
    engine_close(e);
    token_list_free(&tokens);
    return st;
}

const struct command command_engine_heads = {
    .name = "engine heads",
    .summary = "train heads that foretell the experts of a later layer",
    .usage = "MODEL.gguf (--text FILE | --tokens 1,2,3) [--out FILE] [--distance N] [--ridge X]",
    .example = "memwall engine heads models/tiny/tiny-q4_0.gguf --text models/tiny/README.md "
               "--window 64 --tokens-max 960",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = run,
};

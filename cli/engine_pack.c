/* engine_pack.c -- `memwall engine pack`: the experts of a GGUF file in one aligned record each, and the proof
 * that such a file holds what the GGUF holds. */
#include "cli/commands.h"
#include "cli/outputs.h"

#include "base/progress.h"
#include "kernels/graph/workers.h"
#include "kernels/pack/pack_write.h"
#include "models/gguf_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const struct option options[] = {
    {.name = "out", .type = OPTION_TEXT, .argument = "FILE", .help = "pack to write", .min = 1},
    {.name = "order",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "order of the records: CSV with the columns layer,expert"},
    {.name = "coactivation",
     .type = OPTION_TEXT,
     .argument = "TRACE",
     .help = "experts that this routing trace chose together lie next to each other"},
    {.name = "verify",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "write nothing: check this pack's checksums, and convert it back to compare it with "
             "the GGUF"},
    {.name = "threads",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "threads that convert (all processors)",
     .min = 1,
     .max = WORKERS_THREADS_MAX},
    {0}};

static size_t threads_of(const struct args *a)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (args_given(a, "threads"))
        return (size_t)args_count(a, "threads");
    return processors > 0 && processors <= WORKERS_THREADS_MAX ? (size_t)processors : 1;
}

/* A model whose weights are read too. */
struct input {
    struct gguf *g;
    struct model *m;
};

static enum status input_open(struct input *in, const char *path, struct diag *dg)
{
    *in = (struct input){0};
    enum status st = gguf_open(&in->g, path, dg);
    return st == ST_OK ? gguf_model_import(&in->m, in->g, dg) : st;
}

static void input_close(struct input *in)
{
    model_free(in->m);
    gguf_close(in->g);
}

/* What such an order is worth on choices that it was not made from. */
static enum status say_runs(const struct model *m, const struct trace *t, struct diag *dg)
{
    struct pack_runs ordered, plain;
    enum status st = pack_order_foresight(&ordered, &plain, m, t, dg);
    if (st == ST_OK)
        say("an order made from the first half of the trace puts the %" PRIu64
            " choices of the second into %" PRIu64 " runs of neighbours, plain order into %" PRIu64,
            ordered.choices, ordered.runs, plain.runs);
    return st;
}

static enum status find_order(struct pack_order *o, const struct args *a, const struct input *in,
                              struct diag *dg)
{
    const char *file = args_text(a, "order"), *path = args_text(a, "coactivation");
    struct trace *t;
    *o = (struct pack_order){0};
    if (file)
        return pack_order_load(o, in->m, file, dg);
    if (!path)
        return pack_order_plain(o, in->m, dg);
    enum status st = trace_load(&t, path, dg);
    if (st != ST_OK)
        return st;
    st = pack_order_coactivation(o, in->m, t, dg);
    if (st == ST_OK)
        st = say_runs(in->m, t, dg);
    trace_free(t);
    return st;
}

static enum status write_records(struct pack_write *w, struct progress *bar, struct diag *dg)
{
    enum status st = ST_OK;
    uint64_t bytes = 0;
    while (st == ST_OK && pack_write_left(w)) {
        st = pack_write_step(w, &bytes, dg);
        progress_add(bar, bytes);
    }
    progress_end(bar);
    return st;
}

static void say_done(const char *path, const char *what, uint64_t records, uint64_t bytes,
                     uint64_t rate_Bps)
{
    char size[QUANTITY_TEXT_MAX], rate[QUANTITY_TEXT_MAX];
    say("%s: %" PRIu64 " experts%s, %s, %s", path, records, what,
        quantity_round(size, bytes, DIM_SIZE), quantity_round(rate, rate_Bps, DIM_RATE));
}

static enum status write_pack(const struct args *a, const struct input *in, struct diag *dg)
{
    const char *path = args_text(a, "out");
    struct pack_order order;
    struct pack_write *w = NULL;
    struct progress bar;
    enum status st = find_order(&order, a, in, dg);
    if (st == ST_OK)
        st = pack_write_new(&w, path, in->g, in->m, &order, threads_of(a), dg);
    if (st == ST_OK) {
        uint64_t bytes = pack_write_bytes(w);
        progress_start_bytes(&bar, "packing", bytes);
        st = write_records(w, &bar, dg);
        if (st == ST_OK)
            st = pack_write_commit(w, dg);
        else
            pack_write_abandon(w);
        if (st == ST_OK)
            say_done(path, "", order.count, bytes, progress_rate(&bar));
    }
    pack_order_free(&order);
    return st;
}

static enum status compare_all(struct pack_compare *c, const struct pack *p, const struct model *m,
                               struct diag *dg)
{
    struct progress bar;
    uint64_t records = 0;
    enum status st = ST_OK;
    progress_start_bytes(&bar, "comparing", pack_file_bytes(p));
    for (size_t i = 0; i < m->layer_count; i++)
        for (size_t e = 0; st == ST_OK && pack_layout(p, i) && e < m->layers[i].ffn.experts; e++) {
            st = pack_compare_step(c, i, e, dg);
            progress_add(&bar, pack_layout(p, i)->record_bytes);
            records++;
        }
    progress_end(&bar);
    if (st == ST_OK)
        say_done(pack_path(p), " as in the GGUF", records, pack_file_bytes(p), progress_rate(&bar));
    return st;
}

static enum status verify_pack(const struct args *a, const struct input *in, struct diag *dg)
{
    struct pack *p;
    struct pack_compare *c;
    enum status st = pack_open(&p, args_text(a, "verify"), in->g, in->m, dg);
    if (st != ST_OK)
        return st;
    st = pack_compare_new(&c, p, in->g, in->m, threads_of(a), dg);
    if (st == ST_OK) {
        st = compare_all(c, p, in->m, dg);
        pack_compare_free(c);
    }
    pack_close(p);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", NULL};
    static const char *const read[] = {"order", "coactivation", NULL};
    const char *out = args_text(a, "out"), *verify = args_text(a, "verify");
    bool ordered = args_given(a, "order") || args_given(a, "coactivation");
    if (!out == !verify)
        return diag_set(dg, ST_USAGE, "either --out or --verify is needed");
    if (ordered && verify)
        return diag_set(dg, ST_USAGE, "--order and --coactivation are for --out");
    if (args_given(a, "order") && args_given(a, "coactivation"))
        return diag_set(dg, ST_USAGE, "--order and --coactivation exclude each other");
    enum status st = outputs_check(a, written, read, dg);
    if (st != ST_OK)
        return st;
    struct input in;
    st = input_open(&in, args_positional(a, 0), dg);
    if (st == ST_OK)
        st = out ? write_pack(a, &in, dg) : verify_pack(a, &in, dg);
    input_close(&in);
    return st;
}

const struct command command_engine_pack = {
    .name = "engine pack",
    .summary = "the experts of a GGUF file, one aligned record each",
    .usage =
        "MODEL.gguf --out FILE [--order FILE | --coactivation TRACE] | MODEL.gguf --verify FILE",
    .example = "memwall engine pack synth.gguf --out synth.mwpack",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .no_set = true,
    .run = run,
};

/* engine_synth.c -- `memwall engine synth`: a GGUF file of any shape, with made-up weights. */
#include "cli/commands.h"
#include "cli/outputs.h"

#include "base/progress.h"
#include "kernels/synth/synth.h"

#include <inttypes.h>
#include <stdio.h>

#define SHAPE_MAX  (1 << 24)
#define LAYERS_MAX 4096

#define FIGURE(option, placeholder, text, most)                                                    \
    {                                                                                              \
        .name = option, .type = OPTION_COUNT, .argument = placeholder, .help = text, .min = 1,     \
        .max = most                                                                                \
    }

static const struct option options[] = {
    {.name = "out",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "GGUF file to write",
     .min = 1,
     .required = true},
    {.name = "quant",
     .type = OPTION_TEXT,
     .argument = "Q",
     .help = "format or mix of the weights: q4_k_m, mxfp4_moe, q8_0, ... (as published)"},
    {.name = "architecture",
     .type = OPTION_TEXT,
     .argument = "A",
     .help = "qwen3moe, llama, qwen2moe, gpt-oss, deepseek2 or olmoe (the one that MODEL fits)"},
    FIGURE("layers", "N", "only the first N layers of MODEL; without MODEL: how many", LAYERS_MAX),
    FIGURE("experts", "N", "routed experts a layer", 65535),
    FIGURE("top-k", "N", "experts a token uses", 65535),
    FIGURE("expert-width", "N", "inner width of an expert", SHAPE_MAX),
    FIGURE("shared-width", "N", "inner width of the shared expert", SHAPE_MAX),
    FIGURE("hidden", "N", "width of the residual stream", SHAPE_MAX),
    FIGURE("heads", "N", "attention heads", SHAPE_MAX),
    FIGURE("kv-heads", "N", "heads of keys and values (heads)", SHAPE_MAX),
    FIGURE("head-dim", "N", "length of a head (hidden / heads)", SHAPE_MAX),
    FIGURE("window", "N", "attention window of gpt-oss (128)", SHAPE_MAX),
    FIGURE("vocab", "N", "tokens", SHAPE_MAX),
    FIGURE("context", "N", "longest context (4096)", UINT32_MAX),
    {.name = "vocab-bytes",
     .type = OPTION_FLAG,
     .help = "a vocabulary: the first 256 tokens are the bytes (else the file runs with --tokens)"},
    {0}};

static struct synth_figures figures_of(const struct args *a)
{
    return (struct synth_figures){.layers = args_count(a, "layers"),
                                  .hidden = args_count(a, "hidden"),
                                  .experts = args_count(a, "experts"),
                                  .top_k = args_count(a, "top-k"),
                                  .expert_width = args_count(a, "expert-width"),
                                  .shared_width = args_count(a, "shared-width"),
                                  .heads = args_count(a, "heads"),
                                  .kv_heads = args_count(a, "kv-heads"),
                                  .head_dim = args_count(a, "head-dim"),
                                  .window = args_count(a, "window"),
                                  .vocab = args_count(a, "vocab"),
                                  .context = args_count(a, "context")};
}

static enum status model_of_figures(struct model **out, const struct args *a, struct diag *dg)
{
    struct synth_figures f = figures_of(a);
    const char *name = args_text(a, "architecture");
    if (!name)
        return diag_set(dg, ST_USAGE, "without MODEL, --architecture is needed");
    const struct synth_architecture *architecture;
    enum status st = synth_architecture_named(&architecture, name, dg);
    return st == ST_OK ? synth_model_new(out, architecture, &f, dg) : st;
}

static enum status model_of_name(struct model **out, const struct args *a, struct diag *dg)
{
    char catalogue[CATALOGUE_PATH_MAX];
    struct synth_figures f = figures_of(a);
    size_t override_count;
    const char *const *overrides = args_list(a, "set", &override_count);
    catalogue_dir(catalogue, sizeof catalogue, "models/desc");
    struct model *m;
    enum status st =
        model_load(&m, args_positional(a, 0), catalogue, overrides, override_count, dg);
    if (st != ST_OK)
        return st;
    st = synth_model_change(m, &f, dg);
    if (st == ST_OK)
        *out = m;
    else
        model_free(m);
    return st;
}

static enum status write_steps(struct synth *s, struct progress *bar, struct diag *dg)
{
    enum status st = ST_OK;
    uint64_t bytes = 0;
    while (st == ST_OK && synth_left(s)) {
        st = synth_step(s, &bytes, dg);
        progress_add(bar, bytes);
    }
    progress_end(bar);
    return st;
}

static enum status write_model(const struct model *m, const struct synth_options *o,
                               const char *path, struct diag *dg)
{
    struct synth *s;
    struct progress bar;
    enum status st = synth_new(&s, m, o, path, dg);
    if (st != ST_OK)
        return st;
    uint64_t total = synth_bytes(s);
    progress_start_bytes(&bar, "writing", total);
    st = write_steps(s, &bar, dg);
    if (st != ST_OK) {
        synth_abandon(s);
        return st;
    }
    st = synth_commit(s, dg);
    char size[QUANTITY_TEXT_MAX], rate[QUANTITY_TEXT_MAX];
    if (st == ST_OK)
        say("%s: %s, %s, %zu layers x %" PRIu64 " experts, %s, %s, %s", path, m->name,
            o->architecture->name, m->layer_count, model_experts(m), m->quant.name,
            quantity_round(size, total, DIM_SIZE),
            quantity_round(rate, progress_rate(&bar), DIM_RATE));
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    static const char *const written[] = {"out", NULL}, *const read[] = {NULL};
    struct model *m = NULL;
    struct synth_options o = {.seed = args_count(a, "seed"),
                              .vocabulary = args_flag(a, "vocab-bytes")};
    enum status st = outputs_check(a, written, read, dg);
    if (st == ST_OK)
        st = args_positional(a, 0) ? model_of_name(&m, a, dg) : model_of_figures(&m, a, dg);
    if (st == ST_OK)
        st = synth_architecture_pick(&o.architecture, m, args_text(a, "architecture"), dg);
    if (st == ST_OK)
        st = synth_model_quantise(m, args_text(a, "quant"), dg);
    if (st == ST_OK)
        st = write_model(m, &o, args_text(a, "out"), dg);
    model_free(m);
    return st;
}

const struct command command_engine_synth = {
    .name = "engine synth",
    .summary = "a GGUF file of any shape, with made-up weights",
    .usage = "[MODEL | --architecture A --layers N ...] --out FILE [--quant Q]",
    .example = "memwall engine synth qwen3-30b-a3b --layers 2 --experts 8 --vocab 512 --quant q4_0 "
               "--out synth.gguf",
    .options = options,
    .positional_max = 1,
    .run = run,
};

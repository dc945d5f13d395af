/* trace_generate.c -- `memwall trace generate`: a routing trace from a preset, for a model of the catalogue
 * or any shape. */
#include "cli/commands.h"

#include "models/model.h"
#include "sim/trace/generate_trace.h"
#include "sim/trace/preset.h"

#include <inttypes.h>
#include <stdlib.h>

/* A shape and the layers it points to. */
struct wanted {
    struct generate_shape shape;
    struct trace_layer *layer;
    struct model *model; /* NULL without --model */
};

static void wanted_free(struct wanted *w)
{
    free(w->layer);
    model_free(w->model);
}

static enum status want_layers(struct wanted *w, size_t layers, struct diag *dg)
{
    w->layer = calloc(layers ? layers : 1, sizeof *w->layer);
    w->shape.layers = (uint32_t)layers;
    w->shape.layer = w->layer;
    return w->layer ? ST_OK : diag_no_memory(dg);
}

/* What a token reads of a layer besides its experts. */
static uint64_t dense_bytes(const struct layer *l)
{
    uint64_t sum = 0;
    for (size_t g = 0; g < GROUP_MAX; g++)
        if (g != GROUP_EXPERT)
            sum += l->weight_bytes[g];
    return sum;
}

static enum status want_model(struct wanted *w, const struct args *a, struct diag *dg)
{
    char catalogue[CATALOGUE_PATH_MAX];
    catalogue_dir(catalogue, sizeof catalogue, "models/desc");
    const char *name = args_text(a, "model"), *quant = args_text(a, "quant");
    enum status st = model_load(&w->model, name, catalogue, NULL, 0, dg);
    if (st == ST_OK && quant)
        st = model_requantise(w->model, quant, dg);
    if (st == ST_OK)
        st = want_layers(w, w->model->layer_count, dg);
    if (st != ST_OK)
        return st;
    if (model_experts(w->model) == 0)
        return diag_set(dg, ST_MISFIT, "%s: a model without routed experts has no routing", name);
    for (size_t l = 0; l < w->model->layer_count; l++)
        w->layer[l] = (struct trace_layer){.expert_bytes = w->model->layers[l].expert_bytes,
                                           .dense_bytes = dense_bytes(&w->model->layers[l])};
    w->shape.experts = (uint32_t)model_experts(w->model);
    w->shape.top_k = (uint32_t)model_top_k(w->model);
    return ST_OK;
}

/* Without a model, the setting that the preset was fitted in. */
static enum status want_setting(struct wanted *w, const struct preset *p, const struct args *a,
                                struct diag *dg)
{
    bool layers = args_given(a, "layers"), bytes = args_given(a, "expert-bytes");
    enum status st =
        want_layers(w, layers ? (size_t)args_count(a, "layers") : (size_t)p->setting.layers, dg);
    if (st != ST_OK)
        return st;
    uint64_t expert_bytes = bytes ? args_count(a, "expert-bytes") : p->setting.expert_bytes;
    for (uint32_t l = 0; l < w->shape.layers; l++)
        w->layer[l].expert_bytes = expert_bytes ? expert_bytes : 1;
    w->shape.experts = (uint32_t)p->setting.experts;
    w->shape.top_k = (uint32_t)p->setting.top_k;
    return ST_OK;
}

static enum status want(struct wanted *w, const struct preset *p, const struct args *a,
                        struct diag *dg)
{
    bool model = args_given(a, "model");
    if (model &&
        (args_given(a, "layers") || args_given(a, "experts") || args_given(a, "expert-bytes")))
        return diag_set(
            dg, ST_USAGE,
            "--layers, --experts and --expert-bytes are the model's where --model is given");
    if (!model && args_given(a, "quant"))
        return diag_set(dg, ST_USAGE, "--quant needs --model");
    enum status st = model ? want_model(w, a, dg) : want_setting(w, p, a, dg);
    if (args_given(a, "experts"))
        w->shape.experts = (uint32_t)args_count(a, "experts");
    if (args_given(a, "top-k"))
        w->shape.top_k = (uint32_t)args_count(a, "top-k");
    return st;
}

static enum status write_trace(const struct preset *p, const struct wanted *w, const struct args *a,
                               struct diag *dg)
{
    struct trace *t;
    const struct generate_plan plan = {
        .model = w->model ? w->model->name : p->name,
        .shape = w->shape,
        .seed = args_count(a, "seed"),
        .turns = (uint32_t)args_count(a, "turns"),
        .prompt = (uint32_t)args_count(a, "prompt"),
        .tokens = (uint32_t)args_count(a, "tokens"),
        .guess_distance = (uint32_t)args_count(a, "predict"),
        .guess_count = (uint32_t)args_count(a, "predict-k"),
    };
    enum status st = generate_trace(&t, &p->params, &plan, dg);
    if (st != ST_OK)
        return st;
    st = trace_save(t, args_text(a, "out"), dg);
    if (st == ST_OK)
        say("%s: %" PRIu32 " layers x %" PRIu32 " experts, top %" PRIu32 ", preset %s, %zu rows",
            args_text(a, "out"), t->layers, t->experts, t->top_k, p->name,
            t->row_count + t->guess_count);
    trace_free(t);
    return st;
}

static enum status run(struct args *a, struct diag *dg)
{
    char catalogue[CATALOGUE_PATH_MAX];
    catalogue_dir(catalogue, sizeof catalogue, "sim/trace/presets");
    size_t override_count;
    const char *const *overrides = args_list(a, "set", &override_count);
    struct preset *p;
    struct wanted w = {0};
    enum status st =
        preset_load(&p, args_text(a, "preset"), catalogue, overrides, override_count, dg);
    if (st != ST_OK)
        return st;
    st = want(&w, p, a, dg);
    if (st == ST_OK)
        st = write_trace(p, &w, a, dg);
    wanted_free(&w);
    preset_free(p);
    return st;
}

static const struct option options[] = {
    {.name = "preset",
     .type = OPTION_TEXT,
     .argument = "PRESET",
     .help = "routing behaviour: a name in sim/trace/presets, or a .yaml file",
     .required = true},
    {.name = "out",
     .type = OPTION_TEXT,
     .argument = "FILE",
     .help = "trace file to write; - is standard output",
     .required = true},
    {.name = "model",
     .type = OPTION_TEXT,
     .argument = "MODEL",
     .help = "layers, experts, top_k and sizes of this model (else those of the preset's setting)"},
    {.name = "quant",
     .type = OPTION_TEXT,
     .argument = "Q",
     .help = "format of the model's weights"},
    {.name = "layers",
     .type = OPTION_COUNT,
     .argument = "L",
     .help = "layers, all with experts",
     .min = 1,
     .max = TRACE_LAYERS_MAX},
    {.name = "experts",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "experts a layer",
     .min = 1,
     .max = TRACE_EXPERTS_MAX},
    {.name = "top-k",
     .type = OPTION_COUNT,
     .argument = "K",
     .help = "experts a token uses in a layer, also with --model",
     .min = 1,
     .max = GENERATE_TOP_K_MAX},
    {.name = "expert-bytes", .type = OPTION_SIZE, .argument = "SIZE", .help = "size of one expert"},
    {.name = "tokens",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "decoded tokens a turn",
     .fallback = "128",
     .max = 100000000},
    {.name = "prompt",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "prompt tokens a turn, read in one pass",
     .fallback = "0",
     .max = 100000000},
    {.name = "turns",
     .type = OPTION_COUNT,
     .argument = "N",
     .help = "turns, each with a topic of its own",
     .fallback = "1",
     .min = 1,
     .max = 100000000},
    {.name = "predict",
     .type = OPTION_COUNT,
     .argument = "D",
     .help = "predict the next D layers by their routers, run early on this layer's state",
     .fallback = "0",
     .max = TRACE_LAYERS_MAX},
    {.name = "predict-k",
     .type = OPTION_COUNT,
     .argument = "M",
     .help = "experts a prediction names (top_k if left out)",
     .min = 1,
     .max = GENERATE_TOP_K_MAX},
    {0}};

const struct command command_trace_generate = {
    .name = "trace generate",
    .summary = "a made-up routing trace that behaves like a real model's",
    .usage =
        "--preset PRESET [--model MODEL | --layers L --experts N --top-k K] --tokens N --out FILE",
    .example =
        "memwall trace generate --preset qwen3 --model qwen3-30b-a3b --prompt 32 --tokens 96 "
        "--out demo.trace.csv",
    .options = options,
    .run = run,
};

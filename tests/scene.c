/* scene.c -- see scene.h. */
#include "tests/scene.h"

static size_t sets_of(const struct scene *s, const char *part, const char *out[SETS_MAX])
{
    size_t count = 0, n = strlen(part);
    for (size_t i = 0; i < SETS_MAX && s->set[i]; i++)
        if (strncmp(s->set[i], part, n) == 0 && s->set[i][n] == ' ')
            out[count++] = s->set[i] + n + 1;
    return count;
}

struct world world_open(const struct scene *s)
{
    struct diag dg;
    struct world w = {0};
    const char *set[SETS_MAX];
    size_t n = sets_of(s, "model", set);
    assert_ok(model_load(&w.model, s->model, "models/desc", set, n, &dg));
    if (s->quant)
        assert_ok(model_requantise(w.model, s->quant, &dg));
    n = sets_of(s, "device", set);
    assert_ok(device_load(&w.device, s->device, "devices/desc", set, n, &dg));
    n = sets_of(s, "profile", set);
    assert_ok(profile_load(&w.profile, s->profile, "sim/pipeline/profiles", set, n, &dg));
    if (s->routing)
        assert_ok(preset_load(&w.preset, s->routing, "sim/trace/presets", NULL, 0, &dg));
    w.setup = (struct pipeline_setup){
        .model = w.model,
        .device = w.device,
        .profile = w.profile,
        .params = w.preset ? &w.preset->params : NULL,
        .tokens = 16,
        .policy = cache_policy_find(w.profile->policy),
        .prefetch = prefetch_policy_find(w.profile->prefetch),
        .scope = (enum scope)w.profile->scope,
        .evict = (enum evict_when)w.profile->evict,
        .overlap = -1,
        .state_bits = 256,
        .seed = 1,
    };
    return w;
}

void world_set_top_k(struct world *w, uint64_t top_k)
{
    for (size_t l = 0; l < w->model->layer_count; l++)
        if (w->model->layers[l].ffn.experts)
            w->model->layers[l].ffn.top_k = top_k;
}

void world_set_cache(struct world *w, uint64_t bytes)
{
    w->setup.cache_given = true;
    w->setup.cache_bytes = bytes;
    if (bytes == 0)
        w->setup.policy = cache_policy_find("none");
}

void world_set_prefetch(struct world *w, const char *name, uint32_t experts)
{
    w->setup.prefetch = name ? prefetch_policy_find(name) : NULL;
    w->setup.prefetch_experts_max = experts;
}

void world_close(struct world *w)
{
    model_free(w->model);
    device_free(w->device);
    profile_free(w->profile);
    preset_free(w->preset);
}

struct pipeline_result world_run(const struct world *w)
{
    struct diag dg;
    struct pipeline_result x;
    assert_ok(pipeline_run(&x, &w->setup, &dg));
    return x;
}

double rate(const struct pipeline_result *x)
{
    return (double)x->tokens * 1e9 / (double)x->decode_ns;
}

double world_rate(const struct world *w)
{
    struct pipeline_result x = world_run(w);
    return rate(&x);
}

double hit_ratio(const struct pipeline_result *x)
{
    return (double)x->hits / (double)x->lookups;
}

double bytes_per_token(const struct pipeline_result *x)
{
    return (double)x->flash_bytes / (double)x->tokens;
}

struct trace *made_up_turns(const char *preset, uint32_t layers, uint32_t experts, uint32_t top_k,
                            uint32_t turns, uint32_t tokens, uint64_t seed)
{
    struct diag dg;
    struct preset *p;
    struct trace *t;
    struct trace_layer *layer = calloc(layers, sizeof *layer);
    assert_non_null(layer);
    for (uint32_t l = 0; l < layers; l++)
        layer[l].expert_bytes = MIB;
    assert_ok(preset_load(&p, preset, "sim/trace/presets", NULL, 0, &dg));
    const struct generate_plan plan = {.model = "made up",
                                       .shape = {layers, experts, top_k, layer},
                                       .seed = seed,
                                       .turns = turns,
                                       .tokens = tokens};
    assert_ok(generate_trace(&t, &p->params, &plan, &dg));
    preset_free(p);
    free(layer);
    return t;
}

struct trace *made_up(const char *preset, uint32_t layers, uint32_t experts, uint32_t top_k,
                      uint32_t tokens)
{
    return made_up_turns(preset, layers, experts, top_k, 1, tokens, 5);
}

struct replay_result replay_lru(const struct trace *t, enum scope scope, uint64_t budget)
{
    struct diag dg;
    struct replay_result x;
    const struct replay_setup s = {.policy = cache_policy_find("lru"),
                                   .scope = scope,
                                   .evict = EVICT_AFTER,
                                   .budget_bytes = budget};
    assert_ok(replay_run(&x, t, &s, &dg));
    return x;
}

double decode_hits(const struct replay_result *x)
{
    return (double)x->decode_hits / (double)x->decode_lookups;
}

double bench_Bps(const struct storage *s, uint64_t bytes, uint32_t lanes)
{
    struct diag dg;
    uint64_t Bps;
    const struct drive_run run = {.bytes = bytes, .lanes = lanes};
    assert_ok(drive_run_benchmark(&Bps, s, &run, 50 * lanes, &dg));
    return (double)Bps;
}

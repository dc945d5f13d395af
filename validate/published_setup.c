#include "validate/published_setup.h"

#include "base/fixed.h"
#include "base/text.h"
#include "models/work.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Tokens that are counted, and those run before them at most: a warm cache, as in published runs. */
enum { TOKENS = 32, WARMUP_MAX = 512, PROMPT = 512, CATALOGUE_NAME_MAX = 96 };

/* Share of drafted tokens accepted where a draft is on and its acceptance was not published: 190 of 321, the
 * only public figure (slotstream, S5). */
#define ACCEPTANCE_USUAL UINT64_C(591900312)

void published_note(struct published_run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_list_v(r->note, sizeof r->note, "; ", format, args);
    va_end(args);
}

static uint64_t whole(struct published_number n)
{
    return n.value < 1.8e19 ? (uint64_t)(n.value + 0.5) : UINT64_MAX;
}

static uint64_t ratio(double x)
{
    return x <= 0 ? 0 : x >= 1 ? RATIO_ONE : (uint64_t)(x * 1e9 + 0.5);
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- the model ---- */

static void set_experts(struct model *m, uint64_t top_k, uint64_t bytes)
{
    for (size_t i = 0; i < m->layer_count; i++) {
        struct layer *l = &m->layers[i];
        if (l->ffn.experts == 0)
            continue;
        if (top_k)
            l->ffn.top_k = top_k < l->ffn.experts ? top_k : l->ffn.experts;
        if (bytes) {
            l->expert_bytes = bytes;
            l->weight_bytes[GROUP_EXPERT] = bytes * l->ffn.experts;
        }
    }
}

/* All weights but the experts, to the size that the engine keeps of them. */
static void scale_dense(struct model *m, uint64_t to)
{
    uint64_t from = model_weight_bytes(m) - model_experts_bytes(m);
    if (from == 0 || to == 0)
        return;
    m->bytes_embedding = fixed_mul_div(m->bytes_embedding, to, from);
    m->bytes_head = fixed_mul_div(m->bytes_head, to, from);
    m->bytes_final = fixed_mul_div(m->bytes_final, to, from);
    for (size_t i = 0; i < m->layer_count; i++)
        for (int g = 0; g < GROUP_MAX; g++)
            if (g != GROUP_EXPERT)
                m->layers[i].weight_bytes[g] =
                    fixed_mul_div(m->layers[i].weight_bytes[g], to, from);
}

static enum status load_model(struct published_run *r, const struct published_row *row,
                              const struct published_folders *f, struct diag *dg)
{
    char format[2][CATALOGUE_NAME_MAX];
    const char *overrides[2] = {format[0], format[1]};
    bool apart = *row->expert_quant && *row->quant;
    snprintf(format[0], sizeof format[0], "formats.default=%s", row->quant);
    snprintf(format[1], sizeof format[1], "formats.expert=%s", row->expert_quant);
    enum status st = model_load(&r->model, row->model, f->models, overrides, apart ? 2 : 0, dg);
    if (st == ST_OK && *row->quant && !apart)
        st = model_requantise(r->model, row->quant, dg);
    if (st != ST_OK)
        return st;
    if (!*row->quant)
        published_note(r, "quant_slug is missing: as published");
    set_experts(r->model, whole(row->top_k), whole(row->expert_bytes));
    return ST_OK;
}

/* ---- the engine ---- */

struct path_name {
    const char *text;
    enum io_path io;
    const char *profile; /* whose host costs it has, if the engine's own path is another */
};
static const struct path_name paths[] = {{"direct", IO_DIRECT, "generic"},
                                         {"page_cache", IO_BUFFERED, "airllm"},
                                         {"buffered", IO_BUFFERED, "airllm"},
                                         {"mmap", IO_MMAP, "llama.cpp-mmap"}};

static enum status change_path(struct published_run *r, const struct path_name *path,
                               const struct published_folders *f, struct diag *dg)
{
    bool mac = path->io == IO_MMAP && r->device->class_of == DEVICE_MAC;
    const char *costs = mac ? "macos-mmap" : path->profile;
    enum status st = profile_load(&r->path, costs, f->profiles, NULL, 0, dg);
    if (st != ST_OK)
        return st;
    r->profile->io = path->io;
    r->profile->copies = r->path->copies;
    r->profile->readahead = r->path->readahead;
    r->profile->fault = r->path->fault;
    r->profile->fault_bytes = r->path->fault_bytes;
    if (path->io == IO_MMAP) { /* a fault has no system calls, and all weights are mapped alike */
        r->profile->policy = r->path->policy;
        r->profile->submit = r->path->submit;
        r->profile->complete = r->path->complete;
        r->profile->wake_busy = r->path->wake_busy;
        r->profile->dense = r->path->dense;
    }
    return ST_OK;
}

static enum status load_profile(struct published_run *r, const struct published_row *row,
                                const struct published_folders *f, struct diag *dg)
{
    enum status st = profile_load(&r->profile, row->profile, f->profiles, NULL, 0, dg);
    for (size_t i = 0; st == ST_OK && i < sizeof paths / sizeof *paths; i++)
        if (is(row->io_mode, paths[i].text) && r->profile->io != (int)paths[i].io)
            return change_path(r, &paths[i], f, dg);
    return st;
}

struct policy_name {
    const char *text, *policy;
    int scope; /* -1: the profile's */
};
static const struct policy_name policies[] = {
    {"LRU global", "lru", SCOPE_GLOBAL},
    {"LRU per layer", "lru", SCOPE_LAYER},
    {"LRU per layer + pin", "lru", SCOPE_LAYER},
    {"LRU Metal buffers", "lru", SCOPE_GLOBAL},
    {"LFRU", "lfu-aged", SCOPE_LAYER},
    {"LFU-decay", "lfu-aged", SCOPE_GLOBAL},
    {"SLRU", "slru", SCOPE_GLOBAL},
    {"CLOCK global", "clock", SCOPE_GLOBAL},
    {"frequency-weighted VRAM cache over page cache", "lfu", SCOPE_GLOBAL},
    {"OS page cache", "none", -1},
    {"none", "none", -1},
};

static enum status set_policy(struct published_run *r, const struct published_row *row,
                              struct diag *dg)
{
    struct pipeline_setup *s = &r->setup;
    const char *name = r->profile->policy;
    s->scope = (enum scope)r->profile->scope;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        if (is(row->cache_policy, policies[i].text)) {
            name = policies[i].policy;
            if (policies[i].scope >= 0)
                s->scope = (enum scope)policies[i].scope;
        }
    if (is(row->cache_policy, "Belady"))
        return diag_set(dg, ST_UNSUPPORTED, "Belady needs the recorded trace: see replay");
    if (is(row->cache_policy, "frequency-weighted VRAM cache over page cache"))
        r->profile->cache_home = HOME_VRAM;
    s->policy = cache_policy_find(name);
    s->evict = (enum evict_when)r->profile->evict;
    const char *ahead = *row->prefetch ? row->prefetch : r->profile->prefetch;
    s->prefetch = is(ahead, "none") ? NULL : prefetch_policy_find(ahead);
    s->prefetch_distance = (uint32_t)r->profile->prefetch_distance.amount;
    s->prefetch_experts_max = (uint32_t)r->profile->prefetch_experts.amount;
    if (s->policy && (is(ahead, "none") || s->prefetch))
        return ST_OK;
    return diag_set(dg, ST_MISSING, "no policy '%s' or no prefetcher '%s'", name, ahead);
}

/* ---- memory ---- */

static void set_memory(struct published_run *r, const struct published_row *row)
{
    struct pipeline_setup *s = &r->setup;
    uint64_t capacity = r->device->dram.capacity.amount, cap = whole(row->dram_bytes);
    if (row->dram_bytes.given && cap > 0 && cap < capacity)
        s->memory_bytes = cap;
    if (s->policy->keeps_nothing)
        return;
    if (row->cache_bytes.given)
        s->cache_bytes = whole(row->cache_bytes);
    else if (row->cache_experts.given)
        s->cache_bytes = (uint64_t)(row->cache_experts.value * (double)model_moe_layers(r->model) *
                                    (double)model_expert_bytes_max(r->model));
    s->cache_given = s->cache_bytes > 0;
    uint64_t layers = s->scope == SCOPE_LAYER ? model_moe_layers(r->model) : 1;
    uint64_t least = layers * model_top_k(r->model) * model_expert_bytes_max(r->model);
    if (s->cache_given && s->cache_bytes < least) {
        published_note(r, "the cache holds less than a layer's choice: as if there were none");
        s->policy = cache_policy_find("none");
        s->cache_given = false;
    }
}

/* ---- routing ---- */

/* All experts stay in the memory that they are computed from or copied from: a run in its stride misses
 * nothing, whatever the router does. */
static bool all_stay(const struct published_run *r)
{
    const struct pipeline_setup *s = &r->setup;
    uint64_t experts = model_experts_bytes(r->model);
    uint64_t dense = model_weight_bytes(r->model) - experts, reserve = r->device->reserve.amount;
    uint64_t memory = s->memory_bytes ? s->memory_bytes + reserve : r->device->dram.capacity.amount;
    if (r->profile->dense != DENSE_RESIDENT || r->profile->cache_home == HOME_VRAM)
        return false;
    if (s->cache_given)
        return s->cache_bytes >= experts;
    return memory > reserve + dense && (memory - reserve - dense) / 100 * 95 > experts;
}

static enum status load_preset(struct published_run *r, const struct published_folders *f,
                               struct diag *dg)
{
    const char *name = r->model->router;
    if (!name) {
        name = "qwen3";
        published_note(r, "no routing preset of the model's: qwen3");
    }
    enum status st = preset_load(&r->preset, name, f->presets, NULL, 0, dg);
    if (st == ST_OK)
        r->setup.params = &r->preset->params;
    return st;
}

/* Tokens until the cache has been filled, if every look-up missed, and a cycle more. */
static uint64_t warm_tokens(const struct published_run *r)
{
    uint64_t cycle = model_token_cycle_bytes(r->model);
    uint64_t fill = r->setup.cache_given ? r->setup.cache_bytes : r->device->dram.capacity.amount;
    uint64_t tokens = cycle ? 4 * fill / cycle + 2 : 1;
    return tokens < WARMUP_MAX ? tokens : WARMUP_MAX;
}

/* Bytes that a token's look-ups ask for, uniting the experts of a pass. */
static double demand_bytes(const struct published_run *r, double produced)
{
    double sum = 0;
    for (size_t i = 0; i < r->model->layer_count; i++) {
        const struct layer *l = &r->model->layers[i];
        if (l->ffn.experts)
            sum +=
                (double)work_unique_experts_e3(l->ffn.experts, l->ffn.top_k, 1 + r->setup.draft) /
                1000.0 * (double)l->expert_bytes;
    }
    return sum / produced;
}

/* Tokens that a pass yields: 1 + a + a^2 + ... with acceptance a. */
static double produced_tokens(const struct pipeline_setup *s)
{
    double sum = 0, term = 1;
    for (uint32_t i = 0; i <= s->draft; i++) {
        sum += term;
        term *= (double)s->acceptance / 1e9;
    }
    return sum;
}

/* Bytes cost time, so they go before the hit ratio where the two differ, unless they are what was asked of a
 * page cache that holds an unknown part. */
static void set_hits(struct published_run *r, const struct published_row *row)
{
    double demand = demand_bytes(r, produced_tokens(&r->setup));
    bool below = row->bytes_per_token.given && row->bytes_per_token.value < 0.98 * demand &&
                 !is(row->cache_policy, "OS page cache");
    if (below || !row->hit_ratio.given)
        r->setup.hit_ratio = ratio(1 - row->bytes_per_token.value / demand);
    else
        r->setup.hit_ratio = ratio(row->hit_ratio.value);
}

static enum status set_routing(struct published_run *r, const struct published_row *row,
                               enum published_class class_of, const struct published_folders *f,
                               struct diag *dg)
{
    struct pipeline_setup *s = &r->setup;
    bool prefill = is(row->metric, "prefill_rate") || is(row->metric, "ttft");
    s->draft = (uint32_t)whole(row->draft);
    if (s->draft > 0) {
        s->acceptance = row->acceptance.given ? ratio(row->acceptance.value) : ACCEPTANCE_USUAL;
        if (!row->acceptance.given)
            published_note(r, "acceptance is missing: 0.59 of S5");
    }
    s->tokens = prefill ? 1 : TOKENS;
    s->context = whole(row->context_tokens);
    if (prefill)
        s->prompt_tokens = row->prefill_tokens.given ? whole(row->prefill_tokens) : PROMPT;
    if (prefill && !row->prefill_tokens.given)
        published_note(r, "prefill_tokens is missing: %d", PROMPT);
    bool known = row->hit_ratio.given || row->bytes_per_token.given;
    if (class_of >= PUBLISHED_HITS && known && !prefill) {
        set_hits(r, row);
        s->prefetch = NULL; /* what it brought is part of the hits or of the bytes */
        return ST_OK;
    }
    if (!prefill && all_stay(r)) {
        s->hit_ratio = RATIO_ONE;
        s->prefetch = NULL;
        return ST_OK;
    }
    s->warmup = prefill ? 0 : warm_tokens(r);
    if (s->warmup > 0 && row->gen_tokens.given) { /* as it was, from the engine's first token */
        s->warmup = 0;
        s->tokens = whole(row->gen_tokens);
        s->prompt_tokens = whole(row->prefill_tokens);
    }
    return load_preset(r, f, dg);
}

static void set_given(struct published_run *r, const struct published_row *row)
{
    struct pipeline_setup *s = &r->setup;
    int overlap = s->overlap >= 0 ? s->overlap : r->profile->overlap;
    s->given_compute_ns = (uint64_t)(row->compute_s.value * 1e9 + 0.5);
    if (row->io_s.given && overlap == OVERLAP_SERIAL)
        s->given_io_ns = (uint64_t)(row->io_s.value * 1e9 + 0.5);
    if (s->given_io_ns) { /* the seconds of a token's reads together, however many there were */
        s->params = NULL;
        s->hit_ratio = 0;
        s->warmup = 0;
    }
    if (s->draft > 0) { /* the seconds are those of a token that comes out, not of a pass */
        s->draft = 0;
        s->acceptance = 0;
    }
}

static int overlap_of(const struct published_row *row)
{
    if (is(row->overlap, "serial"))
        return OVERLAP_SERIAL;
    if (is(row->overlap, "expert") || is(row->overlap, "layer") || is(row->overlap, "prefetch"))
        return OVERLAP_EXPERT;
    return -1;
}

static void set_knobs(struct published_run *r, const struct published_row *row)
{
    struct pipeline_setup *s = &r->setup;
    bool engines_own = is(row->flash_kind, "curve") || is(row->flash_kind, "engine");
    s->overlap = overlap_of(row);
    if (row->flash_lanes.given && engines_own)
        s->lanes = whole(row->flash_lanes);
    if (r->profile->dense == DENSE_RESIDENT && row->dense_bytes.given)
        scale_dense(r->model, whole(row->dense_bytes));
    if (r->profile->dense == DENSE_STREAMED && row->dense_bytes.given)
        s->dense_bytes = whole(row->dense_bytes);
    s->model = r->model;
    s->device = r->device;
    s->profile = r->profile;
}

static enum status name_missing(const struct published_row *row, struct diag *dg)
{
    char text[64] = "";
    if (!*row->model)
        strcat(text, "model_slug");
    if (!*row->device)
        strcat(strcat(text, *text ? ", " : ""), "device_slug");
    if (!*row->profile)
        strcat(strcat(text, *text ? ", " : ""), "profile");
    return *text ? diag_set(dg, ST_MISSING, "missing: %s", text) : ST_OK;
}

enum status published_assemble(struct published_run *out, const struct published_row *row,
                               enum published_class class_of,
                               const struct published_folders *folders, uint64_t seed,
                               struct diag *dg)
{
    struct published_run *r = out;
    *r = (struct published_run){.setup = {.overlap = -1, .seed = seed, .state_bits = 256}};
    enum status st = name_missing(row, dg);
    if (st == ST_OK)
        st = load_model(r, row, folders, dg);
    if (st == ST_OK)
        st = device_load(&r->device, row->device, folders->devices, NULL, 0, dg);
    if (st == ST_OK)
        st = load_profile(r, row, folders, dg);
    if (st == ST_OK)
        st = set_policy(r, row, dg);
    if (st == ST_OK) {
        set_knobs(r, row);
        set_memory(r, row);
        st = set_routing(r, row, class_of, folders, dg);
    }
    if (st == ST_OK && class_of == PUBLISHED_GIVEN)
        set_given(r, row);
    return st;
}

void published_run_free(struct published_run *r)
{
    model_free(r->model);
    device_free(r->device);
    profile_free(r->profile);
    profile_free(r->path);
    preset_free(r->preset);
}

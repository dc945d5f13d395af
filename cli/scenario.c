/* scenario.c -- see scenario.h. */
#include "cli/scenario.h"

#include "cli/capture.h"
#include "cli/command.h"
#include "models/state.h"
#include "sim/pipeline/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const scenario_dense[] = {"resident", "stream", NULL};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* First key of PATH=VALUE is one of a model description. */
static bool is_model_path(const char *text)
{
    static const char *const keys[] = {
        "title",     "source",      "grade",           "router",  "layers",    "hidden", "vocab",
        "positions", "max_context", "tied_embeddings", "formats", "attention", "ffn",    NULL};
    size_t n = strcspn(text, ".=");
    for (const char *const *k = keys; *k; k++)
        if (strlen(*k) == n && memcmp(*k, text, n) == 0)
            return true;
    return false;
}

struct overrides {
    const char **model, **device, **profile;
    size_t model_count, device_count, profile_count;
    const char *top_k; /* text after "top_k=" */
};

static void sort_override(struct overrides *o, const char *text)
{
    if (starts_with(text, "top_k="))
        o->top_k = text + strlen("top_k=");
    else if (starts_with(text, "model."))
        o->model[o->model_count++] = text + strlen("model.");
    else if (starts_with(text, "profile."))
        o->profile[o->profile_count++] = text + strlen("profile.");
    else if (starts_with(text, "device."))
        o->device[o->device_count++] = text + strlen("device.");
    else if (is_model_path(text))
        o->model[o->model_count++] = text;
    else
        o->device[o->device_count++] = text;
}

/* A key of profiles without its prefix would be looked for in the device. */
static enum status check_prefix(const char *text, struct diag *dg)
{
    static const char *const shared[] = {"title", "source", NULL};
    size_t length = strcspn(text, "=");
    for (const char *const *s = shared; *s; s++)
        if (strlen(*s) == length && memcmp(*s, text, length) == 0)
            return ST_OK;
    if (!profile_is_key(text, length))
        return ST_OK;
    return diag_set(dg, ST_USAGE, "--set %s: no key of a device; perhaps profile.%s is meant", text,
                    text);
}

/* What a thing on the shelf was made of. NULL without memory. */
static char *shelf_key(const char *name, const char *const *override, size_t count)
{
    size_t room = strlen(name) + 1;
    for (size_t i = 0; i < count; i++)
        room += strlen(override[i]) + 1;
    char *key = malloc(room);
    if (!key)
        return NULL;
    strcpy(key, name);
    for (size_t i = 0; i < count; i++) {
        strcat(key, " ");
        strcat(key, override[i]);
    }
    return key;
}

static void release_model(void *model)
{
    model_free(model);
}

static void release_device(void *device)
{
    device_free(device);
}

static enum status load_device(struct scenario *s, const struct args *a, const struct overrides *o,
                               struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    const char *name = args_text(a, "device");
    char *key = shelf_key(name, o->device, o->device_count);
    if (!key)
        return diag_no_memory(dg);
    enum status st = ST_OK;
    s->device = shelf_find(a, "device", key);
    s->device_kept = s->device != NULL;
    if (!s->device)
        st = device_load(&s->device, name, catalogue_dir(folder, sizeof folder, "devices/desc"),
                         o->device, o->device_count, dg);
    if (st == ST_OK && !s->device_kept)
        s->device_kept = shelf_put(a, "device", key, s->device, release_device);
    free(key);
    return st;
}

enum status scenario_set_top_k(struct model *m, uint64_t top_k, struct diag *dg)
{
    for (size_t i = 0; i < m->layer_count; i++) {
        struct ffn *f = &m->layers[i].ffn;
        if (f->experts && top_k > f->experts)
            return diag_set(dg, ST_RANGE, "--top-k: a layer of %s has only %llu experts", m->name,
                            (unsigned long long)f->experts);
        f->top_k = f->experts ? top_k : f->top_k;
    }
    return ST_OK;
}

static enum status change_top_k(struct scenario *s, const struct args *a, const struct overrides *o,
                                struct diag *dg)
{
    uint64_t k = args_count(a, "top-k"), own = model_top_k(s->model);
    if (!args_given(a, "top-k") && !o->top_k)
        return ST_OK;
    if (o->top_k) {
        struct diag why;
        if (quantity_parse(&k, DIM_COUNT, o->top_k, QUANTITY_BARE_ALLOWED, &why) != ST_OK || k == 0)
            return diag_set(dg, ST_USAGE, "--set top_k: a whole number from 1, not '%s'", o->top_k);
    }
    if (own == 0)
        return diag_set(dg, ST_USAGE, "--top-k: %s has no routed experts to choose from",
                        s->model->name);
    s->changed_top_k = k != own;
    return scenario_set_top_k(s->model, k, dg);
}

static enum status change_experts(struct model *m, const char *format, struct diag *dg)
{
    struct diag why;
    if (model_experts(m) == 0)
        return diag_set(dg, ST_USAGE, "--expert-quant: %s has no routed experts", m->name);
    struct quant_mix mix;
    if (!quant_find(format) && quant_mix_find(&mix, format, &why) == ST_OK)
        return diag_set(dg, ST_USAGE,
                        "--expert-quant: %s is a mix of formats; experts take one, as %s", format,
                        mix.group[GROUP_EXPERT]->name);
    enum status st = model_requantise_experts(m, format, &why);
    return st == ST_OK ? ST_OK : diag_set(dg, st, "--expert-quant: %s", why.text);
}

/* The model in the formats and with the top_k that the options ask for. */
static enum status make_model(struct scenario *s, const struct args *a, const char *model,
                              const struct overrides *o, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX];
    enum status st =
        model_load(&s->model, model, catalogue_dir(folder, sizeof folder, "models/desc"), o->model,
                   o->model_count, dg);
    if (st == ST_OK && args_given(a, "quant"))
        st = model_requantise(s->model, args_text(a, "quant"), dg);
    if (st == ST_OK && args_given(a, "expert-quant"))
        st = change_experts(s->model, args_text(a, "expert-quant"), dg);
    return st == ST_OK ? change_top_k(s, a, o, dg) : st;
}

/* The same, from the shelf if it is there. */
static enum status load_model(struct scenario *s, const struct args *a, const char *model,
                              const struct overrides *o, struct diag *dg)
{
    char made[320];
    snprintf(made, sizeof made, "%s|%s|%s", model,
             args_given(a, "quant") ? args_text(a, "quant") : "",
             args_given(a, "expert-quant") ? args_text(a, "expert-quant") : "");
    bool cut = strlen(made) + 1 == sizeof made;
    bool keep = !cut && !o->top_k && !args_given(a, "top-k"); /* top_k is changed after loading */
    char *key = shelf_key(made, o->model, o->model_count);
    if (!key)
        return diag_no_memory(dg);
    enum status st = ST_OK;
    s->model = keep ? shelf_find(a, "model", key) : NULL;
    s->model_kept = s->model != NULL;
    if (!s->model)
        st = make_model(s, a, model, o, dg);
    if (st == ST_OK && !s->model_kept && keep)
        s->model_kept = shelf_put(a, "model", key, s->model, release_model);
    free(key);
    return st;
}

static enum status finish(struct scenario *s, const struct args *a, struct diag *dg)
{
    const char *state = args_text(a, "state-format");
    s->state_bits = state_bits_find(state);
    if (!s->state_bits)
        return diag_set(dg, ST_USAGE, "--state-format: no format named '%s'", state);
    return ST_OK;
}

enum status scenario_load(struct scenario *out, struct args *a, struct diag *dg)
{
    enum status st = scenario_load_model(out, a, args_positional(a, 0), dg);
    if (st != ST_OK || out->profile_count == 0)
        return st;
    scenario_free(out);
    return diag_set(dg, ST_USAGE, "--set profile.*: only `memwall sim` knows engine profiles");
}

enum status scenario_load_model(struct scenario *out, struct args *a, const char *model,
                                struct diag *dg)
{
    size_t count;
    const char *const *set = args_list(a, "set", &count);
    struct overrides o = {.model = calloc(count + 1, sizeof *o.model),
                          .device = calloc(count + 1, sizeof *o.device),
                          .profile = args_memory(a, (count + 1) * sizeof *o.profile)};
    *out = (struct scenario){0};
    enum status st = o.model && o.device && o.profile ? ST_OK : diag_no_memory(dg);
    for (size_t i = 0; st == ST_OK && i < count; i++)
        st = check_prefix(set[i], dg);
    if (st == ST_OK) {
        for (size_t i = 0; i < count; i++)
            sort_override(&o, set[i]);
        st = load_model(out, a, model, &o, dg);
    }
    if (st == ST_OK)
        st = load_device(out, a, &o, dg);
    if (st == ST_OK)
        st = finish(out, a, dg);
    out->profile = o.profile;
    out->profile_count = o.profile_count;
    free(o.model);
    free(o.device);
    if (st != ST_OK)
        scenario_free(out);
    return st;
}

void scenario_free(struct scenario *s)
{
    if (!s->model_kept)
        model_free(s->model);
    if (!s->device_kept)
        device_free(s->device);
    *s = (struct scenario){0};
}

enum status scenario_token_time(uint64_t *ns, const char *option, const char *text, struct diag *dg)
{
    struct diag why;
    uint64_t rate;
    if (quantity_parse(&rate, DIM_TOKEN_RATE, text, QUANTITY_UNIT_REQUIRED, &why) != ST_OK)
        return diag_set(dg, ST_USAGE, "--%s: %s", option, why.text);
    if (rate == 0)
        return diag_set(dg, ST_USAGE, "--%s: a rate above zero, not '%s'", option, text);
    *ns = UINT64_C(1000000000000000) / rate;
    return ST_OK;
}

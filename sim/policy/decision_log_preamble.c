/* decision_log_preamble.c -- the lines of a decision log that stand before its rows: what the decisions were set up with. */
#include "base/csv.h"
#include "sim/policy/decision_log_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status log_expected(const struct log_place *at, const char *what, struct diag *dg)
{
    return diag_set(dg, ST_PARSE, "%s:%zu: expected %s", at->path, at->line, what);
}

int log_index_of(const char *const *names, const char *text, size_t length)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
            return i;
    return -1;
}

/* Sets what a name stands for; false if there is none such. */
static bool take_name(struct log_preamble *p, enum log_name which, const char *text, size_t length)
{
    char name[40];
    struct decide_setup *s = &p->setup;
    int index = 0;
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), text);
    switch (which) {
    case LOG_POLICY:
        s->policy = cache_policy_find(name);
        p->name[which] = s->policy ? s->policy->name : NULL;
        return s->policy != NULL;
    case LOG_PREFETCH:
        s->prefetch = prefetch_policy_find(name);
        p->name[which] = s->prefetch ? s->prefetch->name : "none";
        return s->prefetch || strcmp(name, "none") == 0;
    case LOG_WHEN:
        index = log_index_of(log_when_names, text, length);
        p->timed = index == 1;
        p->name[which] = index < 0 ? NULL : log_when_names[index];
        return index >= 0;
    case LOG_SCOPE:
        index = log_index_of(scope_names, text, length);
        s->scope = index == 1 ? SCOPE_LAYER : SCOPE_GLOBAL;
        p->name[which] = scope_names[s->scope];
        return index >= 0;
    default:
        index = log_index_of(evict_names, text, length);
        s->evict = index == 1 ? EVICT_AFTER : EVICT_BEFORE;
        p->name[which] = evict_names[s->evict];
        return index >= 0;
    }
}

/* The text behind `# key=`, or NULL. */
static const char *value_of(const char *text, size_t length, const char *key, size_t *value_length)
{
    char head[64];
    size_t n = (size_t)snprintf(head, sizeof head, "# %s=", key);
    if (length < n || memcmp(text, head, n) != 0)
        return NULL;
    *value_length = length - n;
    return text + n;
}

static enum status on_layer(struct log_preamble *p, const struct log_place *at, const char *text,
                            size_t length, struct diag *dg)
{
    uint32_t layer = p->lines - 1 - LOG_NAMES - LOG_NUMBERS;
    char key[48], what[96];
    size_t n;
    snprintf(key, sizeof key, "layer=%" PRIu32 " expert_bytes", layer);
    const char *value = value_of(text, length, key, &n);
    uint64_t bytes;
    if (layer >= p->number[LOG_LAYERS])
        return log_expected(at, "rows after the last layer", dg);
    if (!value || !csv_u64((struct csv_field){value, n}, &bytes) || bytes > LOG_EXPERT_BYTES_MAX) {
        snprintf(what, sizeof what, "'# %s=N' of at most 2^40", key);
        return log_expected(at, what, dg);
    }
    p->expert_bytes[layer] = bytes;
    return ST_OK;
}

static enum status make_layers(struct log_preamble *p, const struct log_place *at, struct diag *dg)
{
    if (p->number[LOG_LAYERS] * p->number[LOG_EXPERTS] > LOG_KEYS_MAX)
        return log_expected(at, "at most 2^22 experts in all layers", dg);
    p->expert_bytes = calloc(p->number[LOG_LAYERS], sizeof *p->expert_bytes);
    return p->expert_bytes ? ST_OK : diag_no_memory(dg);
}

enum status log_preamble_line(struct log_preamble *p, const struct log_place *at, const char *text,
                              size_t length, struct diag *dg)
{
    char what[128];
    size_t n, i = p->lines++;
    if (i < LOG_NAMES) {
        const char *value = value_of(text, length, log_name_keys[i], &n);
        if (value && take_name(p, (enum log_name)i, value, n))
            return ST_OK;
        snprintf(what, sizeof what, "'# %s=' and a name that exists", log_name_keys[i]);
        return log_expected(at, what, dg);
    }
    i -= LOG_NAMES;
    if (i >= LOG_NUMBERS)
        return on_layer(p, at, text, length, dg);
    const struct log_range *x = &log_numbers[i];
    const char *value = value_of(text, length, x->key, &n);
    uint64_t *number = &p->number[i];
    if (!value || !csv_u64((struct csv_field){value, n}, number) || *number < x->least ||
        *number > x->most) {
        snprintf(what, sizeof what, "'# %s=N', from %" PRIu64 " to %" PRIu64, x->key, x->least,
                 x->most);
        return log_expected(at, what, dg);
    }
    return i == LOG_NUMBERS - 1 ? make_layers(p, at, dg) : ST_OK;
}

enum status log_preamble_end(struct log_preamble *p, const struct log_place *at, struct diag *dg)
{
    const uint64_t *n = p->number;
    struct decide_setup *s = &p->setup;
    if (p->lines < LOG_NAMES + LOG_NUMBERS || p->lines != LOG_NAMES + LOG_NUMBERS + n[LOG_LAYERS])
        return log_expected(at, "the whole preamble before the rows", dg);
    if (s->prefetch && (n[LOG_DISTANCE] == 0 || n[LOG_EXPERTS_MAX] == 0))
        return log_expected(at, "prefetch_distance and prefetch_experts_max above 0", dg);
    s->layers = (uint32_t)n[LOG_LAYERS];
    s->experts = (uint32_t)n[LOG_EXPERTS];
    s->expert_bytes = p->expert_bytes;
    s->budget_bytes = n[LOG_CACHE];
    s->prefetch_distance = (uint32_t)n[LOG_DISTANCE];
    s->prefetch_experts_max = (uint32_t)n[LOG_EXPERTS_MAX];
    s->prefetch_bytes_max = n[LOG_BYTES_MAX];
    s->seed = n[LOG_SEED];
    return ST_OK;
}

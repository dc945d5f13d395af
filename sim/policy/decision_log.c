/* decision_log.c -- see decision_log.h: writing. */
#include "sim/policy/decision_log.h"

#include "base/hash.h"
#include "base/outfile.h"
#include "sim/policy/decision_log_inside.h"

#include <inttypes.h>
#include <stdlib.h>

struct decision_log {
    struct outfile *file;
    bool timed;
    uint32_t pass, layer; /* of the last call that had them */
    uint64_t rows, hash;
};

/* ---- what reading shares ---- */

const char *const log_name_keys[LOG_NAMES] = {"policy", "prefetch", "when", "scope", "evict"};
const struct log_range log_numbers[LOG_NUMBERS] = {
    [LOG_LAYERS] = {"layers", 1, 4096},
    [LOG_EXPERTS] = {"experts", 1, UINT16_MAX},
    [LOG_CACHE] = {"cache_bytes", 0, INT64_MAX},
    [LOG_BATCH] = {"batch_bytes_max", 0, INT64_MAX},
    [LOG_DISTANCE] = {"prefetch_distance", 0, 4096},
    [LOG_EXPERTS_MAX] = {"prefetch_experts_max", 0, UINT32_MAX},
    [LOG_BYTES_MAX] = {"prefetch_bytes_max", 0, UINT64_MAX},
    [LOG_SEED] = {"seed", 0, UINT64_MAX},
};
const char *const log_when_names[] = {"ordered", "idle", NULL};
const char *const log_calls[] = {"batch", "predict", "layer_end", "resize", "landed", NULL};

int log_command_print(char text[LOG_COMMAND_TEXT_MAX], const struct decision *d)
{
    static const char letter[] = {
        [COMMAND_DEMAND] = 'd', [COMMAND_PREFETCH] = 'p', [COMMAND_DROP] = 'x'};
    int n = snprintf(text, LOG_COMMAND_TEXT_MAX, "%c%" PRIu32 ":%" PRIu32, letter[d->class_of],
                     d->key, d->slot);
    if (d->victim != NO_KEY)
        n += snprintf(text + n, (size_t)(LOG_COMMAND_TEXT_MAX - n), ":%" PRIu32, d->victim);
    return n;
}

uint64_t log_hash_setup(const char *const name[LOG_NAMES], const uint64_t number[LOG_NUMBERS],
                        const uint64_t *expert_bytes)
{
    uint64_t h = HASH_SEED;
    for (int i = 0; i < LOG_NAMES; i++)
        h = hash_add(h, hash_text(name[i]));
    for (int i = 0; i < LOG_NUMBERS; i++)
        h = hash_add(h, number[i]);
    for (uint64_t i = 0; i < number[LOG_LAYERS]; i++)
        h = hash_add(h, expert_bytes[i]);
    return h;
}

uint64_t log_hash_call(uint64_t h, enum log_call call, uint32_t pass, uint32_t layer)
{
    return hash_add(hash_add(hash_add(h, call), pass), layer);
}

/* ---- the preamble ---- */

static void write_preamble(struct decision_log *l, const struct decide_setup *s,
                           uint64_t batch_bytes_max)
{
    FILE *f = outfile_stream(l->file);
    const char *const name[LOG_NAMES] = {s->policy->name, s->prefetch ? s->prefetch->name : "none",
                                         log_when_names[l->timed], scope_names[s->scope],
                                         evict_names[s->evict]};
    const uint64_t number[LOG_NUMBERS] = {
        [LOG_LAYERS] = s->layers,
        [LOG_EXPERTS] = s->experts,
        [LOG_CACHE] = s->budget_bytes,
        [LOG_BATCH] = batch_bytes_max,
        [LOG_DISTANCE] = s->prefetch_distance,
        [LOG_EXPERTS_MAX] = s->prefetch_experts_max,
        [LOG_BYTES_MAX] = s->prefetch_bytes_max,
        [LOG_SEED] = s->seed,
    };
    fprintf(f, LOG_MAGIC "\n");
    for (int i = 0; i < LOG_NAMES; i++)
        fprintf(f, "# %s=%s\n", log_name_keys[i], name[i]);
    for (int i = 0; i < LOG_NUMBERS; i++)
        fprintf(f, "# %s=%" PRIu64 "\n", log_numbers[i].key, number[i]);
    for (uint32_t i = 0; i < s->layers; i++)
        fprintf(f, "# layer=%" PRIu32 " expert_bytes=%" PRIu64 "\n", i, s->expert_bytes[i]);
    fprintf(f, "call,pass,layer,argument,commands\n");
    l->hash = log_hash_setup(name, number, s->expert_bytes);
}

enum status decision_log_open(struct decision_log **out, const char *path,
                              const struct decide_setup *s, uint64_t batch_bytes_max, bool timed,
                              struct diag *dg)
{
    if (s->rank)
        return diag_set(dg, ST_UNSUPPORTED, "%s: a decision log cannot hold a hot list", path);
    struct decision_log *l = calloc(1, sizeof *l);
    if (!l)
        return diag_no_memory(dg);
    l->timed = timed;
    enum status st = outfile_open(&l->file, path, dg);
    if (st != ST_OK) {
        free(l);
        return st;
    }
    write_preamble(l, s, batch_bytes_max);
    *out = l;
    return ST_OK;
}

/* ---- rows ---- */

static FILE *begin_row(struct decision_log *l, enum log_call call, uint32_t pass, uint32_t layer)
{
    FILE *f = outfile_stream(l->file);
    l->pass = pass;
    l->layer = layer;
    l->rows++;
    l->hash = log_hash_call(l->hash, call, pass, layer);
    fprintf(f, "%s,%" PRIu32 ",%" PRIu32 ",", log_calls[call], pass, layer);
    return f;
}

static void write_ids(struct decision_log *l, FILE *f, const uint16_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(f, i ? " %u" : "%u", ids[i]);
        l->hash = hash_add(l->hash, ids[i]);
    }
}

static void end_row(FILE *f, const struct decision *d, size_t count)
{
    char text[LOG_COMMAND_TEXT_MAX];
    for (size_t i = 0; i < count; i++) {
        log_command_print(text, &d[i]);
        fprintf(f, "%c%s", i ? ' ' : ',', text);
    }
    fputs(count ? "\n" : ",\n", f);
}

void decision_log_batch(struct decision_log *l, uint32_t pass, uint32_t layer, const uint16_t *ids,
                        size_t n, const struct decision *d, size_t count)
{
    if (!l)
        return;
    FILE *f = begin_row(l, LOG_CALL_BATCH, pass, layer);
    write_ids(l, f, ids, n);
    end_row(f, d, count);
}

void decision_log_predict(struct decision_log *l, uint32_t pass, uint32_t layer, uint32_t target,
                          const uint16_t *ids, size_t n, const struct decision *d, size_t count)
{
    if (!l)
        return;
    FILE *f = begin_row(l, LOG_CALL_PREDICT, pass, layer);
    fprintf(f, n ? "%" PRIu32 " " : "%" PRIu32, target);
    l->hash = hash_add(l->hash, target);
    write_ids(l, f, ids, n);
    end_row(f, d, count);
}

void decision_log_layer_end(struct decision_log *l, uint32_t pass, uint32_t layer,
                            const struct decision *d, size_t count)
{
    if (l)
        end_row(begin_row(l, LOG_CALL_END, pass, layer), d, count);
}

static void write_number(struct decision_log *l, enum log_call call, uint64_t number,
                         const struct decision *d, size_t count)
{
    FILE *f = begin_row(l, call, l->pass, l->layer);
    fprintf(f, "%" PRIu64, number);
    l->hash = hash_add(l->hash, number);
    end_row(f, d, count);
}

void decision_log_resize(struct decision_log *l, uint64_t budget_bytes, const struct decision *d,
                         size_t count)
{
    if (l)
        write_number(l, LOG_CALL_RESIZE, budget_bytes, d, count);
}

void decision_log_landed(struct decision_log *l, uint32_t key)
{
    if (l && l->timed)
        write_number(l, LOG_CALL_LANDED, key, NULL, 0);
}

/* ---- the end ---- */

enum status decision_log_close(struct decision_log *l, uint64_t command_hash, struct diag *dg)
{
    fprintf(outfile_stream(l->file),
            "# end rows=%" PRIu64 " arguments=%016" PRIx64 " commands=%016" PRIx64 "\n", l->rows,
            l->hash, command_hash);
    enum status st = outfile_commit(l->file, dg);
    free(l);
    return st;
}

void decision_log_abandon(struct decision_log *l)
{
    if (!l)
        return;
    outfile_abandon(l->file);
    free(l);
}

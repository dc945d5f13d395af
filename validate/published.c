/* published.c -- see published.h. One table of columns is reader, and who may read what. */
#include "validate/published.h"

#include "base/csv.h"
#include "base/text.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const published_class_names[] = {"blind", "hits", "given", NULL};

enum kind { KIND_TEXT, KIND_NUMBER };

/* What a number may be. The least and the most lie far outside every published run and inside what the
 * simulator's 64-bit nanoseconds and bytes hold: a time below 1 ns would round to none at all. */
enum range {
    ANY,
    RATIO,
    SECONDS,
    SECONDS_OR_NONE,
    BYTES,
    EXPERT_BYTES,
    RATE,
    COUNT,
    COUNT_OR_NONE,
    MEAN, /* of counts: may have a fraction */
    MEAN_OR_NONE,
    DRAFT,
    TOKENS
};

struct limits {
    double least, most;
    const char *text;
    bool whole;
};
static const struct limits limits[] = {
    [ANY] = {0, DBL_MAX, "a number from 0", false},
    [RATIO] = {0, 1, "a ratio from 0 to 1", false},
    [SECONDS] = {1e-9, 86400, "seconds from 1e-9 to 86400", false},
    [SECONDS_OR_NONE] = {0, 86400, "seconds from 0 to 86400", false},
    [BYTES] = {0, 1e15, "bytes from 0 to 1e15", false},
    [EXPERT_BYTES] = {0, 1e12, "bytes from 0 to 1e12", false},
    [RATE] = {1, 1e15, "bytes a second from 1 to 1e15", false},
    [COUNT] = {1, 1e6, "a whole number from 1 to 1e6", true},
    [COUNT_OR_NONE] = {0, 1e6, "a whole number from 0 to 1e6", true},
    [MEAN] = {1, 1e6, "a number from 1 to 1e6", false},
    [MEAN_OR_NONE] = {0, 1e6, "a number from 0 to 1e6", false},
    [DRAFT] = {0, 64, "a whole number from 0 to 64", true},
    [TOKENS] = {0, 1e7, "whole tokens from 0 to 1e7", true},
};

/* The lowest class that may read a column; PUBLISHED_CLASSES: none may. */
struct field {
    const char *column;
    size_t offset;
    enum kind kind;
    enum published_class from;
    bool required;
    enum range range;
};

#define TEXT(member, column, from)                                                                 \
    {                                                                                              \
        column, offsetof(struct published_row, member), KIND_TEXT, from, false, ANY                \
    }
#define NUMBER(member, column, from, range)                                                        \
    {                                                                                              \
        column, offsetof(struct published_row, member), KIND_NUMBER, from, false, range            \
    }

/* flash_Bps is shown to rows of rule identity alone, which are arithmetic (published_mask). */
static const struct field fields[] = {
    {"id", offsetof(struct published_row, id), KIND_TEXT, PUBLISHED_BLIND, true, ANY},
    {"metric", offsetof(struct published_row, metric), KIND_TEXT, PUBLISHED_BLIND, true, ANY},
    {"unit", offsetof(struct published_row, unit), KIND_TEXT, PUBLISHED_BLIND, true, ANY},
    {"value", offsetof(struct published_row, value), KIND_NUMBER, PUBLISHED_CLASSES, true, ANY},
    TEXT(engine, "engine", PUBLISHED_BLIND),
    TEXT(grade, "grade", PUBLISHED_BLIND),
    TEXT(model, "model_slug", PUBLISHED_BLIND),
    TEXT(device, "device_slug", PUBLISHED_BLIND),
    TEXT(profile, "profile", PUBLISHED_BLIND),
    TEXT(quant, "quant_slug", PUBLISHED_BLIND),
    TEXT(expert_quant, "expert_quant_slug", PUBLISHED_BLIND),
    TEXT(cache_policy, "cache_policy", PUBLISHED_BLIND),
    TEXT(io_mode, "io_mode", PUBLISHED_BLIND),
    TEXT(overlap, "overlap", PUBLISHED_BLIND),
    TEXT(prefetch, "prefetch", PUBLISHED_BLIND),
    TEXT(flash_kind, "flash_kind", PUBLISHED_BLIND),
    TEXT(rule, "rule", PUBLISHED_BLIND),
    NUMBER(value_low, "value_low", PUBLISHED_CLASSES, ANY),
    NUMBER(value_high, "value_high", PUBLISHED_CLASSES, ANY),
    NUMBER(tolerance_percent, "tolerance_percent", PUBLISHED_CLASSES, ANY),
    NUMBER(top_k, "top_k", PUBLISHED_BLIND, COUNT),
    NUMBER(layers_moe, "layers_moe", PUBLISHED_BLIND, COUNT_OR_NONE),
    NUMBER(experts, "experts_per_layer", PUBLISHED_BLIND, COUNT_OR_NONE),
    NUMBER(expert_bytes, "expert_bytes", PUBLISHED_BLIND, EXPERT_BYTES),
    NUMBER(dense_bytes, "resident_dense_bytes", PUBLISHED_BLIND, BYTES),
    NUMBER(flash_Bps, "flash_Bps", PUBLISHED_CLASSES, RATE),
    NUMBER(flash_lanes, "flash_lanes", PUBLISHED_BLIND, MEAN),
    NUMBER(dram_bytes, "dram_total_bytes", PUBLISHED_BLIND, BYTES),
    NUMBER(cache_bytes, "cache_bytes", PUBLISHED_BLIND, BYTES),
    NUMBER(cache_experts, "cache_experts_per_layer", PUBLISHED_BLIND, MEAN_OR_NONE),
    NUMBER(draft, "draft", PUBLISHED_BLIND, DRAFT),
    NUMBER(acceptance, "acceptance", PUBLISHED_BLIND, RATIO),
    NUMBER(hit_ratio, "hit_ratio", PUBLISHED_HITS, RATIO),
    NUMBER(bytes_per_token, "bytes_per_token", PUBLISHED_HITS, BYTES),
    NUMBER(recall, "recall", PUBLISHED_HITS, RATIO),
    NUMBER(compute_s, "compute_s_per_token", PUBLISHED_GIVEN, SECONDS),
    NUMBER(io_s, "io_s_per_token", PUBLISHED_GIVEN, SECONDS_OR_NONE),
    NUMBER(prefill_tokens, "prefill_tokens", PUBLISHED_BLIND, TOKENS),
    NUMBER(context_tokens, "context_tokens", PUBLISHED_BLIND, TOKENS),
    NUMBER(gen_tokens, "gen_tokens", PUBLISHED_BLIND, COUNT),
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* ---- reading ---- */

struct reading {
    struct published *out;
    const char *path;
    size_t room;
};

static const char *keep(struct reading *r, struct csv_field f)
{
    char *text = arena_alloc(&r->out->arena, f.length + 1);
    if (text)
        memcpy(text, f.text, f.length);
    return text;
}

static enum status take_field(struct reading *r, struct published_row *row, size_t i,
                              struct csv_field f, struct diag *dg)
{
    char *at = (char *)row + fields[i].offset;
    if (fields[i].kind == KIND_TEXT) {
        const char *text = keep(r, f);
        if (!text)
            return diag_no_memory(dg);
        memcpy(at, &text, sizeof text);
        return ST_OK;
    }
    struct published_number n = {0};
    const struct limits *l = &limits[fields[i].range];
    bool fits = f.length == 0 || (csv_double(f, &n.value) && n.value >= l->least &&
                                  n.value <= l->most && (!l->whole || n.value == floor(n.value)));
    if (!fits)
        return diag_set(dg, ST_PARSE, "%s:%zu: %s: %s, not '%.*s'", r->path, row->line,
                        fields[i].column, l->text, (int)f.length, f.text);
    n.given = f.length > 0;
    memcpy(at, &n, sizeof n);
    return ST_OK;
}

/* What texts of a column may say; every one may be empty. */
struct choices {
    const char *column;
    size_t offset;
    const char *const *names;
};
static const char *const rules[] = {"des", "replay", "identity", "bound", "fitted", "trend", NULL};
static const char *const overlaps[] = {"serial", "expert", "layer", "prefetch", "unknown", NULL};
static const char *const paths[] = {"direct", "page_cache", "buffered", "mmap", NULL};
static const char *const flash_kinds[] = {"sequential", "random", "curve", "engine", NULL};
static const char *const grades[] = {"A", "B", "C", NULL};
static const char *const policies[] = {"none",
                                       "OS page cache",
                                       "LRU global",
                                       "LRU per layer",
                                       "LRU per layer + pin",
                                       "LRU Metal buffers",
                                       "LFRU",
                                       "LFU-decay",
                                       "SLRU",
                                       "CLOCK global",
                                       "Belady",
                                       "hot-list then recency",
                                       "frequency-weighted VRAM cache over page cache",
                                       NULL};
static const struct choices choices[] = {
    {"rule", offsetof(struct published_row, rule), rules},
    {"overlap", offsetof(struct published_row, overlap), overlaps},
    {"io_mode", offsetof(struct published_row, io_mode), paths},
    {"flash_kind", offsetof(struct published_row, flash_kind), flash_kinds},
    {"cache_policy", offsetof(struct published_row, cache_policy), policies},
    {"grade", offsetof(struct published_row, grade), grades},
};

static enum status check_choices(const char *path, const struct published_row *row, struct diag *dg)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        char list[400] = "";
        const char *text;
        memcpy(&text, (const char *)row + choices[i].offset, sizeof text);
        bool known = !*text;
        for (const char *const *n = choices[i].names; *n && !known; n++) {
            known = strcmp(*n, text) == 0;
            text_list(list, sizeof list, ", ", "%s", *n);
        }
        if (!known)
            return diag_set(dg, ST_PARSE, "%s:%zu: %s: one of %s, not '%s'", path, row->line,
                            choices[i].column, list, text);
    }
    return ST_OK;
}

/* What columns say together. Only a hit ratio can be 0 and measured. */
static enum status check(const struct reading *r, const struct published_row *row, struct diag *dg)
{
    const char *path = r->out->path;
    bool hits = strcmp(row->metric, "hit_ratio") == 0;
    if (!*row->id || !row->value.given)
        return diag_set(dg, ST_PARSE, "%s:%zu: a row has an id and a value", path, row->line);
    if (!hits && row->value.value <= 0)
        return diag_set(dg, ST_PARSE, "%s:%zu: value: a %s above 0", path, row->line, row->metric);
    if (hits && row->value.value > 1)
        return diag_set(dg, ST_PARSE, "%s:%zu: value: a hit_ratio of 0 to 1", path, row->line);
    if (row->value_low.given != row->value_high.given ||
        row->value_low.value > row->value_high.value)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: value_low, value_high: both or neither, the lower one first", path,
                        row->line);
    if (row->experts.given && row->top_k.value > row->experts.value)
        return diag_set(dg, ST_PARSE, "%s:%zu: top_k: at most the %.0f experts_per_layer, not %g",
                        path, row->line, row->experts.value, row->top_k.value);
    return ST_OK;
}

static enum status take_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    struct published *out = r->out;
    if (out->count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct published_row *more = arena_alloc(&out->arena, room * sizeof *more);
        if (!more)
            return diag_no_memory(dg);
        if (out->count > 0)
            memcpy(more, out->rows, out->count * sizeof *more);
        out->rows = more;
        r->room = room;
    }
    struct published_row *row = &out->rows[out->count];
    *row = (struct published_row){.line = line};
    for (size_t i = 0; i < FIELDS; i++) {
        enum status st = take_field(r, row, i, f[i], dg);
        if (st != ST_OK)
            return st;
    }
    out->count++;
    enum status st = check(r, row, dg);
    return st == ST_OK ? check_choices(out->path, row, dg) : st;
}

enum status published_load(struct published *out, const char *path, struct diag *dg)
{
    struct csv_column columns[FIELDS];
    for (size_t i = 0; i < FIELDS; i++)
        columns[i] = (struct csv_column){fields[i].column, fields[i].required};
    *out = (struct published){0};
    struct reading r = {out, path, 0};
    out->path = keep(&r, (struct csv_field){path, strlen(path)});
    if (!out->path) {
        published_free(out);
        return diag_no_memory(dg);
    }
    enum status st = csv_read(path, columns, FIELDS, true, take_row, NULL, &r, dg);
    if (st != ST_OK)
        published_free(out);
    return st;
}

void published_free(struct published *p)
{
    arena_free(&p->arena);
    *p = (struct published){0};
}

/* ---- classes ---- */

/* The I/O seconds of an overlapped run are what was left of it to wait for: an outcome. */
static bool reads_overlap(const struct published_row *row)
{
    return strcmp(row->overlap, "expert") == 0 || strcmp(row->overlap, "layer") == 0 ||
           strcmp(row->overlap, "prefetch") == 0;
}

bool published_allows(const struct published_row *row, enum published_class class_of)
{
    bool demand = strcmp(row->cache_policy, "OS page cache") == 0; /* bytes asked of the cache */
    bool hits = row->hit_ratio.given || (row->bytes_per_token.given && !demand);
    bool io = row->io_s.given && !reads_overlap(row);
    switch (class_of) {
    case PUBLISHED_BLIND:
        return true;
    case PUBLISHED_HITS:
        return hits;
    default:
        return row->compute_s.given && (io || hits);
    }
}

struct published_row published_mask(const struct published_row *row, enum published_class class_of)
{
    struct published_row masked = *row;
    bool arithmetic = strcmp(row->rule, "identity") == 0 && class_of >= PUBLISHED_HITS;
    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].from <= class_of ||
            (arithmetic && strcmp(fields[i].column, "flash_Bps") == 0))
            continue;
        assert(fields[i].kind == KIND_NUMBER && "only numbers are ever hidden");
        memset((char *)&masked + fields[i].offset, 0, sizeof(struct published_number));
    }
    if (reads_overlap(row))
        masked.io_s = (struct published_number){0};
    return masked;
}

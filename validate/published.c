/* published.c -- see published.h. One table of columns is reader, and who may read what. */
#include "validate/published.h"

#include "base/csv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const published_class_names[] = {"blind", "hits", "given", NULL};

enum kind { KIND_TEXT, KIND_NUMBER };

/* The lowest class that may read a column; PUBLISHED_CLASSES: none may. */
struct field {
    const char *column;
    size_t offset;
    enum kind kind;
    enum published_class from;
    bool required;
};

#define TEXT(member, column, from)                                                                 \
    {                                                                                              \
        column, offsetof(struct published_row, member), KIND_TEXT, from, false                     \
    }
#define NUMBER(member, column, from)                                                               \
    {                                                                                              \
        column, offsetof(struct published_row, member), KIND_NUMBER, from, false                   \
    }

/* flash_Bps is shown to rows of rule identity alone, which are arithmetic (published_mask). */
static const struct field fields[] = {
    {"id", offsetof(struct published_row, id), KIND_TEXT, PUBLISHED_BLIND, true},
    {"metric", offsetof(struct published_row, metric), KIND_TEXT, PUBLISHED_BLIND, true},
    {"unit", offsetof(struct published_row, unit), KIND_TEXT, PUBLISHED_BLIND, true},
    {"value", offsetof(struct published_row, value), KIND_NUMBER, PUBLISHED_CLASSES, true},
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
    NUMBER(value_low, "value_low", PUBLISHED_CLASSES),
    NUMBER(value_high, "value_high", PUBLISHED_CLASSES),
    NUMBER(tolerance_percent, "tolerance_percent", PUBLISHED_CLASSES),
    NUMBER(top_k, "top_k", PUBLISHED_BLIND),
    NUMBER(layers_moe, "layers_moe", PUBLISHED_BLIND),
    NUMBER(experts, "experts_per_layer", PUBLISHED_BLIND),
    NUMBER(expert_bytes, "expert_bytes", PUBLISHED_BLIND),
    NUMBER(dense_bytes, "resident_dense_bytes", PUBLISHED_BLIND),
    NUMBER(flash_Bps, "flash_Bps", PUBLISHED_CLASSES),
    NUMBER(flash_lanes, "flash_lanes", PUBLISHED_BLIND),
    NUMBER(dram_bytes, "dram_total_bytes", PUBLISHED_BLIND),
    NUMBER(cache_bytes, "cache_bytes", PUBLISHED_BLIND),
    NUMBER(cache_experts, "cache_experts_per_layer", PUBLISHED_BLIND),
    NUMBER(draft, "draft", PUBLISHED_BLIND),
    NUMBER(acceptance, "acceptance", PUBLISHED_BLIND),
    NUMBER(hit_ratio, "hit_ratio", PUBLISHED_HITS),
    NUMBER(bytes_per_token, "bytes_per_token", PUBLISHED_HITS),
    NUMBER(recall, "recall", PUBLISHED_HITS),
    NUMBER(compute_s, "compute_s_per_token", PUBLISHED_GIVEN),
    NUMBER(io_s, "io_s_per_token", PUBLISHED_GIVEN),
    NUMBER(prefill_tokens, "prefill_tokens", PUBLISHED_BLIND),
    NUMBER(context_tokens, "context_tokens", PUBLISHED_BLIND),
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
    if (f.length > 0 && (!csv_double(f, &n.value) || n.value < 0))
        return diag_set(dg, ST_PARSE, "%s:%zu: %s: a number from 0, not '%.*s'", r->path, row->line,
                        fields[i].column, (int)f.length, f.text);
    n.given = f.length > 0;
    memcpy(at, &n, sizeof n);
    return ST_OK;
}

static bool is_ratio(struct published_number n)
{
    return !n.given || n.value <= 1;
}

static enum status check(const struct reading *r, const struct published_row *row, struct diag *dg)
{
    if (!*row->id || !row->value.given)
        return diag_set(dg, ST_PARSE, "%s:%zu: a row has an id and a value", r->path, row->line);
    if (!is_ratio(row->hit_ratio) || !is_ratio(row->recall) || !is_ratio(row->acceptance))
        return diag_set(dg, ST_PARSE, "%s:%zu: hit_ratio, recall and acceptance lie in 0..1",
                        r->path, row->line);
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
    return check(r, row, dg);
}

enum status published_load(struct published *out, const char *path, struct diag *dg)
{
    struct csv_column columns[FIELDS];
    for (size_t i = 0; i < FIELDS; i++)
        columns[i] = (struct csv_column){fields[i].column, fields[i].required};
    *out = (struct published){0};
    struct reading r = {out, path, 0};
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

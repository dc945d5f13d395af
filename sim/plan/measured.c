/* measured.c -- see measured.h. */
#include "sim/plan/measured.h"

#include "base/csv.h"

#include <stdlib.h>
#include <string.h>

enum field {
    FIELD_ID,
    FIELD_MODEL,
    FIELD_DEVICE,
    FIELD_QUANT,
    FIELD_TOP_K,
    FIELD_CACHE,
    FIELD_OVERLAP,
    FIELD_ENGINE,
    FIELD_RATE,
    FIELD_SOURCE,
    FIELD_COUNT
};

static const struct csv_column columns[FIELD_COUNT] = {
    {"id", true},        {"model", true},       {"device", true},  {"quant", true},
    {"top_k", true},     {"cache_bytes", true}, {"overlap", true}, {"engine", true},
    {"tok_per_s", true}, {"source", true},
};

struct search {
    const struct measured_query *query;
    struct measured_run *best;
    size_t room, count;
};

static void copy(char *to, size_t size, struct csv_field from)
{
    size_t n = from.length < size - 1 ? from.length : size - 1;
    memcpy(to, from.text, n);
    to[n] = 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Negative if a is nearer. The published order breaks ties, because equals keep their places. */
static int nearer(const struct measured_run *a, const struct measured_run *b,
                  const struct measured_query *q)
{
    if (a->likeness != b->likeness)
        return a->likeness < b->likeness ? -1 : 1;
    if ((a->top_k == q->top_k) != (b->top_k == q->top_k))
        return a->top_k == q->top_k ? -1 : 1;
    bool serial_a = strcmp(a->overlap, "serial") == 0, serial_b = strcmp(b->overlap, "serial") == 0;
    if ((serial_a == q->serial) != (serial_b == q->serial))
        return serial_a == q->serial ? -1 : 1;
    if (a->cache_given != b->cache_given)
        return a->cache_given ? -1 : 1;
    uint64_t far_a = distance(a->cache, q->cache), far_b = distance(b->cache, q->cache);
    return far_a < far_b ? -1 : far_a > far_b;
}

static void consider(struct search *s, const struct measured_run *run)
{
    size_t at = s->count;
    while (at > 0 && nearer(run, &s->best[at - 1], s->query) < 0)
        at--;
    if (at == s->room)
        return;
    size_t last = s->count < s->room ? s->count++ : s->room - 1;
    memmove(&s->best[at + 1], &s->best[at], (last - at) * sizeof *run);
    s->best[at] = *run;
}

static enum status take_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct search *s = self;
    struct measured_run run = {0};
    bool model = csv_equal(f[FIELD_MODEL], s->query->model);
    bool device = csv_equal(f[FIELD_DEVICE], s->query->device);
    (void)line;
    (void)dg;
    if (!model && !device)
        return ST_OK;
    run.likeness = model && device ? LIKE_BOTH : model ? LIKE_MODEL : LIKE_DEVICE;
    copy(run.id, sizeof run.id, f[FIELD_ID]);
    copy(run.model, sizeof run.model, f[FIELD_MODEL]);
    copy(run.device, sizeof run.device, f[FIELD_DEVICE]);
    copy(run.quant, sizeof run.quant, f[FIELD_QUANT]);
    copy(run.overlap, sizeof run.overlap, f[FIELD_OVERLAP]);
    copy(run.engine, sizeof run.engine, f[FIELD_ENGINE]);
    copy(run.tok_per_s, sizeof run.tok_per_s, f[FIELD_RATE]);
    copy(run.source, sizeof run.source, f[FIELD_SOURCE]);
    run.cache_given = csv_u64(f[FIELD_CACHE], &run.cache);
    if (!csv_u64(f[FIELD_TOP_K], &run.top_k))
        run.top_k = 0;
    consider(s, &run);
    return ST_OK;
}

enum status measured_nearest(struct measured_run *out, size_t room, size_t *count, const char *path,
                             const struct measured_query *q, struct diag *dg)
{
    struct search s = {.query = q, .best = out, .room = room};
    enum status st = csv_read(path, columns, FIELD_COUNT, true, take_row, NULL, &s, dg);
    *count = 0;
    while (st == ST_OK && *count < s.count && out[*count].likeness == out[0].likeness)
        ++*count;
    return st;
}

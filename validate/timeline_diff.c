/* timeline_diff.c -- see timeline_diff.h. */
#include "validate/timeline_diff.h"

#include "base/json.h"
#include "base/stats.h"
#include "sim/trace/timeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const operations[DIFF_OPERATIONS] = {
    TIMELINE_FIXED, TIMELINE_SHARED,   TIMELINE_EXPERT, TIMELINE_HEAD,
    TIMELINE_READ,  TIMELINE_PREFETCH, TIMELINE_STALL};

/* One operation in one layer of one pass. */
struct place {
    uint64_t pass, layer; /* layer UINT64_MAX: of the pass as a whole */
    int operation;
    double sum_us, start_us, end_us;
};

struct places {
    struct place *list;
    size_t count, room;
};

static bool is_burst(int operation)
{
    return strcmp(operations[operation], TIMELINE_READ) == 0 ||
           strcmp(operations[operation], TIMELINE_PREFETCH) == 0;
}

static enum status add(struct places *p, const struct place *x, struct diag *dg)
{
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 1024;
        struct place *more = realloc(p->list, room * sizeof *more);
        if (!more)
            return diag_no_memory(dg);
        p->list = more;
        p->room = room;
    }
    p->list[p->count++] = *x;
    return ST_OK;
}

static int operation_of(const json_node *event)
{
    const char *name = json_text(json_get(event, "name"));
    for (int i = 0; name && i < DIFF_OPERATIONS; i++)
        if (strcmp(name, operations[i]) == 0)
            return i;
    return -1;
}

/* A complete event (ph X) of a known operation in a known pass; others are passed over. */
static bool read_event(struct place *x, const json_node *event)
{
    double duration;
    const char *phase = json_text(json_get(event, "ph"));
    const json_node *args = json_get(event, "args");
    x->operation = operation_of(event);
    if (x->operation < 0 || !phase || strcmp(phase, "X") != 0 ||
        !json_u64(json_get(args, "pass"), &x->pass) ||
        !json_double(json_get(event, "ts"), &x->start_us) ||
        !json_double(json_get(event, "dur"), &duration))
        return false;
    bool of_pass = strcmp(operations[x->operation], TIMELINE_HEAD) == 0;
    if (of_pass || !json_u64(json_get(args, "layer"), &x->layer))
        x->layer = UINT64_MAX;
    x->sum_us = duration;
    x->end_us = x->start_us + duration;
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->operation != y->operation)
        return x->operation < y->operation ? -1 : 1;
    if (x->pass != y->pass)
        return x->pass < y->pass ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/* Sorts, and makes one entry of all spans of a place. */
static void merge(struct places *p)
{
    size_t kept = 0;
    if (p->count == 0)
        return;
    qsort(p->list, p->count, sizeof *p->list, by_place);
    for (size_t i = 1; i < p->count; i++) {
        struct place *to = &p->list[kept];
        if (by_place(to, &p->list[i]) != 0) {
            p->list[++kept] = p->list[i];
            continue;
        }
        to->sum_us += p->list[i].sum_us;
        to->start_us = fmin(to->start_us, p->list[i].start_us);
        to->end_us = fmax(to->end_us, p->list[i].end_us);
    }
    p->count = kept + 1;
}

static enum status load(struct places *p, const char *path, uint64_t from_pass, struct diag *dg)
{
    struct json_doc *doc;
    enum status st = json_open(&doc, path, dg);
    if (st != ST_OK)
        return st;
    const json_node *events = json_get(json_root(doc), "traceEvents");
    if (!json_is_array(events))
        st = diag_set(dg, ST_PARSE, "%s: a Chrome trace with \"traceEvents\" is expected", path);
    size_t n = st == ST_OK ? json_count(events) : 0;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        struct place x;
        if (read_event(&x, json_at(events, i)) && x.pass >= from_pass)
            st = add(p, &x, dg);
    }
    json_close(doc);
    if (st == ST_OK && p->count == 0)
        st = diag_set(dg, ST_PARSE,
                      "%s: no spans with a pass, as sim --timeline and engine run --timeline write",
                      path);
    merge(p);
    return st;
}

/* The largest layer of the fixed parts: runs of two models are not compared. */
static uint64_t last_layer(const struct places *p)
{
    uint64_t last = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->list[i].layer != UINT64_MAX && p->list[i].layer > last)
            last = p->list[i].layer;
    return last;
}

static double seconds(const struct place *x)
{
    return (is_burst(x->operation) ? x->end_us - x->start_us : x->sum_us) / 1e6;
}

static void note_pair(struct diff_component *c, const struct place *a, const struct place *b,
                      double *error, size_t *errors)
{
    double first = a ? seconds(a) : 0, second = b ? seconds(b) : 0;
    c->places++;
    c->only_first += !b;
    c->only_second += !a;
    c->first_s += first;
    c->second_s += second;
    if (a && b && second > 0)
        error[(*errors)++] = fabs(first / second - 1);
    if (fabs(first - second) > fabs(c->worst_s)) {
        c->worst_s = first - second;
        c->worst_pass = a ? a->pass : b->pass;
        c->worst_layer = a ? a->layer : b->layer;
    }
}

/* Both lists are in order of (operation, pass, layer): one walk over the two. */
static void compare(struct diff_component *out, const struct places *p, const struct places *q,
                    double *error)
{
    size_t i = 0, j = 0;
    for (int o = 0; o < DIFF_OPERATIONS; o++) {
        struct diff_component *c = &out[o];
        size_t errors = 0;
        *c = (struct diff_component){.operation = operations[o]};
        while (true) {
            const struct place *a = i < p->count && p->list[i].operation == o ? &p->list[i] : NULL;
            const struct place *b = j < q->count && q->list[j].operation == o ? &q->list[j] : NULL;
            if (!a && !b)
                break;
            int order = !a ? 1 : !b ? -1 : by_place(a, b);
            note_pair(c, order <= 0 ? a : NULL, order >= 0 ? b : NULL, error, &errors);
            i += order <= 0;
            j += order >= 0;
        }
        c->error_median = errors ? stats_median(error, errors) : 0.0 / 0.0;
        c->signed_error = c->second_s > 0 ? c->first_s / c->second_s - 1 : 0.0 / 0.0;
    }
}

enum status timeline_diff(struct diff_component out[DIFF_OPERATIONS], const char *first,
                          const char *second, uint64_t from_pass, struct diag *dg)
{
    struct places p = {0}, q = {0};
    double *error = NULL;
    enum status st = load(&p, first, from_pass, dg);
    if (st == ST_OK)
        st = load(&q, second, from_pass, dg);
    if (st == ST_OK && last_layer(&p) != last_layer(&q))
        st = diag_set(
            dg, ST_MISFIT, "%s has %llu layers, %s has %llu: runs of one model are compared", first,
            (unsigned long long)last_layer(&p) + 1, second, (unsigned long long)last_layer(&q) + 1);
    if (st == ST_OK) {
        error = calloc(p.count + q.count + 1, sizeof *error);
        st = error ? ST_OK : diag_no_memory(dg);
    }
    if (st == ST_OK)
        compare(out, &p, &q, error);
    free(error);
    free(p.list);
    free(q.list);
    return st;
}

/* future.c -- see future.h: a counting sort by key, which keeps the order of time within each. */
#include "sim/policy/future.h"

#include <stdlib.h>

struct asked {
    uint32_t key, when; /* `when`: ordinal among the batches of the key's cache */
};

struct future {
    uint32_t layers, experts;
    bool layered;
    uint32_t *ordinal; /* by cache: batches so far */
    struct asked *asked;
    size_t count, room;
    struct policy_future *list; /* by cache */
    uint32_t *first;            /* by key, in each cache one more than it has keys */
    uint32_t *use;
};

enum status future_new(struct future **out, uint32_t layers, uint32_t experts, enum scope scope,
                       struct diag *dg)
{
    struct future *f = calloc(1, sizeof *f);
    if (!f)
        return diag_no_memory(dg);
    f->layers = layers;
    f->experts = experts;
    f->layered = scope == SCOPE_LAYER;
    f->ordinal = calloc(layers, sizeof *f->ordinal);
    f->list = calloc(layers, sizeof *f->list);
    f->first = calloc((size_t)layers * (experts + (size_t)1), sizeof *f->first);
    if (!f->ordinal || !f->list || !f->first) {
        future_free(f);
        return diag_no_memory(dg);
    }
    *out = f;
    return ST_OK;
}

void future_free(struct future *f)
{
    if (!f)
        return;
    free(f->ordinal);
    free(f->asked);
    free(f->list);
    free(f->first);
    free(f->use);
    free(f);
}

static enum status make_room(struct future *f, size_t n, struct diag *dg)
{
    if (f->count + n > UINT32_MAX)
        return diag_set(dg, ST_RANGE, "belady: a future of more than 2^32 choices");
    if (f->count + n <= f->room)
        return ST_OK;
    size_t room = f->room ? 2 * f->room : 1024;
    while (room < f->count + n)
        room *= 2;
    struct asked *bigger = realloc(f->asked, room * sizeof *bigger);
    if (!bigger)
        return diag_no_memory(dg);
    f->asked = bigger;
    f->room = room;
    return ST_OK;
}

/* Where a key's counter stands in `first`. */
static size_t place_of(const struct future *f, uint32_t layer, uint32_t expert)
{
    return (size_t)layer * f->experts + (f->layered ? layer : 0) + expert;
}

enum status future_batch(struct future *f, uint32_t layer, const uint16_t *ids, size_t n,
                         struct diag *dg)
{
    enum status st = make_room(f, n, dg);
    if (st != ST_OK)
        return st;
    uint32_t now = f->ordinal[f->layered ? layer : 0]++;
    for (size_t i = 0; i < n; i++) {
        f->asked[f->count++] = (struct asked){layer * f->experts + ids[i], now};
        f->first[place_of(f, layer, ids[i])]++;
    }
    return ST_OK;
}

enum status future_finish(struct future *f, struct diag *dg)
{
    size_t caches = f->layered ? f->layers : 1;
    size_t places = (size_t)f->layers * f->experts + caches;
    f->use = calloc(f->count ? f->count : 1, sizeof *f->use);
    if (!f->use)
        return diag_no_memory(dg);
    uint32_t sum = 0;
    for (size_t i = 0; i < places; i++) { /* counts become starts */
        uint32_t uses = f->first[i];
        f->first[i] = sum;
        sum += uses;
    }
    for (size_t i = 0; i < f->count; i++) {
        uint32_t layer = f->asked[i].key / f->experts, expert = f->asked[i].key % f->experts;
        f->use[f->first[place_of(f, layer, expert)]++] = f->asked[i].when;
    }
    for (size_t i = places - 1; i > 0; i--) /* each start moved to the next one's */
        f->first[i] = f->first[i - 1];
    f->first[0] = 0;
    for (size_t c = 0; c < caches; c++)
        f->list[c] = (struct policy_future){f->first + c * (f->experts + (size_t)1), f->use};
    free(f->asked);
    f->asked = NULL;
    return ST_OK;
}

const struct policy_future *future_list(const struct future *f)
{
    return f->list;
}

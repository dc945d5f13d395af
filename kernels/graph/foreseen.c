/* foreseen.c -- see foreseen.h. */
#include "kernels/graph/foreseen.h"

#include <stdlib.h>
#include <string.h>

struct batch {
    uint32_t layer;
    size_t first, count; /* of ids */
};

struct foreseen {
    const struct model *model;
    struct batch *batch;
    size_t batches, next;
    uint16_t *ids;
    size_t ids_count;
    struct future *future;
};

void foreseen_free(struct foreseen *f)
{
    if (!f)
        return;
    future_free(f->future);
    free(f->batch);
    free(f->ids);
    free(f);
}

/* All layers of one pass over the tokens from `position` on. */
static enum status add_pass(struct foreseen *f, const struct route *route, size_t position,
                            size_t tokens, struct diag *dg)
{
    for (uint32_t l = 0; l < f->model->layer_count; l++) {
        size_t top_k = f->model->layers[l].ffn.top_k, first = f->ids_count;
        if (f->model->layers[l].ffn.experts == 0)
            continue;
        for (size_t t = position; t < position + tokens; t++, f->ids_count += top_k)
            if (!route->at(route->self, t, l, f->ids + f->ids_count))
                return diag_set(dg, ST_MISFIT,
                                "the forced routing does not say what token %zu takes in layer "
                                "%u, so the future is not known",
                                t, l);
        f->batch[f->batches++] = (struct batch){l, first, f->ids_count - first};
        enum status st = future_batch(f->future, l, f->ids + first, f->ids_count - first, dg);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status allocate(struct foreseen *f, const struct foreseen_setup *s, size_t passes,
                            enum scope scope, struct diag *dg)
{
    const struct model *m = f->model;
    size_t choices = 0;
    for (size_t l = 0; l < m->layer_count; l++)
        choices += m->layers[l].ffn.experts ? m->layers[l].ffn.top_k : 0;
    f->batch = calloc(passes * m->layer_count + 1, sizeof *f->batch);
    f->ids = calloc((s->prompt + s->steps) * choices + 1, sizeof *f->ids);
    return f->batch && f->ids ? future_new(&f->future, (uint32_t)m->layer_count,
                                           (uint32_t)model_experts(m), scope, dg)
                              : diag_no_memory(dg);
}

enum status foreseen_new(struct foreseen **out, const struct foreseen_setup *s,
                         const struct model *m, size_t chunk, enum scope scope, struct diag *dg)
{
    if (!s->route.at)
        return diag_set(dg, ST_UNSUPPORTED,
                        "a policy or prefetcher that knows the future needs forced routing");
    struct foreseen *f = calloc(1, sizeof *f);
    if (!f)
        return diag_no_memory(dg);
    f->model = m;
    enum status st = allocate(f, s, (s->prompt + chunk - 1) / chunk + s->steps, scope, dg);
    for (size_t at = 0; st == ST_OK && at < s->prompt; at += chunk)
        st = add_pass(f, &s->route, at, s->prompt - at < chunk ? s->prompt - at : chunk, dg);
    for (size_t i = 0; st == ST_OK && i < s->steps; i++)
        st = add_pass(f, &s->route, s->prompt + i, 1, dg);
    if (st == ST_OK)
        st = future_finish(f->future, dg);
    if (st != ST_OK) {
        foreseen_free(f);
        return st;
    }
    *out = f;
    return ST_OK;
}

const struct policy_future *foreseen_future(const struct foreseen *f)
{
    return future_list(f->future);
}

enum status foreseen_step(struct foreseen *f, uint32_t layer, const uint16_t *ids, size_t n,
                          struct diag *dg)
{
    const struct batch *b = &f->batch[f->next];
    if (f->next == f->batches || b->layer != layer || b->count != n ||
        memcmp(f->ids + b->first, ids, n * sizeof *ids) != 0)
        return diag_set(dg, ST_MISFIT, "the run is not the one whose future was foretold");
    f->next++;
    return ST_OK;
}

const uint16_t *foreseen_ahead(const struct foreseen *f, size_t distance, uint32_t *layer,
                               size_t *n)
{
    size_t at = f->next - 1 + distance;
    if (at >= f->batches)
        return NULL;
    *layer = f->batch[at].layer;
    *n = f->batch[at].count;
    return f->ids + f->batch[at].first;
}

/* hold.c -- see hold.h. */
#include "sim/core/hold.h"

#include "base/pcg.h"
#include "sim/core/evq.h"

#include <assert.h>
#include <stdlib.h>

#define INCREMENT_BITS 20

struct hold {
    struct evq *q;
    struct pcg chance;
};

static void hold_event(struct evq *q, void *self)
{
    struct hold *h = self;
    uint64_t increment = pcg_u32(&h->chance) >> (32 - INCREMENT_BITS);
    enum status status = evq_at(q, evq_now_ns(q) + increment, hold_event, h);
    assert(status == ST_OK); /* the event that fires leaves its room to this one */
    (void)status;
}

enum status hold_new(struct hold **out, size_t pending, uint64_t seed, struct diag *dg)
{
    if (pending < 1 || pending > EVQ_CAPACITY_MAX)
        return diag_set(dg, ST_RANGE, "hold: %zu pending events are not within 1..%zu", pending,
                        EVQ_CAPACITY_MAX);
    struct hold *h = calloc(1, sizeof *h);
    if (!h || evq_new(&h->q, pending) != ST_OK) {
        free(h);
        return diag_no_memory(dg);
    }
    pcg_stream(&h->chance, seed, "hold");
    for (size_t i = 0; i < pending; i++)
        hold_event(h->q, h);
    *out = h;
    return ST_OK;
}

void hold_free(struct hold *h)
{
    if (!h)
        return;
    evq_free(h->q);
    free(h);
}

uint64_t hold_run(struct hold *h, uint64_t events)
{
    while (events-- > 0)
        evq_step(h->q);
    return evq_fingerprint(h->q);
}

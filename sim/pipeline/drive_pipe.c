/* drive_pipe.c -- see drive_pipe.h. */
#include "sim/pipeline/drive_pipe.h"

#include "base/fixed.h"

#include <assert.h>

enum status drive_pipe_init(struct drive_pipe *p, struct evq *q, struct flow_net *net,
                            const struct flow_class *c, uint32_t inflation, struct diag *dg)
{
    *p = (struct drive_pipe){.q = q,
                             .net = net,
                             .rate_Bps = c->cap_Bps / inflation,
                             .inflation = inflation,
                             .off_course = true};
    if (evq_reserve(q, 1) != ST_OK)
        return diag_no_memory(dg);
    return flow_class_add(net, c, &p->class_idx, dg);
}

uint64_t drive_pipe_transfer_ns(const struct drive_pipe *p, uint64_t bytes)
{
    return wide_end_ns(0, wide_mul(bytes, NS_PER_S), p->rate_Bps);
}

static void leave(struct evq *q, void *self);
static void landed(struct evq *q, void *self);

/* The instant at which all bytes of the run are through. */
static uint64_t run_leaves_ns(const struct drive_pipe *p)
{
    return p->run_start_ns + drive_pipe_transfer_ns(p, p->run_bytes);
}

static void begin_next(struct drive_pipe *p)
{
    struct parcel *c = p->first;
    uint64_t now = evq_now_ns(p->q);
    p->first = c->next;
    p->under_way = c;
    if (p->off_course || p->run_end_ns != now) {
        p->run_start_ns = now;
        p->run_bytes = 0;
        p->off_course = false;
    }
    p->run_bytes += c->bytes;
    p->leave_ns = run_leaves_ns(p);
    uint64_t fit = fixed_mul_div(p->leave_ns - now, p->rate_Bps, NS_PER_S);
    if (p->run_start_ns == now && fit > c->bytes)
        fit = c->bytes;
    if (p->leave_ns < c->not_before_ns)
        p->leave_ns = c->not_before_ns;
    const struct flow f = {.bytes = fit * p->inflation, .tag = c->bytes, .done = landed, .self = p};
    enum status status = flow_start(p->net, p->class_idx, &f);
    assert(status == ST_OK); /* the net has room for one flow of each drive */
    (void)status;
}

/* The flow has ended: before its time, perhaps, where a byte takes longer than 1 ns. */
static void landed(struct evq *q, void *self)
{
    struct drive_pipe *p = self;
    if (evq_now_ns(q) >= p->leave_ns || p->off_course) {
        leave(q, p);
        return;
    }
    enum status status = evq_at(q, p->leave_ns, leave, p);
    assert(status == ST_OK); /* reserved by drive_pipe_init */
    (void)status;
}

static void leave(struct evq *q, void *self)
{
    struct drive_pipe *p = self;
    struct parcel *c = p->under_way;
    p->run_end_ns = evq_now_ns(q);
    p->off_course |= p->run_end_ns != run_leaves_ns(p);
    p->under_way = NULL;
    p->passed(p->owner, c);
    if (!p->under_way && p->first)
        begin_next(p);
}

void drive_pipe_ask(struct drive_pipe *p, struct parcel *parcel)
{
    parcel->next = NULL;
    if (p->first)
        p->last->next = parcel;
    else
        p->first = parcel;
    p->last = parcel;
    if (!p->under_way)
        begin_next(p);
}

void drive_pipe_set_rate(struct drive_pipe *p, uint64_t rate_Bps)
{
    if (rate_Bps == p->rate_Bps)
        return;
    p->rate_Bps = rate_Bps;
    p->off_course = true;
    flow_set_cap(p->net, p->class_idx, rate_Bps * p->inflation);
}

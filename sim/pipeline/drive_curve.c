/* drive_curve.c -- a drive as the parameters of its measured curve: t0, B1, B_max, grain (drive.h).
 *
 * A read has at most one event pending: the instant at which its next chunk asks for the pipe,
 * which is so much before its stream has the chunk's last byte as the transfer takes. Latency and
 * first chunk are one event. The stream is the drive's inside: it goes on while the chunk before
 * waits for the pipe, so a read that was held up catches up at the pipe's rate, and is never ahead
 * of B1 as a whole.
 */
#include "sim/pipeline/drive_model.h"

#include <assert.h>
#include <stdlib.h>

struct curve {
    uint64_t lane_Bps; /* B1 at full speed; 0: only the pipe limits */
    uint64_t rate_Bps; /* at the present speed */
    uint64_t grain;    /* 0: a read is one chunk */
};

static enum status curve_open(struct drive *d, const struct storage *s, struct diag *dg)
{
    if (!s->latency.given || !s->bandwidth.given)
        return diag_set(dg, ST_MISFIT, "storage %s: the curve needs %s, which is not given",
                        s->name ? s->name : "without a name",
                        s->latency.given ? "bandwidth" : "latency");
    struct curve *c = calloc(1, sizeof *c);
    if (!c)
        return diag_no_memory(dg);
    d->state = c;
    d->latency_ns = s->latency.amount;
    d->pipe_Bps = s->bandwidth.amount;
    if (s->link_bandwidth.given && s->link_bandwidth.amount < d->pipe_Bps)
        d->pipe_Bps = s->link_bandwidth.amount;
    c->lane_Bps = c->rate_Bps = s->lane_bandwidth.given ? s->lane_bandwidth.amount : 0;
    c->grain = s->grain.given ? s->grain.amount : 0;
    return evq_reserve(d->q, d->place_count) == ST_OK ? ST_OK : diag_no_memory(dg);
}

static void curve_close(struct drive *d)
{
    free(d->state);
}

static uint64_t next_chunk(const struct curve *c, const struct read *r)
{
    uint64_t left = r->order.bytes - r->passed_bytes;
    return c->grain && c->grain < left ? c->grain : left;
}

static void ask(struct evq *q, void *self)
{
    (void)q;
    struct read *r = self;
    r->event = 0;
    drive_pipe_ask(&r->drive->pipe, &r->parcel);
}

/* Schedules the read's next chunk, or lets it ask at once. */
static void next_ask(struct drive *d, struct read *r)
{
    const struct curve *c = d->state;
    uint64_t now = evq_now_ns(d->q), start = r->stream.start_ns > now ? r->stream.start_ns : now;
    r->parcel.bytes = next_chunk(c, r);
    r->parcel.not_before_ns = 0;
    if (c->rate_Bps) {
        wide end = wide_mul(r->passed_bytes + r->parcel.bytes, NS_PER_S);
        wide left = end > r->stream.done ? end - r->stream.done : 0;
        uint64_t streamed = wide_end_ns(r->stream.start_ns, left, c->rate_Bps);
        uint64_t transfer = drive_pipe_transfer_ns(&d->pipe, r->parcel.bytes);
        r->parcel.not_before_ns = streamed;
        if (streamed - r->stream.start_ns > transfer && streamed - transfer > start)
            start = streamed - transfer;
    }
    if (start > now)
        drive_read_at(r, start, ask);
    else
        ask(d->q, r);
}

static void curve_begin(struct drive *d, struct read *r)
{
    r->stream.start_ns = evq_now_ns(d->q) + drive_draw_latency_ns(d, r);
    next_ask(d, r);
}

static void curve_passed(struct drive *d, struct read *r)
{
    r->passed_bytes += r->parcel.bytes;
    if (r->passed_bytes == r->order.bytes)
        drive_end_read(d, r);
    else
        next_ask(d, r);
}

/* What was streamed so far counts at the old rate. A chunk in the pipe or its queue has been
 * counted. */
static void restart_stream(struct drive *d, struct read *r, uint64_t old_Bps)
{
    uint64_t now = evq_now_ns(d->q);
    if (now > r->stream.start_ns) {
        r->stream.done += wide_mul(old_Bps, now - r->stream.start_ns);
        r->stream.start_ns = now;
    }
    if (r->event) {
        evq_cancel(d->q, r->event);
        r->event = 0;
        next_ask(d, r);
    }
}

static void curve_set_speed(struct drive *d)
{
    struct curve *c = d->state;
    uint64_t old_Bps = c->rate_Bps;
    if (!c->lane_Bps)
        return;
    c->rate_Bps = drive_scaled_Bps(d, c->lane_Bps);
    for (uint32_t slot = 0; slot < d->reads_max; slot++)
        if (d->read[slot].in_flight)
            restart_stream(d, &d->read[slot], old_Bps);
}

const struct drive_model drive_model_curve = {
    .name = "curve",
    .open = curve_open,
    .close = curve_close,
    .begin = curve_begin,
    .passed = curve_passed,
    .set_speed = curve_set_speed,
};

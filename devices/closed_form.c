/* closed_form.c -- storage_closed_* of device.h: SYSTEMS 1.4 by integers.
 *
 * With t0 in ns a read takes (t0*B1 + c*10^9)/B1 ns; multiplying through by B1 leaves whole
 * numbers, so the only rounding is the last division. Sizes: c <= 2^46, B1 <= 2^50, t0 <= 2^34
 * and 10^9 < 2^30 keep every product below 2^128; larger arguments are taken as these bounds,
 * beyond which no description goes (device_schema.c). */
#include "devices/device.h"

typedef unsigned __int128 wide;

#define NS_PER_S    UINT64_C(1000000000)
#define BYTES_MAX   (UINT64_C(1) << 46)
#define RATE_MAX    (UINT64_C(1) << 50)
#define LATENCY_MAX (UINT64_C(1) << 34)
#define COUNT_MAX   (UINT64_C(1) << 40)
#define DEPTH_MAX   (UINT64_C(1) << 20)

static uint64_t at_most(uint64_t x, uint64_t limit)
{
    return x < limit ? x : limit;
}

/* A description has no rate of 0, but a rate that was scaled down may have come to it. */
static uint64_t at_least_one(uint64_t rate)
{
    return rate ? rate : 1;
}

static uint64_t saturated(wide x)
{
    return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

static uint64_t places(const struct storage *s, uint64_t depth)
{
    uint64_t q = depth ? at_most(depth, DEPTH_MAX) : 1;
    return s->queue_depth.given && s->queue_depth.amount ? at_most(q, s->queue_depth.amount) : q;
}

/* What a nand description delivers: every plane one page a read time, over its channel's bus. */
static uint64_t nand_Bps(const struct storage *s)
{
    if (!s->channels.given || !s->bus_bandwidth.given || !s->read_time.given)
        return UINT64_MAX;
    wide bus = (wide)s->channels.amount * s->bus_bandwidth.amount;
    wide planes = (wide)s->channels.amount * s->dies_per_channel.amount * s->planes.amount;
    wide array = planes * s->page_bytes.amount * NS_PER_S / at_least_one(s->read_time.amount);
    return at_most(saturated(bus < array ? bus : array), RATE_MAX);
}

/* The pipe all reads share, or UINT64_MAX. */
static uint64_t pipe_Bps(const struct storage *s)
{
    uint64_t pipe = s->model == STORAGE_NAND ? nand_Bps(s) : UINT64_MAX;
    if (s->bandwidth.given)
        pipe = at_most(pipe, at_most(s->bandwidth.amount, RATE_MAX));
    if (s->link_bandwidth.given)
        pipe = at_most(pipe, s->link_bandwidth.amount);
    return at_least_one(pipe);
}

/* One read takes numerator/denominator ns; 0/1 if nothing about a lane is known. */
struct read_time {
    wide numerator;
    uint64_t denominator;
};

static struct read_time read_time(const struct storage *s, uint64_t bytes)
{
    const struct value *fixed =
        s->model == STORAGE_NAND && !s->latency.given ? &s->read_time : &s->latency;
    uint64_t latency = fixed->given ? at_most(fixed->amount, LATENCY_MAX) : 0;
    if (!s->lane_bandwidth.given)
        return (struct read_time){latency, 1};
    uint64_t lane = at_least_one(at_most(s->lane_bandwidth.amount, RATE_MAX));
    return (struct read_time){(wide)latency * lane + (wide)bytes * NS_PER_S, lane};
}

/* floor(q * bytes / time): q times a quotient and the rest apart, so that no product overflows. */
static uint64_t lanes_Bps(const struct read_time *t, uint64_t bytes, uint64_t q)
{
    if (t->numerator == 0)
        return UINT64_MAX;
    wide one = (wide)bytes * NS_PER_S * t->denominator;
    return saturated(one / t->numerator * q + one % t->numerator * q / t->numerator);
}

uint64_t storage_closed_rate_Bps(const struct storage *s, uint64_t bytes, uint64_t depth)
{
    bytes = at_most(bytes, BYTES_MAX);
    const struct read_time t = read_time(s, bytes);
    uint64_t rate = at_most(pipe_Bps(s), lanes_Bps(&t, bytes, places(s, depth)));
    if (s->iops.given)
        rate = at_most(rate, saturated((wide)s->iops.amount * bytes));
    return rate;
}

static wide divided_up(wide a, wide b)
{
    return a / b + (a % b != 0);
}

uint64_t storage_closed_burst_ns(const struct storage *s, uint64_t n, uint64_t bytes,
                                 uint64_t depth)
{
    n = at_most(n, COUNT_MAX);
    bytes = at_most(bytes, BYTES_MAX);
    uint64_t q = places(s, depth), pipe = pipe_Bps(s);
    const struct read_time t = read_time(s, bytes);
    wide rounds = divided_up(n, q);
    wide ns = t.numerator / t.denominator * rounds +
              divided_up(t.numerator % t.denominator * rounds, t.denominator);
    if (pipe != UINT64_MAX) {
        wide through = divided_up((wide)n * bytes * NS_PER_S, pipe);
        ns = through > ns ? through : ns;
    }
    if (s->iops.given && s->iops.amount) {
        wide commands = divided_up((wide)n * NS_PER_S, s->iops.amount);
        ns = commands > ns ? commands : ns;
    }
    return saturated(ns);
}

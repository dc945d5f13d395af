/* sentinel.c -- see sentinel.h. */
#include "validate/sentinel.h"

#include "base/stats.h"
#include "kernels/bench/read_roof.h"
#include "kernels/graph/host_meter.h"
#include "kernels/graph/record.h"
#include "kernels/store/store.h"

#include <math.h>
#include <stdlib.h>

#define BUFFER_BYTES  ((size_t)64 << 20) /* beyond the last-level cache */
#define PASSES        5
#define BURSTS        12
#define BURST_EXPERTS 4
#define TOLERANCE     0.05

struct sentinel {
    struct store *store;
    struct read_bench *bench;
};

enum status sentinel_new(struct sentinel **out, const struct measure_reads_setup *s,
                         struct diag *dg)
{
    struct sentinel *x = calloc(1, sizeof *x);
    if (!x)
        return diag_no_memory(dg);
    enum status st = store_new(&x->store, BUFFER_BYTES, 4096, 1, dg);
    if (st == ST_OK)
        st = read_bench_open(&x->bench, s, dg);
    if (st != ST_OK) {
        sentinel_free(x);
        return st;
    }
    *out = x;
    return ST_OK;
}

void sentinel_free(struct sentinel *s)
{
    if (!s)
        return;
    read_bench_close(s->bench);
    store_free(s->store);
    free(s);
}

enum status sentinel_read(struct sentinel *s, struct sentinel_reading *out, struct diag *dg)
{
    double pass[PASSES], burst[BURSTS], unused;
    struct read_burst b = {.experts = BURST_EXPERTS};
    struct host_meter h;
    for (int i = 0; i < PASSES; i++) {
        uint64_t start = record_now_ns();
        volatile uint64_t seen = read_roof_pass(store_arena(s->store), BUFFER_BYTES);
        (void)seen;
        pass[i] = (double)(record_now_ns() - start);
    }
    for (int i = 0; i < BURSTS; i++) {
        enum status st = read_bench_burst(s->bench, &b, false, &burst[i], &unused, &unused, dg);
        if (st != ST_OK)
            return st;
    }
    host_meter_read(&h);
    *out = (struct sentinel_reading){stats_median(pass, PASSES), stats_median(burst, BURSTS),
                                     h.stolen_ns};
    return ST_OK;
}

bool sentinel_agrees(const struct sentinel_reading *now, const struct sentinel_reading *then)
{
    return fabs(now->memory_ns / then->memory_ns - 1) <= TOLERANCE &&
           fabs(now->burst_ns / then->burst_ns - 1) <= TOLERANCE;
}

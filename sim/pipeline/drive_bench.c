/* drive_bench.c -- see drive_bench.h. */
#include "sim/pipeline/drive_bench.h"

#include "base/pcg.h"

#include <assert.h>
#include <stdlib.h>

#define FREE_MEMORY_BPS (UINT64_C(1) << 60)

struct bench {
    struct evq *q;
    struct flow_net *net;
    struct drive *drive;
    struct pcg places;
    const struct drive_run *run;
    uint64_t to_submit, landed;
    uint64_t *ends_ns;
};

static void read_landed(struct evq *q, void *self);

static void submit(struct bench *b)
{
    const struct drive_read r = {.bytes = b->run->bytes,
                                 .place = pcg_u64(&b->places),
                                 .extra_ns = b->run->extra_ns,
                                 .done = read_landed,
                                 .self = b};
    b->to_submit--;
    enum status status = drive_submit(b->drive, &r, NULL);
    assert(status == ST_OK); /* no more than reads_max at once */
    (void)status;
}

static void read_landed(struct evq *q, void *self)
{
    struct bench *b = self;
    if (b->ends_ns)
        b->ends_ns[b->landed] = evq_now_ns(q);
    b->landed++;
    if (b->to_submit)
        submit(b);
}

static void close_bench(struct bench *b)
{
    drive_free(b->drive);
    flow_net_free(b->net);
    evq_free(b->q);
}

static enum status open_bench(struct bench *b, const struct storage *s, uint32_t reads_max,
                              struct diag *dg)
{
    uint32_t dram;
    uint64_t dram_Bps = b->run->dram_Bps ? b->run->dram_Bps : FREE_MEMORY_BPS;
    if (evq_new(&b->q, 0) != ST_OK)
        return diag_no_memory(dg);
    enum status status = flow_net_new(&b->net, b->q, 1, dg);
    if (status == ST_OK)
        status = flow_resource_add(b->net, dram_Bps, &dram, dg);
    if (status != ST_OK)
        return status;
    const struct drive_setup setup = {.storage = s,
                                      .name = "bench",
                                      .lanes = b->run->lanes,
                                      .reads_max = reads_max,
                                      .net = b->net,
                                      .dram = dram,
                                      .dram_weight = 1,
                                      .jitter_e3 = b->run->jitter_e3,
                                      .seed = b->run->seed};
    pcg_stream(&b->places, b->run->seed, "bench/place");
    return drive_new(&b->drive, b->q, &setup, dg);
}

/* Submits `at_once` reads, the rest as they land; returns when all have. */
static enum status run_bench(struct bench *b, const struct storage *s, uint32_t at_once,
                             uint64_t *last_ns, struct diag *dg)
{
    uint64_t reads = b->to_submit;
    enum status status = open_bench(b, s, at_once, dg);
    if (status == ST_OK) {
        for (uint32_t i = 0; i < at_once; i++)
            submit(b);
        while (evq_step(b->q))
            ;
        assert(b->landed == reads);
        (void)reads;
        *last_ns = evq_now_ns(b->q);
    }
    close_bench(b);
    return status;
}

enum status drive_run_benchmark(uint64_t *rate_Bps, const struct storage *s,
                                const struct drive_run *run, uint64_t reads, struct diag *dg)
{
    assert(reads > 0 && run->lanes > 0);
    struct bench b = {.run = run, .to_submit = reads};
    uint32_t at_once = reads < run->lanes ? (uint32_t)reads : run->lanes;
    uint64_t last_ns = 0;
    enum status status = run_bench(&b, s, at_once, &last_ns, dg);
    if (status == ST_OK)
        *rate_Bps = (uint64_t)(wide_mul(run->bytes, NS_PER_S) * reads / last_ns);
    return status;
}

enum status drive_run_burst(uint64_t *last_ns, uint64_t *ends_ns, const struct storage *s,
                            const struct drive_run *run, uint32_t reads, struct diag *dg)
{
    assert(reads > 0 && run->lanes > 0);
    struct bench b = {.run = run, .to_submit = reads, .ends_ns = ends_ns};
    return run_bench(&b, s, reads, last_ns, dg);
}

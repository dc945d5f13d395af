/* measure_reads.c -- see measure_reads.h. */
#include "validate/measure_reads.h"

#include "base/pcg.h"
#include "base/stats.h"
#include "kernels/graph/record.h"
#include "kernels/store/store.h"

#include <stdlib.h>
#include <time.h>

/* A run is a sum of bursts, so what is wanted is the mean; a few strays of another program are left out. */
#define READS_CUT   0.1
#define EXPERTS_MAX 64

struct read_bench {
    struct measure_reads_setup setup;
    struct expert_source source;
    struct loader_io *io;
    struct store *store;
    struct pcg chance;
    uint64_t room_bytes;
};

/* An arena for a burst of the largest experts; a loader with it, and the files in that. */
static enum status open_reader(struct read_bench *r, struct diag *dg)
{
    const struct measure_reads_setup *s = &r->setup;
    enum status st = expert_source_open(&r->source, s->weights, s->pack, dg);
    struct loader_io_setup loader = s->loader;
    uint32_t align = 1;
    if (st == ST_OK)
        st = expert_source_measure(&r->source, &loader, s->direct, &align, dg);
    if (st != ST_OK)
        return st;
    for (size_t l = 0; l < s->weights->model->layer_count; l++)
        if (r->source.room_bytes[l] > r->room_bytes)
            r->room_bytes = r->source.room_bytes[l];
    r->room_bytes = (r->room_bytes + align - 1) / align * align;
    st = store_new(&r->store, EXPERTS_MAX * r->room_bytes, align, EXPERTS_MAX, dg);
    if (st == ST_OK) {
        loader.arena = store_arena(r->store);
        loader.arena_bytes = store_arena_bytes(r->store);
        loader.loads_max = EXPERTS_MAX;
        st = loader_io_new(&r->io, &loader, dg);
    }
    for (uint32_t i = 0; st == ST_OK && i < EXPERTS_MAX; i++)
        if (!store_take(r->store, i, r->room_bytes))
            st = diag_no_memory(dg);
    return st == ST_OK ? expert_source_attach(&r->source, r->io, s->direct, dg) : st;
}

void read_bench_close(struct read_bench *r)
{
    if (!r)
        return;
    loader_io_free(r->io);
    store_free(r->store);
    expert_source_close(&r->source);
    free(r);
}

enum status read_bench_open(struct read_bench **out, const struct measure_reads_setup *s,
                            struct diag *dg)
{
    struct read_bench *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(dg);
    r->setup = *s;
    pcg_stream(&r->chance, s->seed, "calibrate/reads");
    enum status st = open_reader(r, dg);
    if (st != ST_OK) {
        read_bench_close(r);
        return st;
    }
    *out = r;
    return ST_OK;
}

/* A random expert of a random layer that has some. */
static void pick(struct read_bench *r, struct load *load)
{
    const struct model *m = r->setup.weights->model;
    uint32_t layer;
    do
        layer = pcg_below(&r->chance, (uint32_t)m->layer_count);
    while (r->source.expert_bytes[layer] == 0);
    uint32_t expert = pcg_below(&r->chance, (uint32_t)m->layers[layer].ffn.experts);
    *load = (struct load){.class_of = LOAD_DEMAND};
    expert_source_load(&r->source, layer, expert, load);
}

enum status read_bench_burst(struct read_bench *r, struct read_burst *b, bool sleep, double *ns,
                             double *first_ns, double *submit_ns, struct diag *dg)
{
    uint32_t ticket[EXPERTS_MAX];
    struct load load[EXPERTS_MAX];
    enum status st = ST_OK;
    b->reads = 0;
    b->bytes = b->device_bytes = 0;
    for (uint32_t i = 0; i < b->experts; i++) {
        pick(r, &load[i]);
        load[i].room = store_address(r->store, i);
        load[i].room_bytes = r->room_bytes;
        b->reads += load[i].piece_count;
        for (uint32_t p = 0; p < load[i].piece_count; p++)
            b->bytes += load[i].piece[p].bytes;
    }
    uint64_t start = record_now_ns(), first = UINT64_MAX;
    loader_io_gather(r->io, true);
    for (uint32_t i = 0; st == ST_OK && i < b->experts; i++)
        st = loader_io_submit(r->io, &load[i], &ticket[i], dg);
    loader_io_gather(r->io, false);
    if (st != ST_OK)
        return st;
    uint64_t issued = record_now_ns();
    for (uint32_t i = 0; !sleep && i < b->experts; i++)
        while (!loader_io_ready(r->io, ticket[i]))
            ;
    uint64_t end = record_now_ns();
    for (uint32_t i = 0; i < b->experts; i++) {
        struct load_report report = {0};
        enum status waited = loader_io_wait(r->io, ticket[i], &report, dg);
        b->device_bytes += report.device_bytes;
        first = report.landed_ns < first ? report.landed_ns : first;
        st = st == ST_OK ? waited : st;
    }
    if (sleep)
        end = record_now_ns();
    *ns = (double)(end - start);
    *first_ns = first > start ? (double)(first - start) : 0;
    *submit_ns = (double)(issued - start) / b->reads;
    return st;
}

static void rest(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* Samples lie burst by burst; those of looking for one expert behind them. */
static enum status sample_all(struct read_bench *r, struct read_burst *burst, size_t count,
                              double *sample, double *first_ns, double *submit_ns, struct diag *dg)
{
    size_t repeats = r->setup.repeats;
    enum status st = ST_OK;
    for (size_t round = 0; st == ST_OK && round < repeats; round++) {
        struct read_burst one = {.experts = 1};
        double unused;
        for (size_t i = 0; st == ST_OK && i < count; i++) {
            rest();
            st = read_bench_burst(r, &burst[i], true, &sample[i * repeats + round],
                                  &first_ns[i * repeats + round], &submit_ns[i * repeats + round],
                                  dg);
        }
        rest();
        if (st == ST_OK)
            st = read_bench_burst(r, &one, false, &sample[count * repeats + round], &unused,
                                  &unused, dg);
    }
    return st;
}

static void summarise(struct read_burst *burst, size_t count, struct read_costs *costs,
                      double *sample, double *first_ns, double *submit_ns, size_t repeats)
{
    double alone = 0;
    for (size_t i = 0; i < count; i++) {
        double *x = sample + i * repeats;
        burst[i].ns = stats_trimmed_mean(x, repeats, READS_CUT);
        burst[i].first_ns = stats_trimmed_mean(first_ns + i * repeats, repeats, READS_CUT);
        burst[i].low_ns = stats_quantile(x, repeats, 0.1);
        burst[i].high_ns = stats_quantile(x, repeats, 0.9);
        if (burst[i].experts == 1)
            alone = burst[i].ns;
    }
    double slept = alone - stats_trimmed_mean(sample + count * repeats, repeats, READS_CUT);
    costs->wake_ns = slept > 0 ? slept : 0;
    costs->submit_ns = stats_median(submit_ns, count * repeats);
}

enum status measure_reads(struct read_burst *burst, size_t count, struct read_costs *costs,
                          const struct measure_reads_setup *s, struct diag *dg)
{
    struct read_bench *r = NULL;
    double *sample = calloc((count + 1) * s->repeats, sizeof *sample);
    double *submit_ns = calloc(count * s->repeats, sizeof *submit_ns);
    double *first_ns = calloc(count * s->repeats, sizeof *first_ns);
    enum status st =
        sample && submit_ns && first_ns ? read_bench_open(&r, s, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = sample_all(r, burst, count, sample, first_ns, submit_ns, dg);
    if (st == ST_OK)
        summarise(burst, count, costs, sample, first_ns, submit_ns, s->repeats);
    read_bench_close(r);
    free(sample);
    free(first_ns);
    free(submit_ns);
    return st;
}

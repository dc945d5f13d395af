/* loader_bench.c -- see loader_bench.h. */
#include "kernels/bench/loader_bench.h"

#include "base/stats.h"
#include "kernels/bench/bare_ring.h"
#include "kernels/bench/bench_clock.h"
#include "kernels/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HUGE_BYTES ((size_t)2 << 20)
#define READS_MAX  ((size_t)1 << 16)

struct loader_bench {
    struct loader_bench_setup s;
    struct bench_file file;
    struct store *store;
    struct pcg chance;
    struct bench_read read[READS_MAX];
    double latency_ns[READS_MAX];
};

/* Both contestants of one case. */
struct duel {
    struct loader_bench *b;
    const struct loader_bench_case *c;
    struct loader_io *io;
    struct bare_ring ring;
    size_t slot_bytes, reads;
    uint64_t run_bytes;
    uint32_t file;
};

struct run_result {
    double Bps, p50_ns, p99_ns;
};

enum status loader_bench_new(struct loader_bench **out, const struct loader_bench_setup *s,
                             struct diag *dg)
{
    assert(s->bytes_max <= s->file_bytes && s->depth_max >= 1 &&
           s->depth_max <= LOADER_BENCH_DEPTH_MAX);
    *out = NULL;
    struct loader_bench *b = calloc(1, sizeof *b);
    if (!b)
        return diag_no_memory(dg);
    b->s = *s;
    b->file.fd = -1;
    pcg_stream(&b->chance, s->seed, "engine-bench/reads");
    enum status st = store_new(&b->store, (size_t)s->bytes_max * s->depth_max + HUGE_BYTES,
                               BENCH_FILE_BLOCK, 1, dg);
    if (st == ST_OK)
        st = bench_file_make(&b->file, s->dir, s->file_bytes, s->seed, dg);
    if (st == ST_OK)
        *out = b;
    else
        loader_bench_free(b);
    return st;
}

void loader_bench_free(struct loader_bench *b)
{
    if (!b)
        return;
    bench_file_close(&b->file);
    store_free(b->store);
    free(b);
}

static enum status submit(struct duel *d, size_t i, size_t slot, uint32_t *ticket, struct diag *dg)
{
    struct load l = {.piece_count = 1, .expert = (uint32_t)i};
    l.piece[0] = (struct load_piece){d->file, d->b->read[i].offset, d->b->read[i].bytes};
    l.room = (char *)store_arena(d->b->store) + slot * d->slot_bytes;
    l.room_bytes = d->slot_bytes;
    return loader_io_submit(d->io, &l, ticket, dg);
}

/* `depth` loads are out at any time; whatever lands first makes place for the next. */
static enum status run_loader(struct duel *d, struct diag *dg)
{
    uint32_t ticket[LOADER_BENCH_DEPTH_MAX];
    size_t slot[LOADER_BENCH_DEPTH_MAX], read[LOADER_BENCH_DEPTH_MAX], next = 0, out = 0;
    enum status st = ST_OK;
    for (; st == ST_OK && out < d->c->depth && next < d->reads; out++, next++) {
        slot[out] = out;
        read[out] = next;
        st = submit(d, next, out, &ticket[out], dg);
    }
    while (st == ST_OK && out > 0) {
        struct load_report report;
        size_t k = out == 1 ? 0 : loader_io_wait_any(d->io, ticket, out);
        st = loader_io_wait(d->io, ticket[k], &report, dg);
        d->b->latency_ns[read[k]] = (double)(report.landed_ns - report.submitted_ns);
        if (st == ST_OK && next < d->reads) {
            read[k] = next;
            st = submit(d, next++, slot[k], &ticket[k], dg);
            continue;
        }
        out--;
        ticket[k] = ticket[out];
        slot[k] = slot[out];
        read[k] = read[out];
    }
    return st;
}

static enum status run_one(struct duel *d, bool bare, struct run_result *out, struct diag *dg)
{
    double start = bench_clock_s(), *latency_ns = d->b->latency_ns;
    enum status st =
        bare ? bare_ring_run(&d->ring, d->b->read, d->reads, latency_ns, dg) : run_loader(d, dg);
    if (st != ST_OK)
        return st;
    out->Bps = (double)d->run_bytes / (bench_clock_s() - start);
    out->p50_ns = stats_quantile(latency_ns, d->reads, 0.5);
    out->p99_ns = stats_quantile(latency_ns, d->reads, 0.99);
    return ST_OK;
}

static void draw_reads(struct duel *d)
{
    struct loader_bench *b = d->b;
    d->run_bytes = 0;
    d->reads = bench_file_reads(b->read, READS_MAX, b->s.file_bytes, d->c->bytes_min,
                                d->c->bytes_max, d->c->run_bytes, &b->chance);
    for (size_t i = 0; i < d->reads; i++)
        d->run_bytes += b->read[i].bytes;
}

/* One pair before those that count warms both up. */
static enum status fight(struct duel *d, struct loader_bench_rates *out, struct diag *dg)
{
    double sample[7][LOADER_BENCH_PAIRS_MAX];
    size_t n = d->c->pairs;
    for (size_t i = 0; i <= n; i++) {
        struct run_result result[2];
        size_t at = i > 0 ? i - 1 : 0;
        draw_reads(d);
        for (size_t k = 0; k < 2; k++) {
            size_t bare = (i + k) % 2;
            enum status st = run_one(d, bare, &result[bare], dg);
            if (st != ST_OK)
                return st;
        }
        const double values[7] = {result[0].Bps,    result[1].Bps,    result[0].Bps / result[1].Bps,
                                  result[0].p50_ns, result[0].p99_ns, result[1].p50_ns,
                                  result[1].p99_ns};
        for (size_t k = 0; k < 7; k++)
            sample[k][at] = values[k];
    }
    *out = (struct loader_bench_rates){stats_median(sample[0], n), stats_median(sample[1], n),
                                       stats_median(sample[2], n), stats_median(sample[3], n),
                                       stats_median(sample[4], n), stats_median(sample[5], n),
                                       stats_median(sample[6], n)};
    return ST_OK;
}

static enum status start_loader(struct duel *d, struct diag *dg)
{
    const struct loader_io_setup s = {.backend = d->c->backend,
                                      .depth = d->c->depth,
                                      .loads_max = d->c->depth,
                                      .arena = store_arena(d->b->store),
                                      .arena_bytes = d->slot_bytes * d->c->depth};
    enum status st = loader_io_new(&d->io, &s, dg);
    if (st == ST_OK)
        st = loader_io_add_file(d->io, d->b->file.path, true, &d->file, dg);
    static const char *const wanted[] = {[LOADER_URING] = "uring", [LOADER_THREADS] = "threads"};
    if (st == ST_OK && strcmp(loader_io_backend(d->io), wanted[d->c->backend]) != 0)
        st = diag_set(dg, ST_UNSUPPORTED, "%s", loader_io_note(d->io));
    return st;
}

enum status loader_bench_run(struct loader_bench *b, struct loader_bench_rates *out,
                             const struct loader_bench_case *c, struct diag *dg)
{
    assert(c->depth <= b->s.depth_max && c->bytes_max <= b->s.bytes_max && c->pairs >= 1 &&
           c->pairs <= LOADER_BENCH_PAIRS_MAX);
    struct duel d = {.b = b, .c = c, .slot_bytes = (size_t)c->bytes_max};
    enum status st =
        bare_ring_open(&d.ring, b->file.path, store_arena(b->store), d.slot_bytes, c->depth, dg);
    if (st != ST_OK)
        return st;
    st = start_loader(&d, dg);
    if (st == ST_OK)
        st = fight(&d, out, dg);
    loader_io_free(d.io);
    bare_ring_close(&d.ring);
    return st;
}

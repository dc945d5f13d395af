/* kernel_bench.c -- see kernel_bench.h. */
#include "kernels/bench/kernel_bench.h"

#include "base/stats.h"
#include "kernels/bench/bench_clock.h"
#include "kernels/bench/bench_weights.h"
#include "kernels/bench/read_roof.h"
#include "kernels/formats/packed.h"
#include "kernels/graph/workers.h"
#include "kernels/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROW_UNIT    PACKED_TILE_ROWS
#define HUGE_BYTES  ((size_t)2 << 20)
#define PIECE_BYTES ((size_t)1 << 20) /* least piece of a read */
#define PEAK_S      2e-3              /* least time of the measurement of the peak, of one thread */
#define PEAK_WALL_S 1e-2              /* of several: fork and join are in it */
#define WARM_MAX    8
#define STEADY      0.05

struct kernel_bench {
    struct kernel_bench_weights w;
    struct store *store; /* for its arena of huge pages */
    uint8_t *data;
    size_t matrix_bytes, stride, matrices;
};

/* What the threads of one case share. */
struct pass {
    const struct kernel_bench *b;
    const struct kernel_bench_case *c;
    struct workers *workers;
    struct activations x;
    float *y;
    void *quantised;
    size_t matrix, rounds;
    uint64_t sink[WORKERS_THREADS_MAX];
};

static void copy_rows(const struct kernel_bench *b, uint8_t *to, const uint8_t *pool, size_t shift)
{
    size_t row_bytes = block_row_bytes(b->w.format, b->w.cols), rows = b->w.rows;
    size_t first = (rows - shift) * row_bytes;
    memcpy(to, pool + shift * row_bytes, first);
    memcpy(to + first, pool, shift * row_bytes);
}

/* Each matrix has the rows of one random matrix, from another one on: no two lie alike, and it
 * takes a fraction of the time. */
static enum status fill(struct kernel_bench *b, struct diag *dg)
{
    const struct block_format *f = b->w.format;
    struct pcg chance;
    size_t block_bytes = b->w.rows * block_row_bytes(f, b->w.cols);
    uint8_t *pool = malloc(block_bytes), *blocks = malloc(block_bytes);
    if (!pool || !blocks) {
        free(pool);
        free(blocks);
        return diag_no_memory(dg);
    }
    pcg_stream(&chance, b->w.seed, "engine-bench/weights");
    bench_weights_fill(f, pool, block_bytes / f->block_bytes, &chance);
    for (size_t m = 0; m < b->matrices; m++) {
        uint8_t *to = b->data + m * b->stride;
        size_t shift = pcg_below(&chance, (uint32_t)b->w.rows);
        copy_rows(b, b->w.layout == LAYOUT_BLOCKS ? to : blocks, pool, shift);
        if (b->w.layout == LAYOUT_PACKED)
            packed_from_blocks(f, to, blocks, b->w.rows, b->w.cols);
    }
    free(pool);
    free(blocks);
    return ST_OK;
}

enum status kernel_bench_new(struct kernel_bench **out, const struct kernel_bench_weights *w,
                             struct diag *dg)
{
    assert(w->rows > 0 && w->cols > 0 && w->cols % w->format->block_weights == 0);
    *out = NULL;
    struct kernel_bench *b = calloc(1, sizeof *b);
    if (!b)
        return diag_no_memory(dg);
    b->w = *w;
    b->matrix_bytes = w->layout == LAYOUT_PACKED ? packed_bytes(w->format, w->rows, w->cols)
                                                 : w->rows * block_row_bytes(w->format, w->cols);
    b->stride = (b->matrix_bytes + READ_ROOF_STEP - 1) / READ_ROOF_STEP * READ_ROOF_STEP;
    b->matrices = w->bytes / b->stride + (w->bytes % b->stride > 0);
    b->matrices += b->matrices == 0;
    size_t whole = (b->matrices * b->stride + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    enum status st = store_new(&b->store, whole, HUGE_BYTES, 1, dg);
    if (st == ST_OK) {
        b->data = store_arena(b->store);
        st = fill(b, dg);
    }
    if (st == ST_OK)
        *out = b;
    else
        kernel_bench_free(b);
    return st;
}

void kernel_bench_free(struct kernel_bench *b)
{
    if (!b)
        return;
    store_free(b->store);
    free(b);
}

static double now_s(const struct pass *p)
{
    return p->c->threads == 1 ? bench_clock_thread_s() : bench_clock_s();
}

static void read_piece(void *context, size_t begin, size_t end, size_t thread)
{
    struct pass *p = context;
    p->sink[thread] ^=
        read_roof_pass(p->b->data + begin * READ_ROOF_STEP, (end - begin) * READ_ROOF_STEP);
}

static double read_Bps(struct pass *p)
{
    size_t bytes = p->b->matrices * p->b->stride;
    double start = now_s(p);
    workers_each(p->workers, read_piece, p, bytes / READ_ROOF_STEP, PIECE_BYTES / READ_ROOF_STEP);
    return (double)bytes / (now_s(p) - start);
}

static void product_piece(void *context, size_t begin, size_t end, size_t thread)
{
    struct pass *p = context;
    const struct kernel_bench *b = p->b;
    struct weights w = {b->w.format, b->w.layout, b->w.rows, b->w.cols,
                        b->data + p->matrix * b->stride};
    (void)thread;
    isa_product(p->c->isa, p->y, b->w.rows, &w, &p->x, begin, end);
}

static double product_s(struct pass *p)
{
    double start = now_s(p);
    for (p->matrix = 0; p->matrix < p->b->matrices; p->matrix++)
        workers_each(p->workers, product_piece, p, p->b->w.rows, ROW_UNIT);
    return now_s(p) - start;
}

static void peak_share(void *context, size_t thread, size_t threads)
{
    struct pass *p = context;
    int32_t sink8[16];
    float sink[16];
    (void)threads;
    p->sink[thread] =
        p->x.quantised ? p->c->isa->peak8(sink8, p->rounds) : p->c->isa->peak_f32(sink, p->rounds);
}

/* Seconds; *gops of all threads. */
static double peak_s(struct pass *p, double *gops)
{
    double start = now_s(p), operations = 0;
    workers_run(p->workers, peak_share, p);
    double took = now_s(p) - start;
    for (size_t t = 0; t < p->c->threads; t++)
        operations += (double)p->sink[t];
    *gops = operations / took * 1e-9;
    return took;
}

static void warm(struct pass *p)
{
    double before = 0, gops, least_s = p->c->threads == 1 ? PEAK_S : PEAK_WALL_S;
    for (p->rounds = 1024; peak_s(p, &gops) < least_s;)
        p->rounds *= 2;
    for (int i = 0; i < WARM_MAX; i++) {
        double rate = read_Bps(p);
        product_s(p);
        if (rate > before * (1 - STEADY) && rate < before * (1 + STEADY))
            return;
        before = rate;
    }
}

static void measure(struct pass *p, struct kernel_bench_rates *out)
{
    double sample[6][KERNEL_BENCH_PAIRS_MAX];
    const struct kernel_bench *b = p->b;
    double operations = 2.0 * (double)b->w.rows * (double)b->w.cols * (double)p->c->batch;
    size_t n = p->c->pairs;
    warm(p);
    for (size_t i = 0; i < n; i++) {
        sample[1][i] = read_Bps(p);
        double took = product_s(p);
        peak_s(p, &sample[4][i]);
        sample[0][i] = (double)(b->matrices * b->matrix_bytes) / took;
        sample[2][i] = sample[0][i] / sample[1][i];
        sample[3][i] = operations * (double)b->matrices / took * 1e-9;
        sample[5][i] = sample[3][i] / sample[4][i];
    }
    *out = (struct kernel_bench_rates){stats_median(sample[0], n), stats_median(sample[1], n),
                                       stats_median(sample[2], n), stats_median(sample[3], n),
                                       stats_median(sample[4], n), stats_median(sample[5], n)};
}

/* Activations between -1 and 1, in the form that the weights are multiplied with. */
static enum status make_activations(struct pass *p, struct diag *dg)
{
    const struct kernel_bench *b = p->b;
    size_t cols = b->w.cols, tokens = p->c->batch;
    float *values = malloc(tokens * cols * sizeof *values);
    p->y = malloc(tokens * b->w.rows * sizeof *p->y);
    p->quantised = b->w.format->code_bits
                       ? aligned_alloc(ACTIVATION_ALIGN, tokens * activation_bytes(cols))
                       : NULL;
    p->x = (struct activations){tokens, values, cols, p->quantised};
    if (!values || !p->y || (b->w.format->code_bits && !p->quantised))
        return diag_no_memory(dg);
    struct pcg chance;
    pcg_stream(&chance, b->w.seed, "engine-bench/activations");
    for (size_t i = 0; i < tokens * cols; i++)
        values[i] = (float)(int32_t)pcg_u32(&chance) * 0x1p-31f;
    for (size_t t = 0; p->quantised && t < tokens; t++)
        p->c->isa->quantise((char *)p->quantised + t * activation_bytes(cols), values + t * cols,
                            cols);
    return ST_OK;
}

enum status kernel_bench_run(struct kernel_bench *b, struct kernel_bench_rates *out,
                             const struct kernel_bench_case *c, struct diag *dg)
{
    assert(c->batch >= 1 && c->batch <= KERNEL_BENCH_BATCH_MAX && c->pairs >= 1 &&
           c->pairs <= KERNEL_BENCH_PAIRS_MAX);
    struct pass *p = calloc(1, sizeof *p);
    if (!p)
        return diag_no_memory(dg);
    p->b = b;
    p->c = c;
    enum status st = make_activations(p, dg);
    if (st == ST_OK)
        st = workers_new(&p->workers, c->threads, dg);
    if (st == ST_OK)
        measure(p, out);
    workers_free(p->workers);
    free((void *)p->x.values);
    free(p->quantised);
    free(p->y);
    free(p);
    return st;
}

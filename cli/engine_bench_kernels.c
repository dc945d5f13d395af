/* engine_bench_kernels.c -- `memwall engine bench kernels`: rates of the products beside the rates of memory
 * and of arithmetic, as ratios within one run (kernels/bench/kernel_bench.h). */
#include "cli/commands.h"
#include "cli/engine_bench_options.h"
#include "cli/report.h"

#include "base/progress.h"
#include "kernels/bench/busy.h"
#include "kernels/bench/kernel_bench.h"
#include "kernels/graph/workers.h"

static const struct column columns[] = {
    {"format", CELL_TEXT, 0, false},
    {"layout", CELL_TEXT, 0, false},
    {"rows", CELL_COUNT, 0, true},
    {"cols", CELL_COUNT, 0, true},
    {"batch", CELL_COUNT, 0, false},
    {"threads", CELL_COUNT, 0, false},
    {"isa", CELL_TEXT, 0, true},
    {"weight_Bps", CELL_NUMBER, 0, false},
    {"read_roof_Bps", CELL_NUMBER, 0, false},
    {"ratio", CELL_NUMBER, 3, false},
    {"gops", CELL_NUMBER, 1, false},
    {"peak_gops", CELL_NUMBER, 1, false},
};

struct matrix {
    struct format_list formats;
    struct layout_list layouts;
    struct shape_list shapes;
    struct number_list batches, threads;
    const struct isa *isa;
    struct progress progress;
};

static enum status read_options(struct matrix *m, struct args *a, struct diag *dg)
{
    enum status st = format_list_read(&m->formats, a, "formats", dg);
    if (st == ST_OK)
        st = layout_list_read(&m->layouts, a, "layouts", dg);
    if (st == ST_OK)
        st = shape_list_read(&m->shapes, a, "shapes", dg);
    if (st == ST_OK)
        st = number_list_read(&m->batches, a, "batch", 1, KERNEL_BENCH_BATCH_MAX, dg);
    if (st == ST_OK)
        st = number_list_read(&m->threads, a, "threads", 1, WORKERS_THREADS_MAX, dg);
    if (st == ST_OK)
        st = isa_choose(&m->isa, args_text(a, "isa"), dg);
    for (size_t f = 0; st == ST_OK && f < m->formats.count; f++)
        for (size_t s = 0; s < m->shapes.count; s++) {
            const struct block_format *format = m->formats.format[f];
            if (m->shapes.shape[s].cols % format->block_weights != 0)
                return diag_set(dg, ST_USAGE, "--shapes: %s has blocks of %u columns, not %zu",
                                format->name, format->block_weights, m->shapes.shape[s].cols);
        }
    return st;
}

static void print_row(struct report *r, const struct kernel_bench_weights *w,
                      const struct kernel_bench_case *c, const struct kernel_bench_rates *x)
{
    report_text(r, w->format->name);
    report_text(r, layout_names[w->layout]);
    report_count(r, w->rows);
    report_count(r, w->cols);
    report_count(r, c->batch);
    report_count(r, c->threads);
    report_text(r, c->isa->name);
    report_number(r, x->weight_Bps);
    report_number(r, x->read_roof_Bps);
    report_number(r, x->ratio);
    report_number(r, x->gops);
    report_number(r, x->peak_gops);
}

/* All batches and thread counts on one set of weights. */
static enum status bench_weights(struct matrix *m, struct report *r, const struct args *a,
                                 const struct kernel_bench_weights *w, struct diag *dg)
{
    struct kernel_bench *b;
    enum status st = kernel_bench_new(&b, w, dg);
    for (size_t t = 0; st == ST_OK && t < m->threads.count; t++)
        for (size_t i = 0; st == ST_OK && i < m->batches.count; i++) {
            struct kernel_bench_rates rates;
            const struct kernel_bench_case c = {m->isa, m->batches.value[i], m->threads.value[t],
                                                args_count(a, "pairs")};
            st = kernel_bench_run(b, &rates, &c, dg);
            if (st == ST_OK)
                print_row(r, w, &c, &rates);
            progress_add(&m->progress, 1);
        }
    kernel_bench_free(b);
    return st;
}

static enum status bench_all(struct matrix *m, struct report *r, const struct args *a,
                             struct diag *dg)
{
    enum status st = ST_OK;
    for (size_t s = 0; s < m->shapes.count; s++)
        for (size_t l = 0; l < m->layouts.count; l++)
            for (size_t f = 0; st == ST_OK && f < m->formats.count; f++) {
                const struct kernel_bench_weights w = {.format = m->formats.format[f],
                                                       .layout = m->layouts.layout[l],
                                                       .rows = m->shapes.shape[s].rows,
                                                       .cols = m->shapes.shape[s].cols,
                                                       .bytes = args_count(a, "bytes"),
                                                       .seed = args_count(a, "seed")};
                st = bench_weights(m, r, a, &w, dg);
            }
    return st;
}

static enum status engine_bench_kernels(struct args *a, struct diag *dg)
{
    struct matrix m;
    struct report *r;
    struct busy busy;
    enum status st = read_options(&m, a, dg);
    if (st == ST_OK)
        st = busy_start(&busy, args_count(a, "busy"), dg);
    if (st != ST_OK)
        return st;
    st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st == ST_OK) {
        progress_start(&m.progress, "measuring",
                       m.formats.count * m.layouts.count * m.shapes.count * m.batches.count *
                           m.threads.count);
        st = bench_all(&m, r, a, dg);
        progress_end(&m.progress);
    }
    busy_stop(&busy);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

/* clang-format off */
static const struct option options[] = {
    {"formats", OPTION_TEXT, "LIST", "weight formats, or all", "q8_0,f16,q4_0,q4_k,q6_k,mxfp4", NULL, 1, 0, false},
    {"layouts", OPTION_TEXT, "LIST", "blocks (as in GGUF), packed", "blocks,packed", NULL, 1, 0, false},
    {"shapes", OPTION_TEXT, "LIST", "matrices, ROWSxCOLS", "2048x2048", NULL, 1, 0, false},
    {"batch", OPTION_TEXT, "LIST", "tokens that are multiplied at once", "1,32", NULL, 1, 0, false},
    {"threads", OPTION_TEXT, "LIST", "threads", "1,2", NULL, 1, 0, false},
    {"isa", OPTION_TEXT, "NAME", "instruction set: auto, scalar, avx2, avx512, neon", "auto", NULL, 1, 0, false},
    {"pairs", OPTION_COUNT, "N", "measurements of product and roof in turn, of which the median counts", "5", NULL,
     5, KERNEL_BENCH_PAIRS_MAX, false},
    {"bytes", OPTION_SIZE, "SIZE", "distinct weights", "288MiB", NULL, 1, 1ull << 40, false},
    {"busy", OPTION_COUNT, "N", "foreign processes that compute beside, each bound to a core", "0", NULL,
     0, BUSY_MAX, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};
/* clang-format on */

const struct command command_engine_bench_kernels = {
    .name = "engine bench kernels",
    .summary = "matrix products beside the rates of memory and arithmetic",
    .usage = "[--formats LIST] [--layouts LIST] [--shapes LIST] [--batch LIST] [--threads LIST]",
    .example = "memwall engine bench kernels --formats q4_0,q8_0 --batch 1 --format csv",
    .options = options,
    .no_set = true,
    .run = engine_bench_kernels,
};

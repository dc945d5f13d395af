/* engine_bench_loader.c -- `memwall engine bench loader`: the engine's reads beside a bare io_uring loop
 * (kernels/bench/loader_bench.h). */
#include "cli/commands.h"
#include "cli/engine_bench_options.h"
#include "cli/report.h"

#include "base/progress.h"
#include "kernels/bench/bare_ring.h"
#include "kernels/bench/bench_file.h"
#include "kernels/bench/loader_bench.h"

#include <inttypes.h>
#include <stdio.h>

static const struct column columns[] = {
    {"bytes", CELL_TEXT, 0, false},
    {"depth", CELL_COUNT, 0, false},
    {"backend", CELL_TEXT, 0, false},
    {"rate_Bps", CELL_NUMBER, 0, false},
    {"bare_Bps", CELL_NUMBER, 0, false},
    {"ratio", CELL_NUMBER, 3, false},
    {"latency_ns_p50", CELL_NUMBER, 0, false},
    {"latency_ns_p99", CELL_NUMBER, 0, false},
    {"bare_latency_ns_p50", CELL_NUMBER, 0, true},
    {"bare_latency_ns_p99", CELL_NUMBER, 0, true},
};

static const char *const backend_names[] = {
    [LOADER_URING] = "uring", [LOADER_THREADS] = "threads", "both", NULL};

#define READ_BYTES_MAX (UINT64_C(64) << 20)

struct matrix {
    struct range_list sizes;
    struct number_list depths;
    struct loader_bench_setup setup;
    uint64_t run_bytes;
    size_t pairs;
    enum loader_backend_kind first, last;
    struct progress progress;
};

static enum status read_options(struct matrix *m, struct args *a, struct diag *dg)
{
    enum status st = range_list_read(&m->sizes, a, "sizes", BENCH_FILE_BLOCK, READ_BYTES_MAX, dg);
    if (st == ST_OK)
        st = number_list_read(&m->depths, a, "depths", 1, LOADER_BENCH_DEPTH_MAX, dg);
    if (st != ST_OK)
        return st;
    uint64_t file_bytes = args_count(a, "file-bytes");
    m->setup = (struct loader_bench_setup){.dir = args_text(a, "dir"),
                                           .file_bytes = file_bytes - file_bytes % BENCH_FILE_BLOCK,
                                           .seed = args_count(a, "seed")};
    for (size_t i = 0; i < m->sizes.count; i++)
        if (m->sizes.range[i].max > m->setup.bytes_max)
            m->setup.bytes_max = m->sizes.range[i].max;
    for (size_t i = 0; i < m->depths.count; i++)
        if (m->depths.value[i] > m->setup.depth_max)
            m->setup.depth_max = (uint32_t)m->depths.value[i];
    m->run_bytes = args_count(a, "run-bytes");
    m->pairs = args_count(a, "pairs");
    uint64_t backend = args_count(a, "backend");
    m->first = backend == LOADER_THREADS ? LOADER_THREADS : LOADER_URING;
    m->last = backend == LOADER_URING ? LOADER_URING : LOADER_THREADS;
    if (m->setup.bytes_max > BARE_RING_BYTES_MAX / m->setup.depth_max)
        return diag_set(dg, ST_USAGE,
                        "--sizes, --depths: %" PRIu32 " reads of %" PRIu64
                        " bytes in flight are more than the %" PRIu64
                        " bytes that the kernel registers",
                        m->setup.depth_max, m->setup.bytes_max, BARE_RING_BYTES_MAX);
    if (m->setup.file_bytes < m->setup.bytes_max)
        return diag_set(dg, ST_USAGE, "--file-bytes: expected at least the largest read, %" PRIu64,
                        m->setup.bytes_max);
    return ST_OK;
}

static void print_row(struct report *r, const struct loader_bench_case *c,
                      const struct loader_bench_rates *x)
{
    char bytes[48];
    if (c->bytes_min == c->bytes_max)
        snprintf(bytes, sizeof bytes, "%" PRIu64, c->bytes_min);
    else
        snprintf(bytes, sizeof bytes, "%" PRIu64 "-%" PRIu64, c->bytes_min, c->bytes_max);
    report_text(r, bytes);
    report_count(r, c->depth);
    report_text(r, backend_names[c->backend]);
    report_number(r, x->rate_Bps);
    report_number(r, x->bare_Bps);
    report_number(r, x->ratio);
    report_number(r, x->latency_ns_p50);
    report_number(r, x->latency_ns_p99);
    report_number(r, x->bare_latency_ns_p50);
    report_number(r, x->bare_latency_ns_p99);
}

static enum status bench_all(struct matrix *m, struct loader_bench *b, struct report *r,
                             struct diag *dg)
{
    enum status st = ST_OK;
    for (enum loader_backend_kind k = m->first; k <= m->last; k++)
        for (size_t s = 0; s < m->sizes.count; s++)
            for (size_t d = 0; st == ST_OK && d < m->depths.count; d++) {
                struct loader_bench_rates rates;
                const struct loader_bench_case c = {.bytes_min = m->sizes.range[s].min,
                                                    .bytes_max = m->sizes.range[s].max,
                                                    .depth = (uint32_t)m->depths.value[d],
                                                    .backend = k,
                                                    .run_bytes = m->run_bytes,
                                                    .pairs = m->pairs};
                st = loader_bench_run(b, &rates, &c, dg);
                if (st == ST_OK)
                    print_row(r, &c, &rates);
                progress_add(&m->progress, 1);
            }
    return st;
}

static enum status engine_bench_loader(struct args *a, struct diag *dg)
{
    struct matrix m = {0};
    struct loader_bench *b = NULL;
    struct report *r;
    enum status st = read_options(&m, a, dg);
    if (st == ST_OK)
        st = report_open(&r, a, columns, sizeof columns / sizeof *columns, dg);
    if (st != ST_OK)
        return st;
    st = loader_bench_new(&b, &m.setup, dg);
    progress_start(&m.progress, "measuring",
                   m.sizes.count * m.depths.count * (m.last - m.first + 1));
    if (st == ST_OK)
        st = bench_all(&m, b, r, dg);
    progress_end(&m.progress);
    loader_bench_free(b);
    if (st == ST_OK)
        return report_close(r, dg);
    report_abandon(r);
    return st;
}

/* clang-format off */
static const struct option options[] = {
    {"sizes", OPTION_TEXT, "LIST", "bytes of a read, or a range: equally likely in each doubling",
     "256KiB,1MiB,4MiB,8MiB,256KiB-8MiB", NULL, 1, 0, false},
    {"depths", OPTION_TEXT, "LIST", "reads in flight", "1,2,4,8,16", NULL, 1, 0, false},
    {"backend", OPTION_CHOICE, "B", "uring, threads or both", "uring", backend_names, 0, 0, false},
    {"pairs", OPTION_COUNT, "N", "runs of loader and bare loop in turn, of which the median counts", "11", NULL,
     5, LOADER_BENCH_PAIRS_MAX, false},
    {"dir", OPTION_TEXT, "DIR", "where the temporary file is written; it is removed at the end", ".", NULL, 1, 0, false},
    {"file-bytes", OPTION_SIZE, "SIZE", "its size", "2GiB", NULL, BENCH_FILE_BLOCK, 1ull << 44, false},
    {"run-bytes", OPTION_SIZE, "SIZE", "what one run reads, about", "300MiB", NULL, 1, 1ull << 44, false},
    {NULL, OPTION_FLAG, NULL, NULL, NULL, NULL, 0, 0, false},
};
/* clang-format on */

const struct command command_engine_bench_loader = {
    .name = "engine bench loader",
    .summary = "reads of experts beside a bare io_uring loop",
    .usage = "[--sizes LIST] [--depths LIST] [--backend B] [--dir DIR] [--file-bytes SIZE]",
    .example = "memwall engine bench loader --sizes 1MiB --depths 1,4 --dir /tmp",
    .options = options,
    .no_set = true,
    .run = engine_bench_loader,
};

/* fio_import.c -- see fio_import.h. */
#include "devices/fio_import.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One job of one file while it is read. */
struct job {
    const struct json_doc *doc;
    const json_node *node, *options, *global;
    const char *name;
    struct diag *dg;
};

static enum status job_error(const struct job *j, enum status st, const char *what)
{
    return diag_set(j->dg, st, "%s: job '%s': %s", json_name(j->doc), j->name, what);
}

/* An option by its name or its other name, of the job, else of all jobs; NULL if absent. */
static const char *option(const struct job *j, const char *name, const char *other)
{
    const json_node *const where[] = {j->options, j->global};
    for (size_t i = 0; i < 2; i++) {
        const char *text = json_text(json_get(where[i], name));
        if (!text && other)
            text = json_text(json_get(where[i], other));
        if (text)
            return text;
    }
    return NULL;
}

#define NUMBER_MAX ((uint64_t)1 << 54) /* 16 million GiB: beyond any block */

/* A whole number with fio's suffix (k, m, g: powers of 1024; also ki, kb, kib). */
static bool fio_number(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long n = strtoull(text, &end, 10);
    static const char units[] = "kmg";
    unsigned shift = 0;
    char letter = (char)(*end | 0x20);
    const char *unit = *end ? strchr(units, letter) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
        end += (*end | 0x20) == 'i';
    }
    end += (*end | 0x20) == 'b';
    if (*end || n == 0 || n > NUMBER_MAX >> shift)
        return false;
    *out = (uint64_t)n << shift;
    return true;
}

static enum status number_option(const struct job *j, const char *name, const char *other,
                                 const char *fallback, uint64_t *out)
{
    const char *text = option(j, name, other);
    if (fio_number(text ? text : fallback, out))
        return ST_OK;
    return diag_set(j->dg, ST_PARSE, "%s: job '%s': %s=%s: a whole number above 0 is expected",
                    json_name(j->doc), j->name, name, text);
}

/* Engines whose calls return when the data is there: iodepth has no effect on them. */
static bool is_synchronous(const char *engine)
{
    static const char *const names[] = {"sync", "psync", "vsync", "pvsync", "pvsync2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(engine, names[i]) == 0)
            return true;
    return false;
}

static enum status read_shape(struct fio_row *row, const struct job *j)
{
    uint64_t iodepth, jobs;
    const char *direct = option(j, "direct", NULL), *engine = option(j, "ioengine", NULL);
    if (option(j, "bsrange", NULL) || option(j, "bssplit", NULL) || option(j, "kb_base", NULL))
        return job_error(j, ST_UNSUPPORTED, "one bs is expected, not bsrange, bssplit or kb_base");
    if (!direct || strcmp(direct, "1") != 0)
        return job_error(j, ST_UNSUPPORTED,
                         "direct=1 is expected: a buffered job measures the page cache");
    enum status st = number_option(j, "bs", "blocksize", "4k", &row->bytes);
    if (st == ST_OK)
        st = number_option(j, "iodepth", NULL, "1", &iodepth);
    if (st == ST_OK)
        st = number_option(j, "numjobs", NULL, "1", &jobs);
    if (st != ST_OK)
        return st;
    /* fio's default engine on Linux is psync. */
    if (!engine || is_synchronous(engine))
        iodepth = 1;
    if (iodepth > 1048576 || jobs > 1048576)
        return job_error(j, ST_RANGE, "iodepth and numjobs up to 1048576 are expected");
    row->depth = iodepth * jobs;
    return ST_OK;
}

/* A percentile by its key in fio's spelling, of lat_ns or else of clat_ns. */
static uint64_t percentile(const json_node *read, const char *key)
{
    uint64_t ns = 0;
    if (!json_u64(json_get(json_get(json_get(read, "lat_ns"), "percentile"), key), &ns))
        (void)json_u64(json_get(json_get(json_get(read, "clat_ns"), "percentile"), key), &ns);
    return ns;
}

/* Beyond these a unit was mistaken; below them clones add up without overflow. */
#define RATE_MAX    UINT64_C(1000000000000000)
#define READS_MAX   UINT64_C(1000000000000000)
#define LATENCY_MAX 1000000000000 /* ns */

static enum status read_results(struct fio_row *row, const struct job *j)
{
    const json_node *read = json_get(j->node, "read");
    uint64_t error = 0, bytes;
    if (json_u64(json_get(j->node, "error"), &error) && error != 0)
        return job_error(j, ST_UNSUPPORTED, "it ended with an error");
    if (!json_u64(json_get(read, "bw_bytes"), &row->rate_Bps) || row->rate_Bps == 0 ||
        !json_double(json_get(read, "iops"), &row->iops) ||
        !json_u64(json_get(read, "io_bytes"), &bytes) ||
        !json_u64(json_get(read, "total_ios"), &row->reads) || row->reads == 0)
        return job_error(j, ST_PARSE,
                         "read.bw_bytes, read.iops, read.io_bytes and read.total_ios are expected");
    double mean = (double)bytes / (double)row->reads;
    if (fabs(mean / (double)row->bytes - 1) > 0.01)
        return job_error(j, ST_MISFIT, "bs is not what read.io_bytes / read.total_ios says");
    if (!json_double(json_get(json_get(read, "lat_ns"), "mean"), &row->latency_mean_ns))
        row->latency_mean_ns = 0;
    row->latency_p50_ns = percentile(read, "50.000000");
    row->latency_p99_ns = percentile(read, "99.000000");
    if (row->rate_Bps > RATE_MAX || row->reads > READS_MAX || !(row->iops > 0) ||
        row->iops > (double)RATE_MAX)
        return job_error(j, ST_RANGE,
                         "rates above 0 and up to 1 PB/s and 10^15 reads are expected");
    if (row->latency_mean_ns < 0 || row->latency_mean_ns > LATENCY_MAX ||
        row->latency_p50_ns > LATENCY_MAX || row->latency_p99_ns > LATENCY_MAX)
        return job_error(j, ST_RANGE, "latencies from 0 to 1000 s are expected");
    return ST_OK;
}

static void add_clone(struct fio_row *to, const struct fio_row *clone)
{
    double reads = (double)to->reads, more = (double)clone->reads;
    to->latency_mean_ns =
        (to->latency_mean_ns * reads + clone->latency_mean_ns * more) / (reads + more);
    to->rate_Bps += clone->rate_Bps;
    to->iops += clone->iops;
    to->reads += clone->reads;
    if (clone->latency_p50_ns > to->latency_p50_ns)
        to->latency_p50_ns = clone->latency_p50_ns;
    if (clone->latency_p99_ns > to->latency_p99_ns)
        to->latency_p99_ns = clone->latency_p99_ns;
}

static enum status add_row(struct fio_table *t, const struct fio_row *row, const struct job *j)
{
    struct fio_row *last = t->count ? &t->rows[t->count - 1] : NULL;
    if (last && last->file == row->file && last->group == row->group) {
        if (strcmp(last->job, row->job) != 0)
            return job_error(j, ST_UNSUPPORTED,
                             "it ran at the same time as another job: stonewall is expected");
        add_clone(last, row);
        return ST_OK;
    }
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct fio_row *more = arena_alloc(&t->arena, room * sizeof *more);
        if (!more)
            return diag_no_memory(j->dg);
        if (t->count)
            memcpy(more, t->rows, t->count * sizeof *more);
        t->rows = more;
        t->room = room;
    }
    t->rows[t->count++] = *row;
    return ST_OK;
}

static enum status import_job(struct fio_table *t, const char *file, struct job *j)
{
    struct fio_row row = {.file = file};
    j->name = json_text(json_get(j->node, "jobname"));
    j->options = json_get(j->node, "job options");
    if (!j->name)
        return diag_set(j->dg, ST_PARSE, "%s: jobs: every job needs a jobname", file);
    const char *rw = option(j, "rw", "readwrite");
    if (!rw || strcmp(rw, "read") == 0)
        row.random = false; /* fio's default is sequential reads */
    else if (strcmp(rw, "randread") == 0)
        row.random = true;
    else {
        t->write_jobs++;
        return ST_OK;
    }
    row.job = arena_text(&t->arena, j->name);
    if (!row.job)
        return diag_no_memory(j->dg);
    if (!json_u64(json_get(j->node, "groupid"), &row.group))
        return job_error(j, ST_PARSE, "groupid is expected");
    enum status st = read_shape(&row, j);
    if (st == ST_OK)
        st = read_results(&row, j);
    return st != ST_OK ? st : add_row(t, &row, j);
}

enum status fio_import(struct fio_table *t, const char *path, struct diag *dg)
{
    struct json_doc *doc;
    const char *file = arena_text(&t->arena, path);
    if (!file)
        return diag_no_memory(dg);
    enum status st = json_open(&doc, path, dg);
    if (st != ST_OK)
        return st;
    const json_node *root = json_root(doc), *jobs = json_get(root, "jobs");
    struct job j = {.doc = doc, .global = json_get(root, "global options"), .dg = dg};
    if (!json_is_array(jobs) || json_count(jobs) == 0)
        st = diag_set(dg, ST_PARSE, "%s: jobs: the output of fio --output-format=json is expected",
                      path);
    for (size_t i = 0; i < json_count(jobs) && st == ST_OK; i++) {
        j.node = json_at(jobs, i);
        st = import_job(t, file, &j);
    }
    json_close(doc);
    return st;
}

void fio_table_free(struct fio_table *t)
{
    arena_free(&t->arena);
    *t = (struct fio_table){0};
}

enum status fio_rates(struct rate_table *out, const struct fio_table *t, struct diag *dg)
{
    out->name = t->count ? t->rows[0].file : "fio";
    for (size_t i = 0; i < t->count; i++) {
        const struct fio_row *r = &t->rows[i];
        if (!r->random)
            continue;
        enum status st = rate_table_add(
            out, (struct rate_row){.bytes = r->bytes, .depth = r->depth, .rate_Bps = r->rate_Bps},
            dg);
        if (st != ST_OK)
            return st;
    }
    return out->count ? ST_OK
                      : diag_set(dg, ST_MISSING,
                                 "%s: no job of rw=randread: decoding reads at random", out->name);
}

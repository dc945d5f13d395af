/* fio_storage.c -- fio_storage() of fio_import.h: from the jobs to the values of a description. */
#include "devices/fio_import.h"

#include <stdio.h>
#include <string.h>

/* Reads above this say nothing of small reads, and a shallow queue does not show what the device
 * can. */
#define SMALL_READ 16384
#define DEEP       16
/* Reads below this do not reach the ceiling. */
#define LARGE_READ 1048576

static const char *source_text(struct fio_table *t, const struct fio_row *row)
{
    char text[512];
    snprintf(text, sizeof text, "fio %s, job %s: %ju B at depth %ju", row->file, row->job,
             (uintmax_t)row->bytes, (uintmax_t)row->depth);
    return arena_text(&t->arena, text);
}

/* A measured value named after its job; nothing if the amount is below 1. */
static enum status set_measured(struct value *v, struct fio_table *t, const struct fio_row *row,
                                double amount, enum dimension dim, struct diag *dg)
{
    if (!(amount >= 1))
        return ST_OK;
    const char *source = source_text(t, row);
    if (!source)
        return diag_no_memory(dg);
    *v = (struct value){.amount = storage_fit_rounded(amount),
                        .source = source,
                        .kind = KIND_MEASURED,
                        .dim = dim,
                        .given = true};
    return ST_OK;
}

/* The rows that a description quotes; NULL where no job is of that sort. */
struct extremes {
    const struct fio_row *fastest, *sequential, *busiest, *quickest;
};

static struct extremes extremes_of(const struct fio_table *t)
{
    struct extremes e = {0};
    for (size_t i = 0; i < t->count; i++) {
        const struct fio_row *r = &t->rows[i];
        if (!r->random) {
            if (!e.sequential || r->rate_Bps > e.sequential->rate_Bps)
                e.sequential = r;
            continue;
        }
        if (r->bytes >= LARGE_READ && (!e.fastest || r->rate_Bps > e.fastest->rate_Bps))
            e.fastest = r;
        if (r->bytes <= SMALL_READ && r->depth >= DEEP && (!e.busiest || r->iops > e.busiest->iops))
            e.busiest = r;
        if (r->depth == 1 && (!e.quickest || r->bytes < e.quickest->bytes))
            e.quickest = r;
    }
    return e;
}

static enum status set_fitted(struct storage *out, const struct storage_fit *fit,
                              struct fio_table *t, struct diag *dg)
{
    char text[512];
    snprintf(text, sizeof text, "closed-form fit of %zu fio rows, RMS %.1f %% (%s)", fit->rows,
             100 * fit->rms, t->rows[0].file);
    const char *source = arena_text(&t->arena, text);
    if (!source)
        return diag_no_memory(dg);
    storage_fit_values(out, fit, source);
    return ST_OK;
}

/* What the jobs show without a formula. */
static enum status set_extremes(struct storage *out, const struct extremes *e, struct fio_table *t,
                                struct diag *dg)
{
    if (!e->fastest)
        return diag_set(dg, ST_MISFIT,
                        "%s: no fit, and no random reads of 1 MiB or more that show the ceiling",
                        t->rows[0].file);
    enum status st =
        set_measured(&out->bandwidth, t, e->fastest, (double)e->fastest->rate_Bps, DIM_RATE, dg);
    if (st == ST_OK && e->busiest)
        st = set_measured(&out->iops, t, e->busiest, e->busiest->iops, DIM_FREQUENCY, dg);
    if (st == ST_OK && e->quickest)
        st =
            set_measured(&out->latency, t, e->quickest, e->quickest->latency_mean_ns, DIM_TIME, dg);
    return st;
}

enum status fio_storage(struct storage *out, struct storage_fit *fit, const char **reason,
                        enum fit_corner corner, struct fio_table *t, struct diag *dg)
{
    struct rate_table rates = {0};
    const struct extremes e = extremes_of(t);
    *out = (struct storage){.name = "fio", .model = STORAGE_CURVE};
    *reason = "";
    enum status st = fio_rates(&rates, t, dg);
    bool fitted = false;
    if (st == ST_OK) {
        st = storage_fit_run(fit, &rates, corner, dg);
        fitted = st == ST_OK;
        if (st == ST_MISFIT) {
            *reason = arena_text(&t->arena, dg->text);
            st = *reason ? ST_OK : diag_no_memory(dg);
        }
    }
    rate_table_free(&rates);
    if (st == ST_OK)
        st = fitted ? set_fitted(out, fit, t, dg) : set_extremes(out, &e, t, dg);
    if (st == ST_OK && e.sequential)
        st = set_measured(&out->sequential_bandwidth, t, e.sequential,
                          (double)e.sequential->rate_Bps, DIM_RATE, dg);
    return st;
}

/* sweep_run.c -- see sweep_run.h. */
#include "experiments/sweep_run.h"

#include "base/csv.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "experiments/journal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the threads have in common. */
struct field {
    const struct sweep_setup *setup;
    struct sweep_result *result;
    const bool *kept; /* columns of the runner that are no axis */
    pthread_mutex_t lock;
    struct progress progress;
    size_t next; /* row to run */
    bool stop;
    size_t failed_row; /* of the reason in `why`: the first one in the grid that was met */
    enum status status;
    struct diag why;
};

static uint64_t point_of(const struct sweep_setup *s, size_t row)
{
    return (uint64_t)row * s->shards + (s->shard - 1);
}

/* Cells hold no control characters: they would break a row into two, or steer a terminal. */
static void put_cell(FILE *f, const char *text, bool first)
{
    if (!first)
        fputc(SWEEP_CELL_END, f);
    for (const char *c = text ? text : ""; *c; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, f);
}

static char *join_row(const struct field *f, uint64_t point, char *const *cell, const char *note)
{
    const struct experiment *e = f->setup->experiment;
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    for (size_t a = 0; a < e->axis_count; a++)
        put_cell(stream, e->axis[a].item[experiment_item(e, point, a)].text, a == 0);
    for (size_t c = 0; c < f->setup->runner->column_count; c++)
        if (f->kept[c])
            put_cell(stream, cell ? cell[c] : NULL, false);
    put_cell(stream, note, false);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *join_header(const struct sweep_setup *s, const bool *kept)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return NULL;
    for (size_t a = 0; a < s->experiment->axis_count; a++)
        put_cell(stream, s->experiment->axis[a].name, a == 0);
    for (size_t c = 0; c < s->runner->column_count; c++)
        if (kept[c])
            put_cell(stream, s->runner->column[c], false);
    put_cell(stream, "note", false);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- running ---- */

static bool is_answer(enum status st)
{
    return st == ST_OK || st == ST_MISFIT || st == ST_RANGE || st == ST_UNSUPPORTED;
}

/* Every row that ended is in the journal before the next one of its thread begins. */
static enum status keep_row(struct field *f, size_t row, char *text, struct diag *dg)
{
    enum status st = text ? ST_OK : diag_no_memory(dg);
    pthread_mutex_lock(&f->lock);
    if (st == ST_OK && f->result->journal)
        st = journal_add(f->result->journal, point_of(f->setup, row), text, dg);
    f->result->row[row] = text;
    progress_add(&f->progress, 1);
    pthread_mutex_unlock(&f->lock);
    return st;
}

static enum status run_row(struct field *f, void *worker, struct edit *room, size_t row,
                           struct diag *dg)
{
    const struct experiment *e = f->setup->experiment;
    uint64_t point = point_of(f->setup, row);
    size_t count = experiment_edits(e, point, room);
    char *const *cell = NULL;
    const char *note = "";
    enum status st = f->setup->runner->run(worker, room, count, &cell, &note, dg);
    if (!is_answer(st))
        return st;
    bool answered = st == ST_OK;
    return keep_row(f, row, join_row(f, point, answered ? cell : NULL, answered ? note : dg->text),
                    dg);
}

static void fail(struct field *f, size_t row, enum status st, const struct diag *dg)
{
    pthread_mutex_lock(&f->lock);
    if (f->status == ST_OK || row < f->failed_row) {
        f->status = st;
        f->failed_row = row;
        f->why = *dg;
    }
    f->stop = true;
    pthread_mutex_unlock(&f->lock);
}

/* The next row that no earlier run has left; false when there is none, or no more sense in it. */
static bool take_row(struct field *f, size_t *row)
{
    pthread_mutex_lock(&f->lock);
    while (f->next < f->result->count && f->result->row[f->next])
        f->next++;
    bool taken = !f->stop && f->next < f->result->count;
    *row = taken ? f->next++ : 0;
    pthread_mutex_unlock(&f->lock);
    return taken;
}

static void *work(void *field)
{
    struct field *f = field;
    struct diag dg;
    void *worker = NULL;
    size_t row;
    struct edit *room = calloc(experiment_edits_max(f->setup->experiment) + 1, sizeof *room);
    enum status st =
        room ? f->setup->runner->open(&worker, f->setup->runner->self, &dg) : diag_no_memory(&dg);
    if (st != ST_OK)
        fail(f, 0, st, &dg);
    while (st == ST_OK && take_row(f, &row)) {
        st = run_row(f, worker, room, row, &dg);
        if (st != ST_OK)
            fail(f, row, st, &dg);
    }
    f->setup->runner->close(worker);
    free(room);
    return NULL;
}

static enum status run_threads(struct field *f, struct diag *dg)
{
    uint64_t left = f->result->count - f->result->resumed, jobs = f->setup->jobs;
    if (jobs > left)
        jobs = left;
    pthread_t *thread = calloc(jobs ? jobs : 1, sizeof *thread);
    if (!thread)
        return diag_no_memory(dg);
    uint64_t started = 0;
    while (started < jobs && pthread_create(&thread[started], NULL, work, f) == 0)
        started++;
    if (jobs && !started)
        work(f);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    if (f->status != ST_OK)
        *dg = f->why;
    return f->status;
}

/* ---- resuming ---- */

static enum status take_back(void *field, uint64_t point, const char *cells, struct diag *dg)
{
    struct field *f = field;
    const struct sweep_setup *s = f->setup;
    uint64_t row = point / s->shards;
    if (point % s->shards != s->shard - 1 || row >= f->result->count || f->result->row[row])
        return diag_set(dg, ST_PARSE, "%s.journal: point %" PRIu64 " is not one of this run",
                        s->out, point);
    f->result->row[row] = strdup(cells);
    if (!f->result->row[row])
        return diag_no_memory(dg);
    f->result->resumed++;
    return ST_OK;
}

static enum status start_journal(struct field *f, struct diag *dg)
{
    const struct sweep_setup *s = f->setup;
    char identity[160], path[4096];
    snprintf(identity, sizeof identity,
             "key=%016" PRIx64 " shard=%" PRIu64 "/%" PRIu64 " points=%" PRIu64, s->experiment->key,
             s->shard, s->shards, s->experiment->points);
    if (snprintf(path, sizeof path, "%s.journal", s->out) >= (int)sizeof path)
        return diag_set(dg, ST_USAGE, "--out: the path is too long");
    return journal_open(&f->result->journal, path, identity, s->resume, take_back, f, dg);
}

/* ---- the whole ---- */

static void count_unanswered(struct sweep_result *r, size_t axes)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *note = strrchr(r->row[i], SWEEP_CELL_END) + 1, *c = r->row[i];
        for (size_t a = 0; a < axes; a++)
            c = strchr(c, SWEEP_CELL_END) + 1;
        while (*c == SWEEP_CELL_END)
            c++;
        if (c != note) /* some result cell is filled */
            continue;
        if (r->unanswered++ == 0)
            snprintf(r->why, sizeof r->why, "%s", note);
    }
}

static bool is_axis(const struct experiment *e, const char *column)
{
    for (size_t a = 0; a < e->axis_count; a++)
        if (strcmp(e->axis[a].name, column) == 0)
            return true;
    return false;
}

static enum status prepare(struct field *f, bool *kept, struct diag *dg)
{
    const struct sweep_setup *s = f->setup;
    struct sweep_result *r = f->result;
    uint64_t points = s->experiment->points;
    for (size_t c = 0; c < s->runner->column_count; c++)
        kept[c] = !is_axis(s->experiment, s->runner->column[c]);
    r->count = (size_t)(points / s->shards + (points % s->shards >= s->shard));
    r->row = calloc(r->count + 1, sizeof *r->row);
    r->header = join_header(s, kept);
    if (!r->row || !r->header)
        return diag_no_memory(dg);
    return s->out ? start_journal(f, dg) : ST_OK;
}

enum status sweep_run(struct sweep_result *out, const struct sweep_setup *s, struct diag *dg)
{
    *out = (struct sweep_result){0};
    bool *kept = calloc(s->runner->column_count + 1, sizeof *kept);
    if (!kept)
        return diag_no_memory(dg);
    struct field f = {.setup = s, .result = out, .kept = kept};
    pthread_mutex_init(&f.lock, NULL);
    enum status st = prepare(&f, kept, dg);
    if (st == ST_OK) {
        progress_start(&f.progress, "sweep", out->count - out->resumed);
        st = run_threads(&f, dg);
        progress_end(&f.progress);
    }
    pthread_mutex_destroy(&f.lock);
    free(kept);
    if (st == ST_OK)
        count_unanswered(out, s->experiment->axis_count);
    else
        sweep_result_free(out);
    return st;
}

void sweep_result_free(struct sweep_result *r)
{
    for (size_t i = 0; r->row && i < r->count; i++)
        free(r->row[i]);
    free(r->row);
    free(r->header);
    journal_close(r->journal);
    *r = (struct sweep_result){0};
}

void sweep_each_cell(char *row, void (*cell)(void *self, size_t i, const char *text), void *self)
{
    for (size_t i = 0; row; i++) {
        char *end = strchr(row, SWEEP_CELL_END);
        if (end)
            *end = 0;
        cell(self, i, row);
        if (end)
            *end++ = SWEEP_CELL_END;
        row = end;
    }
}

static void write_cell(void *stream, size_t i, const char *text)
{
    if (i)
        fputc(',', stream);
    csv_write_field(stream, text);
}

static void write_row(FILE *stream, char *row)
{
    sweep_each_cell(row, write_cell, stream);
    fputc('\n', stream);
}

enum status sweep_save(struct sweep_result *r, const struct sweep_setup *s, const char *path,
                       struct diag *dg)
{
    struct outfile *file;
    enum status st = outfile_open(&file, path, dg);
    if (st != ST_OK)
        return st;
    FILE *f = outfile_stream(file);
    if (s->part)
        fprintf(f,
                SWEEP_PART_WORDS "key=%016" PRIx64 " shard=%" PRIu64 "/%" PRIu64 " points=%" PRIu64
                                 "\n",
                s->experiment->key, s->shard, s->shards, s->experiment->points);
    write_row(f, r->header);
    for (size_t i = 0; i < r->count; i++)
        write_row(f, r->row[i]);
    st = outfile_commit(file, dg);
    if (st == ST_OK && r->journal) {
        journal_finish(r->journal);
        r->journal = NULL;
    }
    return st;
}

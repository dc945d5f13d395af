/* sweep_run.h -- runs the points of an experiment, or one shard of them, on several threads.
 *
 * Threads share nothing but the number of the next point: each has a worker of its own, made by the
 * caller. Rows are kept by point, so the result is in grid order and the same bytes for any number of
 * threads. Shard K of N has every N-th point from the K-th on, because neighbours cost about the same;
 * merging takes the parts' lines in turn and gives the bytes of an unsharded run.
 *
 * A point that has no result because something does not fit, belong together or lie in range
 * (ST_MISFIT, ST_RANGE, ST_UNSUPPORTED) is a row too, with the reason as its note. Any other failure
 * ends the sweep.
 */
#ifndef EXPERIMENTS_SWEEP_RUN_H
#define EXPERIMENTS_SWEEP_RUN_H

#include "experiments/experiment.h"

#include <stdbool.h>

/* How a point is run. */
struct sweep_runner {
    const char *const *column; /* of the result */
    size_t column_count;
    enum status (*open)(void **worker, const void *self, struct diag *dg);
    void (*close)(void *worker); /* NULL is fine */
    /* *cell: column_count texts, NULL where empty, and *note (never NULL): the worker's until its next run. */
    enum status (*run)(void *worker, const struct edit *edit, size_t count, char *const **cell,
                       const char **note, struct diag *dg);
    const void *self;
};

struct sweep_setup {
    const struct experiment *experiment;
    const struct sweep_runner *runner;
    uint64_t shard, shards; /* shard from 1 */
    bool part;              /* the result is to be merged, also if it is the only one */
    uint64_t jobs;          /* threads, at least 1 */
    const char *out;        /* NULL: no journal */
    bool resume;
};

/* A cell ends before SWEEP_CELL_END; no cell holds it or a newline. */
#define SWEEP_CELL_END '\x1f'
struct sweep_result {
    char *header; /* cells: axes, then the columns that are not axes too, then `note` */
    char **row;   /* of the shard's points, in grid order */
    size_t count;
    size_t resumed;    /* rows that an earlier run had left */
    size_t unanswered; /* rows without a result */
    char why[512];     /* the first note of those, or "" */
    struct journal *journal;
};

MUST_CHECK enum status sweep_run(struct sweep_result *out, const struct sweep_setup *s,
                                 struct diag *dg);
/* Writes the CSV to `path` ("-": standard output) and then forgets the journal. A part has a
 * first line that says so. */
MUST_CHECK enum status sweep_save(struct sweep_result *r, const struct sweep_setup *s,
                                  const char *path, struct diag *dg);
void sweep_result_free(struct sweep_result *r);

/* Calls back for every cell of a row or header, which is as before afterwards. */
void sweep_each_cell(char *row, void (*cell)(void *self, size_t i, const char *text), void *self);

/* All parts of one sweep, in any order, into the result of the whole. */
MUST_CHECK enum status sweep_merge(const char *out, const char *const *part, size_t count,
                                   struct diag *dg);

/* First line of a part, without its newline: what merging goes by. */
#define SWEEP_PART_WORDS "# memwall-sweep-part 1 "
struct sweep_part {
    uint64_t key, shard, shards, points;
};

#endif

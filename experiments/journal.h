/* journal.h -- rows of a sweep as they come, so that a killed run loses only what was in flight.
 *
 * The file stands beside the result, OUT.journal, and is append-only: a first line that says which sweep it
 * belongs to, then a line a row with its point, a hash and its cells. Each row is one write(2), so after
 * SIGKILL at most the last line is cut short; its hash does not fit then and it is run again. Rows are
 * in the order in which they ended; the result, in grid order, is written at the end.
 */
#ifndef EXPERIMENTS_JOURNAL_H
#define EXPERIMENTS_JOURNAL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal;

/* `identity` is one line that two runs share exactly if their rows are interchangeable. With `resume` the
 * rows of an earlier run are handed to `row`; without it a journal that is already there is refused, since
 * starting over would destroy it. Also refused: a journal of another identity, or one that another
 * process writes. */
typedef enum status journal_row_fn(void *self, uint64_t point, const char *cells, struct diag *dg);
MUST_CHECK enum status journal_open(struct journal **out, const char *path, const char *identity,
                                    bool resume, journal_row_fn *row, void *self, struct diag *dg);
/* `cells` is one line. Not for two threads at once. */
MUST_CHECK enum status journal_add(struct journal *j, uint64_t point, const char *cells,
                                   struct diag *dg);
/* The result is safe: removes the file. */
void journal_finish(struct journal *j);
/* Leaves the file for a later --resume. NULL is fine. */
void journal_close(struct journal *j);

#endif

/* capture.h -- a command run for its row instead of for print: what `memwall sweep` does ten thousand times.
 *
 * A run whose arguments carry a capture takes the same path as one from the command line; only its last
 * step differs: report_close() hands the cells over, and note() keeps what would have gone to stderr.
 * What several runs read alike (a model, a trace, a routing curve) is loaded once and kept on the
 * capture's shelf. A capture belongs to one thread.
 */
#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H

#include "cli/args.h"
#include "sim/trace/trace.h"

struct capture {
    char **cell; /* of the last run's rows, one after another; NULL is empty */
    size_t cell_count, row_count;
    char note[512]; /* the last run's first note, or "" */
    struct shelf *shelf;
    uint64_t run; /* counts capture_reset() */
};

MUST_CHECK enum status capture_new(struct capture **out, struct diag *dg);
void capture_free(struct capture *c); /* NULL is fine */
/* Before every run: forgets the last one's row and note; what is on the shelf stays. */
void capture_reset(struct capture *c);

/* A note for the user about this run: on stderr, or kept by the capture. */
void note(const struct args *a, const char *format, ...) PRINTF_LIKE(2, 3);

/* The thing of this kind that was kept under `key` by an earlier run of the same capture, or NULL. */
void *shelf_find(const struct args *a, const char *kind, const char *key);
/* Keeps `thing` for later runs, which must leave it as it is; true: the capture will release it. False without a
 * capture or memory: it remains the caller's. A shelf is small: what no run needed for long makes room. */
bool shelf_put(const struct args *a, const char *kind, const char *key, void *thing,
               void (*release)(void *));

/* --trace, from the shelf if it is there; *kept: not the caller's to free. */
MUST_CHECK enum status captured_trace(struct trace **out, bool *kept, const struct args *a,
                                      struct diag *dg);

#endif

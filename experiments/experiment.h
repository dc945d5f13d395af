/* experiment.h -- one question as a file: what is asked, what is expected, and the grid that answers it.
 *
 *     question:   How fast does decoding get as phone flash goes from 1.6 to 20 GB/s?
 *     predict:    Linear up to about 15 GB/s, then flat.
 *     refuted_if: decode rate at 20 GB/s is above 1.2 times the rate at 15 GB/s.
 *     finding:    Flash pays up to 15 GB/s            what came out: the title of the figure (optional)
 *     refuted:    in part                             whether the prediction was (optional)
 *     method:     roofline | sim | replay | plan      the command that answers a point (roofline)
 *     model:      qwen3.5-397b-a17b                   options of that command, '_' for '-', and paths
 *     device:     iphone-17-pro                       of descriptions, as for --set
 *     sweep:
 *       storage.0.bandwidth: [1.6 GB/s, 4 GB/s]
 *       case:                                         an axis of several things at once
 *         - {name: packed, pieces: 1, lanes: 4}
 *         - {name: "as stored", pieces: 3}
 *     figure: {kind: lines, x: storage.0.bandwidth, y: decode_tok_per_s, by: case}      (optional)
 *
 * The points are the cartesian product of the axes, the last one changing fastest. This module knows
 * neither commands nor options: its caller says which keys a method takes and runs a point. Unknown,
 * repeated and missing keys are errors with file and line.
 */
#ifndef EXPERIMENTS_EXPERIMENT_H
#define EXPERIMENTS_EXPERIMENT_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define EXPERIMENT_POINTS_MAX UINT64_C(10000000)

/* An option or a path, and what it is set to. */
struct edit {
    const char *key, *value;
    size_t line; /* in the experiment's file; 0: from --set */
};

struct axis_item {
    const char *text; /* what its column holds */
    size_t edit_count;
    const struct edit *edit;
};

struct axis {
    const char *name; /* of its column */
    size_t line, count;
    const struct axis_item *item;
};

/* How `memwall plot` draws the results; a member that is not given is NULL. Column names, lists of
 * them separated by commas, and texts for people. */
struct figure {
    const char *kind;
    const char *x, *y, *z, *low, *high; /* columns; low and high: an interval of y */
    const char *by;                     /* columns whose values tell curves apart */
    const char *x_label, *y_label, *z_label;
    const char *x_unit, *y_unit, *z_unit; /* "GB/s": in which the axis counts */
    const char *log;                      /* "x", "y" or "xy" */
    const char *where;                    /* COLUMN=VALUE,.. rows that are drawn */
    const char *
        relative_to; /* AXIS=VALUE: y (or z) over that of the row with this value, which is left out */
    const char *levels; /* of contours: "5, 10, 20" */
    const char *marks;  /* points of a contour plot: "X,Y; X,Y" */
    const char *note;   /* a line below the title */
};

struct experiment {
    struct arena arena; /* owns all texts and lists */
    const char *origin, *question, *predict, *refuted_if, *finding, *refuted, *method;
    size_t edit_count, axis_count;
    const struct edit *edit;
    const struct axis *axis;
    struct figure figure;
    uint64_t points;
    uint64_t key; /* fingerprint of all that decides a result */
};

struct experiment_rules {
    const char *const *methods; /* ends with NULL; the first is taken if the file names none */
    /* Whether `method` takes this key and, as far as can be told, this value; the reason goes without file and
     * line. */
    enum status (*check)(void *self, const char *method, const struct edit *e, struct diag *dg);
    void *self;
};

/* `overrides` are KEY=VALUE and go over what the file sets outside of `sweep`. */
MUST_CHECK enum status experiment_load(struct experiment **out, const char *path,
                                       const struct experiment_rules *rules,
                                       const char *const *overrides, size_t override_count,
                                       struct diag *dg);
void experiment_free(struct experiment *e); /* NULL is fine */

/* Which item of `axis` point `i` has. */
size_t experiment_item(const struct experiment *e, uint64_t i, size_t axis);
/* The edits of point `i` in the order in which they apply, a later one going over an earlier one of the
 * same key. `room` holds experiment_edits_max() of them; returns their number. */
size_t experiment_edits_max(const struct experiment *e);
size_t experiment_edits(const struct experiment *e, uint64_t i, struct edit *room);
/* "a=1, b=2": for messages. */
void experiment_point_text(const struct experiment *e, uint64_t i, char *out, size_t size);

#endif

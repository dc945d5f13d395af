/* timeline.h -- what happened when, for people: spans, counters and marks of a run as a Chrome trace that
 * opens in Perfetto (ui.perfetto.dev) and chrome://tracing.
 *
 * A timeline is allocated once, at set-up, for a fixed number of records; recording allocates nothing,
 * cannot fail and changes nothing about the run. When it is full, what comes later is counted and left out:
 * the beginning is kept because two timelines are compared from their first pass on. The file says how
 * many records were left out, and a mark shows where.
 *
 * Lanes are rows of spans. Spans of one lane may overlap (reads in flight on a drive): the file then gives
 * the lane as many rows as it needs, because viewers require the spans of a row not to cross. Tracks are
 * counters. Names given to spans and marks are kept as pointers: literals, or texts that outlive the timeline.
 *
 * Every span carries pass, layer and operation (its name), by which two timelines can be laid side by side.
 * docs/formats.md describes the file. */
#ifndef SIM_TRACE_TIMELINE_H
#define SIM_TRACE_TIMELINE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* The operations that a span may be named after; whoever records shares these names. */
#define TIMELINE_FIXED    "fixed"    /* attention, state, router, dense feed-forward */
#define TIMELINE_SHARED   "shared"   /* shared expert */
#define TIMELINE_EXPERT   "expert"   /* routed experts, one or several at a time */
#define TIMELINE_HEAD     "head"     /* output head */
#define TIMELINE_READ     "read"     /* demand read */
#define TIMELINE_PREFETCH "prefetch" /* read of a predicted expert */
#define TIMELINE_TRUNK    "trunk"    /* read of streamed dense weights */
#define TIMELINE_COPY     "copy"     /* over a link, or out of the page cache */
#define TIMELINE_STALL    "stall"    /* nothing ran because a read was awaited */

/* Records of a timeline that base/json.h can read again (64 MiB of text). */
#define TIMELINE_CAPACITY_USUAL ((size_t)300000)
#define TIMELINE_NONE           UINT32_MAX /* has no pass, layer or expert */

struct timeline;

struct timeline_span {
    uint32_t lane;
    const char *operation;
    uint64_t start_ns, end_ns;    /* start <= end */
    uint32_t pass, layer, expert; /* or TIMELINE_NONE; a read's are those it is for */
    uint64_t bytes;               /* 0: moves none */
};

/* Room for `capacity` >= 1 records. ST_NO_MEMORY. */
MUST_CHECK enum status timeline_new(struct timeline **out, size_t capacity, struct diag *dg);
void timeline_free(struct timeline *t); /* NULL is fine */

/* Set-up. Lanes and tracks appear in the order in which they were made; names are copied. ST_NO_MEMORY. */
MUST_CHECK enum status timeline_lane(uint32_t *lane, struct timeline *t, const char *name,
                                     struct diag *dg);
/* A counter whose values are in 10^-decimals of `unit` (decimals <= 9): bytes with 0, millikelvin with
 * unit "C" and 3. */
MUST_CHECK enum status timeline_track(uint32_t *track, struct timeline *t, const char *name,
                                      const char *unit, unsigned decimals, struct diag *dg);
/* A line about the run (model, device, fingerprint) for the file's metadata, also after the run. */
MUST_CHECK enum status timeline_note(struct timeline *t, const char *key, const char *text,
                                     struct diag *dg);

/* Recording, in any order of time. A NULL timeline records nothing, so callers need not ask. A counter that
 * keeps its value takes no room. */
void timeline_span(struct timeline *t, const struct timeline_span *span);
void timeline_counter(struct timeline *t, uint32_t track, uint64_t when_ns, uint64_t value);
void timeline_mark(struct timeline *t, uint64_t when_ns, const char *static_name);

size_t timeline_count(const struct timeline *t);     /* records kept */
uint64_t timeline_dropped(const struct timeline *t); /* records left out */

/* Writes the file, whole or not at all, records by start time and then in the order of recording.
 * ST_NO_MEMORY, ST_IO. */
MUST_CHECK enum status timeline_save(const struct timeline *t, const char *path, struct diag *dg);

#endif

/* timeline.c -- see timeline.h.
 *
 * Spans, counter values and marks share one array, in the order of recording. Saving sorts by start time and
 * then gives each span the first row of its lane that is free again, as one seats guests: the number of rows
 * of a lane is then the largest number of its spans at one time, the least that is possible.
 */
#include "sim/pipeline/timeline.h"

#include "base/json.h"
#include "base/outfile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum record_kind { RECORD_SPAN, RECORD_COUNTER, RECORD_MARK };

struct record {
    uint64_t start_ns, end_ns, amount; /* amount: bytes of a span, value of a counter */
    const char *name;
    uint32_t pass, layer, expert;
    uint32_t place; /* lane or track */
    enum record_kind kind;
};

struct lane {
    char *name;
};

struct track {
    char *name, *unit;
    unsigned decimals;
    bool started;
    uint64_t value;
};

struct note {
    char *key, *text;
};

struct timeline {
    struct record *record;
    size_t capacity, count;
    uint64_t dropped, dropped_from_ns;
    struct lane *lane;
    struct track *track;
    struct note *note;
    uint32_t lanes, tracks, notes;
};

enum status timeline_new(struct timeline **out, size_t capacity, struct diag *dg)
{
    assert(capacity >= 1);
    struct timeline *t = calloc(1, sizeof *t);
    if (t)
        t->record = calloc(capacity, sizeof *t->record);
    if (!t || !t->record) {
        timeline_free(t);
        return diag_no_memory(dg);
    }
    t->capacity = capacity;
    *out = t;
    return ST_OK;
}

void timeline_free(struct timeline *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->lanes; i++)
        free(t->lane[i].name);
    for (uint32_t i = 0; i < t->tracks; i++) {
        free(t->track[i].name);
        free(t->track[i].unit);
    }
    for (uint32_t i = 0; i < t->notes; i++) {
        free(t->note[i].key);
        free(t->note[i].text);
    }
    free(t->lane);
    free(t->track);
    free(t->note);
    free(t->record);
    free(t);
}

/* ---- set-up ---- */

/* Makes room for one more in an array of `count`; NULL leaves the array as it was. */
static void *longer(void *array, uint32_t count, size_t size)
{
    return realloc(array, ((size_t)count + 1) * size);
}

enum status timeline_lane(uint32_t *lane, struct timeline *t, const char *name, struct diag *dg)
{
    struct lane *lanes = longer(t->lane, t->lanes, sizeof *lanes);
    if (!lanes)
        return diag_no_memory(dg);
    t->lane = lanes;
    char *copy = strdup(name);
    if (!copy)
        return diag_no_memory(dg);
    *lane = t->lanes;
    t->lane[t->lanes++] = (struct lane){.name = copy};
    return ST_OK;
}

enum status timeline_track(uint32_t *track, struct timeline *t, const char *name, const char *unit,
                           unsigned decimals, struct diag *dg)
{
    assert(decimals <= 9);
    struct track *tracks = longer(t->track, t->tracks, sizeof *tracks);
    if (!tracks)
        return diag_no_memory(dg);
    t->track = tracks;
    struct track made = {.name = strdup(name), .unit = strdup(unit), .decimals = decimals};
    if (!made.name || !made.unit) {
        free(made.name);
        free(made.unit);
        return diag_no_memory(dg);
    }
    *track = t->tracks;
    t->track[t->tracks++] = made;
    return ST_OK;
}

enum status timeline_note(struct timeline *t, const char *key, const char *text, struct diag *dg)
{
    struct note *notes = longer(t->note, t->notes, sizeof *notes);
    if (!notes)
        return diag_no_memory(dg);
    t->note = notes;
    struct note made = {.key = strdup(key), .text = strdup(text)};
    if (!made.key || !made.text) {
        free(made.key);
        free(made.text);
        return diag_no_memory(dg);
    }
    t->note[t->notes++] = made;
    return ST_OK;
}

/* ---- recording ---- */

static void put(struct timeline *t, const struct record *r)
{
    if (t->count < t->capacity) {
        t->record[t->count++] = *r;
        return;
    }
    if (t->dropped == 0 || r->start_ns < t->dropped_from_ns)
        t->dropped_from_ns = r->start_ns;
    t->dropped++;
}

void timeline_span(struct timeline *t, const struct timeline_span *span)
{
    if (!t)
        return;
    assert(span->lane < t->lanes && span->start_ns <= span->end_ns && span->operation);
    put(t, &(struct record){.kind = RECORD_SPAN,
                            .name = span->operation,
                            .start_ns = span->start_ns,
                            .end_ns = span->end_ns,
                            .amount = span->bytes,
                            .pass = span->pass,
                            .layer = span->layer,
                            .expert = span->expert,
                            .place = span->lane});
}

void timeline_counter(struct timeline *t, uint32_t track, uint64_t when_ns, uint64_t value)
{
    if (!t)
        return;
    assert(track < t->tracks);
    struct track *k = &t->track[track];
    if (k->started && k->value == value)
        return;
    k->started = true;
    k->value = value;
    put(t, &(struct record){
               .kind = RECORD_COUNTER, .start_ns = when_ns, .amount = value, .place = track});
}

void timeline_mark(struct timeline *t, uint64_t when_ns, const char *static_name)
{
    if (!t)
        return;
    assert(static_name);
    put(t, &(struct record){.kind = RECORD_MARK, .start_ns = when_ns, .name = static_name});
}

size_t timeline_count(const struct timeline *t)
{
    return t->count;
}

uint64_t timeline_dropped(const struct timeline *t)
{
    return t->dropped;
}

/* ---- rows ---- */

struct turn { /* a record's place in the file */
    uint64_t start_ns;
    size_t index;
};

struct row {
    uint64_t free_ns;
    size_t next; /* row of the same lane, 1 + its index; 0 ends the list */
    uint32_t ordinal;
};

struct layout {
    struct turn *turn;
    uint32_t *row_of;   /* by record: ordinal of the row in its lane */
    uint32_t *row_base; /* by lane: its first row's thread id */
    uint32_t *row_count;
    size_t *first; /* by lane: 1 + index of its first row */
    struct row *row;
    size_t rows, rows_room;
};

static int by_start(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void layout_free(struct layout *l)
{
    free(l->turn);
    free(l->row_of);
    free(l->row_base);
    free(l->row_count);
    free(l->first);
    free(l->row);
}

/* The first row of the span's lane that is free at its start, a new one if none is. */
static bool seat(struct layout *l, const struct record *r, uint32_t *ordinal)
{
    size_t *link = &l->first[r->place];
    while (*link && l->row[*link - 1].free_ns > r->start_ns)
        link = &l->row[*link - 1].next;
    if (!*link) {
        assert(l->rows < l->rows_room);
        *link = ++l->rows;
        l->row[*link - 1] = (struct row){.ordinal = l->row_count[r->place]++};
    }
    struct row *row = &l->row[*link - 1];
    row->free_ns = r->end_ns;
    *ordinal = row->ordinal;
    return true;
}

/* timeline.c -- see timeline.h. Spans, counter values and marks share one array, in the order of recording. */
#include "sim/trace/timeline.h"

#include "sim/trace/timeline_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

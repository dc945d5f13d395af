/* timeline_record.h -- what a timeline keeps; private to timeline.c, which records, and timeline_save.c, which
 * writes. */
#ifndef SIM_TRACE_TIMELINE_RECORD_H
#define SIM_TRACE_TIMELINE_RECORD_H

#include "sim/trace/timeline.h"

#include <stdbool.h>

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

#endif

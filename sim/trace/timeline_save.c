/* timeline_save.c -- a timeline as a Chrome trace.
 *
 * The records are sorted by start time, and each span takes the first row of its lane that is free
 * again, as one seats guests: the number of rows of a lane is then the largest number of its spans at one
 * time, the least that is possible.
 */
#include "sim/trace/timeline.h"

#include "base/json.h"
#include "base/outfile.h"
#include "sim/trace/timeline_record.h"

#include <inttypes.h>
#include <stdlib.h>

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
    size_t rows;
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
static uint32_t seat(struct layout *l, const struct record *r)
{
    size_t *link = &l->first[r->place];
    while (*link && l->row[*link - 1].free_ns > r->start_ns)
        link = &l->row[*link - 1].next;
    if (!*link) {
        *link = ++l->rows;
        l->row[*link - 1] = (struct row){.ordinal = l->row_count[r->place]++};
    }
    struct row *row = &l->row[*link - 1];
    row->free_ns = r->end_ns;
    return row->ordinal;
}

static bool layout_new(struct layout *l, const struct timeline *t)
{
    size_t records = t->count ? t->count : 1, lanes = t->lanes ? t->lanes : 1;
    *l = (struct layout){
        .turn = calloc(records, sizeof *l->turn),
        .row = calloc(records, sizeof *l->row),
        .row_of = calloc(records, sizeof *l->row_of),
        .row_base = calloc(lanes, sizeof *l->row_base),
        .row_count = calloc(lanes, sizeof *l->row_count),
        .first = calloc(lanes, sizeof *l->first),
    };
    if (!l->turn || !l->row || !l->row_of || !l->row_base || !l->row_count || !l->first)
        return false;
    for (size_t i = 0; i < t->count; i++)
        l->turn[i] = (struct turn){t->record[i].start_ns, i};
    qsort(l->turn, t->count, sizeof *l->turn, by_start);
    for (size_t i = 0; i < t->count; i++) {
        size_t index = l->turn[i].index;
        if (t->record[index].kind == RECORD_SPAN)
            l->row_of[index] = seat(l, &t->record[index]);
    }
    uint32_t next = 1;
    for (uint32_t i = 0; i < t->lanes; i++) {
        l->row_count[i] += l->row_count[i] == 0; /* an empty lane is shown, too */
        l->row_base[i] = next;
        next += l->row_count[i];
    }
    return true;
}

/* ---- the file ---- */

/* Nanoseconds as microseconds with three decimals, the format's unit of time. */
static void write_us(FILE *f, const char *key, uint64_t ns)
{
    fprintf(f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void write_scaled(FILE *f, uint64_t value, unsigned decimals)
{
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    fprintf(f, "%" PRIu64, value / one);
    if (decimals > 0)
        fprintf(f, ".%0*" PRIu64, (int)decimals, value % one);
}

static void write_arg(FILE *f, const char **comma, const char *key, uint64_t value)
{
    fprintf(f, "%s\"%s\":%" PRIu64, *comma, key, value);
    *comma = ",";
}

static void write_span(FILE *f, const struct record *r, uint32_t tid)
{
    const char *comma = "";
    json_write_text(f, r->name);
    fprintf(f, ",\"ph\":\"X\",\"pid\":1,\"tid\":%" PRIu32, tid);
    write_us(f, "ts", r->start_ns);
    write_us(f, "dur", r->end_ns - r->start_ns);
    fputs(",\"args\":{", f);
    if (r->pass != TIMELINE_NONE)
        write_arg(f, &comma, "pass", r->pass);
    if (r->layer != TIMELINE_NONE)
        write_arg(f, &comma, "layer", r->layer);
    if (r->expert != TIMELINE_NONE)
        write_arg(f, &comma, "expert", r->expert);
    if (r->amount > 0)
        write_arg(f, &comma, "bytes", r->amount);
    fputs("}}", f);
}

static void write_counter(FILE *f, const struct record *r, const struct track *k)
{
    json_write_text(f, k->name);
    fputs(",\"ph\":\"C\",\"pid\":1", f);
    write_us(f, "ts", r->start_ns);
    fputs(",\"args\":{", f);
    json_write_text(f, k->unit);
    fputc(':', f);
    write_scaled(f, r->amount, k->decimals);
    fputs("}}", f);
}

static void write_mark(FILE *f, uint64_t when_ns, const char *name)
{
    json_write_text(f, name);
    fputs(",\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":1", f);
    write_us(f, "ts", when_ns);
    fputc('}', f);
}

/* Names of the process and of every row, and the order of the rows. */
static void write_names(FILE *f, const struct timeline *t, const struct layout *l)
{
    fputs("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"memwall\"}}", f);
    for (uint32_t i = 0; i < t->lanes; i++)
        for (uint32_t row = 0; row < l->row_count[i]; row++) {
            uint32_t tid = l->row_base[i] + row;
            fprintf(f,
                    ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%" PRIu32
                    ",\"args\":{\"name\":",
                    tid);
            json_write_text(f, t->lane[i].name);
            fprintf(f,
                    "}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":%" PRIu32
                    ",\"args\":{\"sort_index\":%" PRIu32 "}}",
                    tid, tid);
        }
}

static void write_records(FILE *f, const struct timeline *t, const struct layout *l)
{
    for (size_t i = 0; i < t->count; i++) {
        size_t index = l->turn[i].index;
        const struct record *r = &t->record[index];
        fputs(",\n{\"name\":", f);
        switch (r->kind) {
        case RECORD_SPAN:
            write_span(f, r, l->row_base[r->place] + l->row_of[index]);
            break;
        case RECORD_COUNTER:
            write_counter(f, r, &t->track[r->place]);
            break;
        case RECORD_MARK:
            write_mark(f, r->start_ns, r->name);
            break;
        }
    }
    if (t->dropped > 0) {
        fputs(",\n{\"name\":", f);
        write_mark(f, t->dropped_from_ns, "timeline full");
    }
}

static void write_metadata(FILE *f, const struct timeline *t)
{
    fprintf(f,
            "\"otherData\":{\"format\":\"memwall-timeline 1\",\"records\":%zu,\"dropped\":%" PRIu64,
            t->count, t->dropped);
    for (uint32_t i = 0; i < t->notes; i++) {
        fputc(',', f);
        json_write_text(f, t->note[i].key);
        fputc(':', f);
        json_write_text(f, t->note[i].text);
    }
    fputc('}', f);
}

enum status timeline_save(const struct timeline *t, const char *path, struct diag *dg)
{
    struct layout l;
    struct outfile *out;
    enum status status = layout_new(&l, t) ? outfile_open(&out, path, dg) : diag_no_memory(dg);
    if (status == ST_OK) {
        FILE *f = outfile_stream(out);
        fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", f);
        write_names(f, t, &l);
        write_records(f, t, &l);
        fputs("\n],\n", f);
        write_metadata(f, t);
        fputs("}\n", f);
        status = outfile_commit(out, dg);
    }
    layout_free(&l);
    return status;
}

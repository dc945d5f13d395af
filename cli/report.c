/* report.c -- see report.h. Rows are kept until the end, because a table needs its widths and because
 * nothing half-written may reach standard output when a later row fails. */
#include "cli/report.h"

#include "base/csv.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/capture.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

struct report {
    enum format format;
    const struct column *columns;
    size_t count;
    char **cell; /* row after row; NULL is empty */
    size_t used, room;
    bool single, no_memory;
    struct capture *capture;
};

enum status report_open(struct report **out, const struct args *a, const struct column *columns,
                        size_t count, struct diag *dg)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(dg);
    r->format = (enum format)args_count(a, "format");
    r->columns = columns;
    r->count = count;
    r->capture = args_capture(a);
    *out = r;
    return ST_OK;
}

void report_single(struct report *r)
{
    r->single = true;
}

static void report_free(struct report *r)
{
    for (size_t i = 0; i < r->used; i++)
        free(r->cell[i]);
    free(r->cell);
    free(r);
}

void report_abandon(struct report *r)
{
    if (r)
        report_free(r);
}

static const struct column *current(const struct report *r)
{
    return &r->columns[r->used % r->count];
}

static void put(struct report *r, const char *text)
{
    if (r->used == r->room) {
        size_t room = r->room ? r->room * 2 : 256;
        char **bigger = realloc(r->cell, room * sizeof *bigger);
        if (!bigger) {
            r->no_memory = true;
            return;
        }
        r->cell = bigger;
        r->room = room;
    }
    char *copy = text ? strdup(text) : NULL;
    r->no_memory |= text && !copy;
    r->cell[r->used++] = copy;
}

void report_text(struct report *r, const char *text)
{
    assert(current(r)->type == CELL_TEXT);
    put(r, text);
}

void report_count(struct report *r, uint64_t n)
{
    assert(current(r)->type == CELL_COUNT);
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    put(r, text);
}

static void put_double(struct report *r, double x, int decimals)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", decimals, x);
    put(r, x == x ? text : NULL);
}

void report_ratio(struct report *r, double x)
{
    assert(current(r)->type == CELL_RATIO);
    put_double(r, x, r->format == FORMAT_TABLE ? 4 : 9);
}

void report_number(struct report *r, double x)
{
    assert(current(r)->type == CELL_NUMBER);
    put_double(r, x, current(r)->decimals);
}

void report_raw(struct report *r, const char *text)
{
    put(r, *text ? text : NULL);
}

void report_empty(struct report *r)
{
    put(r, NULL);
}

static void print_csv(const struct report *r, FILE *f)
{
    for (size_t c = 0; c < r->count; c++)
        fprintf(f, "%s%s", c ? "," : "", r->columns[c].name);
    fputc('\n', f);
    for (size_t i = 0; i < r->used; i++) {
        if (r->cell[i])
            csv_write_field(f, r->cell[i]);
        fputc((i + 1) % r->count ? ',' : '\n', f);
    }
}

static void print_json(const struct report *r, FILE *f)
{
    fputs(r->single ? "" : "[", f);
    for (size_t i = 0; i < r->used; i++) {
        const struct column *c = &r->columns[i % r->count];
        if (i % r->count == 0)
            fprintf(f, "%s{", i ? ",\n " : "");
        fprintf(f, "%s", i % r->count ? ", " : "");
        json_write_text(f, c->name);
        fputs(": ", f);
        if (!r->cell[i])
            fputs("null", f);
        else if (c->type == CELL_TEXT)
            json_write_text(f, r->cell[i]);
        else
            fputs(r->cell[i], f);
        if ((i + 1) % r->count == 0)
            fputc('}', f);
    }
    fputs(r->single ? "\n" : "]\n", f);
}

static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; text && *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80; /* UTF-8 continuation bytes take no room */
    return n;
}

static void print_cell(FILE *f, const char *text, size_t width, bool right, bool last)
{
    size_t pad = width - width_of(text);
    if (right)
        fprintf(f, "%*s", (int)pad, "");
    for (const char *c = text; c && *c;) {
        int length = utf8_length(c);
        if (utf8_is_control(c, length)) /* a name from a file must not steer the terminal */
            fputc('?', f);
        else
            fwrite(c, 1, length ? (size_t)length : 1, f);
        c += length ? length : 1;
    }
    if (!right && !last)
        fprintf(f, "%*s", (int)pad, "");
}

static void print_table(const struct report *r, FILE *f, size_t *width)
{
    size_t last = 0;
    for (size_t c = 0; c < r->count; c++) {
        width[c] = width_of(r->columns[c].name);
        last = r->columns[c].wide_only ? last : c;
    }
    for (size_t i = 0; i < r->used; i++) {
        size_t w = width_of(r->cell[i]);
        if (w > width[i % r->count])
            width[i % r->count] = w;
    }
    for (size_t i = 0; i < r->count + r->used; i++) {
        size_t c = i % r->count;
        if (r->columns[c].wide_only)
            continue;
        const char *text = i < r->count ? r->columns[c].name : r->cell[i - r->count];
        print_cell(f, text, width[c], r->columns[c].type != CELL_TEXT, c == last);
        fputs(c == last ? "\n" : "  ", f);
    }
}

static void hand_over(struct report *r)
{
    assert(!r->capture->cell);
    r->capture->cell = r->cell;
    r->capture->cell_count = r->used;
    r->capture->row_count = r->used / r->count;
    r->cell = NULL;
    r->used = 0;
}

enum status report_close(struct report *r, struct diag *dg)
{
    assert(r->used % r->count == 0 || r->no_memory);
    if (r->capture && !r->no_memory) {
        hand_over(r);
        report_free(r);
        return ST_OK;
    }
    size_t *width = calloc(r->count, sizeof *width);
    if (r->no_memory || !width) {
        free(width);
        report_free(r);
        return diag_no_memory(dg);
    }
    if (r->format == FORMAT_CSV)
        print_csv(r, stdout);
    else if (r->format == FORMAT_JSON)
        print_json(r, stdout);
    else
        print_table(r, stdout, width);
    free(width);
    report_free(r);
    return flush_stdout(dg);
}

enum status flush_stdout(struct diag *dg)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return diag_errno(dg, "standard output", "cannot be written");
    return ST_OK;
}

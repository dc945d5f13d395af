#include "validate/systems.h"

#include "base/csv.h"
#include "validate/claim.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- reading ---- */

enum field { ID, LO, HI, UNIT, TOL, RULE, CHECK, MODEL, DEVICE, PROFILE, PUBLISHED, FIELDS };
static const struct csv_column columns[FIELDS] = {
    {"id", true},          {"lo", true},      {"hi", true},       {"unit", true},
    {"tol", true},         {"rule", true},    {"check", true},    {"model_slug", true},
    {"device_slug", true}, {"profile", true}, {"published", true}};
enum { ROWS_MAX = 256 };

struct reading {
    struct systems *out;
    const char *path;
};

static const char *keep(struct arena *a, struct csv_field f)
{
    char *text = arena_alloc(a, f.length + 1);
    if (text)
        memcpy(text, f.text, f.length);
    return text;
}

static enum status take_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    struct systems *s = r->out;
    const char *text[FIELDS];
    double low, high, tolerance = 0;
    if (s->count == ROWS_MAX)
        return diag_set(dg, ST_RANGE, "%s:%zu: at most %d claims", r->path, line, ROWS_MAX);
    for (int i = 0; i < FIELDS; i++)
        if (!(text[i] = keep(&s->arena, f[i])))
            return diag_no_memory(dg);
    if (!csv_double(f[LO], &low) || !csv_double(f[HI], &high) || high < low ||
        (f[TOL].length > 0 && !csv_double(f[TOL], &tolerance)))
        return diag_set(dg, ST_PARSE, "%s:%zu: lo, hi and tol are numbers, lo at most hi", r->path,
                        line);
    s->check[s->count] = text[CHECK];
    s->answers[s->count] = text[PUBLISHED];
    s->rows[s->count++] = (struct published_row){
        .line = line,
        .id = text[ID],
        .engine = "",
        .metric = "claim",
        .unit = text[UNIT],
        .grade = "",
        .model = text[MODEL],
        .device = text[DEVICE],
        .profile = text[PROFILE],
        .rule = text[RULE],
        .value = {(low + high) / 2, true},
        .value_low = {low, true},
        .value_high = {high, true},
        .tolerance_percent = {tolerance, f[TOL].length > 0},
    };
    return ST_OK;
}

enum status systems_load(struct systems *out, const char *path, struct diag *dg)
{
    struct reading r = {out, path};
    *out = (struct systems){0};
    out->rows = arena_alloc(&out->arena, ROWS_MAX * sizeof *out->rows);
    out->check = arena_alloc(&out->arena, ROWS_MAX * sizeof *out->check);
    out->answers = arena_alloc(&out->arena, ROWS_MAX * sizeof *out->answers);
    enum status st = out->rows && out->check && out->answers ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = csv_read(path, columns, FIELDS, true, take_row, NULL, &r, dg);
    if (st != ST_OK)
        systems_free(out);
    return st;
}

void systems_free(struct systems *s)
{
    arena_free(&s->arena);
    *s = (struct systems){0};
}

/* ---- claims that published rows answer ---- */

static bool named(const char *ids, const char *id)
{
    size_t n = strlen(id);
    for (const char *at = strstr(ids, id); at; at = strstr(at + 1, id))
        if ((at == ids || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

static double in_unit(const char *unit, const struct published_outcome *o, double x)
{
    bool rate = is(o->row->metric, "decode_rate");
    if (rate && is(unit, "s/token"))
        return x > 0 ? 1 / x : 0;
    return is(unit, "GB") ? x / 1e9 : is(unit, "ms") ? x * 1e3 : x;
}

/* The highest class of the first row named; of several rows the later ones say the same run again. */
static enum status answer(struct published_outcome *o, const char *ids,
                          const struct published_outcome *done, size_t count, struct diag *dg)
{
    const struct published_outcome *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (done[i].predicted_given && named(ids, done[i].row->id) &&
            (!best || (best->row == done[i].row && done[i].class_of > best->class_of)))
            best = &done[i];
    if (!best)
        return diag_set(dg, ST_MISSING, "not run: %s", *ids ? ids : "no published row");
    o->class_of = best->class_of;
    o->predicted = in_unit(o->row->unit, best, best->predicted);
    o->low = in_unit(o->row->unit, best, best->low);
    o->high = in_unit(o->row->unit, best, best->high);
    if (o->low > o->high) {
        double swap = o->low;
        o->low = o->high;
        o->high = swap;
    }
    o->bound = best->bound;
    o->predicted_given = true;
    return ST_OK;
}

static void judge(struct published_outcome *o)
{
    const struct published_row *row = o->row;
    if (!o->predicted_given)
        return;
    o->signed_error = published_error(o->predicted, row->value_low.value, row->value_high.value);
    double size = o->signed_error < 0 ? -o->signed_error : o->signed_error;
    if (is(row->rule, "bound")) { /* what was measured must not exceed the roof */
        o->pass = row->value_high.value <= o->predicted;
        o->signed_error = o->pass ? 0 : o->signed_error;
    } else if (is(row->rule, "bracket")) {
        o->pass = size == 0;
    } else if (row->tolerance_percent.given) {
        o->pass = size * 100 <= row->tolerance_percent.value;
    }
}

enum status systems_check(struct published_outcome *outcome, const struct systems *s,
                          const struct published_outcome *done, size_t done_count,
                          const struct published_folders *folders, struct diag *dg)
{
    for (size_t i = 0; i < s->count; i++) {
        struct published_outcome *o = &outcome[i];
        *o = (struct published_outcome){.row = &s->rows[i], .bound = "", .pass = -1};
        bool direct = is(s->check[i], "sim") && *s->answers[i];
        enum status st =
            direct ? answer(o, s->answers[i], done, done_count, dg) : claim_find(o, folders, dg);
        if (st == ST_UNSUPPORTED && *s->answers[i])
            st = answer(o, s->answers[i], done, done_count, dg);
        if (st == ST_NO_MEMORY)
            return st;
        if (st != ST_OK)
            snprintf(o->note, sizeof o->note, "%s", dg->text);
        judge(o);
    }
    return ST_OK;
}

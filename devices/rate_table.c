/* rate_table.c -- see rate_table.h. */
#include "devices/rate_table.h"

#include "base/csv.h"

#include <string.h>

enum status rate_table_add(struct rate_table *t, struct rate_row row, struct diag *dg)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct rate_row *more = arena_alloc(&t->arena, room * sizeof *more);
        if (!more)
            return diag_no_memory(dg);
        if (t->count)
            memcpy(more, t->rows, t->count * sizeof *more);
        t->rows = more;
        t->room = room;
    }
    t->rows[t->count++] = row;
    return ST_OK;
}

void rate_table_free(struct rate_table *t)
{
    arena_free(&t->arena);
    *t = (struct rate_table){0};
}

enum { READ_BYTES, LANES, DEPTH, MIB_PER_S, MB_PER_S, RATE_BPS, STATE, COLUMNS };

static const struct csv_column columns[COLUMNS] = {
    {"read_bytes", true}, {"lanes", false},    {"depth", false}, {"MiB_per_s", false},
    {"MB_per_s", false},  {"rate_Bps", false}, {"state", false}};

struct reading {
    struct rate_table *table;
    const char *wanted; /* state, or NULL */
    const char *found;  /* the first row's state */
};

/* The one of `count` columns from `first` that is filled, or COLUMNS if none or several are. */
static size_t only_one(const struct csv_field *f, size_t first, size_t count)
{
    size_t found = COLUMNS;
    for (size_t i = first; i < first + count; i++) {
        if (!f[i].length)
            continue;
        if (found != COLUMNS)
            return COLUMNS;
        found = i;
    }
    return found;
}

#define RATE_LIMIT 1e15 /* 1 PB/s: above it a unit was mistaken */

static bool rate_of(const struct csv_field *f, size_t column, uint64_t *out)
{
    static const double factor[COLUMNS] = {
        [MIB_PER_S] = 1048576.0, [MB_PER_S] = 1e6, [RATE_BPS] = 1.0};
    double x;
    if (!csv_double(f[column], &x))
        return false;
    x *= factor[column];
    if (!(x >= 1.0 && x <= RATE_LIMIT))
        return false;
    *out = (uint64_t)(x + 0.5);
    return true;
}

/* Whether the row is of the wanted state; a failure if the table mixes states and none is
 * wanted. */
static enum status pick_state(struct reading *r, size_t line, struct csv_field f, bool *keep,
                              struct diag *dg)
{
    *keep = true;
    if (r->wanted) {
        *keep = csv_equal(f, r->wanted);
        return ST_OK;
    }
    if (!r->found) {
        char *text = arena_alloc(&r->table->arena, f.length + 1);
        if (!text)
            return diag_no_memory(dg);
        memcpy(text, f.text, f.length);
        r->found = text;
    }
    if (csv_equal(f, r->found))
        return ST_OK;
    return diag_set(dg, ST_MISFIT,
                    "%s:%zu: state '%.*s' after '%s': a fit takes one state, name it with --state",
                    r->table->name, line, (int)f.length, f.text, r->found);
}

static enum status take_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    const char *name = r->table->name;
    struct rate_row row = {.line = line};
    bool keep;
    enum status st = pick_state(r, line, f[STATE], &keep, dg);
    if (st != ST_OK || !keep)
        return st;
    if (!csv_u64(f[READ_BYTES], &row.bytes) || row.bytes == 0)
        return diag_set(dg, ST_PARSE, "%s:%zu: read_bytes: a whole number above 0 is expected",
                        name, line);
    size_t depth = only_one(f, LANES, 2), rate = only_one(f, MIB_PER_S, 3);
    if (depth == COLUMNS || !csv_u64(f[depth], &row.depth) || row.depth == 0)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: lanes or depth (one of them): a whole number above 0 is expected",
                        name, line);
    if (rate == COLUMNS || !rate_of(f, rate, &row.rate_Bps))
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: MiB_per_s, MB_per_s or rate_Bps (one of them): a rate from 1 B/s "
                        "to 1 PB/s is expected",
                        name, line);
    return rate_table_add(r->table, row, dg);
}

enum status rate_table_read(struct rate_table *t, const char *path, const char *state,
                            struct diag *dg)
{
    struct reading r = {.table = t, .wanted = state};
    t->name = arena_text(&t->arena, path);
    if (!t->name)
        return diag_no_memory(dg);
    enum status st = csv_read(path, columns, COLUMNS, true, take_row, NULL, &r, dg);
    if (st != ST_OK)
        return st;
    if (t->count == 0)
        return diag_set(dg, ST_MISSING, "%s: no row%s%s", path, state ? " of state " : "",
                        state ? state : "");
    return ST_OK;
}

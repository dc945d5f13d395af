/* compare_results.c -- two result files: rows paired by what they are about, numbers compared. */
#include "cli/compare.h"

#include "base/csv.h"
#include "base/infile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CELLS_MAX 128

/* A file as rows of texts. */
struct sheet {
    const char *path;
    char **name; /* column names */
    size_t columns;
    char **cell; /* rows x columns */
    size_t rows, room;
};

static char *copy(const char *text, size_t length)
{
    char *to = malloc(length + 1);
    if (to) {
        memcpy(to, text, length);
        to[length] = 0;
    }
    return to;
}

static void sheet_free(struct sheet *s)
{
    for (size_t i = 0; i < s->columns; i++)
        free(s->name[i]);
    for (size_t i = 0; i < s->rows * s->columns; i++)
        free(s->cell[i]);
    free(s->name);
    free(s->cell);
}

/* The first line that is no comment: the names, which csv_read wants beforehand. */
static enum status read_names(struct sheet *s, struct diag *dg)
{
    int fd;
    enum status st = infile_open(&fd, s->path, INFILE_REGULAR, dg);
    if (st != ST_OK)
        return st;
    FILE *f = fdopen(fd, "r");
    char line[8192] = "";
    while (f && fgets(line, sizeof line, f) && (line[0] == '#' || line[0] == '\n'))
        ;
    if (f)
        fclose(f);
    else
        close(fd);
    s->name = calloc(CELLS_MAX, sizeof *s->name);
    if (!s->name)
        return diag_no_memory(dg);
    for (char *p = line; *p && *p != '\n' && *p != '\r' && s->columns < CELLS_MAX;) {
        size_t n = strcspn(p, ",\r\n");
        s->name[s->columns++] = copy(p, n);
        p += n + (p[n] == ',');
    }
    return s->columns
               ? ST_OK
               : diag_set(dg, ST_PARSE, "%s:1: a header of column names is expected", s->path);
}

static enum status take_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct sheet *s = self;
    (void)line;
    if (s->rows == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        char **more = realloc(s->cell, room * s->columns * sizeof *more);
        if (!more)
            return diag_no_memory(dg);
        s->cell = more;
        s->room = room;
    }
    for (size_t i = 0; i < s->columns; i++)
        s->cell[s->rows * s->columns + i] = copy(f[i].text, f[i].length);
    s->rows++;
    return ST_OK;
}

static enum status sheet_read(struct sheet *s, const char *path, struct diag *dg)
{
    struct csv_column column[CELLS_MAX];
    *s = (struct sheet){.path = path};
    enum status st = read_names(s, dg);
    for (size_t i = 0; st == ST_OK && i < s->columns; i++)
        column[i] = (struct csv_column){s->name[i], true};
    return st == ST_OK ? csv_read(path, column, s->columns, false, take_row, NULL, s, dg) : st;
}

static bool number(const char *text, double *x)
{
    return csv_double((struct csv_field){text, strlen(text)}, x);
}

/* A row is about what its cells that are no numbers say. */
static bool same_subject(const struct sheet *a, size_t i, const struct sheet *b, size_t j)
{
    for (size_t c = 0; c < a->columns; c++) {
        const char *x = a->cell[i * a->columns + c], *y = b->cell[j * b->columns + c];
        double unused;
        bool numbers = (number(x, &unused) || !*x) && (number(y, &unused) || !*y);
        bool hash = strstr(a->name[c], "hash") || strcmp(a->name[c], "fingerprint") == 0;
        if (!numbers && !hash && strcmp(x, y) != 0)
            return false;
    }
    return true;
}

static void subject_of(char *text, size_t size, const struct sheet *a, size_t i)
{
    double unused;
    size_t used = (size_t)snprintf(text, size, "row %zu", i + 1);
    for (size_t c = 0; c < a->columns && used < size; c++) {
        const char *x = a->cell[i * a->columns + c];
        if (*x && !number(x, &unused) && strlen(x) < 40 && !strstr(a->name[c], "hash") &&
            strcmp(a->name[c], "fingerprint") != 0)
            used += (size_t)snprintf(text + used, size - used, " %s", x);
    }
}

static void compare_rows(struct comparison *c, const struct sheet *a, size_t i,
                         const struct sheet *b, size_t j)
{
    char subject[160], what[256];
    subject_of(subject, sizeof subject, a, i);
    for (size_t k = 0; k < a->columns; k++) {
        const char *x = a->cell[i * a->columns + k], *y = b->cell[j * b->columns + k];
        double p = 0, q = 0;
        if (number(x, &p))
            number(y, &q);
        snprintf(what, sizeof what, "%s: %s", subject, a->name[k]);
        compare_number(c, what, x, y, p, q);
    }
}

static enum status pair_rows(struct comparison *c, const struct sheet *a, const struct sheet *b,
                             struct diag *dg)
{
    bool *used = calloc(b->rows + 1, sizeof *used);
    if (!used)
        return diag_no_memory(dg);
    for (size_t i = 0; i < a->rows; i++) {
        size_t j = 0;
        char subject[160];
        while (j < b->rows && (used[j] || !same_subject(a, i, b, j)))
            j++;
        if (j < b->rows) {
            used[j] = true;
            compare_rows(c, a, i, b, j);
            continue;
        }
        subject_of(subject, sizeof subject, a, i);
        compare_text(c, subject, "there", NULL);
    }
    for (size_t j = 0; j < b->rows; j++) {
        char subject[160];
        subject_of(subject, sizeof subject, b, j);
        if (!used[j])
            compare_text(c, subject, NULL, "there");
    }
    free(used);
    return ST_OK;
}

enum status compare_results(struct comparison *c, const char *a, const char *b, struct diag *dg)
{
    struct sheet x = {0}, y = {0};
    enum status st = sheet_read(&x, a, dg);
    if (st == ST_OK)
        st = sheet_read(&y, b, dg);
    if (st == ST_OK && x.columns != y.columns)
        st = diag_set(dg, ST_MISFIT,
                      "%s has %zu columns, %s has %zu: results of one kind are compared", a,
                      x.columns, b, y.columns);
    for (size_t i = 0; st == ST_OK && i < x.columns; i++)
        if (strcmp(x.name[i], y.name[i]) != 0)
            st = diag_set(dg, ST_MISFIT, "%s has column '%s' where %s has '%s'", a, x.name[i], b,
                          y.name[i]);
    if (st == ST_OK)
        st = pair_rows(c, &x, &y, dg);
    sheet_free(&x);
    sheet_free(&y);
    return st;
}

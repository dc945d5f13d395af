#include "validate/score.h"

#include <stdlib.h>
#include <string.h>

double score_factor(double signed_error)
{
    double ratio = 1 + signed_error;
    if (ratio <= 0)
        return 1e9;
    return ratio < 1 ? 1 / ratio : ratio;
}

double score_quantile(double *x, double *weight, size_t n, double q)
{
    double total = 0, sum = 0;
    for (size_t i = 1; i < n; i++) /* insertion: a few hundred rows at most */
        for (size_t j = i; j > 0 && x[j] < x[j - 1]; j--) {
            double a = x[j], b = weight[j];
            x[j] = x[j - 1];
            weight[j] = weight[j - 1];
            x[j - 1] = a;
            weight[j - 1] = b;
        }
    for (size_t i = 0; i < n; i++)
        total += weight[i];
    double wanted = q * total, slack = 1e-9 * total;
    for (size_t i = 0; i < n; i++) {
        sum += weight[i];
        if (sum > wanted + slack)
            return x[i];
        if (sum >= wanted - slack)
            return i + 1 < n ? (x[i] + x[i + 1]) / 2 : x[i];
    }
    return x[n - 1];
}

/* ---- engines ---- */

static void engine_of(char out[SCORE_ENGINE_MAX], const struct published_row *row)
{
    const char *name = *row->engine ? row->engine : row->profile;
    const char *fork = strstr(name, " (");
    size_t n = fork ? (size_t)(fork - name) : strlen(name);
    n = n < SCORE_ENGINE_MAX - 1 ? n : SCORE_ENGINE_MAX - 1;
    memcpy(out, name, n);
    out[n] = 0;
}

struct entry {
    const struct published_outcome *o;
    char engine[SCORE_ENGINE_MAX];
};

static int by_engine(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->engine, y->engine);
    return order ? order : x->o < y->o ? -1 : x->o > y->o;
}

/* ---- one line ---- */

struct scratch {
    double *x, *weight;
};

static double quantile_of(const struct entry *e, size_t n, const struct scratch *s, bool absolute,
                          double q)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && strcmp(e[end].engine, e[i].engine) == 0)
            end++;
        for (size_t j = i; j < end; j++) {
            double error = e[j].o->signed_error;
            s->x[j] = absolute && error < 0 ? -error : error;
            s->weight[j] = 1.0 / (double)(end - i);
        }
        i = end;
    }
    return score_quantile(s->x, s->weight, n, q);
}

/* `e` has n > 0 entries, sorted by engine. */
static void fill_line(struct score_line *line, const struct entry *e, size_t n,
                      const struct scratch *s)
{
    line->rows = n;
    line->worst = e[0].o;
    for (size_t i = 0; i < n; i++) {
        line->engines += i == 0 || strcmp(e[i].engine, e[i - 1].engine) != 0;
        if (score_factor(e[i].o->signed_error) > score_factor(line->worst->signed_error))
            line->worst = e[i].o;
    }
    line->absolute_median = quantile_of(e, n, s, true, 0.5);
    line->signed_p10 = quantile_of(e, n, s, false, 0.1);
    line->signed_median = quantile_of(e, n, s, false, 0.5);
    line->signed_p90 = quantile_of(e, n, s, false, 0.9);
}

/* ---- all lines ---- */

enum choice { CHOOSE_ALL, CHOOSE_GRADE_A, CHOOSE_HELD_OUT, CHOICES };

static bool held_out(const struct published *rows, const struct published_row *row)
{
    char own[SCORE_ENGINE_MAX], other[SCORE_ENGINE_MAX];
    engine_of(own, row);
    for (size_t i = 0; i < rows->count; i++) {
        const struct published_row *r = &rows->rows[i];
        if (strcmp(r->rule, "fitted") != 0 || strcmp(r->device, row->device) != 0)
            continue;
        engine_of(other, r);
        if (strcmp(own, other) == 0)
            return false;
    }
    return true;
}

static size_t pick(struct entry *e, const struct published *rows, const struct published_outcome *o,
                   size_t count, enum published_class class_of, enum choice choice)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!o[i].counted || o[i].class_of != class_of ||
            (choice >= CHOOSE_GRADE_A && strcmp(o[i].row->grade, "A") != 0) ||
            (choice == CHOOSE_HELD_OUT && !held_out(rows, o[i].row)))
            continue;
        e[n].o = &o[i];
        engine_of(e[n++].engine, o[i].row);
    }
    if (n > 0)
        qsort(e, n, sizeof *e, by_engine);
    return n;
}

static void add_class(struct score *out, const struct published *rows,
                      const struct published_outcome *o, size_t count,
                      enum published_class class_of, struct entry *e, const struct scratch *s)
{
    for (int choice = 0; choice < CHOICES; choice++) {
        size_t n = pick(e, rows, o, count, class_of, (enum choice)choice);
        if (n == 0)
            continue;
        struct score_line *line = &out->lines[out->count++];
        *line = (struct score_line){.class_of = class_of,
                                    .grade_a = choice >= CHOOSE_GRADE_A,
                                    .held_out = choice == CHOOSE_HELD_OUT};
        fill_line(line, e, n, s);
    }
    size_t n = pick(e, rows, o, count, class_of, CHOOSE_ALL);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && strcmp(e[end].engine, e[i].engine) == 0)
            end++;
        struct score_line *line = &out->lines[out->count++];
        *line = (struct score_line){.class_of = class_of};
        memcpy(line->engine, e[i].engine, sizeof line->engine);
        fill_line(line, e + i, end - i, s);
        i = end;
    }
}

enum status score_find(struct score *out, const struct published *rows,
                       const struct published_outcome *outcome, size_t count, struct diag *dg)
{
    struct entry *e = calloc(count + 1, sizeof *e);
    struct scratch s = {calloc(count + 1, sizeof *s.x), calloc(count + 1, sizeof *s.weight)};
    *out = (struct score){.lines = calloc(count + CHOICES * PUBLISHED_CLASSES, sizeof *out->lines)};
    enum status st = e && s.x && s.weight && out->lines ? ST_OK : diag_no_memory(dg);
    for (int c = 0; st == ST_OK && c < PUBLISHED_CLASSES; c++)
        add_class(out, rows, outcome, count, (enum published_class)c, e, &s);
    free(e);
    free(s.x);
    free(s.weight);
    if (st != ST_OK)
        score_free(out);
    return st;
}

void score_free(struct score *s)
{
    free(s->lines);
    *s = (struct score){0};
}

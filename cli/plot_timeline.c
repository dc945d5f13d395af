/* plot_timeline.c -- one pass of a Chrome trace (sim --timeline) as data for plots/timeline.gp; declared in
 * plot_kinds.h. Lanes without an event in the pass are left out. */
#include "cli/plot_kinds.h"

#include "base/csv.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 64, OPERATIONS_MAX = 16 };

struct picture {
    const json_node *events;
    const char *path;
    uint64_t pass;
    const char *lane_name[LANES_MAX]; /* by tid */
    uint64_t lane_row[LANES_MAX];     /* by tid: place from the top, 0 if it has no event */
    const char *operation[OPERATIONS_MAX];
    size_t operation_count, lanes;
    double start_us;
};

static bool is(const json_node *event, const char *phase)
{
    const char *ph = json_text(json_get(event, "ph"));
    return ph && strcmp(ph, phase) == 0;
}

/* Of a drawn event; false for any other. */
static bool of_pass(const struct picture *p, const json_node *event, uint64_t *pass, uint64_t *lane)
{
    return is(event, "X") && json_u64(json_get(json_get(event, "args"), "pass"), pass) &&
           json_u64(json_get(event, "tid"), lane) && *lane < LANES_MAX &&
           (p->pass == PLOT_LAST_PASS || *pass == p->pass);
}

static size_t operation_of(struct picture *p, const char *name)
{
    size_t i = 0;
    while (i < p->operation_count && strcmp(p->operation[i], name) != 0)
        i++;
    if (i == p->operation_count && i < OPERATIONS_MAX)
        p->operation[p->operation_count++] = name;
    return i < OPERATIONS_MAX ? i + 1 : 0;
}

static void scan(struct picture *p)
{
    uint64_t pass, lane, last = 0;
    for (size_t i = 0; p->pass == PLOT_LAST_PASS && i < json_count(p->events); i++)
        if (of_pass(p, json_at(p->events, i), &pass, &lane) && pass > last)
            last = pass;
    p->pass = p->pass == PLOT_LAST_PASS ? last : p->pass;
    p->start_us = -1;
    for (size_t i = 0; i < json_count(p->events); i++) {
        const json_node *e = json_at(p->events, i);
        double start;
        uint64_t tid;
        const char *name = json_text(json_get(e, "name"));
        if (is(e, "M") && name && strcmp(name, "thread_name") == 0 &&
            json_u64(json_get(e, "tid"), &tid) && tid < LANES_MAX)
            p->lane_name[tid] = json_text(json_get(json_get(e, "args"), "name"));
        if (!of_pass(p, e, &pass, &lane) || !json_double(json_get(e, "ts"), &start))
            continue;
        p->lane_row[lane] = 1;
        p->start_us = p->start_us < 0 || start < p->start_us ? start : p->start_us;
    }
    for (size_t l = 0; l < LANES_MAX; l++)
        if (p->lane_row[l])
            p->lane_row[l] = ++p->lanes;
}

static void write_events(struct picture *p, FILE *f)
{
    uint64_t pass, lane;
    fputs("curve,lane,name,start,end\n", f);
    for (size_t i = 0; i < json_count(p->events); i++) {
        const json_node *e = json_at(p->events, i);
        const char *name = json_text(json_get(e, "name"));
        double start, length;
        if (!name || !of_pass(p, e, &pass, &lane) || !json_double(json_get(e, "ts"), &start) ||
            !json_double(json_get(e, "dur"), &length))
            continue;
        fprintf(f, "%zu,%" PRIu64 ",", operation_of(p, name), p->lane_row[lane]);
        csv_write_field(f, p->lane_name[lane] ? p->lane_name[lane] : "");
        fprintf(f, ",%.6f,%.6f\n", (start - p->start_us) / 1000,
                (start - p->start_us + length) / 1000);
    }
}

enum status plot_timeline(struct gnuplot *g, const char *path, uint64_t pass, struct diag *dg)
{
    struct json_doc *doc;
    enum status st = json_open(&doc, path, dg);
    if (st != ST_OK)
        return st;
    struct picture p = {.path = path, .pass = pass};
    p.events = json_get(json_root(doc), "traceEvents");
    scan(&p);
    if (p.lanes == 0)
        st = diag_set(dg, ST_PARSE,
                      "%s: events of that pass are expected, as sim --timeline "
                      "writes them",
                      path);
    if (st == ST_OK) {
        write_events(&p, g->data);
        fprintf(g->variables, "lanes = %zu\nn = %zu\narray names[%zu]\n", p.lanes,
                p.operation_count, p.operation_count);
        for (size_t i = 0; i < p.operation_count; i++) {
            char slot[32];
            snprintf(slot, sizeof slot, "names[%zu]", i + 1);
            gnuplot_set(g, slot, p.operation[i]);
        }
    }
    json_close(doc);
    return st;
}

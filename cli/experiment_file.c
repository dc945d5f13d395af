/* experiment_file.c -- see experiment_file.h. */
#include "cli/experiment_file.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_NAME_MAX = 64, OPTIONS_MOST = 64 };

/* Commands that answer a point, the usual one first. An interval of the simulator costs thirteen runs: a sweep
 * has none unless it says `draws`. */
static const struct {
    const char *name;
    const struct command *command;
    const char *unless, *argument; /* given unless that key is set */
} methods[] = {
    {"roofline", &command_roofline, NULL, NULL},
    {"sim", &command_sim, "draws", "--draws=0"},
    {"replay", &command_replay, NULL, NULL},
    {"plan", &command_plan, NULL, NULL},
};
static const char *const method_names[] = {"roofline", "sim", "replay", "plan", NULL};
#define METHODS (sizeof methods / sizeof *methods)

static size_t method_of(const char *name)
{
    size_t i = 0;
    while (i + 1 < METHODS && strcmp(methods[i].name, name) != 0)
        i++;
    return i;
}

const struct command *experiment_command(const struct experiment *e)
{
    return methods[method_of(e->method)].command;
}

/* ---- which keys there are ---- */

static void option_name(char name[OPTION_NAME_MAX], const char *key)
{
    snprintf(name, OPTION_NAME_MAX, "%s", key);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

/* Options that write files or print something else than the row. */
static bool is_of_one_run(const char *name)
{
    static const char *const names[] = {"timeline", "summary", "row", "want",
                                        "explain",  "format",  NULL};
    for (const char *const *n = names; *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return text_ends_with(name, "-out");
}

static const struct option *find_option(const struct command *c, const char *name)
{
    static const struct option seed = {"seed", OPTION_COUNT, "N",  NULL, NULL, NULL,
                                       0,      UINT64_MAX,   false};
    static const struct option model = {"model", OPTION_TEXT, "M", NULL, NULL, NULL, 1, 0, false};
    for (const struct option *o = c->options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return is_of_one_run(name) ? NULL : o;
    if (strcmp(name, "seed") == 0)
        return &seed;
    return c->positional_max > 0 && strcmp(name, "model") == 0 ? &model : NULL;
}

static enum status unknown_key(const struct command *c, const char *key, struct diag *dg)
{
    const char *names[OPTIONS_MOST] = {"model", "seed"};
    size_t count = 2;
    char name[OPTION_NAME_MAX];
    for (const struct option *o = c->options; o->name && count < OPTIONS_MOST; o++)
        if (!is_of_one_run(o->name))
            names[count++] = o->name;
    option_name(name, key);
    const char *near = nearest_name(name, names, count);
    if (!near)
        return diag_set(dg, ST_PARSE,
                        "unknown key '%s' (keys are options of memwall %s with _ for -, and paths)",
                        key, c->name);
    option_name(name, near);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return diag_set(dg, ST_PARSE, "unknown key '%s' (did you mean %s?)", key, name);
}

static enum status check_key(void *self, const char *method, const struct edit *e, struct diag *dg)
{
    (void)self;
    const struct command *c = methods[method_of(method)].command;
    char name[OPTION_NAME_MAX];
    option_name(name, e->key);
    const struct option *o = strchr(e->key, '-') ? NULL : find_option(c, name);
    if (!o && strchr(e->key, '.') && !c->no_set)
        return ST_OK;
    if (!o)
        return unknown_key(c, e->key, dg);
    if (o->type != OPTION_FLAG)
        return args_check_value(o, e->value, dg);
    if (strcmp(e->value, "true") == 0 || strcmp(e->value, "false") == 0)
        return ST_OK;
    return diag_set(dg, ST_PARSE, "%s: true or false is expected, not '%s'", e->key, e->value);
}

enum status experiment_file_load(struct experiment **out, const char *path, const struct args *a,
                                 struct diag *dg)
{
    size_t count;
    const char *const *set = args_list(a, "set", &count);
    struct experiment_rules rules = {method_names, check_key, NULL};
    return experiment_load(out, path, &rules, set, count, dg);
}

/* ---- one point ---- */

struct worker {
    const struct experiment *experiment;
    size_t method;
    struct capture *capture;
    struct arena arena; /* of the current run's words */
};

static enum status open_worker(void **out, const void *self, struct diag *dg)
{
    const struct experiment *e = self;
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return diag_no_memory(dg);
    w->experiment = e;
    w->method = method_of(e->method);
    enum status st = capture_new(&w->capture, dg);
    if (st != ST_OK) {
        free(w);
        return st;
    }
    *out = w;
    return ST_OK;
}

static void close_worker(void *worker)
{
    struct worker *w = worker;
    if (!w)
        return;
    capture_free(w->capture);
    arena_free(&w->arena);
    free(w);
}

static char *join_words(struct arena *arena, const char *before, const char *name,
                        const char *equals, const char *value)
{
    size_t room = strlen(before) + strlen(name) + strlen(equals) + strlen(value) + 1;
    char *word = arena_alloc(arena, room);
    if (word)
        snprintf(word, room, "%s%s%s%s", before, name, equals, value);
    return word;
}

/* The edit as a word of the command line; "" for a flag that is off. */
static char *word_of(struct worker *w, const struct command *c, const struct edit *e)
{
    char name[OPTION_NAME_MAX];
    option_name(name, e->key);
    const struct option *o = find_option(c, name);
    if (!o)
        return join_words(&w->arena, "--set=", e->key, "=", e->value);
    if (o->type == OPTION_FLAG)
        return join_words(&w->arena, strcmp(e->value, "true") == 0 ? "--" : "", name, "", "");
    return join_words(&w->arena, "--", name, "=", e->value);
}

static bool is_set(const struct edit *edit, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(edit[i].key, key) == 0)
            return true;
    return false;
}

/* The command line of a point. `word` has room for count + 4. NULL words: no memory. */
static size_t command_line(struct worker *w, const struct edit *edit, size_t count, char **word)
{
    const struct command *c = methods[w->method].command;
    size_t used = 0;
    word[used++] = join_words(&w->arena, "--format=csv", "", "", "");
    if (c->row_flag)
        word[used++] = join_words(&w->arena, "--", c->row_flag, "", "");
    if (methods[w->method].unless && !is_set(edit, count, methods[w->method].unless))
        word[used++] = join_words(&w->arena, methods[w->method].argument, "", "", "");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(edit[i].key, "model") == 0 && c->positional_max > 0) {
            word[used++] = arena_text(&w->arena, edit[i].value);
            continue;
        }
        char *made = word_of(w, c, &edit[i]);
        if (!made || made[0] == '-')
            word[used++] = made;
    }
    return used;
}

/* Where in the file the fault is: the edit that the reason names, by its path, its option or its value. */
static const struct edit *blame(const struct edit *edit, size_t count, const char *reason)
{
    char text[512], name[OPTION_NAME_MAX];
    for (size_t i = 0; i < count; i++) {
        option_name(name, edit[i].key);
        snprintf(text, sizeof text, "--set %s", edit[i].key);
        if (strstr(reason, text))
            return &edit[i];
        snprintf(text, sizeof text, "--%s:", name);
        if (strstr(reason, text))
            return &edit[i];
        snprintf(text, sizeof text, "'%s'", edit[i].value);
        if (strstr(reason, text))
            return &edit[i];
    }
    return NULL;
}

static enum status say_where(const struct worker *w, const struct edit *edit, size_t count,
                             enum status st, struct diag *dg)
{
    struct diag why = *dg;
    const struct edit *e = blame(edit, count, why.text);
    if (e && e->line)
        return diag_set(dg, st, "%s:%zu: %s", w->experiment->origin, e->line, why.text);
    return diag_set(dg, st, "%s: %s", w->experiment->origin, why.text);
}

static enum status run_words(struct worker *w, size_t count, char **word, struct diag *dg)
{
    const struct command *c = methods[w->method].command;
    struct args *a;
    for (size_t i = 0; i < count; i++)
        if (!word[i])
            return diag_no_memory(dg);
    enum status st = args_parse(&a, c, (int)count, word, dg);
    if (st != ST_OK)
        return st;
    args_set_capture(a, w->capture);
    st = c->run(a, dg);
    args_free(a);
    if (st == ST_OK && w->capture->row_count != 1)
        return diag_set(dg, ST_PARSE, "a point must give one row, not %zu: sweep lists instead",
                        w->capture->row_count);
    return st;
}

static enum status run_point(void *worker, const struct edit *edit, size_t count,
                             char *const **cell, const char **note_text, struct diag *dg)
{
    struct worker *w = worker;
    capture_reset(w->capture);
    arena_free(&w->arena);
    w->arena = (struct arena){0};
    char **word = arena_alloc(&w->arena, (count + 4) * sizeof *word);
    if (!word)
        return diag_no_memory(dg);
    enum status st = run_words(w, command_line(w, edit, count, word), word, dg);
    *cell = w->capture->cell;
    *note_text = w->capture->note;
    if (st == ST_OK || st == ST_MISFIT || st == ST_RANGE || st == ST_UNSUPPORTED)
        return st;
    return say_where(w, edit, count, st == ST_USAGE ? ST_PARSE : st, dg);
}

/* ---- what a point and a result are made of ---- */

bool experiment_takes(const struct option *o)
{
    return !is_of_one_run(o->name);
}

enum status experiment_point_args(struct args **out, struct arena *words,
                                  const struct experiment *e, uint64_t i, struct diag *dg)
{
    struct worker w = {.experiment = e, .method = method_of(e->method), .arena = *words};
    size_t most = experiment_edits_max(e), count = 0;
    struct edit *edit = arena_alloc(&w.arena, (most + 1) * sizeof *edit);
    char **word = arena_alloc(&w.arena, (most + 4) * sizeof *word);
    enum status st = edit && word ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        count = command_line(&w, edit, experiment_edits(e, i, edit), word);
    for (size_t k = 0; st == ST_OK && k < count; k++)
        st = word[k] ? ST_OK : diag_no_memory(dg);
    *words = w.arena;
    return st == ST_OK ? args_parse(out, experiment_command(e), (int)count, word, dg) : st;
}

const struct command *experiment_command_of(bool (*has)(const void *self, const char *column),
                                            const void *self)
{
    for (size_t m = 0; m < METHODS; m++) {
        const struct command *c = methods[m].command;
        size_t found = 0;
        while (found < c->column_count && has(self, c->columns[found].name))
            found++;
        if (found == c->column_count)
            return c;
    }
    return NULL;
}

struct sweep_runner *experiment_runner(const struct experiment *e)
{
    const struct command *c = experiment_command(e);
    struct sweep_runner *r = malloc(sizeof *r + c->column_count * sizeof(char *));
    if (!r)
        return NULL;
    const char **name = (const char **)(r + 1);
    for (size_t i = 0; i < c->column_count; i++)
        name[i] = c->columns[i].name;
    *r = (struct sweep_runner){name, c->column_count, open_worker, close_worker, run_point, e};
    return r;
}

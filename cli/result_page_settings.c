/* result_page_settings.c -- the options of an experiment's command, each with where it comes from, and the axes; declared in
 * result_page.h. */
#include "cli/result_page.h"

#include "base/text.h"
#include "cli/experiment_file.h"

#include <string.h>

/* ---- what an axis sets ---- */

/* Options are written with '-' and keys of an experiment with '_'. */
static bool same_key(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

/* A key that ends with a point means all paths below it. */
static const struct edit *find_edit(const struct edit *edit, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (same_key(edit[i].key, key) ||
            (text_ends_with(key, ".") && strncmp(edit[i].key, key, strlen(key)) == 0))
            return &edit[i];
    return NULL;
}

bool result_page_axis_sets(const struct axis *axis, const char *key)
{
    for (size_t i = 0; i < axis->count; i++)
        if (find_edit(axis->item[i].edit, axis->item[i].edit_count, key))
            return true;
    return false;
}

bool result_page_swept(char out[SWEPT_MAX], const char **axis, const struct experiment *e,
                       const char *key)
{
    *out = 0;
    for (size_t a = 0; a < e->axis_count; a++) {
        if (!result_page_axis_sets(&e->axis[a], key))
            continue;
        *axis = e->axis[a].name;
        for (size_t i = 0; i < e->axis[a].count; i++) {
            const struct axis_item *item = &e->axis[a].item[i];
            const struct edit *set = find_edit(item->edit, item->edit_count, key);
            text_list(out, SWEPT_MAX, " | ", "%s", set ? set->value : "-");
        }
        return true;
    }
    return false;
}

/* ---- settings ---- */

void result_page_inputs_begin(struct html_table *t, struct result_page *p, const char *title,
                              size_t rows)
{
    static const char *const columns[] = {"input", "value", "kind", "source"};
    html_table_begin(t, p->f, title, columns, 4, rows);
    t->plain = true;
}

void result_page_input(struct html_table *t, const char *input, const char *value, const char *kind,
                       const char *source)
{
    html_cell(t, input);
    html_cell(t, value);
    html_cell(t, kind);
    html_cell(t, source);
}

/* `text` is what the first point has, or NULL. */
static void put_setting(struct html_table *t, const struct experiment *e, const char *name,
                        const char *text, bool given, const char *help)
{
    char values[SWEPT_MAX], where[64];
    const char *axis;
    const struct edit *set = find_edit(e->edit, e->edit_count, name);
    snprintf(where, sizeof where, set && set->line ? "the experiment, line %zu" : "--set",
             set ? set->line : 0);
    if (result_page_swept(values, &axis, e, name))
        result_page_input(t, name, values, "swept", axis);
    else if (set)
        result_page_input(t, name, set->value, "set", where);
    else if (given)
        result_page_input(t, name, text, "usual", "of a sweep");
    else
        result_page_input(t, name, text, text ? "usual" : "not given", help);
}

static const char *text_of(const struct args *point, const struct option *o)
{
    if (o->type == OPTION_FLAG)
        return args_flag(point, o->name) ? "true" : "false";
    return o->type == OPTION_REPEATED ? NULL : args_text(point, o->name);
}

static bool is_path(const struct edit *edit)
{
    return strchr(edit->key, '.') != NULL;
}

/* Every item of every axis, with all that it sets. */
static void put_axes(struct result_page *p, const struct experiment *e)
{
    static const char *const columns[] = {"axis", "item", "sets"};
    struct html_table t;
    size_t rows = 0;
    for (size_t a = 0; a < e->axis_count; a++)
        rows += e->axis[a].count;
    html_table_begin(&t, p->f, "Axes", columns, 3, rows);
    for (size_t a = 0; a < e->axis_count; a++)
        for (size_t i = 0; i < e->axis[a].count; i++) {
            const struct axis_item *item = &e->axis[a].item[i];
            char sets[2048] = "";
            for (size_t k = 0; k < item->edit_count; k++)
                text_list(sets, sizeof sets, ", ", "%s = %s", item->edit[k].key,
                          item->edit[k].value);
            html_cell(&t, e->axis[a].name);
            html_cell(&t, item->text);
            html_cell(&t, sets);
        }
    html_table_end(&t);
}

void result_page_settings(struct result_page *p, const struct experiment *e,
                          const struct args *point)
{
    const struct command *c = experiment_command(e);
    bool positional = c->positional_max > 0;
    size_t rows = 1 + positional;
    char title[64];
    struct html_table t;
    for (const struct option *o = c->options; o->name; o++)
        rows += experiment_takes(o);
    for (size_t i = 0; i < e->edit_count; i++)
        rows += is_path(&e->edit[i]);
    snprintf(title, sizeof title, "Settings of memwall %s", c->name);
    result_page_inputs_begin(&t, p, title, rows);
    if (positional)
        put_setting(&t, e, "model", args_positional(point, 0), true, NULL);
    for (const struct option *o = c->options; o->name; o++)
        if (experiment_takes(o))
            put_setting(&t, e, o->name, text_of(point, o), args_given(point, o->name), o->help);
    put_setting(&t, e, "seed", args_text(point, "seed"), false, "of every run");
    for (size_t i = 0; i < e->edit_count; i++)
        if (is_path(&e->edit[i]))
            put_setting(&t, e, e->edit[i].key, NULL, false, NULL);
    html_table_end(&t);
    put_axes(p, e);
}

/* result_page_inputs.c -- what an experiment was fed with: each option of its command, each model and
 * machine and engine profile that a point names, every value with its kind and source. What an axis sets
 * is listed as swept, with all of its values. */
#include "cli/result_page.h"

#include "base/text.h"
#include "cli/command.h"
#include "cli/experiment_file.h"
#include "cli/scenario.h"
#include "sim/pipeline/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- values with kind and source ---- */

struct listing {
    struct html_table table;
    const struct experiment *e;
    const char *prefix; /* of its paths in an experiment: "device." */
    size_t count;
};

static void count_value(void *self, const char *path, struct value *v)
{
    struct listing *l = self;
    (void)path;
    l->count += v->given;
}

static void put_value(void *self, const char *path, struct value *v)
{
    struct listing *l = self;
    char text[QUANTITY_TEXT_MAX], values[SWEPT_MAX], full[256];
    const char *axis;
    if (!v->given)
        return;
    snprintf(full, sizeof full, "%s%s", l->prefix, path);
    if (result_page_swept(values, &axis, l->e, full) ||
        result_page_swept(values, &axis, l->e, path))
        result_page_input(&l->table, path, values, "swept", axis);
    else
        result_page_input(&l->table, path, quantity_print(text, v->amount, v->dim),
                          value_kind_name(v->kind), v->source);
}

static void put_device(struct result_page *p, const struct experiment *e, struct device *d,
                       const char *title)
{
    struct listing l = {.e = e, .prefix = "device."};
    device_each_value(d, count_value, &l);
    result_page_inputs_begin(&l.table, p, title, l.count);
    device_each_value(d, put_value, &l);
    html_table_end(&l.table);
}

static void count_choice(void *self, const char *key, const char *choice)
{
    struct listing *l = self;
    (void)key;
    (void)choice;
    l->count++;
}

static void put_choice(void *self, const char *key, const char *choice)
{
    struct listing *l = self;
    char full[256], values[SWEPT_MAX];
    const char *axis;
    snprintf(full, sizeof full, "%s%s", l->prefix, key);
    if (result_page_swept(values, &axis, l->e, full))
        result_page_input(&l->table, key, values, "swept", axis);
    else
        result_page_input(&l->table, key, choice, "choice", "the profile");
}

static enum status put_profile(struct result_page *p, const struct experiment *e,
                               const struct args *point, const struct scenario *s, struct diag *dg)
{
    char folder[CATALOGUE_PATH_MAX], title[512];
    struct engine_profile *profile;
    struct listing l = {.e = e, .prefix = "profile."};
    enum status st = profile_load(&profile, args_text(point, "profile"),
                                  catalogue_dir(folder, sizeof folder, "sim/pipeline/profiles"),
                                  s->profile, s->profile_count, dg);
    if (st != ST_OK)
        return st;
    profile_each_choice(profile, count_choice, &l);
    profile_each_value(profile, count_value, &l);
    snprintf(title, sizeof title, "Engine profile %s", profile->name);
    result_page_inputs_begin(&l.table, p, title, l.count);
    profile_each_choice(profile, put_choice, &l);
    profile_each_value(profile, put_value, &l);
    html_table_end(&l.table);
    profile_free(profile);
    return ST_OK;
}

/* A point without a result may have a model that cannot be: its reason is the row. */
static void put_no_model(struct html_table *t, const struct args *point, const char *why)
{
    html_cell(t, args_positional(point, 0));
    for (size_t c = 2; c < t->columns; c++)
        html_cell(t, NULL);
    html_cell(t, why);
}

/* A model's figures follow from its shapes and formats: one row a model as it is run, with who published the shapes. */
static void put_model(struct html_table *t, const struct model *m)
{
    const struct {
        uint64_t amount;
        enum dimension dim;
    } figure[] = {{m->layer_count, DIM_COUNT},           {model_experts(m), DIM_COUNT},
                  {model_top_k(m), DIM_COUNT},           {model_weight_bytes(m), DIM_SIZE},
                  {model_expert_bytes_max(m), DIM_SIZE}, {model_token_cycle_bytes(m), DIM_SIZE}};
    char text[QUANTITY_TEXT_MAX], grade[64];
    html_cell(t, m->title ? m->title : m->name);
    html_cell(t, m->quant.name ? m->quant.name : "exact");
    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
        html_cell(t, quantity_round(text, figure[i].amount, figure[i].dim));
    snprintf(grade, sizeof grade, "derived of shapes of grade %s", m->grade ? m->grade : "-");
    html_cell(t, grade);
    html_cell(t, m->source);
}

/* ---- the points that name different things ---- */

struct inputs {
    struct result_page *page;
    const struct experiment *e;
    struct html_table models;
    struct arena names; /* of what was listed */
    const char **seen;
    size_t seen_count, seen_room;
};

/* `s` is NULL for a point that has no result, and `dg` then says why. */
typedef enum status point_fn(struct inputs *in, const struct args *point, struct scenario *s,
                             struct diag *dg);

/* False for a name that was there before, or without memory: then it is listed again, which is no fault. */
static bool seen_before(struct inputs *in, const char *name)
{
    for (size_t i = 0; i < in->seen_count; i++)
        if (strcmp(in->seen[i], name) == 0)
            return true;
    if (in->seen_count == in->seen_room) {
        size_t room = in->seen_room ? 2 * in->seen_room : 16;
        const char **bigger = realloc(in->seen, room * sizeof *bigger);
        if (!bigger)
            return false;
        in->seen = bigger;
        in->seen_room = room;
    }
    const char *kept = arena_text(&in->names, name);
    if (kept)
        in->seen[in->seen_count++] = kept;
    return false;
}

/* Models are alike that are of one name, in the same formats, and choose as many experts. */
static bool model_seen(struct inputs *in, const struct scenario *s, const struct diag *dg)
{
    char name[1024];
    if (!s)
        return seen_before(in, dg->text);
    snprintf(name, sizeof name, "%s|%s|%" PRIu64 "|%" PRIu64, s->model->name,
             s->model->quant.name ? s->model->quant.name : "", model_top_k(s->model),
             model_weight_bytes(s->model));
    return seen_before(in, name);
}

static enum status count_model(struct inputs *in, const struct args *point, struct scenario *s,
                               struct diag *dg)
{
    (void)point;
    in->models.rows += !model_seen(in, s, dg);
    return ST_OK;
}

static enum status list_model(struct inputs *in, const struct args *point, struct scenario *s,
                              struct diag *dg)
{
    if (model_seen(in, s, dg))
        return ST_OK;
    if (s)
        put_model(&in->models, s->model);
    else
        put_no_model(&in->models, point, dg->text);
    return ST_OK;
}

static enum status list_device(struct inputs *in, const struct args *point, struct scenario *s,
                               struct diag *dg)
{
    (void)point;
    (void)dg;
    char name[1024];
    if (!s)
        return ST_OK;
    snprintf(name, sizeof name, "Device %s: %s", s->device->name, s->device->title);
    for (size_t i = 0; i < s->device->storage_count; i++)
        if (s->device->storage[i].part)
            text_append(name, sizeof name, ", storage.%zu is the part %s", i,
                        s->device->storage[i].part);
    if (!seen_before(in, name))
        put_device(in->page, in->e, s->device, name);
    return ST_OK;
}

static enum status list_profile(struct inputs *in, const struct args *point, struct scenario *s,
                                struct diag *dg)
{
    if (!s || seen_before(in, args_text(point, "profile")))
        return ST_OK;
    return put_profile(in->page, in->e, point, s, dg);
}

/* Whether point `i` is the first of its kind: every axis that sets none of the keys stands at its beginning. */
static bool first_of_kind(const struct experiment *e, uint64_t i, const char *const *keys)
{
    for (size_t a = 0; a < e->axis_count; a++) {
        bool counts = false;
        for (const char *const *k = keys; *k; k++)
            counts |= result_page_axis_sets(&e->axis[a], *k);
        if (!counts && experiment_item(e, i, a) != 0)
            return false;
    }
    return true;
}

static enum status visit(struct inputs *in, uint64_t i, point_fn *fn, struct diag *dg)
{
    struct arena words = {0};
    struct args *point = NULL;
    struct scenario s;
    enum status st = experiment_point_args(&point, &words, in->e, i, dg);
    if (st == ST_OK) {
        bool positional = experiment_command(in->e)->positional_max > 0;
        st = scenario_load_model(
            &s, point, positional ? args_positional(point, 0) : args_text(point, "model"), dg);
    }
    if (st == ST_OK) {
        st = fn(in, point, &s, dg);
        scenario_free(&s);
    } else if (point && (st == ST_MISFIT || st == ST_RANGE || st == ST_UNSUPPORTED)) {
        st = fn(in, point, NULL, dg);
    }
    args_free(point);
    arena_free(&words);
    return st;
}

/* Calls for the first point of each combination of what the keys set. */
static enum status each_kind(struct inputs *in, const char *const *keys, point_fn *fn,
                             struct diag *dg)
{
    enum status st = ST_OK;
    in->seen_count = 0;
    for (uint64_t i = 0; st == ST_OK && i < in->e->points; i++)
        if (first_of_kind(in->e, i, keys))
            st = visit(in, i, fn, dg);
    return st;
}

static enum status put_models(struct inputs *in, struct diag *dg)
{
    static const char *const keys[] = {"model", "quant",      "expert_quant", "top_k", "model.",
                                       "ffn.",  "attention.", "formats.",     NULL};
    static const char *const columns[] = {
        "model", "quant",        "layers",       "experts",
        "top_k", "weight_bytes", "expert_bytes", "token_cycle_bytes",
        "kind",  "source"};
    enum status st = each_kind(in, keys, count_model, dg);
    if (st != ST_OK)
        return st;
    html_table_begin(&in->models, in->page->f, "Models", columns, sizeof columns / sizeof *columns,
                     in->models.rows);
    st = each_kind(in, keys, list_model, dg);
    if (st == ST_OK)
        html_table_end(&in->models);
    return st;
}

static enum status put_descriptions(struct inputs *in, bool has_profile, struct diag *dg)
{
    static const char *const of_device[] = {"device", "storage.0.part", "storage.1.part", NULL};
    static const char *const of_profile[] = {"profile", NULL};
    enum status st = put_models(in, dg);
    if (st == ST_OK)
        st = each_kind(in, of_device, list_device, dg);
    return st == ST_OK && has_profile ? each_kind(in, of_profile, list_profile, dg) : st;
}

enum status result_page_inputs(struct result_page *p, const struct experiment *e, struct diag *dg)
{
    struct arena words = {0};
    struct args *point = NULL;
    struct inputs in = {.page = p, .e = e};
    html_element(p->f, "h2", "Inputs");
    enum status st = experiment_point_args(&point, &words, e, 0, dg);
    if (st == ST_OK) {
        result_page_settings(p, e, point);
        bool has_device = false, has_profile = false;
        for (const struct option *o = experiment_command(e)->options; o->name; o++) {
            has_device |= strcmp(o->name, "device") == 0;
            has_profile |= strcmp(o->name, "profile") == 0 && o->type == OPTION_TEXT;
        }
        if (has_device)
            st = put_descriptions(&in, has_profile, dg);
    }
    free(in.seen);
    arena_free(&in.names);
    args_free(point);
    arena_free(&words);
    return st;
}

/* desc_write.c -- a model written as a description: layers of one shape become a group, and only what
 * is set is written. The keys and their order are those of model_schema.h. */
#include "models/desc_model.h"

#include "base/yaml.h"
#include "models/layer_set.h"
#include "models/model_schema.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Attention and feed-forward groups are written by the same code: a field table, and where the shape
 * of layer i begins once it stands in a group struct. */
struct writer {
    const struct model *m;
    FILE *out;
    const struct yaml_field *fields;
    const void *(*shape)(const struct model *m, size_t layer);
    size_t shape_offset;
};

static const void *attention_of(const struct model *m, size_t layer)
{
    return &m->layers[layer].attention;
}

static const void *ffn_of(const struct model *m, size_t layer)
{
    return &m->layers[layer].ffn;
}

static uint64_t field_value(const struct yaml_field *f, const struct writer *w, const void *shape)
{
    const char *at = (const char *)shape + (f->offset - w->shape_offset);
    uint64_t number;
    int choice;
    bool flag;
    switch (f->type) {
    case YAML_TYPE_COUNT:
        memcpy(&number, at, sizeof number);
        return number;
    case YAML_TYPE_FLAG:
        memcpy(&flag, at, sizeof flag);
        return flag;
    default:
        assert(f->type == YAML_TYPE_CHOICE);
        memcpy(&choice, at, sizeof choice);
        return (uint64_t)choice;
    }
}

static bool is_shape_field(const struct yaml_field *f)
{
    return f->type != YAML_TYPE_TEXT; /* "layers" is the group's, not the shape's */
}

static bool same_shape(const struct writer *w, size_t a, size_t b)
{
    for (const struct yaml_field *f = w->fields; f->key; f++)
        if (is_shape_field(f) &&
            field_value(f, w, w->shape(w->m, a)) != field_value(f, w, w->shape(w->m, b)))
            return false;
    return true;
}

static void write_shape(const struct writer *w, size_t layer)
{
    const void *shape = w->shape(w->m, layer);
    enum attention_family family = ATTENTION_NONE;
    if (w->fields == model_attention_fields)
        family = w->m->layers[layer].attention.family;
    for (const struct yaml_field *f = w->fields; f->key; f++) {
        if (!is_shape_field(f))
            continue;
        uint64_t value = field_value(f, w, shape);
        bool needed = f->required || model_key_required(f->key, family);
        if (value == 0 && !needed)
            continue;
        if (f->type == YAML_TYPE_COUNT)
            fprintf(w->out, "    %s: %" PRIu64 "\n", f->key, value);
        else
            fprintf(w->out, "    %s: %s\n", f->key,
                    f->type == YAML_TYPE_FLAG ? (value ? "true" : "false") : f->choices[value]);
    }
}

struct grouping {
    bool *done; /* layers that stand in a group already */
    bool *mine; /* layers of the shape at hand */
    bool *seen; /* layers whose shape has been measured */
    char *text;
    size_t capacity;
};

/* Marks the layers shaped like `first` that have no group yet; returns how many. */
static size_t mark_alike(const struct writer *w, struct grouping *g, size_t first)
{
    size_t members = 0;
    for (size_t i = 0; i < w->m->layer_count; i++) {
        g->mine[i] = !g->done[i] && same_shape(w, first, i);
        members += g->mine[i];
    }
    bool fits = layer_set_print(g->text, g->capacity, g->mine, w->m->layer_count);
    assert(fits);
    (void)fits;
    return members;
}

/* Of the shapes left, the one whose layers are said in the fewest words; the last one is "rest". */
static bool write_group(const struct writer *w, struct grouping *g)
{
    size_t n = w->m->layer_count, best = 0, shortest = g->capacity, left = 0, members;
    memcpy(g->seen, g->done, n * sizeof *g->seen);
    for (size_t i = 0; i < n; i++) {
        left += !g->done[i];
        if (g->seen[i])
            continue;
        mark_alike(w, g, i);
        for (size_t k = i; k < n; k++)
            g->seen[k] = g->seen[k] || g->mine[k];
        if (strlen(g->text) < shortest) {
            shortest = strlen(g->text);
            best = i;
        }
    }
    if (left == 0)
        return false;
    members = mark_alike(w, g, best);
    fprintf(w->out, "  - layers: %s\n", members == left && left < n ? "rest" : g->text);
    write_shape(w, best);
    for (size_t i = 0; i < n; i++)
        g->done[i] = g->done[i] || g->mine[i];
    return true;
}

static enum status write_groups(const struct writer *w, const char *key, struct diag *dg)
{
    size_t n = w->m->layer_count;
    struct grouping g = {.capacity = 16 * n + 64};
    g.done = calloc(3 * n, sizeof *g.done);
    g.text = malloc(g.capacity);
    enum status st = g.done && g.text ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK) {
        g.mine = g.done + n;
        g.seen = g.mine + n;
        fprintf(w->out, "%s:\n", key);
        while (write_group(w, &g))
            ;
    }
    free(g.done);
    free(g.text);
    return st;
}

static void write_text(FILE *out, const char *key, const char *text)
{
    if (!text)
        return;
    fprintf(out, "%s: ", key);
    yaml_write_text(out, text);
    fputc('\n', out);
}

static bool has_group(const struct model *m, int group)
{
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].params[group])
            return true;
    return group == GROUP_HEAD;
}

static void write_formats(const struct model *m, FILE *out)
{
    const char *standard = m->native.group[GROUP_EMBEDDING]->name;
    fprintf(out, "formats: {default: %s", standard);
    for (int g = 0; g < GROUP_MAX; g++)
        if (has_group(m, g) && strcmp(m->native.group[g]->name, standard) != 0)
            fprintf(out, ", %s: %s", tensor_group_name((enum tensor_group)g),
                    m->native.group[g]->name);
    fputs("}\n", out);
}

enum status desc_model_write(const struct model *m, FILE *out, struct diag *dg)
{
    if (m->bytes_exact)
        return diag_set(
            dg, ST_UNSUPPORTED,
            "%s: a GGUF file mixes formats matrix by matrix; no description can say that",
            m->origin);
    write_text(out, "title", m->title);
    write_text(out, "source", m->source);
    fprintf(out, "grade: %s\n", m->grade);
    write_text(out, "note", m->note);
    write_text(out, "router", m->router);
    if (!m->router && model_moe_layers(m))
        fputs(
            "# router: gpt-oss   # unknown; if it routes like one of sim/trace/presets, name that "
            "one\n",
            out);
    fprintf(out, "layers: %zu\nhidden: %" PRIu64 "\nvocab: %" PRIu64 "\n", m->layer_count,
            m->hidden, m->vocab);
    if (m->positions)
        fprintf(out, "positions: %" PRIu64 "\n", m->positions);
    if (m->max_context)
        fprintf(out, "max_context: %" PRIu64 "\n", m->max_context);
    fprintf(out, "tied_embeddings: %s\n", m->tied_embeddings ? "true" : "false");
    write_formats(m, out);
    struct writer w = {m, out, model_attention_fields, attention_of,
                       offsetof(struct attention_group, shape)};
    enum status st = write_groups(&w, "attention", dg);
    if (st != ST_OK)
        return st;
    w.fields = model_ffn_fields;
    w.shape = ffn_of;
    w.shape_offset = offsetof(struct ffn_group, shape);
    return write_groups(&w, "ffn", dg);
}

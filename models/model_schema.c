/* model_schema.c -- see model_schema.h. */
#include "models/model_schema.h"

#include <string.h>

#define WIDTH_MAX  (UINT64_C(1) << 20)
#define COUNT_MAX  (UINT64_C(1) << 16)
#define TOKENS_MAX (UINT64_C(1) << 32)

const char *const model_grades[] = {"A", "B", "C", "D", NULL};

static const char *const families[] = {"none", "gqa", "mla", "compressed", "linear", "conv", NULL};
static const char *const linear_kinds[] = {"delta-net", "kda", "mamba", NULL};

#define ATTENTION(member) offsetof(struct attention_group, shape.member)
#define COUNT(member, limit, text)                                                                 \
    {                                                                                              \
        .key = #member, .type = YAML_TYPE_COUNT, .offset = ATTENTION(member), .max = (limit),      \
        .help = (text)                                                                             \
    }
#define FLAG(member, text)                                                                         \
    {                                                                                              \
        .key = #member, .type = YAML_TYPE_FLAG, .offset = ATTENTION(member), .help = (text)        \
    }

const struct yaml_field model_attention_fields[] = {
    {.key = "layers",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct attention_group, layers),
     .required = true,
     .help = "which layers this group describes"},
    {.key = "family",
     .type = YAML_TYPE_CHOICE,
     .offset = ATTENTION(family),
     .required = true,
     .choices = families,
     .help = "what kind of attention, and so which of the keys below apply"},
    COUNT(heads, COUNT_MAX, "query heads"),
    COUNT(kv_heads, COUNT_MAX, "key and value heads (1: multi-query)"),
    COUNT(head_dim, WIDTH_MAX, "elements of a key"),
    COUNT(v_head_dim, WIDTH_MAX, "elements of a value; head_dim if left out"),
    COUNT(window, TOKENS_MAX, "attends to the last so many tokens only"),
    FLAG(keys_are_values, "one projection and one stored vector for both"),
    FLAG(qkv_bias, "query, key and value projections have a bias"),
    FLAG(output_bias, "the output projection has a bias"),
    FLAG(output_gate, "a gate as wide as the output"),
    FLAG(qk_norm, "queries and keys are normalised"),
    FLAG(sinks, "a learned sink a head"),
    FLAG(borrows_cache, "reads an earlier layer's cache and keeps none"),
    COUNT(q_lora_rank, WIDTH_MAX, "width of the query latent"),
    COUNT(kv_lora_rank, WIDTH_MAX, "width of the stored latent"),
    COUNT(nope_head_dim, WIDTH_MAX, "part of a head without rotary position"),
    COUNT(rope_head_dim, WIDTH_MAX,
          "part of a head with rotary position, stored beside the latent"),
    COUNT(o_lora_rank, WIDTH_MAX, "rank of an output group"),
    COUNT(o_groups, COUNT_MAX, "output groups"),
    COUNT(compress_ratio, COUNT_MAX, "tokens to one stored latent; left out: the window alone"),
    COUNT(index_heads, COUNT_MAX, "heads of the indexer"),
    COUNT(index_dim, WIDTH_MAX, "elements of an index key"),
    COUNT(index_top_k, TOKENS_MAX, "positions the indexer chooses"),
    FLAG(index_borrowed, "uses the choice of an earlier layer's indexer"),
    FLAG(index_untotalled, "published totals leave the indexer out"),
    {.key = "linear_kind",
     .type = YAML_TYPE_CHOICE,
     .offset = ATTENTION(linear_kind),
     .choices = linear_kinds,
     .help = "which recurrence"},
    COUNT(linear_key_heads, COUNT_MAX, "key heads (mamba: groups)"),
    COUNT(linear_value_heads, COUNT_MAX, "value heads"),
    COUNT(linear_key_dim, WIDTH_MAX, "elements of a key (mamba: state size)"),
    COUNT(linear_value_dim, WIDTH_MAX, "elements of a value"),
    COUNT(linear_gate_rank, WIDTH_MAX, "kda: rank of the output gate; left out: full"),
    COUNT(conv_kernel, COUNT_MAX, "columns of the short convolution"),
    COUNT(conv_channels, WIDTH_MAX, "width of the short convolution"),
    {0}};
#undef COUNT
#undef FLAG

#define FFN(member) offsetof(struct ffn_group, shape.member)
#define COUNT(member, limit, text)                                                                 \
    {                                                                                              \
        .key = #member, .type = YAML_TYPE_COUNT, .offset = FFN(member), .max = (limit),            \
        .help = (text)                                                                             \
    }
#define FLAG(member, text)                                                                         \
    {                                                                                              \
        .key = #member, .type = YAML_TYPE_FLAG, .offset = FFN(member), .help = (text)              \
    }

const struct yaml_field model_ffn_fields[] = {
    {.key = "layers",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct ffn_group, layers),
     .required = true,
     .help = "which layers this group describes"},
    COUNT(dense_width, WIDTH_MAX, "width of a dense FFN"),
    {.key = "matrices",
     .type = YAML_TYPE_COUNT,
     .offset = FFN(matrices),
     .required = true,
     .min = 2,
     .max = 3,
     .help = "3: gate, up, down; 2: up, down"},
    COUNT(experts, COUNT_MAX, "routed experts"),
    COUNT(top_k, COUNT_MAX, "experts a token uses"),
    COUNT(expert_width, WIDTH_MAX, "inner width of an expert"),
    COUNT(expert_io_width, WIDTH_MAX, "width an expert reads and writes; hidden if left out"),
    COUNT(shared_experts, COUNT_MAX, "experts every token uses"),
    COUNT(shared_width, WIDTH_MAX, "their inner widths together"),
    FLAG(shared_gate, "the shared experts are weighted by a gate"),
    FLAG(router_bias, "the router has a bias"),
    FLAG(expert_bias, "each expert matrix has a bias"),
    {0}};
#undef COUNT
#undef FLAG

#define FORMAT(name, group)                                                                        \
    {                                                                                              \
        .key = (name), .type = YAML_TYPE_TEXT,                                                     \
        .offset = offsetof(struct model_reading, format) + (group) * sizeof(const char *),         \
        .help = "weight format of this tensor group"                                               \
    }
const struct yaml_field model_format_fields[] = {
    {.key = "default",
     .type = YAML_TYPE_TEXT,
     .offset = offsetof(struct model_reading, format_default),
     .required = true,
     .help = "weight format of what is not named below"},
    FORMAT("embedding", GROUP_EMBEDDING),
    FORMAT("head", GROUP_HEAD),
    FORMAT("attention", GROUP_ATTENTION),
    FORMAT("indexer", GROUP_INDEXER),
    FORMAT("router", GROUP_ROUTER),
    FORMAT("dense_ffn", GROUP_DENSE_FFN),
    FORMAT("shared_expert", GROUP_SHARED_EXPERT),
    FORMAT("expert", GROUP_EXPERT),
    FORMAT("other", GROUP_OTHER),
    {0}};

#define READING(member) offsetof(struct model_reading, member)
const struct yaml_field model_fields[] = {
    {.key = "title",
     .type = YAML_TYPE_TEXT,
     .offset = READING(title),
     .required = true,
     .help = "the name its makers use"},
    {.key = "source",
     .type = YAML_TYPE_TEXT,
     .offset = READING(source),
     .required = true,
     .help = "where the shapes were published"},
    {.key = "grade",
     .type = YAML_TYPE_CHOICE,
     .offset = READING(grade),
     .required = true,
     .choices = model_grades,
     .help = "A config.json, B code or mirror, C partly from memory, D partly assumed"},
    {.key = "note",
     .type = YAML_TYPE_TEXT,
     .offset = READING(note),
     .help = "assumptions and what is left out"},
    {.key = "router",
     .type = YAML_TYPE_TEXT,
     .offset = READING(router),
     .help = "routing preset that resembles it"},
    {.key = "layers",
     .type = YAML_TYPE_COUNT,
     .offset = READING(layers),
     .required = true,
     .min = 1,
     .max = LAYERS_MAX,
     .help = "layers, without those for multi-token prediction"},
    {.key = "hidden",
     .type = YAML_TYPE_COUNT,
     .offset = READING(hidden),
     .required = true,
     .min = 1,
     .max = WIDTH_MAX,
     .help = "width of the residual stream"},
    {.key = "vocab",
     .type = YAML_TYPE_COUNT,
     .offset = READING(vocab),
     .required = true,
     .min = 1,
     .max = TOKENS_MAX,
     .help = "rows of the embedding"},
    {.key = "positions",
     .type = YAML_TYPE_COUNT,
     .offset = READING(positions),
     .max = TOKENS_MAX,
     .help = "rows of a learned position table"},
    {.key = "max_context",
     .type = YAML_TYPE_COUNT,
     .offset = READING(max_context),
     .min = 1,
     .max = TOKENS_MAX,
     .help = "longest context in tokens"},
    {.key = "tied_embeddings",
     .type = YAML_TYPE_FLAG,
     .offset = READING(tied_embeddings),
     .required = true,
     .help = "the head is the embedding"},
    {.key = "formats",
     .type = YAML_TYPE_MAP,
     .offset = 0,
     .required = true,
     .fields = model_format_fields,
     .help = "what the weights were published as"},
    {.key = "attention",
     .type = YAML_TYPE_LIST,
     .offset = READING(attention),
     .required = true,
     .fields = model_attention_fields,
     .item_bytes = sizeof(struct attention_group),
     .help = "groups of layers with one attention shape"},
    {.key = "ffn",
     .type = YAML_TYPE_LIST,
     .offset = READING(ffn),
     .required = true,
     .fields = model_ffn_fields,
     .item_bytes = sizeof(struct ffn_group),
     .help = "groups of layers with one feed-forward shape"},
    {0}};

/* Letters: g gqa, m mla, c compressed, l linear, s conv (short convolution). */
static const struct family_key {
    const char *key, *required, *allowed;
} family_keys[] = {
    {"heads", "gmc", "gmc"},
    {"kv_heads", "g", "g"},
    {"head_dim", "gc", "gc"},
    {"v_head_dim", "m", "gm"},
    {"window", "c", "gc"},
    {"keys_are_values", "", "g"},
    {"qkv_bias", "", "g"},
    {"output_bias", "", "gm"},
    {"output_gate", "", "gm"},
    {"qk_norm", "", "g"},
    {"sinks", "", "gc"},
    {"borrows_cache", "", "gc"},
    {"q_lora_rank", "c", "mc"},
    {"kv_lora_rank", "m", "m"},
    {"nope_head_dim", "m", "m"},
    {"rope_head_dim", "m", "mc"},
    {"o_lora_rank", "c", "c"},
    {"o_groups", "c", "c"},
    {"compress_ratio", "", "c"},
    {"index_heads", "", "mc"},
    {"index_dim", "", "mc"},
    {"index_top_k", "", "gmc"},
    {"index_borrowed", "", "mc"},
    {"index_untotalled", "", "mc"},
    {"linear_kind", "l", "l"},
    {"linear_key_heads", "l", "l"},
    {"linear_value_heads", "l", "l"},
    {"linear_key_dim", "l", "l"},
    {"linear_value_dim", "l", "l"},
    {"linear_gate_rank", "", "l"},
    {"conv_kernel", "ls", "ls"},
    {"conv_channels", "s", "s"},
};

static bool family_in(const char *letters, enum attention_family family)
{
    return strchr(letters, "-gmcls"[family]) != NULL;
}

static const struct family_key *family_key(const char *key)
{
    for (size_t i = 0; i < sizeof family_keys / sizeof *family_keys; i++)
        if (strcmp(family_keys[i].key, key) == 0)
            return &family_keys[i];
    return NULL; /* layers, family */
}

bool model_key_required(const char *key, enum attention_family family)
{
    const struct family_key *k = family_key(key);
    return k && family_in(k->required, family);
}

bool model_key_allowed(const char *key, enum attention_family family)
{
    const struct family_key *k = family_key(key);
    return !k || family_in(k->allowed, family);
}

const char *model_family_name(enum attention_family family)
{
    return families[family];
}

struct checker {
    const struct model *m;
    size_t layer;
    struct diag *dg;
};

static enum status bad_layer(const struct checker *c, const char *reason)
{
    return diag_set(c->dg, ST_RANGE, "%s: layer %zu: %s", c->m->origin, c->layer, reason);
}

/* Numbers of one shape against the limits of their table; offsets are those of the group struct. */
static enum status check_limits(const struct checker *c, const struct yaml_field *fields,
                                const void *group)
{
    for (const struct yaml_field *f = fields; f->key; f++) {
        uint64_t value;
        if (f->type != YAML_TYPE_COUNT)
            continue;
        memcpy(&value, (const char *)group + f->offset, sizeof value);
        if (value < f->min || (f->max && value > f->max))
            return diag_set(c->dg, ST_RANGE, "%s: layer %zu: %s is %llu, expected %llu to %llu",
                            c->m->origin, c->layer, f->key, (unsigned long long)value,
                            (unsigned long long)f->min, (unsigned long long)f->max);
    }
    return ST_OK;
}

static enum status check_needs(const struct checker *c, const struct attention_group *g)
{
    for (const struct yaml_field *f = model_attention_fields; f->key; f++) {
        uint64_t value;
        if (f->type != YAML_TYPE_COUNT || !model_key_required(f->key, g->shape.family))
            continue;
        memcpy(&value, (const char *)g + f->offset, sizeof value);
        if (value == 0)
            return diag_set(c->dg, ST_RANGE, "%s: layer %zu: %s is 0, but family %s needs it",
                            c->m->origin, c->layer, f->key, families[g->shape.family]);
    }
    return ST_OK;
}

static enum status check_attention(const struct checker *c, const struct attention *a)
{
    struct attention_group g = {.shape = *a};
    enum status st = check_limits(c, model_attention_fields, &g);
    if (st == ST_OK)
        st = check_needs(c, &g);
    if (st != ST_OK)
        return st;
    if (a->family == ATTENTION_GQA && a->heads % a->kv_heads != 0)
        return bad_layer(c, "heads is not a multiple of kv_heads");
    if (a->family == ATTENTION_COMPRESSED && a->heads * a->head_dim % a->o_groups != 0)
        return bad_layer(c, "o_groups does not divide heads * head_dim");
    if (a->index_heads && (a->index_dim == 0 || a->index_top_k == 0))
        return bad_layer(c, "index_heads needs index_dim and index_top_k");
    return ST_OK;
}

static enum status check_ffn(const struct checker *c, const struct ffn *f)
{
    struct ffn_group g = {.shape = *f};
    enum status st = check_limits(c, model_ffn_fields, &g);
    if (st != ST_OK)
        return st;
    if (f->experts == 0 && (f->top_k || f->expert_width || f->shared_width))
        return bad_layer(c, "top_k, expert_width or shared_width without experts");
    if (f->experts == 0)
        return f->dense_width ? ST_OK : bad_layer(c, "neither dense_width nor experts");
    if (f->expert_width == 0 || f->expert_io_width == 0)
        return bad_layer(c, "experts need expert_width and expert_io_width");
    if (f->top_k == 0 || f->top_k > f->experts)
        return bad_layer(c, "top_k must be 1 to the number of experts");
    return ST_OK;
}

enum status model_check(const struct model *m, struct diag *dg)
{
    if (m->layer_count == 0 || m->layer_count > LAYERS_MAX)
        return diag_set(dg, ST_RANGE, "%s: %zu layers, expected 1 to %d", m->origin, m->layer_count,
                        LAYERS_MAX);
    if (m->hidden == 0 || m->hidden > WIDTH_MAX || m->vocab == 0 || m->vocab > TOKENS_MAX)
        return diag_set(dg, ST_RANGE, "%s: hidden or vocabulary size is out of range", m->origin);
    if (m->positions > TOKENS_MAX || m->max_context > TOKENS_MAX)
        return diag_set(dg, ST_RANGE, "%s: positions or longest context is out of range",
                        m->origin);
    for (size_t i = 0; i < m->layer_count; i++) {
        struct checker c = {m, i, dg};
        enum status st = check_attention(&c, &m->layers[i].attention);
        if (st == ST_OK)
            st = check_ffn(&c, &m->layers[i].ffn);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

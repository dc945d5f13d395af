/* model_facts.c -- see model_facts.h. */
#include "tests/model_facts.h"

#include "base/csv.h"
#include "models/state.h"
#include "tests/support.h"

enum {
    NAME,
    LAYERS,
    TOTAL,
    ACTIVE,
    ATTENTION,
    ROUTER,
    EXPERT,
    SHARED_EXPERT,
    KV,
    WINDOWS,
    LINEAR,
    COLUMNS
};

struct search {
    const char *name;
    struct model_facts facts;
    bool found;
};

static uint64_t whole(struct csv_field f)
{
    uint64_t value = 0;
    return csv_u64(f, &value) ? value : 0;
}

static enum status look(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct search *s = self;
    (void)line, (void)dg;
    if (!csv_equal(f[NAME], s->name))
        return ST_OK;
    s->found = true;
    s->facts = (struct model_facts){
        .layers = whole(f[LAYERS]),
        .params_total = whole(f[TOTAL]),
        .params_active = whole(f[ACTIVE]),
        .params_attention = whole(f[ATTENTION]),
        .params_router = whole(f[ROUTER]),
        .params_expert = whole(f[EXPERT]),
        .params_shared = whole(f[SHARED_EXPERT]),
        .kv_bytes_per_token = whole(f[KV]),
        .window_bytes = whole(f[WINDOWS]),
        .linear_bytes = whole(f[LINEAR]),
    };
    return ST_OK;
}

struct model_facts model_facts_find(const char *name)
{
    static const struct csv_column columns[COLUMNS] = {
        [NAME] = {"model", true},
        [LAYERS] = {"layers", true},
        [TOTAL] = {"calc_total_params", true},
        [ACTIVE] = {"calc_active_params", true},
        [ATTENTION] = {"attn_params", true},
        [ROUTER] = {"router_params", true},
        [EXPERT] = {"params_per_expert", true},
        [SHARED_EXPERT] = {"shared_expert_params", true},
        [KV] = {"kv_bytes_per_token_fp16", true},
        [WINDOWS] = {"swa_fixed_kv_bytes_fp16", true},
        [LINEAR] = {"linear_state_bytes_fp32", true},
    };
    struct search s = {.name = name};
    struct diag dg;
    assert_ok(csv_read(SHARED "facts/models.csv", columns, COLUMNS, true, look, NULL, &s, &dg));
    if (!s.found)
        fail_msg("no model '%s' in facts/models.csv", name);
    return s.facts;
}

static uint64_t group_params(const struct model *m, enum tensor_group g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        sum += m->layers[i].params[g];
    return sum;
}

/* Norms, biases and other vectors that a token uses. */
static uint64_t active_vectors(const struct model *m)
{
    uint64_t sum = m->params_final;
    for (size_t i = 0; i < m->layer_count; i++) {
        const struct layer *l = &m->layers[i];
        sum += l->params[GROUP_OTHER] - (l->ffn.experts - l->ffn.top_k) * l->expert_bias_params;
    }
    return sum;
}

void model_facts_check(const struct model *m, const char *name, uint64_t extra)
{
    struct model_facts f = model_facts_find(name);
    assert_int_equal(m->layer_count, f.layers);
    uint64_t vectors = group_params(m, GROUP_OTHER) + m->params_final;
    assert_int_equal(model_params_total(m) - vectors, f.params_total + extra);
    assert_int_equal(model_params_active(m) - active_vectors(m), f.params_active + extra);
    assert_int_equal(group_params(m, GROUP_ROUTER), f.params_router);
    assert_int_equal(group_params(m, GROUP_SHARED_EXPERT), f.params_shared);
    uint64_t attention = group_params(m, GROUP_ATTENTION);
    if (m->layers[0].attention.family == ATTENTION_COMPRESSED && extra == 0)
        attention += group_params(m, GROUP_INDEXER); /* the table has one figure for both */
    assert_int_equal(attention, f.params_attention + extra);
    assert_int_equal(m->layers[m->layer_count - 1].expert_params, f.params_expert);
    assert_int_equal(state_millibytes_per_token(m, STATE_BITS_F16), f.kv_bytes_per_token * 1000);
    assert_int_equal(state_fixed_bytes(m, STATE_BITS_F16), f.window_bytes + f.linear_bytes);
    /* The table's own tolerance, with everything counted. */
    assert_close((double)model_params_total(m) / (double)f.params_total, 1, 0.005);
    assert_close((double)model_params_active(m) / (double)f.params_active, 1, 0.005);
}

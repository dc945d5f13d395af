/* test_adapter.c -- a model with an adapter beside its weights computes what one with the adapter
 * merged into them does, whichever matrix is adapted; what does not fit is refused by name. */
#include "tests/support.h"

#include "base/stats.h"
#include "kernels/graph/adapter.h"
#include "models/gguf_write.h"
#include "tests/allocations.h"
#include "tests/engine_rig.h"
#include "tests/lora_rig.h"

#include <math.h>

#define GOLDEN SHARED "golden/"
#define LOGITS (GOLDEN_TOKENS * GOLDEN_VOCAB)

static struct diag dg;

static float *logits_of(const char *model, const char *const *adapters, size_t n)
{
    struct engine_rig r = {.path = model, .activations_f32 = true};
    struct adapters *a = NULL;
    uint32_t tokens[GOLDEN_TOKENS];
    float *logits = malloc(LOGITS * sizeof *logits);
    golden_prompt(tokens);
    assert_non_null(logits);
    assert_ok(engine_rig_open(&r, &dg));
    if (n) {
        assert_ok(adapters_load(&a, r.weights, adapters, n, &dg));
        adapters_apply(a, r.weights);
    }
    assert_ok(engine_rig_prompt(&r, tokens, GOLDEN_TOKENS, logits, &dg));
    engine_rig_close(&r);
    adapters_free(a);
    return logits;
}

/* Median over positions of ||a - b|| / ||b||: one expert that flips does not decide. */
static double distance(const float *a, const float *b)
{
    double row[GOLDEN_TOKENS];
    for (size_t t = 0; t < GOLDEN_TOKENS; t++) {
        double d = 0, n = 0;
        for (size_t i = t * GOLDEN_VOCAB; i < (t + 1) * GOLDEN_VOCAB; i++) {
            d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
            n += (double)b[i] * (double)b[i];
        }
        row[t] = sqrt(d / n);
    }
    return stats_median(row, GOLDEN_TOKENS);
}

static void expect_equals_merged(const char *model, lora_pick_fn *pick, const char *what)
{
    char first[300], second[300], merged[300];
    snprintf(first, sizeof first, "%s", temp_path("first.gguf"));
    snprintf(second, sizeof second, "%s", temp_path("second.gguf"));
    snprintf(merged, sizeof merged, "%s", temp_path("merged.gguf"));
    const char *both[] = {first, second};
    lora_write(first, model, pick, 3, 6.0f, 0.04f, 1);
    lora_write(second, model, pick, 2, 0.0f, 0.04f, 2);
    lora_merge(merged, model, both, 2);
    float *plain = logits_of(model, NULL, 0), *adapted = logits_of(model, both, 2);
    float *expected = logits_of(merged, NULL, 0);
    double effect = distance(plain, expected), apart = distance(adapted, expected);
    if (!(apart < 2e-3 && effect > 20 * apart && effect > 5e-3))
        fail_msg("%s, %s: %g from the merged model, which is %g from the plain one", model, what,
                 apart, effect);
    free(plain);
    free(adapted);
    free(expected);
    remove(first);
    remove(second);
    remove(merged);
}

static void two_adapters_on_every_matrix_of_any_architecture_equal_the_merged_model(void **state)
{
    static const char *const models[] = {"qwen3moe-f16", "mixtral-f16", "qwen2moe-f16",
                                         "gptoss-f16", "deepseek3-f16"};
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[300];
        snprintf(path, sizeof path, GOLDEN "%s.gguf", models[i]);
        expect_equals_merged(path, lora_pick_all, "all matrices");
    }
}

static bool pick_experts(const struct gguf_tensor *t)
{
    return t->dims == 3;
}

static bool pick_expansion(const struct gguf_tensor *t)
{
    return t->name.length > 16 &&
           !memcmp(t->name.data + t->name.length - 16, "attn_kv_b.weight", 16);
}

static void adapters_on_experts_alone_and_on_the_absorbed_matrix_alone_take_effect(void **state)
{
    (void)state;
    NEED_SHARED();
    expect_equals_merged(GOLDEN "mixtral-f16.gguf", pick_experts, "experts");
    expect_equals_merged(GOLDEN "deepseek3-f16.gguf", pick_expansion, "kv_b");
}

static void what_is_removed_leaves_the_base_as_it_was(void **state)
{
    const char *model = GOLDEN "mixtral-f16.gguf";
    char path[300];
    uint32_t tokens[GOLDEN_TOKENS];
    struct engine_rig r = {.path = model, .activations_f32 = true};
    struct adapters *a;
    (void)state;
    NEED_SHARED();
    snprintf(path, sizeof path, "%s", temp_path("lora.gguf"));
    lora_write(path, model, lora_pick_all, 4, 4.0f, 0.05f, 3);
    float *plain = logits_of(model, NULL, 0), *logits = malloc(LOGITS * sizeof *logits);
    golden_prompt(tokens);
    assert_ok(engine_rig_open(&r, &dg));
    assert_ok(adapters_load(&a, r.weights, (const char *const[]){path}, 1, &dg));
    assert_true(adapters_bytes(a) > 0);
    for (int on = 1; on >= 0; on--) {
        (on ? adapters_apply : adapters_remove)(a, r.weights);
        graph_restart(r.graph);
        assert_ok(engine_rig_prompt(&r, tokens, GOLDEN_TOKENS, logits, &dg));
        assert_int_equal(memcmp(logits, plain, LOGITS * sizeof *logits) == 0, !on);
    }
    engine_rig_close(&r);
    adapters_free(a);
    free(plain);
    free(logits);
    remove(path);
}

/* ---- refusals ---- */

struct odd {
    const char *type, *architecture;
    const char *name_a, *name_b;
    uint64_t cols, rank, rows, experts;
    enum status status;
    const char *reason;
};

static void write_odd(const char *path, const struct odd *o)
{
    struct gguf_write *w;
    float *zeros = calloc(o->rank * (o->cols + o->rows) * o->experts, sizeof *zeros);
    assert_non_null(zeros);
    assert_ok(gguf_write_new(&w, &dg));
    gguf_write_text(w, "general.type", o->type);
    gguf_write_text(w, "adapter.type", "lora");
    gguf_write_text(w, "general.architecture", o->architecture);
    gguf_write_tensor(w, o->name_a, quant_find("f32"), 3,
                      (uint64_t[]){o->cols, o->rank, o->experts});
    if (o->name_b)
        gguf_write_tensor(w, o->name_b, quant_find("f32"), 3,
                          (uint64_t[]){o->rank, o->rows, o->experts});
    assert_ok(gguf_write_open(w, path, &dg));
    assert_ok(gguf_write_data(w, zeros, o->cols * o->rank * o->experts * sizeof *zeros, &dg));
    if (o->name_b)
        assert_ok(gguf_write_data(w, zeros, o->rank * o->rows * o->experts * sizeof *zeros, &dg));
    assert_ok(gguf_write_commit(w, &dg));
    free(zeros);
}

#define Q          "blk.0.attn_q.weight"
#define EXPS       "blk.0.ffn_up_exps.weight"
#define PAIR(name) name ".lora_a", name ".lora_b"

static void what_does_not_fit_is_refused_by_name(void **state)
{
    static const struct odd odds[] = {
        {"model", "qwen3moe", PAIR(Q), 256, 2, 256, 1, ST_PARSE, "is no adapter"},
        {"adapter", "llama", PAIR(Q), 256, 2, 256, 1, ST_MISFIT, "architecture qwen3moe"},
        {"adapter", "qwen3moe", PAIR(Q), 128, 2, 256, 1, ST_MISFIT,
         "'" Q ".lora_a' has the extents 128, 2, 1 where 256, 2, 1"},
        {"adapter", "qwen3moe", PAIR(Q), 256, 2, 255, 1, ST_MISFIT,
         "'" Q ".lora_b' has the extents 2, 255, 1 where 2, 256, 1"},
        {"adapter", "qwen3moe", PAIR(EXPS), 256, 2, 256, 7, ST_MISFIT, "256, 2, 8 are expected"},
        {"adapter", "qwen3moe", PAIR("blk.99.attn_q.weight"), 256, 2, 256, 1, ST_MISFIT,
         "blk.99.attn_q.weight.lora_a' adapts a matrix that the model lacks"},
        {"adapter", "qwen3moe", PAIR("blk.0.attn_z.weight"), 256, 2, 256, 1, ST_MISFIT, "lacks"},
        {"adapter", "qwen3moe", PAIR("blk.0.ffn_up.weight"), 256, 2, 256, 1, ST_MISFIT, "lacks"},
        {"adapter", "qwen3moe", PAIR("blk.0.attn_norm.weight"), 256, 2, 1, 1, ST_UNSUPPORTED,
         "no matrix of a product"},
        {"adapter", "qwen3moe", PAIR("token_embd.weight"), 256, 2, 320, 1, ST_UNSUPPORTED,
         "no matrix of a product"},
        {"adapter", "qwen3moe", PAIR(Q), 256, 1025, 256, 1, ST_RANGE, "rank above 1024"},
        {"adapter", "qwen3moe", Q ".lora_a", NULL, 256, 2, 256, 1, ST_PARSE, "its other half"},
        {"adapter", "qwen3moe", Q ".lora_c", NULL, 256, 2, 256, 1, ST_PARSE, "is neither"},
    };
    struct graph_weights *w;
    const char *path = temp_path("odd.gguf");
    (void)state;
    NEED_SHARED();
    assert_ok(graph_weights_load(&w, GOLDEN "qwen3moe-f16.gguf", NULL, NULL, &dg));
    for (size_t i = 0; i < sizeof odds / sizeof *odds; i++) {
        struct adapters *a;
        write_odd(path, &odds[i]);
        enum status st = adapters_load(&a, w, (const char *const[]){path}, 1, &dg);
        if (st != odds[i].status || !strstr(dg.text, odds[i].reason))
            fail_msg("case %zu: status %d, %s", i, st, dg.text);
        remove(path);
    }
    struct adapters *none;
    assert_int_equal(adapters_load(&none, w, (const char *const[]){"/nowhere"}, 1, &dg), ST_IO);
    graph_weights_free(w);
}

static void an_allocation_that_fails_is_said_and_leaves_nothing_behind(void **state)
{
    const char *path = temp_path("lora.gguf");
    struct graph_weights *w;
    (void)state;
    NEED_SHARED();
    NEED_ALLOCATIONS();
    lora_write(path, GOLDEN "mixtral-f16.gguf", lora_pick_all, 2, 2.0f, 0.05f, 3);
    assert_ok(graph_weights_load(&w, GOLDEN "mixtral-f16.gguf", NULL, NULL, &dg));
    enum status st = ST_NO_MEMORY;
    for (size_t n = 1; st != ST_OK; n++) {
        struct adapters *a = NULL;
        allocations_fail_at(n);
        st = adapters_load(&a, w, (const char *const[]){path}, 1, &dg);
        allocations_fail_at(0);
        assert_true(st == ST_OK || st == ST_NO_MEMORY);
        adapters_free(a);
    }
    graph_weights_free(w);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_adapters_on_every_matrix_of_any_architecture_equal_the_merged_model),
        cmocka_unit_test(adapters_on_experts_alone_and_on_the_absorbed_matrix_alone_take_effect),
        cmocka_unit_test(what_is_removed_leaves_the_base_as_it_was),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(an_allocation_that_fails_is_said_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

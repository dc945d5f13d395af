/* test_work.c -- operations and bytes of a pass: sums over layers, unions of experts, context. */
#include "tests/support.h"

#include "models/model.h"
#include "models/state.h"
#include "models/work.h"

static struct diag dg;

static struct model *load(const char *name)
{
    struct model *m = NULL;
    assert_ok(model_load(&m, name, "models/desc", NULL, 0, &dg));
    return m;
}

/* One decode step of the whole model at `context`. */
static struct work decode(const struct model *m, uint64_t context)
{
    struct work sum, w;
    work_ends(&sum, m, 1, 1);
    for (size_t i = 0; i < m->layer_count; i++) {
        work_layer(&w, m, i, 1, context, m->layers[i].ffn.top_k, STATE_BITS_F16);
        work_add(&sum, &w);
    }
    return sum;
}

static void one_token_takes_two_operations_an_active_parameter(void **state)
{
    static const char *const names[] = {"qwen3-30b-a3b", "llama-3.1-8b", "kimi-k3",
                                        "deepseek-v3",   "gpt-oss-120b", "lfm2-8b-a1b"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model *m = load(names[i]);
        struct work w = decode(m, 0);
        double matrices = (double)(work_ops_total(&w) - w.attention_ops);
        assert_close(matrices / (2.0 * (double)model_params_active(m)), 1, 1e-4);
        model_free(m);
    }
}

static void a_step_reads_every_weight_but_idle_experts_and_the_embedding(void **state)
{
    static const char *const names[] = {"qwen3-30b-a3b", "kimi-k3", "gpt-oss-20b"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model *m = load(names[i]);
        struct work w = decode(m, 100);
        uint64_t idle_biases = 0;
        for (size_t l = 0; l < m->layer_count; l++)
            idle_biases += (m->layers[l].ffn.experts - m->layers[l].ffn.top_k) *
                           m->layers[l].expert_bias_bytes;
        assert_int_equal(w.weight_bytes[GROUP_EXPERT], model_token_cycle_bytes(m));
        assert_int_equal(w.weight_bytes[GROUP_EMBEDDING], m->bytes_embedding / m->vocab);
        assert_int_equal(work_weight_bytes_total(&w),
                         model_weight_bytes(m) - model_experts_bytes(m) +
                             model_token_cycle_bytes(m) - m->bytes_embedding +
                             m->bytes_embedding / m->vocab - idle_biases);
        model_free(m);
    }
}

static void a_tied_head_reads_the_embedding(void **state)
{
    (void)state;
    struct model *m = load("qwen3-4b");
    struct work w;
    work_ends(&w, m, 5, 1);
    assert_int_equal(w.weight_bytes[GROUP_HEAD], m->bytes_embedding);
    assert_int_equal(w.weight_bytes[GROUP_EMBEDDING], UINT64_C(5) * 2560 * 2);
    assert_int_equal(w.ops[GROUP_HEAD], UINT64_C(2) * 2560 * 151936);
    work_ends(&w, m, 5, 0);
    assert_int_equal(w.weight_bytes[GROUP_HEAD], 0);
    assert_int_equal(w.ops[GROUP_HEAD], 0);
    model_free(m);
    m = load("opt-6.7b"); /* a row of positions beside each row of the vocabulary */
    work_ends(&w, m, 1, 1);
    assert_int_equal(w.weight_bytes[GROUP_EMBEDDING], UINT64_C(2) * 4096 * 2);
    assert_int_equal(w.weight_bytes[GROUP_HEAD], UINT64_C(50272) * 4096 * 2);
    model_free(m);
}

static void tokens_of_a_pass_share_weights_and_unite_experts(void **state)
{
    (void)state;
    struct model *m = load("qwen3-30b-a3b");
    struct work one, many;
    work_layer(&one, m, 7, 1, 50, 8, STATE_BITS_F16);
    work_layer(&many, m, 7, 32, 50, 70, STATE_BITS_F16);
    assert_int_equal(many.weight_bytes[GROUP_ATTENTION], one.weight_bytes[GROUP_ATTENTION]);
    assert_int_equal(many.weight_bytes[GROUP_EXPERT], 70 * m->layers[7].expert_bytes);
    assert_int_equal(many.ops[GROUP_EXPERT], 32 * one.ops[GROUP_EXPERT]);
    assert_int_equal(many.ops[GROUP_ROUTER], 32 * one.ops[GROUP_ROUTER]);
    assert_int_equal(many.state_write_bytes, 32 * one.state_write_bytes);
    model_free(m);
}

static void no_tokens_are_no_work(void **state)
{
    (void)state;
    struct model *m = load("kimi-k3");
    struct work w;
    work_layer(&w, m, 5, 0, 100, 0, STATE_BITS_F16);
    assert_int_equal(work_ops_total(&w) + work_weight_bytes_total(&w), 0);
    assert_int_equal(w.state_read_bytes + w.state_write_bytes, 0);
    model_free(m);
}

static void grouped_queries_attend_to_all_before_them(void **state)
{
    (void)state;
    struct model *m = load("llama-3.1-8b");
    struct work w;
    work_layer(&w, m, 0, 1, 999, 0, STATE_BITS_F16);
    assert_int_equal(w.attention_ops, UINT64_C(4) * 32 * 128 * 1000);
    assert_int_equal(w.state_read_bytes, UINT64_C(999) * 2 * 8 * 128 * 2);
    assert_int_equal(w.state_write_bytes, UINT64_C(2) * 8 * 128 * 2);
    work_layer(&w, m, 0, 10, 0, 0, STATE_BITS_F16); /* 1 + 2 + ... + 10 pairs */
    assert_int_equal(w.attention_ops, UINT64_C(4) * 32 * 128 * 55);
    model_free(m);
}

static void windows_bound_attention(void **state)
{
    (void)state;
    struct model *m = load("gpt-oss-120b");
    struct work w;
    work_layer(&w, m, 0, 1, 5000, 4, STATE_BITS_F16);
    assert_int_equal(w.attention_ops, UINT64_C(4) * 64 * 64 * 128);
    assert_int_equal(w.state_read_bytes, UINT64_C(128) * 2 * 8 * 64 * 2);
    work_layer(&w, m, 0, 200, 0, 100, STATE_BITS_F16); /* 1..128, then 72 full windows */
    assert_int_equal(w.attention_ops, UINT64_C(4) * 64 * 64 * (128 * 129 / 2 + 72 * 128));
    model_free(m);
}

/* SYSTEMS 2(g): core attention of V3.2 is bounded by 2,048 positions, its indexer is not. */
static void sparse_attention_grows_by_its_indexer_alone(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v3.2");
    struct work near, far;
    work_layer(&near, m, 10, 1, 9999, 8, STATE_BITS_F16);
    work_layer(&far, m, 10, 1, 99999, 8, STATE_BITS_F16);
    assert_int_equal(far.attention_ops - near.attention_ops, UINT64_C(2) * 64 * 128 * 90000);
    assert_int_equal(far.state_read_bytes - near.state_read_bytes, UINT64_C(90000) * 128 * 2);
    model_free(m);
}

static void latent_attention_takes_the_cheaper_of_its_two_forms(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v3");
    struct work w;
    work_layer(&w, m, 10, 1, 999, 8, STATE_BITS_F16); /* decode: in the latent */
    assert_int_equal(w.attention_ops, UINT64_C(2) * 128 * (2 * 512 + 64) * 1000);
    work_layer(&w, m, 10, 1000, 0, 256, STATE_BITS_F16); /* prefill: expanded */
    assert_int_equal(w.attention_ops, UINT64_C(2) * 128 * (128 + 64 + 128) * 500500);
    work_layer(&w, m, 10, 1000, 1000, 256, STATE_BITS_F16); /* and the earlier ones expanded too */
    assert_int_equal(w.attention_ops, UINT64_C(2) * 128 * (128 + 64 + 128) * 1500500 +
                                          UINT64_C(2) * 512 * 128 * (128 + 128) * 1000);
    model_free(m);
}

/* A window of 128, then 512 chosen of the 100,000 entries that stand for four tokens each and are all
 * scored, or the 1,000 that stand for 128. */
static void compressed_attention_sees_a_window_and_what_it_chose(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v4-flash");
    const struct attention *four = &m->layers[2].attention, *long_range = &m->layers[3].attention;
    struct work w;
    work_layer(&w, m, 2, 1, 399999, 6, STATE_BITS_F16);
    assert_int_equal(w.attention_ops,
                     4 * four->heads * 512 * (128 + 512) + 2 * four->index_heads * 128 * 100000);
    work_layer(&w, m, 3, 1, 127999, 6, STATE_BITS_F16);
    assert_int_equal(w.attention_ops, 4 * long_range->heads * 512 * (128 + 1000));
    model_free(m);
}

static void a_linear_layer_does_not_see_the_context(void **state)
{
    (void)state;
    struct model *m = load("kimi-k3");
    struct work near, far;
    work_layer(&near, m, 5, 1, 10, 16, STATE_BITS_F16);
    work_layer(&far, m, 5, 1, 1000000, 16, STATE_BITS_F16);
    assert_memory_equal(&near, &far, sizeof near);
    assert_int_equal(near.state_read_bytes, UINT64_C(96) * 128 * 128 * 4);
    assert_int_equal(near.state_write_bytes, near.state_read_bytes);
    assert_int_equal(near.attention_ops, UINT64_C(6) * 96 * 128 * 128);
    model_free(m);
}

static void independent_routing_unites_as_the_formula_says(void **state)
{
    (void)state;
    assert_int_equal(work_unique_experts_e3(512, 10, 1), 10000);
    assert_int_equal(work_unique_experts_e3(512, 10, 0), 0);
    assert_int_equal(work_unique_experts_e3(0, 0, 5), 0);
    assert_int_equal(work_unique_experts_e3(8, 8, 3), 8000);
    assert_close((double)work_unique_experts_e3(512, 10, 2), 19805, 1); /* SYSTEMS 1.7: 19.8 */
    /* K3, 32 tokens: dedup factor 1.30 */
    assert_close(32.0 * 16 * 1000 / (double)work_unique_experts_e3(896, 16, 32), 1.30, 0.02);
    /* V4.1-Flash, 512 tokens: 99.97 % of 384 */
    assert_close((double)work_unique_experts_e3(384, 6, 512) / 384000, 0.9997, 0.0001);
    uint64_t last = 0;
    for (uint64_t n = 1; n < 2000; n++) {
        uint64_t u = work_unique_experts_e3(128, 8, n);
        assert_true(u >= last && u <= 128000);
        last = u;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_token_takes_two_operations_an_active_parameter),
        cmocka_unit_test(a_step_reads_every_weight_but_idle_experts_and_the_embedding),
        cmocka_unit_test(a_tied_head_reads_the_embedding),
        cmocka_unit_test(tokens_of_a_pass_share_weights_and_unite_experts),
        cmocka_unit_test(no_tokens_are_no_work),
        cmocka_unit_test(grouped_queries_attend_to_all_before_them),
        cmocka_unit_test(windows_bound_attention),
        cmocka_unit_test(sparse_attention_grows_by_its_indexer_alone),
        cmocka_unit_test(latent_attention_takes_the_cheaper_of_its_two_forms),
        cmocka_unit_test(compressed_attention_sees_a_window_and_what_it_chose),
        cmocka_unit_test(a_linear_layer_does_not_see_the_context),
        cmocka_unit_test(independent_routing_unites_as_the_formula_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

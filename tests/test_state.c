/* test_state.c -- caches and states in bytes, against the published figures of each family. */
#include "tests/support.h"

#include "models/model.h"
#include "models/state.h"

static struct diag dg;

static struct model *load(const char *name)
{
    struct model *m = NULL;
    assert_ok(model_load(&m, name, "models/desc", NULL, 0, &dg));
    return m;
}

/* SYSTEMS 2(g): stored bytes a token and fixed bytes, at 16 bits. */
static void families_store_the_published_bytes(void **state)
{
    static const struct {
        const char *model;
        uint64_t per_token, fixed;
    } cases[] = {
        {"llama-3.1-70b", 327680, 0},
        {"dots.llm1", 1015808, 0},
        {"deepseek-v2", 69120, 0},
        {"deepseek-v3", 70272, 0},
        {"deepseek-v3.2", 85888, 0},
        {"glm-5.2", 95232, 0},
        {"deepseek-v4-flash", 6880, 5636096},
        {"deepseek-v4-pro", 9848, 7995392},
        {"deepseek-v4.1-flash", 3200, 5242880},
        {"kimi-k3", 27648, 434110464},
        {"kimi-linear-48b-a3b", 8064, 41943040},
        {"qwen3.6-35b-a3b", 20480, 62914560},
        {"qwen3.5-397b-a17b", 30720, 188743680},
        {"gpt-oss-120b", 36864, 4718592},
        {"gemma-4-26b-a4b", 10240, 209715200},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model *m = load(cases[i].model);
        assert_int_equal(state_millibytes_per_token(m, STATE_BITS_F16), cases[i].per_token * 1000);
        assert_int_equal(state_fixed_bytes(m, STATE_BITS_F16), cases[i].fixed);
        model_free(m);
    }
}

/* V31: 6-bit latents against the grouped keys and values of DeepSeek-67B at 16 bits. */
static void deepseek_v2_saves_93_percent_of_a_cache(void **state)
{
    (void)state;
    struct model *v2 = load("deepseek-v2"), *dense = load("deepseek-67b");
    double six_bit = (double)state_millibytes_per_token(v2, 6 * 16);
    double plain = (double)state_millibytes_per_token(dense, STATE_BITS_F16);
    assert_close(100 * (1 - six_bit / plain), 93.34, 0.005);
    const struct attention *a = &v2->layers[0].attention;
    assert_int_equal(state_layer_bytes(a, 1, STATE_BITS_F16), 576 * 2);
    model_free(v2);
    model_free(dense);
}

/* V33 and V34a: four owners of FP4 latents, and a quarter of V4-Flash. */
static void v41_flash_keeps_850_bytes_in_four_bits(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v4.1-flash");
    assert_int_equal(state_millibytes_per_token(m, state_bits_find("mxfp4")), 850000);
    size_t owners = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        owners += m->layers[i].attention.compress_ratio && !m->layers[i].attention.borrows_cache;
    assert_int_equal(owners, 4);
    model_free(m);
}

/* V32: at a million tokens V4-Pro keeps 11.5 % of V3.2's 16-bit cache. */
static void v4_pro_keeps_a_tenth_of_v32(void **state)
{
    (void)state;
    struct model *pro = load("deepseek-v4-pro"), *v32 = load("deepseek-v3.2");
    double share = (double)state_bytes(pro, 1000000, STATE_BITS_F16) /
                   (double)state_bytes(v32, 1000000, STATE_BITS_F16);
    assert_close(share, 0.115, 0.001);
    model_free(pro);
    model_free(v32);
}

/* V38 */
static void qwen36_keeps_64_mebibytes_at_3300_tokens(void **state)
{
    (void)state;
    struct model *m = load("qwen3.6-35b-a3b");
    uint64_t growing = state_bytes(m, 3300, STATE_BITS_F16) - state_fixed_bytes(m, STATE_BITS_F16);
    assert_close((double)growing / 1048576, 64.5, 0.1);
    model_free(m);
}

static void quantised_state_scales_by_its_bits(void **state)
{
    (void)state;
    struct model *m = load("qwen3-30b-a3b");
    uint64_t plain = state_bytes(m, 4096, STATE_BITS_F16);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("f32")), 2 * plain);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("q8_0")), plain * 34 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("Q4_0")), plain * 18 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("q4_1")), plain * 20 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("q5_0")), plain * 22 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("q5_1")), plain * 24 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("mxfp4")), plain * 17 / 64);
    assert_int_equal(state_bytes(m, 4096, state_bits_find("fp8")), plain / 2);
    assert_int_equal(state_bits_find("q4_7"), 0);
    model_free(m);
}

static void windows_fill_and_then_stay(void **state)
{
    (void)state;
    const struct attention window = {
        .family = ATTENTION_GQA, .heads = 8, .kv_heads = 2, .head_dim = 64, .window = 128};
    const uint64_t entry = UINT64_C(2) * 2 * 64 * 2;
    assert_int_equal(state_layer_bytes(&window, 0, STATE_BITS_F16), 0);
    assert_int_equal(state_layer_bytes(&window, 100, STATE_BITS_F16), 100 * entry);
    assert_int_equal(state_layer_bytes(&window, 128, STATE_BITS_F16), 128 * entry);
    assert_int_equal(state_layer_bytes(&window, 100000, STATE_BITS_F16), 128 * entry);
    assert_int_equal(state_layer_read_bytes(&window, 100000, STATE_BITS_F16), 128 * entry);
    assert_int_equal(state_layer_write_bytes(&window, 3, STATE_BITS_F16), 3 * entry);
}

/* The first of ten tokens reaches back over the whole window, the last stands nine further on; its own
 * entry it has at hand. */
static void tokens_of_a_pass_share_one_read_and_see_each_other(void **state)
{
    (void)state;
    const struct attention window = {
        .family = ATTENTION_GQA, .heads = 8, .kv_heads = 2, .head_dim = 64, .window = 128};
    const struct attention latent = {
        .family = ATTENTION_MLA, .heads = 8, .kv_lora_rank = 512, .rope_head_dim = 64};
    const uint64_t entry = UINT64_C(2) * 2 * 64 * 2;
    assert_int_equal(state_layer_pass_read_bytes(&window, 1000, 10, STATE_BITS_F16), 137 * entry);
    assert_int_equal(state_layer_pass_read_bytes(&window, 50, 10, STATE_BITS_F16), 59 * entry);
    assert_int_equal(state_layer_pass_read_bytes(&latent, 1000, 10, STATE_BITS_F16),
                     UINT64_C(1009) * 576 * 2);
}

static void sparse_attention_reads_its_choice_and_every_index_key(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v3.2");
    const struct attention *a = &m->layers[0].attention;
    uint64_t short_read = state_layer_read_bytes(a, 1000, STATE_BITS_F16);
    uint64_t long_read = state_layer_read_bytes(a, 100000, STATE_BITS_F16);
    assert_int_equal(short_read, UINT64_C(1000) * (576 + 128) * 2);
    assert_int_equal(long_read, UINT64_C(2048) * 576 * 2 + UINT64_C(100000) * 128 * 2);
    model_free(m);
    m = load("glm-5.2");
    size_t readers = 0;
    for (size_t i = 0; i < m->layer_count; i++)
        readers += state_layer_read_bytes(&m->layers[i].attention, 100000, STATE_BITS_F16) >
                   UINT64_C(2048) * 576 * 2;
    assert_int_equal(readers, 21);
    model_free(m);
}

static void compressed_caches_grow_once_in_a_ratio(void **state)
{
    (void)state;
    struct model *m = load("deepseek-v4-flash");
    const struct attention *four = &m->layers[2].attention, *long_range = &m->layers[3].attention;
    const uint64_t window = UINT64_C(128) * 512 * 2;
    assert_int_equal(four->compress_ratio, 4);
    assert_int_equal(state_layer_bytes(four, 1003, STATE_BITS_F16), 250 * 640 * 2 + window);
    assert_int_equal(state_layer_read_bytes(four, 400000, STATE_BITS_F16),
                     UINT64_C(100000) * 128 * 2 + UINT64_C(512) * 512 * 2 + window);
    assert_int_equal(long_range->compress_ratio, 128);
    assert_int_equal(state_layer_read_bytes(long_range, 128000, STATE_BITS_F16),
                     UINT64_C(1000) * 512 * 2 + window);
    model_free(m);
}

static void a_borrowed_cache_is_read_but_not_stored(void **state)
{
    (void)state;
    struct attention a = {.family = ATTENTION_GQA, .heads = 8, .kv_heads = 8, .head_dim = 64};
    uint64_t owned = state_layer_read_bytes(&a, 500, STATE_BITS_F16);
    a.borrows_cache = true;
    assert_int_equal(state_layer_bytes(&a, 500, STATE_BITS_F16), 0);
    assert_int_equal(state_layer_write_bytes(&a, 500, STATE_BITS_F16), 0);
    assert_int_equal(state_layer_read_bytes(&a, 500, STATE_BITS_F16), owned);
}

static void a_linear_state_is_read_and_written_every_token(void **state)
{
    (void)state;
    struct model *m = load("kimi-k3");
    const struct attention *a = &m->layers[0].attention;
    const uint64_t bytes = UINT64_C(96) * 128 * 128 * 4;
    assert_int_equal(a->family, ATTENTION_LINEAR);
    for (uint64_t n = 0; n < 100000; n += 33333) {
        assert_int_equal(state_layer_bytes(a, n, STATE_BITS_F16), bytes);
        assert_int_equal(state_layer_read_bytes(a, n, STATE_BITS_F16), bytes);
    }
    assert_int_equal(state_layer_write_bytes(a, 1, STATE_BITS_F16), bytes);
    assert_int_equal(state_layer_write_bytes(a, 5, STATE_BITS_F16), 5 * bytes);
    assert_int_equal(state_layer_pass_read_bytes(a, 7, 5, STATE_BITS_F16), 5 * bytes);
    model_free(m);
}

static void a_model_keeps_what_its_layers_keep(void **state)
{
    static const char *const names[] = {"gemma-4-26b-a4b", "kimi-k3", "deepseek-v4-pro",
                                        "lfm2-8b-a1b"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model *m = load(names[i]);
        for (uint64_t n = 1; n < 3000000; n *= 7) {
            uint64_t sum = 0;
            for (size_t l = 0; l < m->layer_count; l++)
                sum += state_layer_bytes(&m->layers[l].attention, n, STATE_BITS_F16);
            assert_int_equal(state_bytes(m, n, STATE_BITS_F16), sum);
        }
        uint64_t n = 128 * 8192; /* whole groups of every ratio, full windows */
        uint64_t growth = state_millibytes_per_token(m, STATE_BITS_F16) / 1000 * n;
        assert_int_equal(state_bytes(m, n, STATE_BITS_F16),
                         growth + state_fixed_bytes(m, STATE_BITS_F16));
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_store_the_published_bytes),
        cmocka_unit_test(deepseek_v2_saves_93_percent_of_a_cache),
        cmocka_unit_test(v41_flash_keeps_850_bytes_in_four_bits),
        cmocka_unit_test(v4_pro_keeps_a_tenth_of_v32),
        cmocka_unit_test(qwen36_keeps_64_mebibytes_at_3300_tokens),
        cmocka_unit_test(quantised_state_scales_by_its_bits),
        cmocka_unit_test(windows_fill_and_then_stay),
        cmocka_unit_test(tokens_of_a_pass_share_one_read_and_see_each_other),
        cmocka_unit_test(sparse_attention_reads_its_choice_and_every_index_key),
        cmocka_unit_test(compressed_caches_grow_once_in_a_ratio),
        cmocka_unit_test(a_borrowed_cache_is_read_but_not_stored),
        cmocka_unit_test(a_linear_state_is_read_and_written_every_token),
        cmocka_unit_test(a_model_keeps_what_its_layers_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

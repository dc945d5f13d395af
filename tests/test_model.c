/* test_model.c -- the catalogue against published figures, descriptions that are wrong, and the sums. */
#include "tests/mutate.h"
#include "tests/support.h"

#include "base/pcg.h"
#include "models/model.h"
#include "models/model_schema.h"
#include "models/state.h"
#include "tests/allocations.h"
#include "tests/model_facts.h"

static struct diag dg;

#define CATALOGUE "models/desc"

static struct model *load(const char *name)
{
    struct model *m = NULL;
    assert_ok(model_load(&m, name, CATALOGUE, NULL, 0, &dg));
    return m;
}

/* `extra`: what a description counts and the table leaves out. */
static const struct {
    const char *model, *facts;
    uint64_t extra;
} rows[] = {
    {"deepseek-v2", "DeepSeek-V2", 0},
    {"deepseek-v2-lite", "DeepSeek-V2-Lite", 0},
    {"deepseek-v3", "DeepSeek-V3 / R1", 0},
    {"deepseek-v3.2", "DeepSeek-V3.2 (DSA)", 0},
    {"deepseek-v4-flash", "DeepSeek-V4-Flash", 0},
    {"deepseek-v4-pro", "DeepSeek-V4-Pro", 0},
    {"deepseek-v4.1-flash", "DeepSeek-V4.1-Flash", UINT64_C(4) * 2 * 512 * 5120}, /* compressors */
    {"dots.llm1", "dots.llm1", 0},
    {"ernie-4.5-21b-a3b", "ERNIE-4.5-21B-A3B", 0},
    {"falcon-7b", "Falcon-7B", 0},
    {"gemma-4-26b-a4b", "Gemma-4-26B-A4B", 0},
    {"glm-4.5", "GLM-4.5 / 4.6 / 4.7", 0},
    {"glm-4.5-air", "GLM-4.5-Air", 0},
    {"glm-5.1", "GLM-5 / 5.1", 0},
    {"glm-5.2", "GLM-5.2", 0},
    {"gpt-oss-120b", "gpt-oss-120b", 0},
    {"gpt-oss-20b", "gpt-oss-20b", 0},
    {"granite-3-1b-a400m", "Granite-3.x-1B-A400M", 0},
    {"granite-3-3b-a800m", "Granite-3.x-3B-A800M", 0},
    {"hunyuan-a13b", "Hunyuan-A13B", 0},
    {"kimi-k2", "Kimi-K2 / K2.5", 0},
    {"kimi-k2.5", "Kimi-K2 / K2.5", 0},
    {"kimi-k3", "Kimi-K3", 0},
    {"kimi-linear-48b-a3b", "Kimi-Linear-48B-A3B", 0},
    {"lfm2-8b-a1b", "LFM2-8B-A1B", 0},
    {"ling-1t", "Ling-1T / Ring-1T", 0},
    {"ling-flash-2.0", "Ling-flash-2.0 / Ring-flash-2.0", 0},
    {"ling-mini-2.0", "Ling-mini-2.0 / Ring-mini-2.0", 0},
    {"llama-2-7b", "Llama-2-7B", 0},
    {"llama-3.1-70b", "Llama-3(.1/.3)-70B", 0},
    {"llama-3.1-8b", "Llama-3(.1)-8B", 0},
    {"llama-4-maverick", "Llama-4-Maverick", 0},
    {"llama-4-scout", "Llama-4-Scout", 0},
    {"minimax-m2", "MiniMax-M2 / M2.5 / M2.7", 0},
    {"minimax-m3", "MiniMax-M3", 0},
    {"mixtral-8x22b", "Mixtral-8x22B", 0},
    {"mixtral-8x7b", "Mixtral-8x7B", 0},
    {"olmoe-1b-7b", "OLMoE-1B-7B", 0},
    {"opt-6.7b", "OPT-6.7B", 0},
    {"phi-3.5-moe", "Phi-3.5-MoE", 0},
    {"qwen1.5-moe-a2.7b", "Qwen1.5-MoE-A2.7B", 0},
    {"qwen2-57b-a14b", "Qwen2-57B-A14B", 0},
    {"qwen3-0.6b", "Qwen3-0.6B", 0},
    {"qwen3-1.7b", "Qwen3-1.7B", 0},
    {"qwen3-14b", "Qwen3-14B", 0},
    {"qwen3-235b-a22b", "Qwen3-235B-A22B", 0},
    {"qwen3-30b-a3b", "Qwen3-30B-A3B", 0},
    {"qwen3-32b", "Qwen3-32B", 0},
    {"qwen3-4b", "Qwen3-4B", 0},
    {"qwen3-8b", "Qwen3-8B", 0},
    {"qwen3-coder-480b-a35b", "Qwen3-Coder-480B-A35B", 0},
    {"qwen3-next-80b-a3b", "Qwen3-Next-80B-A3B", 0},
    {"qwen3.5-122b-a10b", "Qwen3.5-122B-A10B", 0},
    {"qwen3.5-35b-a3b", "Qwen3.5-35B-A3B (= Qwen3.6-35B-A3B)", 0},
    {"qwen3.5-397b-a17b", "Qwen3.5-397B-A17B (Flash-MoE \"400B\")", 0},
    {"qwen3.6-35b-a3b", "Qwen3.5-35B-A3B (= Qwen3.6-35B-A3B)", 0},
};

static void every_catalogue_model_reproduces_its_row(void **state)
{
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model *m = load(rows[i].model);
        model_facts_check(m, rows[i].facts, rows[i].extra);
        model_free(m);
    }
}

static void every_file_of_the_catalogue_loads(void **state)
{
    char **names;
    size_t count;
    (void)state;
    assert_ok(model_catalogue(&names, &count, CATALOGUE, &dg));
    assert_true(count >= 40);
    for (size_t i = 0; i < count; i++) {
        struct model *m = load(names[i]);
        assert_string_equal(m->name, names[i]);
        assert_true(model_weight_bytes(m) > 0 && model_params_active(m) <= model_params_total(m));
        model_free(m);
    }
    model_catalogue_free(names, count);
}

/* V01 and V02 of the validation table. */
static void kimi_k3_reads_its_published_bytes(void **state)
{
    (void)state;
    struct model *m = load("kimi-k3");
    assert_int_equal(model_expert_bytes_max(m), 17547264);
    assert_close((double)model_token_cycle_bytes(m) / 1e9, 25.83, 0.01);
    assert_int_equal(model_token_cycle_bytes(m), UINT64_C(92) * 16 * 17547264);
    assert_int_equal(model_moe_layers(m), 92);
    assert_int_equal(model_experts(m), 896);
    assert_int_equal(model_top_k(m), 16);
    uint64_t trunk =
        model_weight_bytes(m) - model_experts_bytes(m) - m->bytes_embedding - m->bytes_head;
    assert_close((double)trunk / 1e9, 108.81, 0.05);
    model_free(m);
}

static void expert_bytes_are_those_of_the_table_at_every_precision(void **state)
{
    (void)state;
    struct model *m = load("qwen3-30b-a3b");
    static const struct {
        const char *quant;
        uint64_t bytes;
    } cases[] = {{"bf16", 9437184},  {"q8_0", 5013504},     {"q6_k", 3870720}, {"q4_0", 2654208},
                 {"mxfp4", 2506752}, {"mlx4-g64", 2654208}, {"q3_k", 2027520}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(model_requantise(m, cases[i].quant, &dg));
        assert_int_equal(model_expert_bytes_max(m), cases[i].bytes);
        assert_int_equal(model_experts_bytes(m), 48 * 128 * cases[i].bytes);
    }
    assert_ok(model_requantise(m, "native", &dg));
    assert_int_equal(model_expert_bytes_max(m), 9437184);
    assert_int_equal(model_requantise(m, "q5_z", &dg), ST_MISSING);
    assert_int_equal(model_expert_bytes_max(m), 9437184);
    model_free(m);
}

static void a_misspelt_name_gets_the_nearest(void **state)
{
    struct model *m = NULL;
    (void)state;
    assert_int_equal(model_load(&m, "qwen3-30b-a3d", CATALOGUE, NULL, 0, &dg), ST_MISSING);
    assert_non_null(strstr(dg.text, "'qwen3-30b-a3b'"));
    assert_int_equal(model_load(&m, "../qwen3", CATALOGUE, NULL, 0, &dg), ST_MISSING);
    assert_int_equal(model_load(&m, "qwen3-8b", NULL, NULL, 0, &dg), ST_MISSING);
    assert_int_equal(model_load(&m, "/nowhere/x.yaml", NULL, NULL, 0, &dg), ST_IO);
    assert_null(m);
}

static void overrides_change_the_description_before_it_is_read(void **state)
{
    const char *const four[] = {"ffn.0.top_k=4"}, *const bad[] = {"ffn.0.top_k=129"},
                      *const none[] = {"ffn.0.top_k"};
    struct model *m = NULL;
    (void)state;
    assert_ok(model_load(&m, "qwen3-30b-a3b", CATALOGUE, four, 1, &dg));
    assert_int_equal(model_token_cycle_bytes(m), UINT64_C(48) * 4 * 9437184);
    model_free(m);
    m = NULL;
    assert_int_equal(model_load(&m, "qwen3-30b-a3b", CATALOGUE, bad, 1, &dg), ST_RANGE);
    assert_int_equal(model_load(&m, "qwen3-30b-a3b", CATALOGUE, none, 1, &dg), ST_USAGE);
    assert_int_equal(model_load(&m, "tests/data/tiny/config.json", CATALOGUE, four, 1, &dg),
                     ST_UNSUPPORTED);
    assert_null(m);
}

#define HEAD                                                                                       \
    "title: T\nsource: S\ngrade: D\nlayers: 4\nhidden: 64\nvocab: 100\n"                           \
    "tied_embeddings: false\n"
#define FORMATS   "formats: {default: bf16}\n"
#define GQA       "family: gqa, heads: 4, kv_heads: 2, head_dim: 16"
#define ATTENTION "attention: [{layers: all, " GQA "}]\n"
#define FFN       "ffn: [{layers: all, matrices: 3, dense_width: 128}]\n"

static enum status refuse(const char *text)
{
    struct model *m = NULL;
    const char *path = temp_path("model.yaml");
    write_file(path, text);
    enum status st = model_load(&m, path, NULL, NULL, 0, &dg);
    assert_null(m);
    assert_non_null(strstr(dg.text, path));
    return st;
}

static void a_small_description_gives_what_one_counts_by_hand(void **state)
{
    struct model *m = NULL;
    (void)state;
    const char *path = temp_path("small.yaml");
    write_file(path, HEAD FORMATS ATTENTION FFN);
    assert_ok(model_load(&m, path, NULL, NULL, 0, &dg));
    uint64_t layer = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 64 * 128 + 2 * 64;
    assert_int_equal(model_params_total(m), 4 * layer + 2 * 6400 + 64);
    assert_int_equal(model_params_active(m), 4 * layer + 6400 + 64);
    assert_int_equal(model_weight_bytes(m), 2 * model_params_total(m));
    assert_int_equal(model_expert_bytes_max(m), 0);
    assert_string_equal(m->name, "small");
    model_free(m);
}

static void wrong_descriptions_are_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {HEAD FORMATS ATTENTION FFN "colour: red\n", "colour"},
        {HEAD FORMATS FFN, "attention"},
        {HEAD ATTENTION FFN, "formats"},
        {HEAD "formats: {default: q9_9}\n" ATTENTION FFN, ":8: no weight format is called 'q9_9'"},
        {HEAD "formats: {default: bf16, experts: mxfp4}\n" ATTENTION FFN, "experts"},
        {HEAD FORMATS "attention: [{layers: 0-2, " GQA "}]\n" FFN,
         ":9: layer 3 is in no group of 'attention'"},
        {HEAD FORMATS "attention:\n  - {layers: all, " GQA "}\n  - {layers: 2, " GQA "}\n" FFN,
         ":11: layer 2 is in two groups"},
        {HEAD FORMATS "attention: [{layers: 0-4, " GQA "}]\n" FFN, ":9: layers 0 to 4"},
        {HEAD FORMATS "attention: [{layers: most, " GQA "}]\n" FFN, ":9: layers 'most'"},
        {HEAD FORMATS "attention: [{layers: all, " GQA ", conv_kernel: 4}]\n" FFN,
         "'conv_kernel' does not apply to family gqa"},
        {HEAD FORMATS "attention: [{layers: all, family: mla, heads: 4}]\n" FFN,
         "family mla needs 'v_head_dim'"},
        {HEAD FORMATS
         "attention: [{layers: all, family: gqa, heads: 5, kv_heads: 2, head_dim: 8}]\n" FFN,
         "multiple of kv_heads"},
        {HEAD FORMATS ATTENTION "ffn: [{layers: all, matrices: 3}]\n", "neither dense_width"},
        {HEAD FORMATS ATTENTION "ffn: [{layers: all, matrices: 3, experts: 4, top_k: 5, "
                                "expert_width: 8}]\n",
         "top_k must be"},
        {HEAD FORMATS ATTENTION "ffn: [{layers: all, matrices: 4, dense_width: 8}]\n", "matrices"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(refuse(bad[i].text), ST_OK);
        if (!strstr(dg.text, bad[i].reason))
            fail_msg("'%s' does not say '%s'", dg.text, bad[i].reason);
    }
}

static void impossible_sizes_are_refused_before_they_overflow(void **state)
{
    (void)state;
    assert_int_equal(refuse("title: T\nsource: S\ngrade: D\nlayers: 4096\nhidden: 1048576\n"
                            "vocab: 100\ntied_embeddings: false\n" FORMATS ATTENTION
                            "ffn: [{layers: all, matrices: 3, experts: 65536, top_k: 1, "
                            "expert_width: 1048576}]\n"),
                     ST_RANGE);
    assert_non_null(strstr(dg.text, "10^15"));
}

static void routers_are_presets_that_exist(void **state)
{
    char **names;
    size_t count;
    (void)state;
    assert_ok(model_catalogue(&names, &count, CATALOGUE, &dg));
    for (size_t i = 0; i < count; i++) {
        struct model *m = load(names[i]);
        char path[128];
        snprintf(path, sizeof path, "sim/trace/presets/%s.yaml", m->router ? m->router : "uniform");
        FILE *f = fopen(path, "r");
        if (!f)
            fail_msg("%s: no preset %s", names[i], path);
        fclose(f);
        model_free(m);
    }
    model_catalogue_free(names, count);
}

static void check_documented(const char *text, const struct yaml_field *fields)
{
    for (const struct yaml_field *f = fields; f->key; f++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", f->key);
        if (!strstr(text, quoted) && strcmp(f->key, "family") != 0)
            fail_msg("docs/formats.md does not explain %s", quoted);
        assert_non_null(f->help);
    }
}

static void every_key_is_documented(void **state)
{
    (void)state;
    char *text = read_whole("docs/formats.md", NULL);
    check_documented(text, model_fields);
    check_documented(text, model_attention_fields);
    check_documented(text, model_ffn_fields);
    check_documented(text, model_format_fields);
    free(text);
}

/* Bytes of a good description changed at random: it loads, or is refused with a reason. */
static void damaged_descriptions_never_do_worse_than_fail(void **state)
{
    static const char *const names[] = {"kimi-k3", "deepseek-v4.1-flash", "gpt-oss-120b"};
    static const char marks[] = "0123456789:,-[]{} \n#abm";
    struct pcg p;
    size_t refused = 0;
    (void)state;
    pcg_stream(&p, 1, "damage");
    for (int turn = 0; turn < 600; turn++) {
        char source[128];
        size_t bytes;
        snprintf(source, sizeof source, CATALOGUE "/%s.yaml", names[turn % 3]);
        char *text = read_whole(source, &bytes);
        mutate_marks(text, bytes, marks, &p);
        const char *path = temp_path("damaged.yaml");
        write_file(path, text);
        free(text);
        struct model *m = NULL;
        dg.text[0] = 0;
        if (model_load(&m, path, NULL, NULL, 0, &dg) != ST_OK) {
            assert_true(dg.text[0] != 0);
            refused++;
        }
        model_free(m);
    }
    assert_true(refused > 100 && refused < 600);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1;; n++) {
        struct model *m = NULL;
        allocations_fail_at(n);
        enum status st = model_load(&m, "kimi-k3", CATALOGUE, NULL, 0, &dg);
        allocations_fail_at(0);
        if (st == ST_OK) {
            assert_true(n > 10);
            model_free(m);
            return;
        }
        assert_null(m);
    }
}

static void experts_alone_take_another_format_and_the_rest_keeps_its_mix(void **state)
{
    (void)state;
    struct model *m, *whole;
    assert_ok(model_load(&m, "qwen3-30b-a3b", "models/desc", NULL, 0, &dg));
    assert_ok(model_load(&whole, "qwen3-30b-a3b", "models/desc", NULL, 0, &dg));
    assert_ok(model_requantise(m, "q4_k_m", &dg));
    assert_ok(model_requantise(whole, "q4_k_m", &dg));
    assert_ok(model_requantise_experts(m, "q3_k", &dg));
    assert_int_equal(model_weight_bytes(m) - model_experts_bytes(m),
                     model_weight_bytes(whole) - model_experts_bytes(whole));
    /* 110 bytes a block of 256 weights */
    assert_int_equal(model_experts_bytes(m), 48ull * 128 * 3 * 768 * 2048 / 256 * 110);
    assert_string_equal(m->quant.name, "q4_k_m+q3_k-experts");
    assert_int_equal(model_requantise_experts(m, "q9", &dg), ST_MISSING);
    model_free(whole);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_alone_take_another_format_and_the_rest_keeps_its_mix),
        cmocka_unit_test(every_catalogue_model_reproduces_its_row),
        cmocka_unit_test(every_file_of_the_catalogue_loads),
        cmocka_unit_test(kimi_k3_reads_its_published_bytes),
        cmocka_unit_test(expert_bytes_are_those_of_the_table_at_every_precision),
        cmocka_unit_test(a_misspelt_name_gets_the_nearest),
        cmocka_unit_test(overrides_change_the_description_before_it_is_read),
        cmocka_unit_test(a_small_description_gives_what_one_counts_by_hand),
        cmocka_unit_test(wrong_descriptions_are_refused_with_file_and_line),
        cmocka_unit_test(impossible_sizes_are_refused_before_they_overflow),
        cmocka_unit_test(routers_are_presets_that_exist),
        cmocka_unit_test(every_key_is_documented),
        cmocka_unit_test(damaged_descriptions_never_do_worse_than_fail),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

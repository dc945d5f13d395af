/* test_hf_config.c -- config.json of every family: parameters, state and formats as published. */
#include "tests/mutate.h"
#include "tests/support.h"

#include "base/pcg.h"
#include "models/desc_model.h"
#include "models/hf_config.h"
#include "models/state.h"
#include "tests/allocations.h"
#include "tests/model_facts.h"

#include <unistd.h>

static struct diag dg;

static const struct {
    const char *file, *facts;
} published[] = {
    {"MiniMaxAI--MiniMax-M2.5", "MiniMax-M2 / M2.5 / M2.7"},
    {"Qwen--Qwen3-235B-A22B", "Qwen3-235B-A22B"},
    {"Qwen--Qwen3-30B-A3B", "Qwen3-30B-A3B"},
    {"Qwen--Qwen3-8B", "Qwen3-8B"},
    {"Qwen--Qwen3-Next-80B-A3B", "Qwen3-Next-80B-A3B"},
    {"Qwen--Qwen3.5-35B-A3B", "Qwen3.5-35B-A3B (= Qwen3.6-35B-A3B)"},
    {"Qwen--Qwen3.5-397B-A17B", "Qwen3.5-397B-A17B (Flash-MoE \"400B\")"},
    {"deepseek-ai--DeepSeek-V3.2", "DeepSeek-V3.2 (DSA)"},
    {"deepseek-ai--DeepSeek-V3", "DeepSeek-V3 / R1"},
    {"deepseek-ai--DeepSeek-V4-Flash", "DeepSeek-V4-Flash"},
    {"deepseek-ai--DeepSeek-V4-Pro", "DeepSeek-V4-Pro"},
    {"google--gemma-4-26B-A4B", "Gemma-4-26B-A4B"},
    {"meta-llama--Llama-4-Scout-17B-16E-Instruct", "Llama-4-Scout"},
    {"meta-llama--Meta-Llama-3.1-70B", "Llama-3(.1/.3)-70B"},
    {"meta-llama--Meta-Llama-3.1-8B", "Llama-3(.1)-8B"},
    {"mistralai--Mixtral-8x7B-v0.1", "Mixtral-8x7B"},
    {"moonshotai--Kimi-K2-Instruct", "Kimi-K2 / K2.5"},
    {"moonshotai--Kimi-K3", "Kimi-K3"},
    {"openai--gpt-oss-120b", "gpt-oss-120b"},
    {"openai--gpt-oss-20b", "gpt-oss-20b"},
    {"zai-org--GLM-5.1", "GLM-5 / 5.1"},
};
#define PUBLISHED (sizeof published / sizeof *published)

static struct model *load_shared(const char *name)
{
    char path[256];
    struct model *m = NULL;
    snprintf(path, sizeof path, SHARED "hf-configs/%s.json", name);
    assert_ok(hf_config_load(&m, path, &dg));
    return m;
}

static struct model *load_text(const char *text)
{
    struct model *m = NULL;
    const char *path = temp_path("some.json");
    write_file(path, text);
    assert_ok(hf_config_load(&m, path, &dg));
    return m;
}

static enum status refuse_text(const char *text)
{
    struct model *m = NULL;
    const char *path = temp_path("some.json");
    write_file(path, text);
    enum status st = hf_config_load(&m, path, &dg);
    assert_null(m);
    assert_non_null(strstr(dg.text, path));
    return st;
}

static void all_published_configs_give_the_tabled_parameters_and_state(void **state)
{
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < PUBLISHED; i++) {
        struct model *m = load_shared(published[i].file);
        model_facts_check(m, published[i].facts, 0);
        model_free(m);
    }
}

static void totals_are_those_of_the_published_checkpoints_to_the_last_parameter(void **state)
{
    static const struct {
        const char *file;
        uint64_t params;
    } checkpoints[] = {
        {"meta-llama--Meta-Llama-3.1-8B", 8030261248},
        {"meta-llama--Meta-Llama-3.1-70B", 70553706496},
        {"mistralai--Mixtral-8x7B-v0.1", 46702792704},
        {"Qwen--Qwen3-30B-A3B", 30532122624},
        {"Qwen--Qwen3-235B-A22B", 235093634560},
        {"Qwen--Qwen3-8B", 8190735360},
        {"openai--gpt-oss-20b", 20914757184},
        {"openai--gpt-oss-120b", 116829156672},
        {"deepseek-ai--DeepSeek-V3", 671026419200},
    };
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < sizeof checkpoints / sizeof *checkpoints; i++) {
        struct model *m = load_shared(checkpoints[i].file);
        assert_int_equal(model_params_total(m), checkpoints[i].params);
        model_free(m);
    }
}

static void published_formats_are_kept_by_tensor_group(void **state)
{
    (void)state;
    NEED_SHARED();
    struct model *m = load_shared("openai--gpt-oss-120b");
    assert_int_equal(model_weight_bytes(m), 65248815744); /* the sum of its safetensors files */
    assert_string_equal(m->native.group[GROUP_EXPERT]->name, "mxfp4");
    assert_string_equal(m->native.group[GROUP_ATTENTION]->name, "bf16");
    model_free(m);
    m = load_shared("moonshotai--Kimi-K3");
    assert_string_equal(m->native.group[GROUP_EXPERT]->name, "mxfp4");
    assert_string_equal(m->native.group[GROUP_SHARED_EXPERT]->name, "bf16");
    assert_string_equal(m->native.group[GROUP_DENSE_FFN]->name, "bf16");
    model_free(m);
    m = load_shared("deepseek-ai--DeepSeek-V4-Flash");
    assert_string_equal(m->native.group[GROUP_EXPERT]->name, "mxfp4");
    assert_string_equal(m->native.group[GROUP_ATTENTION]->name, "fp8-128x128");
    assert_string_equal(m->native.group[GROUP_HEAD]->name, "bf16");
    model_free(m);
}

static void models_are_named_after_file_or_folder(void **state)
{
    struct model *m = NULL;
    (void)state;
    assert_ok(hf_config_load(&m, "tests/data/tiny/config.json", &dg));
    assert_string_equal(m->name, "tiny");
    model_free(m);
    NEED_SHARED();
    m = load_shared("Qwen--Qwen3-30B-A3B");
    assert_string_equal(m->name, "qwen3-30b-a3b");
    assert_string_equal(m->title, "Qwen3-30B-A3B");
    model_free(m);
}

#define SIZES(layers, hidden, vocab)                                                               \
    "\"num_hidden_layers\":" layers ",\"hidden_size\":" hidden ",\"vocab_size\":" vocab            \
    ",\"max_position_embeddings\":4096,\"dtype\":\"bfloat16\","
#define HEADS(n, kv, dim)                                                                          \
    "\"num_attention_heads\":" n ",\"num_key_value_heads\":" kv ",\"head_dim\":" dim ","
#define LATENT                                                                                     \
    "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"

/* Configs as each family writes them, against the catalogue's description of the same model. */
static const struct {
    const char *model, *config;
} families[] = {
    {"qwen1.5-moe-a2.7b",
     "{\"model_type\":\"qwen2_moe\"," SIZES("24", "2048", "151936")
         HEADS("16", "16",
               "128") "\"num_experts\":60,\"num_experts_per_tok\":4,\"moe_intermediate_size\":1408,"
                      "\"shared_expert_intermediate_size\":5632,\"intermediate_size\":5632,"
                      "\"decoder_sparse_step\":1}"},
    {"olmoe-1b-7b",
     "{\"model_type\":\"olmoe\"," SIZES(
         "16", "2048",
         "50304") "\"num_attention_heads\":16,"
                  "\"num_key_value_heads\":16,\"num_experts\":64,\"num_experts_per_tok\":8,"
                  "\"intermediate_size\":1024}"},
    {"phi-3.5-moe",
     "{\"model_type\":\"phimoe\"," SIZES(
         "32", "4096",
         "32064") "\"attention_bias\":true,"
                  "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_local_experts\":16,"
                  "\"num_experts_per_tok\":2,\"intermediate_size\":6400,\"sliding_window\":"
                  "131072}"},
    {"granite-3-3b-a800m",
     "{\"model_type\":\"granitemoe\"," SIZES(
         "32", "1536",
         "49155") "\"num_attention_heads\":24,"
                  "\"num_key_value_heads\":8,\"num_local_experts\":40,\"num_experts_per_tok\":8,"
                  "\"intermediate_size\":512}"},
    {"deepseek-v2-lite", "{\"model_type\":\"deepseek_v2\"," SIZES("27", "2048", "102400") LATENT
     "\"num_attention_heads\":16,\"q_lora_rank\":null,\"n_routed_experts\":64,"
     "\"n_shared_experts\":2,\"num_experts_per_tok\":6,\"moe_intermediate_size\":1408,"
     "\"intermediate_size\":10944,\"first_k_dense_replace\":1}"},
    {"glm-4.5-air",
     "{\"model_type\":\"glm4_moe\"," SIZES("46", "4096", "151552")
         HEADS("96", "8",
               "128") "\"attention_bias\":true,\"n_routed_experts\":128,\"n_shared_experts\":1,"
                      "\"num_experts_per_tok\":8,\"moe_intermediate_size\":1408,\"intermediate_"
                      "size\":10944,"
                      "\"first_k_dense_replace\":1,\"num_nextn_predict_layers\":1}"},
    {"ernie-4.5-21b-a3b",
     "{\"model_type\":\"ernie4_5_moe\"," SIZES("28", "2560", "103424")
         HEADS("20", "4", "128") "\"moe_num_experts\":64,\"moe_k\":6,\"moe_num_shared_experts\":2,"
                                 "\"moe_intermediate_size\":1536,\"intermediate_size\":12288,\"moe_"
                                 "layer_start_index\":1,"
                                 "\"moe_layer_end_index\":27,\"moe_layer_interval\":1,\"tie_word_"
                                 "embeddings\":true}"},
    {"dots.llm1",
     "{\"model_type\":\"dots1\"," SIZES("62", "4096", "152064")
         HEADS("32", "32",
               "128") "\"n_routed_experts\":128,\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
                      "\"moe_intermediate_size\":1408,\"intermediate_size\":10944,\"first_k_dense_"
                      "replace\":1}"},
    {"ling-mini-2.0",
     "{\"model_type\":\"bailing_moe\"," SIZES("20", "2048", "157184") HEADS(
         "16", "4", "128") "\"num_experts\":256,\"num_shared_experts\":1,\"num_experts_per_tok\":8,"
                           "\"moe_intermediate_size\":512,\"intermediate_size\":5120,\"first_k_"
                           "dense_replace\":1}"},
    {"lfm2-8b-a1b",
     "{\"model_type\":\"lfm2_moe\"," SIZES("6", "2048", "65536")
         HEADS("32", "8",
               "64") "\"conv_L_cache\":3,\"intermediate_size\":7168,\"moe_intermediate_size\":1792,"
                     "\"num_dense_layers\":2,\"num_experts\":32,\"num_experts_per_tok\":4,"
                     "\"layer_types\":[\"conv\",\"conv\",\"full_attention\",\"conv\",\"conv\","
                     "\"conv\"]}"},
    {"opt-6.7b",
     "{\"model_type\":\"opt\",\"num_hidden_layers\":32,\"hidden_size\":4096,\"vocab_size\":50272,"
     "\"max_position_embeddings\":2048,\"torch_dtype\":\"float16\",\"num_attention_heads\":32,"
     "\"ffn_dim\":16384}"},
    {"falcon-7b", "{\"model_type\":\"falcon\",\"num_hidden_layers\":32,\"hidden_size\":4544,"
                  "\"vocab_size\":65024,\"torch_dtype\":\"bfloat16\",\"num_attention_heads\":71,"
                  "\"multi_query\":true}"},
    {"qwen3-4b", "{\"model_type\":\"qwen3\"," SIZES("36", "2560", "151936")
                     HEADS("32", "8", "128") "\"intermediate_size\":9728,\"tie_word_embeddings\":"
                                             "true,\"use_sliding_window\":false,"
                                             "\"max_window_layers\":36,\"sliding_window\":null}"},
};

static void neighbouring_families_agree_with_the_catalogue(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct model *known = NULL, *m = load_text(families[i].config);
        assert_ok(model_load(&known, families[i].model, "models/desc", NULL, 0, &dg));
        size_t last = m->layer_count - 1; /* the shortened configs end with a usual layer */
        for (int g = 0; g < GROUP_OTHER; g++)
            assert_int_equal(m->layers[last].params[g], known->layers[last].params[g]);
        if (m->layer_count == known->layer_count) {
            assert_int_equal(state_millibytes_per_token(m, STATE_BITS_F16),
                             state_millibytes_per_token(known, STATE_BITS_F16));
            assert_close((double)model_params_total(m) / (double)model_params_total(known), 1,
                         1e-4);
            assert_close((double)model_params_active(m) / (double)model_params_active(known), 1,
                         1e-3);
        }
        model_free(m);
        model_free(known);
    }
}

static void layers_of_each_kind_stand_where_the_config_puts_them(void **state)
{
    (void)state;
    struct model *m = load_text("{\"model_type\":\"qwen3_moe\"," SIZES("6", "64", "64") HEADS(
        "4", "2",
        "16") "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,"
              "\"intermediate_size\":32,\"decoder_sparse_step\":2,\"mlp_only_layers\":[3]}");
    static const uint64_t experts[] = {0, 4, 0, 0, 0, 4};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(m->layers[i].ffn.experts, experts[i]);
        assert_int_equal(m->layers[i].ffn.dense_width, experts[i] ? 0 : 32);
    }
    model_free(m);
    NEED_SHARED();
    m = load_shared("Qwen--Qwen3-Next-80B-A3B"); /* an interval, no list */
    for (size_t i = 0; i < m->layer_count; i++)
        assert_int_equal(m->layers[i].attention.family,
                         i % 4 == 3 ? ATTENTION_GQA : ATTENTION_LINEAR);
    model_free(m);
    m = load_shared("meta-llama--Llama-4-Scout-17B-16E-Instruct");
    for (size_t i = 0; i < m->layer_count; i++)
        assert_int_equal(m->layers[i].attention.window, i % 4 == 3 ? 0 : 8192);
    model_free(m);
    m = load_shared("moonshotai--Kimi-K3");
    for (size_t i = 0; i < m->layer_count; i++) {
        bool full = i % 4 == 3 || i == 92;
        assert_int_equal(m->layers[i].attention.family, full ? ATTENTION_MLA : ATTENTION_LINEAR);
        assert_int_equal(m->layers[i].ffn.experts, i == 0 ? 0 : 896);
    }
    model_free(m);
}

static void an_unknown_model_type_is_refused_and_named(void **state)
{
    (void)state;
    assert_int_equal(refuse_text("{\"model_type\":\"mamba9\"}"), ST_UNSUPPORTED);
    assert_non_null(strstr(dg.text, "mamba9"));
    assert_int_equal(refuse_text("{\"hidden_size\":1}"), ST_MISSING);
    assert_non_null(strstr(dg.text, "model_type"));
    assert_int_equal(refuse_text("[1]"), ST_PARSE);
}

/* Takes the line of `key` out of the bundled config. */
static char *without_key(const char *config, const char *key)
{
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    char *copy = strdup(config);
    char *at = strstr(copy, quoted);
    assert_non_null(at);
    char *line_end = strchr(at, '\n');
    memmove(at, line_end, strlen(line_end) + 1);
    return copy;
}

static void a_missing_field_is_named(void **state)
{
    static const char *const keys[] = {
        "hidden_size", "num_hidden_layers",     "num_experts",        "num_experts_per_tok",
        "vocab_size",  "moe_intermediate_size", "num_attention_heads"};
    (void)state;
    char *config = read_whole("tests/data/tiny/config.json", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *less = without_key(config, keys[i]);
        char quoted[80];
        snprintf(quoted, sizeof quoted, "missing field '%s'", keys[i]);
        assert_int_equal(refuse_text(less), ST_MISSING);
        assert_non_null(strstr(dg.text, quoted));
        free(less);
    }
    free(config);
}

static void values_of_the_wrong_kind_or_size_are_refused(void **state)
{
    static const struct {
        const char *config, *reason;
        enum status status;
    } bad[] = {
        {"{\"model_type\":\"llama\",\"hidden_size\":\"4096\"}", "'hidden_size'", ST_PARSE},
        {"{\"model_type\":\"llama\",\"hidden_size\":-1}", "'hidden_size'", ST_PARSE},
        {"{\"model_type\":\"llama\"," SIZES("99999999", "64", "64") "\"intermediate_size\":64}",
         "num_hidden_layers", ST_RANGE},
        {"{\"model_type\":\"llama\"," SIZES("2", "64", "64")
             HEADS("5", "2", "16") "\"intermediate_size\":64}",
         "kv_heads", ST_RANGE},
        {"{\"model_type\":\"llama\"," SIZES("2", "64", "64")
             HEADS("0", "0", "0") "\"intermediate_size\":64}",
         "heads", ST_RANGE},
        {"{\"model_type\":\"llama\"," SIZES("2", "64", "64")
             HEADS("4", "2", "16") "\"intermediate_size\":18446744073709551615}",
         "too big integer", ST_PARSE},
        {"{\"model_type\":\"llama\"," SIZES("2", "64", "64")
             HEADS("4", "2", "16") "\"intermediate_size\":4611686018427387904}",
         "dense_width", ST_RANGE},
        {"{\"model_type\":\"qwen3_5_moe\"," SIZES("2", "64", "64")
             HEADS("4", "2", "16") "\"linear_num_key_heads\":1,\"linear_num_value_heads\":1,"
                                   "\"linear_key_head_dim\":8,"
                                   "\"linear_value_head_dim\":8,\"linear_conv_kernel_dim\":4,"
                                   "\"layer_types\":[\"linear_attention\",\"cubic_attention\"],"
                                   "\"intermediate_size\":8}",
         "cubic_attention", ST_UNSUPPORTED},
        {"{\"model_type\":\"qwen3_5_moe\"," SIZES("2", "64", "64") HEADS(
             "4", "2", "16") "\"linear_num_key_heads\":1,\"linear_num_value_heads\":1,\"linear_key_"
                             "head_dim\":8,"
                             "\"linear_value_head_dim\":8,\"linear_conv_kernel_dim\":4,"
                             "\"layer_types\":[\"linear_attention\"],\"intermediate_size\":8}",
         "layer_types", ST_PARSE},
        {"{\"model_type\":\"llama\"," SIZES("2", "64", "64")
             HEADS("4", "2", "16") "\"intermediate_size\":64,\"quantization_config\":{\"quant_"
                                   "method\":\"gptq\",\"bits\":3}}",
         "gptq", ST_UNSUPPORTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(refuse_text(bad[i].config), bad[i].status);
        if (!strstr(dg.text, bad[i].reason))
            fail_msg("'%s' does not name %s", dg.text, bad[i].reason);
    }
}

static void an_imported_model_survives_being_written_and_read(void **state)
{
    (void)state;
    NEED_SHARED();
    for (size_t i = 0; i < PUBLISHED; i++) {
        struct model *m = load_shared(published[i].file), *back = NULL;
        const char *path = temp_path("back.yaml");
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_ok(desc_model_write(m, f, &dg));
        assert_int_equal(fclose(f), 0);
        assert_ok(model_load(&back, path, NULL, NULL, 0, &dg));
        assert_int_equal(model_params_total(back), model_params_total(m));
        assert_int_equal(model_params_active(back), model_params_active(m));
        assert_int_equal(model_weight_bytes(back), model_weight_bytes(m));
        for (uint64_t n = 1; n <= 1000000; n *= 100)
            assert_int_equal(state_bytes(back, n, STATE_BITS_F16),
                             state_bytes(m, n, STATE_BITS_F16));
        for (size_t l = 0; l < m->layer_count; l++)
            for (int g = 0; g < GROUP_MAX; g++)
                assert_int_equal(back->layers[l].params[g], m->layers[l].params[g]);
        model_free(back);
        model_free(m);
    }
}

/* Bytes of real configs changed at random: they load, or are refused with a reason. */
static void damaged_configs_never_do_worse_than_fail(void **state)
{
    static const char marks[] = "0123456789:,-[]{}\"ntf ";
    struct pcg p;
    (void)state;
    NEED_SHARED();
    pcg_stream(&p, 1, "damage");
    for (int turn = 0; turn < 40 * (int)PUBLISHED; turn++) {
        char source[256];
        size_t bytes;
        snprintf(source, sizeof source, SHARED "hf-configs/%s.json",
                 published[(size_t)turn % PUBLISHED].file);
        char *text = read_whole(source, &bytes);
        mutate_marks(text, bytes, marks, &p);
        const char *path = temp_path("damaged.json");
        write_file(path, text);
        free(text);
        struct model *m = NULL;
        dg.text[0] = 0;
        if (hf_config_load(&m, path, &dg) != ST_OK)
            assert_true(dg.text[0] != 0);
        model_free(m);
    }
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1;; n++) {
        struct model *m = NULL;
        allocations_fail_at(n);
        enum status st = hf_config_load(&m, "tests/data/tiny/config.json", &dg);
        allocations_fail_at(0);
        if (st == ST_OK) {
            assert_true(n > 3);
            model_free(m);
            return;
        }
        assert_null(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_published_configs_give_the_tabled_parameters_and_state),
        cmocka_unit_test(totals_are_those_of_the_published_checkpoints_to_the_last_parameter),
        cmocka_unit_test(published_formats_are_kept_by_tensor_group),
        cmocka_unit_test(models_are_named_after_file_or_folder),
        cmocka_unit_test(neighbouring_families_agree_with_the_catalogue),
        cmocka_unit_test(layers_of_each_kind_stand_where_the_config_puts_them),
        cmocka_unit_test(an_unknown_model_type_is_refused_and_named),
        cmocka_unit_test(a_missing_field_is_named),
        cmocka_unit_test(values_of_the_wrong_kind_or_size_are_refused),
        cmocka_unit_test(an_imported_model_survives_being_written_and_read),
        cmocka_unit_test(damaged_configs_never_do_worse_than_fail),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

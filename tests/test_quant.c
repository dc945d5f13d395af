/* test_quant.c -- formats against the fact table and the golden blocks, mixes against real files. */
#include "models/quant.h"

#include "models/model.h"
#include "tests/support.h"

#include <inttypes.h>

static struct quant_mix find(const char *name)
{
    struct diag dg;
    struct quant_mix mix;
    assert_ok(quant_mix_find(&mix, name, &dg));
    return mix;
}

static void a_format_is_found_by_slug_label_and_alias_in_any_case(void **state)
{
    (void)state;
    assert_ptr_equal(quant_find("q4_k"), quant_find("Q4_K"));
    assert_ptr_equal(quant_find("MLX affine 4-bit g64"), quant_find("mlx4-g64"));
    assert_ptr_equal(quant_find("FP16"), quant_find("f16"));
    assert_ptr_equal(quant_find("fp8"), quant_find("fp8-128x128"));
    assert_ptr_not_equal(quant_find("bf16"), quant_find("f16"));
    assert_null(quant_find("q4"));
    assert_null(quant_find(""));
}

static void no_two_formats_share_a_name_or_a_gguf_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < quant_count(); i++)
        for (size_t j = 0; j < quant_count(); j++) {
            const struct quant_format *a = quant_at(i), *b = quant_at(j);
            assert_true(i == j || (strcmp(a->name, b->name) && strcmp(a->label, b->label)));
            assert_true(i == j || a->gguf_type < 0 || a->gguf_type != b->gguf_type);
        }
}

/* ggml's enum ggml_type, typed in from its header and not from the table. */
static void gguf_type_numbers_are_those_of_ggml(void **state)
{
    (void)state;
    static const char *const names[] = {
        "f32",     "f16",   "q4_0",   "q4_1",  NULL,    NULL,     "q5_0", "q5_1",    "q8_0",
        "q8_1",    "q2_k",  "q3_k",   "q4_k",  "q5_k",  "q6_k",   "q8_k", "iq2_xxs", "iq2_xs",
        "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "i8",   "i16",     "i32",
        "i64",     "f64",   "iq1_m",  "bf16",  NULL,    NULL,     NULL,   "tq1_0",   "tq2_0",
        NULL,      NULL,    NULL,     "mxfp4", "nvfp4", "q1_0",   "q2_0", NULL};
    for (uint32_t t = 0; t < sizeof names / sizeof *names; t++) {
        const struct quant_format *f = quant_find_gguf(t);
        if (!names[t])
            assert_null(f);
        else
            assert_string_equal(f->name, names[t]);
    }
    assert_null(quant_find_gguf(UINT32_MAX));
}

static void bytes_are_whole_blocks_a_row(void **state)
{
    (void)state;
    assert_int_equal(quant_bytes(quant_find("q4_k"), 768, 2048), 768 * 2048 / 256 * 144);
    assert_int_equal(quant_bytes(quant_find("q4_0"), 3, 33), 3 * 2 * 18);
    assert_int_equal(quant_bytes(quant_find("awq4-g128"), 1, 128), 67);
    assert_int_equal(quant_bytes(quant_find("awq4-g128"), 2, 128), 133);
    assert_int_equal(quant_bytes(quant_find("fp8-128x128"), 129, 128), 2 * 16388);
    assert_int_equal(quant_bytes(quant_find("f32"), 0, 7), 0);
    assert_int_equal(quant_bytes(quant_find("f64"), UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(quant_bytes(quant_find("f64"), 1, UINT64_MAX / 4), UINT64_MAX);
}

/* The table's columns: format, weights a block, bytes a block, bits a weight. */
static void every_row_of_the_fact_table_has_its_block_and_bits(void **state)
{
    (void)state;
    NEED_SHARED();
    FILE *in = fopen(SHARED "facts/quant_formats.csv", "r");
    assert_non_null(in);
    char line[512];
    size_t rows = 0;
    assert_non_null(fgets(line, sizeof line, in));
    while (fgets(line, sizeof line, in)) {
        char name[64];
        unsigned weights;
        double bytes, bits;
        assert_int_equal(sscanf(line, "%63[^,],%u,%lf,%lf", name, &weights, &bytes, &bits), 4);
        const struct quant_format *f = quant_find(name);
        if (!f)
            fail_msg("no format is called '%s'", name);
        assert_int_equal(f->block_rows * f->block_cols, weights);
        assert_close(f->half_bytes_per_block / 2.0, bytes, 0);
        assert_close(quant_bits_e4(f) / 1e4, bits, 0.00051);
        rows++;
    }
    fclose(in);
    assert_int_equal(rows, 38);
}

static void eight_rows_of_512_weights_take_the_bytes_of_the_golden_blocks(void **state)
{
    (void)state;
    NEED_SHARED();
    static const char *const names[] = {"bf16", "f16",  "iq4_nl", "iq4_xs", "mxfp4",
                                        "q2_k", "q3_k", "q4_0",   "q4_1",   "q4_k",
                                        "q5_0", "q5_1", "q5_k",   "q6_k",   "q8_0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        size_t bytes;
        snprintf(path, sizeof path, SHARED "golden/quant/%s.bin", names[i]);
        free(read_whole(path, &bytes));
        assert_int_equal(quant_bytes(quant_find(names[i]), 8, 512), bytes);
    }
}

/* Qwen3-30B-A3B: 48 layers, 128 experts of 768, hidden 2048, 32 heads of 128 over 4 key heads. */
static uint64_t qwen3_expert_bytes(const struct quant_mix *mix, size_t layer)
{
    return quant_mix_bytes(mix, GROUP_EXPERT, QUANT_GATE, layer, 48, 768, 2048) +
           quant_mix_bytes(mix, GROUP_EXPERT, QUANT_UP, layer, 48, 768, 2048) +
           quant_mix_bytes(mix, GROUP_EXPERT, QUANT_DOWN, layer, 48, 2048, 768);
}

static uint64_t qwen3_attention_bytes(const struct quant_mix *mix, size_t layer)
{
    return quant_mix_bytes(mix, GROUP_ATTENTION, QUANT_QUERY, layer, 48, 4096, 2048) +
           quant_mix_bytes(mix, GROUP_ATTENTION, QUANT_KEY, layer, 48, 512, 2048) +
           quant_mix_bytes(mix, GROUP_ATTENTION, QUANT_VALUE, layer, 48, 512, 2048) +
           quant_mix_bytes(mix, GROUP_ATTENTION, QUANT_ATTENTION_OUT, layer, 48, 2048, 4096);
}

static uint64_t qwen3_dense_bytes(const struct quant_mix *mix, size_t layer)
{
    return qwen3_attention_bytes(mix, layer) +
           quant_mix_bytes(mix, GROUP_ROUTER, QUANT_ANY, layer, 48, 128, 2048) +
           quant_mix_bytes(mix, GROUP_OTHER, QUANT_ANY, layer, 48, 1, 2 * 2048 + 2 * 128);
}

static struct quant_mix qwen3_mix(const char *name)
{
    struct quant_mix mix = find(name);
    mix.experts = 128;
    mix.heads_per_kv = 8;
    return mix;
}

static void q4_k_m_gives_the_layers_the_bytes_that_a_published_file_has(void **state)
{
    (void)state;
    NEED_SHARED();
    struct quant_mix mix = qwen3_mix("q4_k_m");
    FILE *in = fopen(SHARED "bmoe/qwen.route.csv", "r");
    assert_non_null(in);
    char line[512];
    size_t layers = 0;
    while (fgets(line, sizeof line, in) && line[0] == '#') {
        size_t layer;
        uint64_t experts, dense;
        if (sscanf(line, "# layer=%zu expert_bytes=%" SCNu64 " dense_bytes=%" SCNu64, &layer,
                   &experts, &dense) != 3)
            continue;
        assert_int_equal(qwen3_expert_bytes(&mix, layer), experts);
        assert_int_equal(qwen3_dense_bytes(&mix, layer), dense);
        layers++;
    }
    fclose(in);
    assert_int_equal(layers, 48);
}

static void published_sizes_of_qwen3_are_met_within_two_per_cent(void **state)
{
    (void)state;
    static const struct {
        const char *mix;
        double gigabytes;
    } published[] = {{"q2_k", 11.4},   {"q3_k_m", 14.8}, {"iq4_xs", 16.7}, {"q4_k_m", 18.7},
                     {"q5_k_m", 21.8}, {"q6_k", 25.2},   {"q8_0", 32.6}};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        struct quant_mix mix = qwen3_mix(published[i].mix);
        uint64_t bytes = quant_mix_bytes(&mix, GROUP_EMBEDDING, QUANT_ANY, 0, 0, 151936, 2048) +
                         quant_mix_bytes(&mix, GROUP_HEAD, QUANT_ANY, 0, 0, 151936, 2048);
        for (size_t layer = 0; layer < 48; layer++)
            bytes += 128 * qwen3_expert_bytes(&mix, layer) + qwen3_dense_bytes(&mix, layer);
        assert_close(bytes / 1e9, published[i].gigabytes, 0.02 * published[i].gigabytes);
    }
}

static void rows_that_a_block_does_not_divide_get_a_smaller_block(void **state)
{
    (void)state;
    assert_string_equal(quant_fit(quant_find("q6_k"), 704)->name, "q8_0");
    assert_string_equal(quant_fit(quant_find("q4_k"), 704)->name, "q5_0");
    assert_string_equal(quant_fit(quant_find("q5_k"), 1408)->name, "q5_1");
    assert_string_equal(quant_fit(quant_find("iq2_xxs"), 96)->name, "iq4_nl");
    assert_string_equal(quant_fit(quant_find("q4_k"), 100)->name, "f16");
    assert_string_equal(quant_fit(quant_find("q8_0"), 100)->name, "f16");
    assert_string_equal(quant_fit(quant_find("q4_k"), 768)->name, "q4_k");
    assert_string_equal(quant_fit(quant_find("mlx4-g64"), 100)->name, "mlx4-g64");
    /* Gemma-4's experts in a published Q4_K_M file: up and gate 2816 x 1408, down 704 wide. */
    struct quant_mix mix = find("q4_k_m");
    uint64_t gate_up = quant_mix_bytes(&mix, GROUP_EXPERT, QUANT_GATE, 7, 30, 1408, 2816);
    assert_int_equal(gate_up + quant_mix_bytes(&mix, GROUP_EXPERT, QUANT_DOWN, 0, 30, 2816, 704),
                     4336640);
    assert_int_equal(gate_up + quant_mix_bytes(&mix, GROUP_EXPERT, QUANT_DOWN, 4, 30, 2816, 704),
                     3593216);
}

static void eight_experts_and_shared_keys_change_the_attention_formats(void **state)
{
    (void)state;
    struct quant_mix mix = find("q2_k");
    assert_string_equal(quant_mix_format(&mix, GROUP_ATTENTION, QUANT_VALUE, 5, 32)->name, "q3_k");
    mix.heads_per_kv = 4;
    assert_string_equal(quant_mix_format(&mix, GROUP_ATTENTION, QUANT_VALUE, 5, 32)->name, "q4_k");
    mix.experts = 8;
    assert_string_equal(quant_mix_format(&mix, GROUP_ATTENTION, QUANT_VALUE, 5, 32)->name, "q8_0");
    assert_string_equal(quant_mix_format(&mix, GROUP_ATTENTION, QUANT_ATTENTION_OUT, 5, 32)->name,
                        "q5_k");
    struct quant_mix large = find("q3_k_l");
    assert_string_equal(quant_mix_format(&large, GROUP_ATTENTION, QUANT_ATTENTION_OUT, 5, 32)->name,
                        "q5_k");
    large.experts = 8;
    assert_string_equal(quant_mix_format(&large, GROUP_ATTENTION, QUANT_ATTENTION_OUT, 5, 32)->name,
                        "q3_k");
}

static const char *format_of(const char *mix_name, uint64_t experts, uint64_t heads_per_kv,
                             int group, int part, size_t layer, size_t layers)
{
    struct quant_mix mix = find(mix_name);
    mix.experts = experts;
    mix.heads_per_kv = heads_per_kv;
    return quant_mix_format(&mix, group, part, layer, layers)->name;
}

/* As llama_tensor_get_type of llama.cpp says: first sixteenth, middle three quarters, many experts. */
static void rules_end_at_the_layers_where_the_quantiser_ends_them(void **state)
{
    (void)state;
    assert_string_equal(format_of("q3_k_m", 0, 4, GROUP_DENSE_FFN, QUANT_DOWN, 1, 32), "q5_k");
    assert_string_equal(format_of("q3_k_m", 0, 4, GROUP_DENSE_FFN, QUANT_DOWN, 2, 32), "q4_k");
    assert_string_equal(format_of("iq3_xs", 0, 4, GROUP_DENSE_FFN, QUANT_UP, 3, 32), "iq3_s");
    assert_string_equal(format_of("iq3_xs", 0, 4, GROUP_DENSE_FFN, QUANT_UP, 4, 32), "iq3_xxs");
    assert_string_equal(format_of("iq3_xs", 0, 4, GROUP_DENSE_FFN, QUANT_UP, 27, 32), "iq3_xxs");
    assert_string_equal(format_of("iq3_xs", 0, 4, GROUP_DENSE_FFN, QUANT_UP, 28, 32), "iq3_s");
    assert_string_equal(format_of("iq2_xs", 0, 1, GROUP_ATTENTION, QUANT_VALUE, 9, 32), "q2_k");
    assert_string_equal(format_of("iq2_xs", 64, 1, GROUP_ATTENTION, QUANT_VALUE, 9, 32), "q4_k");
}

static void values_of_llama_70b_get_five_bits_where_others_get_fewer(void **state)
{
    (void)state;
    static const int group = GROUP_ATTENTION, part = QUANT_VALUE;
    assert_string_equal(format_of("q4_k_m", 0, 8, group, part, 10, 80), "q5_k");
    assert_string_equal(format_of("q4_k_m", 0, 8, group, part, 12, 80), "q6_k");
    assert_string_equal(format_of("q3_k_s", 0, 8, group, part, 10, 80), "q5_k");
    assert_string_equal(format_of("q4_0", 0, 8, group, part, 10, 80), "q4_0");
    assert_string_equal(format_of("q4_k_m", 0, 8, group, QUANT_KEY, 10, 80), "q4_k");
    assert_string_equal(format_of("q4_k_m", 0, 1, group, part, 10, 80), "q4_k"); /* the old 65B */
    assert_string_equal(format_of("q4_k_m", 0, 8, group, part, 4, 32), "q4_k");
}

static void a_native_mix_is_built_from_format_names(void **state)
{
    (void)state;
    struct diag dg;
    struct quant_mix mix = find("bf16");
    assert_ok(quant_mix_set(&mix, GROUP_EXPERT, "MXFP4", &dg));
    assert_string_equal(quant_mix_format(&mix, GROUP_EXPERT, QUANT_DOWN, 3, 36)->name, "mxfp4");
    assert_string_equal(quant_mix_format(&mix, GROUP_ATTENTION, QUANT_VALUE, 3, 36)->name, "bf16");
    assert_int_equal(quant_mix_set(&mix, GROUP_EXPERT, "nonsense", &dg), ST_MISSING);
    assert_non_null(strstr(dg.text, "nonsense"));
}

static void setting_a_group_silences_the_rules_for_it_alone(void **state)
{
    (void)state;
    struct diag dg;
    struct quant_mix mix = find("q4_k_m");
    assert_ok(quant_mix_set(&mix, GROUP_EXPERT, "iq2_xxs", &dg));
    assert_string_equal(quant_mix_format(&mix, GROUP_EXPERT, QUANT_DOWN, 0, 48)->name, "iq2_xxs");
    assert_string_equal(quant_mix_format(&mix, GROUP_DENSE_FFN, QUANT_DOWN, 0, 48)->name, "q6_k");
}

static void every_format_alone_is_a_mix_and_unknown_names_are_missing(void **state)
{
    (void)state;
    struct diag dg;
    struct quant_mix mix;
    for (size_t i = 0; i < quant_count(); i++)
        assert_ok(quant_mix_find(&mix, quant_at(i)->name, &dg));
    assert_int_equal(quant_mix_find(&mix, "q4_k_xl", &dg), ST_MISSING);
    assert_non_null(strstr(dg.text, "q4_k_xl"));
    mix = find("int4-g32");
    assert_string_equal(mix.group[GROUP_EXPERT]->name, "int4-g32");
    assert_string_equal(mix.group[GROUP_ATTENTION]->name, "bf16");
    assert_string_equal(find("Q8_0").group[GROUP_HEAD]->name, "q8_0");
    assert_string_equal(find("f16").group[GROUP_OTHER]->name, "f32");
    assert_string_equal(find("mxfp4_moe").group[GROUP_EXPERT]->name, "mxfp4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_is_found_by_slug_label_and_alias_in_any_case),
        cmocka_unit_test(no_two_formats_share_a_name_or_a_gguf_type),
        cmocka_unit_test(gguf_type_numbers_are_those_of_ggml),
        cmocka_unit_test(bytes_are_whole_blocks_a_row),
        cmocka_unit_test(every_row_of_the_fact_table_has_its_block_and_bits),
        cmocka_unit_test(eight_rows_of_512_weights_take_the_bytes_of_the_golden_blocks),
        cmocka_unit_test(q4_k_m_gives_the_layers_the_bytes_that_a_published_file_has),
        cmocka_unit_test(published_sizes_of_qwen3_are_met_within_two_per_cent),
        cmocka_unit_test(rows_that_a_block_does_not_divide_get_a_smaller_block),
        cmocka_unit_test(eight_experts_and_shared_keys_change_the_attention_formats),
        cmocka_unit_test(rules_end_at_the_layers_where_the_quantiser_ends_them),
        cmocka_unit_test(values_of_llama_70b_get_five_bits_where_others_get_fewer),
        cmocka_unit_test(a_native_mix_is_built_from_format_names),
        cmocka_unit_test(setting_a_group_silences_the_rules_for_it_alone),
        cmocka_unit_test(every_format_alone_is_a_mix_and_unknown_names_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_synth.c -- models that are made up: the importer finds the shapes that were asked for, and weights that are
 * finite, of the right size, and all different. */
#include "tests/synth_file.h"

#include "kernels/formats/block_format.h"
#include "tests/allocations.h"
#include "tests/cli_expect.h"

#include <math.h>
#include <unistd.h>

static struct diag dg;

static void expect_attention(const struct attention *a, const struct attention *b)
{
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->q_lora_rank, b->q_lora_rank);
    assert_int_equal(a->kv_lora_rank, b->kv_lora_rank);
    assert_int_equal(a->nope_head_dim, b->nope_head_dim);
    assert_int_equal(a->rope_head_dim, b->rope_head_dim);
    assert_int_equal(a->qkv_bias, b->qkv_bias);
    assert_int_equal(a->output_bias, b->output_bias);
    assert_int_equal(a->qk_norm, b->qk_norm);
    assert_int_equal(a->sinks, b->sinks);
}

static void expect_ffn(const struct ffn *a, const struct ffn *b)
{
    assert_int_equal(a->dense_width, b->dense_width);
    assert_int_equal(a->matrices, b->matrices);
    assert_int_equal(a->experts, b->experts);
    assert_int_equal(a->top_k, b->top_k);
    assert_int_equal(a->expert_width, b->expert_width);
    assert_int_equal(a->expert_io_width, b->expert_io_width);
    assert_int_equal(a->shared_width, b->shared_width);
    assert_int_equal(a->shared_gate, b->shared_gate);
    assert_int_equal(a->router_bias, b->router_bias);
    assert_int_equal(a->expert_bias, b->expert_bias);
}

/* The catalogue counts norms of queries and keys as long as one head; OLMoE's are as long as all. */
static void expect_layer(const struct layer *a, const struct layer *b, bool wide_norms)
{
    expect_attention(&a->attention, &b->attention);
    expect_ffn(&a->ffn, &b->ffn);
    for (int g = 0; g < GROUP_MAX; g++) {
        if (g == GROUP_OTHER && wide_norms)
            continue;
        assert_int_equal(a->params[g], b->params[g]);
        assert_int_equal(a->weight_bytes[g], b->weight_bytes[g]);
    }
    assert_int_equal(a->expert_params, b->expert_params);
    assert_int_equal(a->expert_bytes, b->expert_bytes);
    assert_int_equal(a->expert_bias_bytes, b->expert_bias_bytes);
}

/* Writes the model and imports it again: nothing has changed but where it comes from. */
static void expect_import(struct model *m, const char *architecture, const char *quant)
{
    struct model *back;
    const char *path = temp_path("import.gguf");
    write_synth(m, architecture, quant, 1, path);
    assert_ok(gguf_model_load(&back, path, &dg));
    assert_int_equal(back->layer_count, m->layer_count);
    assert_int_equal(back->hidden, m->hidden);
    assert_int_equal(back->vocab, m->vocab);
    assert_int_equal(back->max_context, m->max_context);
    assert_int_equal(back->tied_embeddings, m->tied_embeddings);
    assert_string_equal(back->title, m->name);
    assert_int_equal(back->bytes_embedding, m->bytes_embedding);
    assert_int_equal(back->bytes_head, m->bytes_head);
    assert_int_equal(back->bytes_final, m->bytes_final);
    bool wide = strstr(m->name, "olmoe") != NULL;
    for (size_t i = 0; i < m->layer_count; i++)
        expect_layer(&back->layers[i], &m->layers[i], wide);
    if (!wide)
        assert_int_equal(model_params_total(back), model_params_total(m));
    model_free(back);
}

static void what_fits_of_the_catalogue_comes_back_as_it_was(void **state)
{
    (void)state;
    char **names;
    size_t count, fitting = 0;
    assert_ok(model_catalogue(&names, &count, "models/desc", &dg));
    for (size_t i = 0; i < count; i++) {
        struct model *m;
        const struct synth_architecture *a;
        struct synth_figures small = small_figures;
        assert_ok(model_load(&m, names[i], "models/desc", NULL, 0, &dg));
        if (m->layers[0].attention.family != ATTENTION_MLA)
            small.head_dim = 64;
        assert_ok(synth_model_change(m, &small, &dg));
        enum status st = synth_architecture_pick(&a, m, NULL, &dg);
        if (st == ST_OK)
            expect_import(m, NULL, "q4_0");
        else
            assert_int_equal(st, ST_UNSUPPORTED);
        fitting += st == ST_OK;
        model_free(m);
    }
    assert_in_range(fitting, 18, count);
    model_catalogue_free(names, count);
}

static void each_architecture_is_chosen_for_the_model_it_is_named_after(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"qwen3-30b-a3b", "qwen3moe"}, {"mixtral-8x7b", "llama"}, {"qwen1.5-moe-a2.7b", "qwen2moe"},
        {"gpt-oss-20b", "gpt-oss"},    {"kimi-k2", "deepseek2"},  {"olmoe-1b-7b", "olmoe"},
        {"llama-3.1-8b", "llama"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct model *m;
        const struct synth_architecture *a;
        assert_ok(model_load(&m, cases[i][0], "models/desc", NULL, 0, &dg));
        assert_ok(synth_architecture_pick(&a, m, NULL, &dg));
        assert_string_equal(a->name, cases[i][1]);
        model_free(m);
    }
}

static void each_architecture_is_made_from_figures_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < synth_architecture_count(); i++) {
        const struct synth_architecture *a = synth_architecture_at(i);
        struct model *m;
        struct synth_figures small = small_figures;
        small.shared_width = a->shared ? small.shared_width : 0;
        assert_ok(synth_model_new(&m, a, &small, &dg));
        assert_int_equal(m->layer_count, 5);
        expect_import(m, a->name, "q8_0");
        model_free(m);
    }
}

/* Mean and deviation of a tensor, in units of 1 / sqrt(columns). */
static void measure(const struct opened *o, const char *file, const char *name, double *mean,
                    double *deviation)
{
    const struct gguf_tensor *t = gguf_tensor_find(o->g, name);
    assert_non_null(t);
    const struct block_format *f = block_format_find_gguf((uint32_t)t->format->gguf_type);
    float *weights = malloc(t->weights * sizeof *weights);
    assert_non_null(weights);
    block_dequantise(f, weights, file + t->offset, t->weights);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < t->weights; i++) {
        assert_true(isfinite(weights[i]));
        sum += (double)weights[i];
        squares += (double)weights[i] * (double)weights[i];
    }
    double root = sqrt((double)t->extent[0]);
    *mean = sum / (double)t->weights * root;
    *deviation = sqrt(squares / (double)t->weights) * root;
    free(weights);
}

static void weights_of_every_format_keep_the_size_of_what_they_multiply(void **state)
{
    (void)state;
    static const char *const quants[] = {"f32",    "f16",    "bf16",   "q4_0",      "q4_1",
                                         "q5_0",   "q5_1",   "q8_0",   "q2_k",      "q3_k_m",
                                         "q4_k_m", "q5_k_m", "q6_k",   "iq4_nl",    "iq4_xs",
                                         "q4_k_s", "q5_k_s", "q3_k_l", "mxfp4_moe", "mxfp4"};
    for (size_t i = 0; i < sizeof quants / sizeof quants[0]; i++) {
        const char *path = small_synth("formats.gguf", "qwen3moe", quants[i], 1);
        struct opened o = open_gguf(path);
        char *file = read_whole(path, NULL);
        static const char *const tensors[] = {"blk.0.ffn_down_exps.weight", "blk.4.attn_q.weight",
                                              "blk.4.ffn_up_exps.weight", "token_embd.weight",
                                              "blk.2.ffn_gate_inp.weight"};
        bool powers = strstr(quants[i], "mxfp4") != NULL;
        for (size_t k = 0; k < sizeof tensors / sizeof tensors[0]; k++) {
            double mean, deviation;
            measure(&o, file, tensors[k], &mean, &deviation);
            assert_close(mean, 0, 0.15);
            assert_close(deviation, 1, powers ? 0.45 : 0.1);
        }
        free(file);
        close_gguf(&o);
    }
}

static void norms_are_ones(void **state)
{
    (void)state;
    const char *path = small_synth("norms.gguf", "qwen3moe", "q4_0", 1);
    struct opened o = open_gguf(path);
    char *file = read_whole(path, NULL);
    const struct gguf_tensor *t = gguf_tensor_find(o.g, "blk.3.ffn_norm.weight");
    float weights[256];
    memcpy(weights, file + t->offset, sizeof weights);
    for (int i = 0; i < 256; i++)
        assert_true(weights[i] == 1);
    free(file);
    close_gguf(&o);
}

static int compare_rows(const void *a, const void *b, void *bytes)
{
    return memcmp(*(const char *const *)a, *(const char *const *)b, *(size_t *)bytes);
}

/* All rows of the experts of a file of 60 MB, far larger than the pool that they are taken from. */
static void no_two_rows_of_experts_are_alike(void **state)
{
    (void)state;
    struct model *m;
    const struct synth_architecture *a;
    struct synth_figures figures = small_figures;
    figures.layers = 1;
    figures.experts = 128;
    figures.hidden = 1024;
    figures.shared_width = 0;
    assert_ok(synth_architecture_named(&a, "llama", &dg));
    assert_ok(synth_model_new(&m, a, &figures, &dg));
    const char *path = temp_path("rows.gguf");
    write_synth(m, NULL, "q4_0", 1, path);
    model_free(m);
    struct opened o = open_gguf(path);
    char *file = read_whole(path, NULL);
    static const char *const names[] = {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight"};
    size_t bytes = 1024 / 32 * 18, count = 0, rows = 2 * 128 * 256;
    const char **row = malloc(rows * sizeof *row);
    assert_non_null(row);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < rows / 2; i++)
            row[count++] = file + gguf_tensor_find(o.g, names[k])->offset + i * bytes;
    qsort_r(row, rows, sizeof *row, compare_rows, &bytes);
    for (size_t i = 1; i < rows; i++)
        assert_true(memcmp(row[i - 1], row[i], bytes) != 0);
    free(row);
    free(file);
    close_gguf(&o);
}

static void the_seed_decides_every_byte(void **state)
{
    (void)state;
    size_t bytes[3];
    static const uint64_t seeds[] = {7, 7, 8};
    char *file[3];
    for (size_t i = 0; i < 3; i++)
        file[i] = read_whole(small_synth("seed.gguf", "gpt-oss", "mxfp4_moe", seeds[i]), &bytes[i]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(bytes[0], bytes[2]);
    assert_memory_equal(file[0], file[1], bytes[0]);
    size_t same = 0;
    for (size_t i = 0; i < bytes[0]; i++)
        same += file[0][i] == file[2][i];
    assert_true(same < bytes[0] / 4);
    for (size_t i = 0; i < 3; i++)
        free(file[i]);
}

/* Token by token as in the bundled model's file, which has the same 256 bytes. */
static void the_vocabulary_is_the_bytes_as_gpt_2_writes_them(void **state)
{
    (void)state;
    NEED_SHARED();
    char arguments[ARGUMENTS_MAX];
    const char *path = temp_path("vocabulary.gguf");
    expect_holds(fill_path(arguments,
                           "engine synth --architecture qwen3moe --layers 1 --hidden 64 --experts "
                           "2 --top-k 1 --expert-width 64 --heads 2 --vocab 260 --vocab-bytes "
                           "--quant q8_0 --out @",
                           path),
                 0, NULL, "qwen3moe, 1 layers x 2 experts, q8_0");
    struct gguf *ours, *theirs;
    struct gguf_array a, b, types;
    struct gguf_text x, y;
    assert_ok(gguf_open(&ours, path, &dg));
    assert_ok(gguf_open(&theirs, SHARED "tiny/tiny-q4_0.gguf", &dg));
    assert_true(gguf_get_array(ours, "tokenizer.ggml.tokens", &a) && a.count == 260);
    assert_true(gguf_get_array(theirs, "tokenizer.ggml.tokens", &b) && b.count == 256);
    while (gguf_array_take(&b, &y)) {
        assert_true(gguf_array_take(&a, &x) && x.length == y.length);
        assert_memory_equal(x.data, y.data, x.length);
    }
    assert_true(gguf_array_take(&a, &x) && gguf_text_is(x, "[PAD256]"));
    uint64_t type;
    assert_true(gguf_get_array(ours, "tokenizer.ggml.token_type", &types) && types.count == 260);
    assert_true(gguf_array_u64(&types, 255, &type) && type == 1);
    assert_true(gguf_array_u64(&types, 256, &type) && type == 5);
    gguf_close(ours);
    gguf_close(theirs);
}

static void what_cannot_be_made_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"glm-4.5-air", EXIT_FAILED, "glm-4.5-air cannot be written as"},
        {"qwen3.5-397b-a17b", EXIT_FAILED, "layer 0 has another family of attention"},
        {"deepseek-v3.2", EXIT_FAILED, "deepseek2: layer 0 has an indexer"},
        {"qwen3-30b-a3b --architecture llama", EXIT_FAILED,
         "qwen3-30b-a3b cannot be written as llama: layer 0 has norms of queries and keys"},
        {"qwen3-30b-a3b --architecture qwen9", EXIT_FAILED,
         "no architecture 'qwen9' can be made up: there are olmoe, qwen3moe"},
        {"qwen3-30b-a3b --layers 49", EXIT_FAILED, "has 48 layers, 49 were asked for"},
        {"qwen3-30b-a3b --layers 1 --experts 4", EXIT_FAILED,
         "memwall: --top-k: a token uses 8 experts of 4 in layer 0"},
        {"qwen3-30b-a3b --layers 1 --head-dim 3", EXIT_FAILED, "memwall: --head-dim: rotary"},
        {"qwen3-30b-a3b --layers 1 --heads 33", EXIT_FAILED, "memwall: the figures given: layer 0"},
        {"qwen3-30b-a3b --quant iq2_xs", EXIT_FAILED, "would be"},
        {"qwen3-30b-a3b --quant mlx4-g64", EXIT_FAILED, "GGUF has no format MLX"},
        {"deepseek-v3", EXIT_FAILED, "GGUF has no format FP8"},
        {"kimi-k2 --quant f32", EXIT_FAILED, "needs 4.1"},
        {"--layers 2", EXIT_MISUSE, "without MODEL, --architecture is needed"},
        {"--architecture llama --layers 2", EXIT_MISUSE, "without MODEL, --hidden is needed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char arguments[ARGUMENTS_MAX];
        const char *path = temp_path("refused.gguf");
        snprintf(arguments, sizeof arguments, "engine synth %s --out %s", cases[i].arguments, path);
        expect_refusal(arguments, cases[i].exit_code, cases[i].reason);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static enum status try_synth(const char *path)
{
    const struct synth_architecture *a;
    struct model *m;
    struct synth *s = NULL;
    struct synth_figures figures = small_figures;
    figures.layers = 1;
    enum status st = synth_architecture_named(&a, "qwen2moe", &dg);
    if (st == ST_OK)
        st = synth_model_new(&m, a, &figures, &dg);
    if (st != ST_OK)
        return st;
    st = synth_model_quantise(m, "q4_k_m", &dg);
    if (st == ST_OK)
        st = synth_new(&s, m, &(struct synth_options){.architecture = a}, path, &dg);
    uint64_t bytes;
    while (st == ST_OK && synth_left(s))
        st = synth_step(s, &bytes, &dg);
    if (st == ST_OK)
        st = synth_commit(s, &dg);
    else
        synth_abandon(s);
    model_free(m);
    return st;
}

static void any_allocation_that_fails_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1; n < 500; n++) {
        const char *path = temp_path("scarce.gguf");
        allocations_fail_at(n);
        enum status st = try_synth(path);
        allocations_fail_at(0);
        if (st == ST_OK) {
            assert_true(n > 10);
            return;
        }
        assert_true(st == ST_NO_MEMORY || st == ST_IO);
        assert_int_equal(access(path, F_OK), -1);
    }
    fail_msg("no allocation succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_of_the_catalogue_comes_back_as_it_was),
        cmocka_unit_test(each_architecture_is_chosen_for_the_model_it_is_named_after),
        cmocka_unit_test(each_architecture_is_made_from_figures_alone),
        cmocka_unit_test(weights_of_every_format_keep_the_size_of_what_they_multiply),
        cmocka_unit_test(norms_are_ones),
        cmocka_unit_test(no_two_rows_of_experts_are_alike),
        cmocka_unit_test(the_seed_decides_every_byte),
        cmocka_unit_test(the_vocabulary_is_the_bytes_as_gpt_2_writes_them),
        cmocka_unit_test(what_cannot_be_made_is_refused_with_the_reason),
        cmocka_unit_test(any_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

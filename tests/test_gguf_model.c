/* test_gguf_model.c -- GGUF files as models: sums against the tensor table, shapes against the writer. */
#include "models/gguf_model.h"

#include "base/pcg.h"
#include "tests/allocations.h"
#include "tests/gguf_writer.h"
#include "tests/support.h"

#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

enum { F32 = 0, Q8_0 = 8 };

static struct model *load(const char *path)
{
    struct diag dg;
    struct model *m = NULL;
    assert_ok(gguf_model_load(&m, path, &dg));
    return m;
}

static struct model *import(struct gguf_writer *w)
{
    const char *path = temp_path("model.gguf");
    writer_save(w, path);
    writer_end(w);
    return load(path);
}

static void assert_refused(struct gguf_writer *w, enum status status, const char *word)
{
    struct diag dg = {.text = ""};
    struct model *m;
    const char *path = temp_path("refused.gguf");
    writer_save(w, path);
    writer_end(w);
    enum status s = gguf_model_load(&m, path, &dg);
    if (s != status || !strstr(dg.text, word) || !strstr(dg.text, "refused.gguf"))
        fail_msg("expected '%s', got status %d: %s", word, s, dg.text);
}

/* A writer with the metadata that every model needs: hidden 32, 8 tokens. */
static void start(struct gguf_writer *w, const char *architecture, uint32_t layers)
{
    static const char *const keys[] = {"block_count", "context_length", "embedding_length",
                                       "attention.head_count"};
    const uint32_t values[] = {layers, 64, 32, 2};
    writer_start(w);
    writer_text(w, "general.architecture", architecture);
    for (size_t i = 0; i < 4; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s", architecture, keys[i]);
        writer_u32(w, key, values[i]);
    }
    writer_tensor(w, "token_embd.weight", Q8_0, 32, 8, 0);
    writer_tensor(w, "output_norm.weight", F32, 32, 0, 0);
}

static void matrix(struct gguf_writer *w, size_t layer, const char *name, uint64_t cols,
                   uint64_t rows)
{
    char full[80];
    snprintf(full, sizeof full, "blk.%zu.%s", layer, name);
    writer_tensor(w, full, F32, cols, rows, 0);
}

static void dense_ffn(struct gguf_writer *w, size_t layer)
{
    matrix(w, layer, "ffn_gate.weight", 32, 96);
    matrix(w, layer, "ffn_up.weight", 32, 96);
    matrix(w, layer, "ffn_down.weight", 96, 32);
}

static void gqa(struct gguf_writer *w, size_t layer)
{
    matrix(w, layer, "attn_q.weight", 32, 32);
    matrix(w, layer, "attn_k.weight", 32, 32);
    matrix(w, layer, "attn_v.weight", 32, 32);
    matrix(w, layer, "attn_output.weight", 32, 32);
}

static void check_extent(const struct gguf *g, const struct layer *l, size_t i,
                         enum expert_part part)
{
    static const char *const names[] = {"gate", "up", "down"};
    char name[64];
    snprintf(name, sizeof name, "blk.%zu.ffn_%s_exps.weight", i, names[part]);
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    const struct expert_extent *e = &l->extent[part];
    assert_non_null(t);
    assert_int_equal(e->offset, t->offset);
    assert_int_equal(e->type, t->format->gguf_type);
    assert_int_equal(e->bytes * l->ffn.experts, t->bytes);
    for (uint64_t expert = 0; expert < l->ffn.experts; expert++)
        assert_true(e->offset + expert * e->stride_bytes + e->bytes <= t->offset + t->bytes);
}

static void check_layer(const struct gguf *g, const struct model *m, size_t i)
{
    const struct layer *l = &m->layers[i];
    assert_true(l->attention.family == ATTENTION_GQA || l->attention.family == ATTENTION_MLA);
    if (l->ffn.experts == 0) {
        assert_true(l->ffn.dense_width > 0 && l->expert_bytes == 0);
        return;
    }
    uint64_t slices = 0;
    for (int part = 0; part < PART_MAX; part++) {
        check_extent(g, l, i, (enum expert_part)part);
        slices += l->extent[part].bytes;
    }
    assert_int_equal(l->expert_bytes, slices);
    assert_int_equal(l->weight_bytes[GROUP_EXPERT], l->ffn.experts * slices);
    assert_int_equal(l->params[GROUP_EXPERT], l->ffn.experts * l->expert_params);
    assert_int_equal(l->expert_params, 3 * l->ffn.expert_width * l->ffn.expert_io_width);
}

static void check_file(const char *path)
{
    struct diag dg;
    struct gguf *g;
    struct model *m = load(path);
    assert_ok(gguf_open(&g, path, &dg));
    uint64_t weights = 0, bytes = 0;
    for (size_t i = 0; i < gguf_tensor_count(g); i++) {
        weights += gguf_tensor_at(g, i)->weights;
        bytes += gguf_tensor_at(g, i)->bytes;
    }
    assert_int_equal(model_params_total(m), weights);
    assert_int_equal(model_weight_bytes(m), bytes);
    assert_int_equal(m->file_bytes, gguf_file_bytes(g, 0));
    assert_true(m->bytes_exact && m->file_bytes - gguf_data_offset(g, 0) - bytes < 32);
    for (size_t i = 0; i < m->layer_count; i++)
        check_layer(g, m, i);
    gguf_close(g);
    model_free(m);
}

static void totals_of_every_shared_file_are_the_sums_over_its_tensors(void **state)
{
    (void)state;
    NEED_SHARED();
    glob_t found;
    assert_int_equal(glob(SHARED "golden/*.gguf", 0, NULL, &found), 0);
    assert_int_equal(glob(SHARED "tiny/*.gguf", GLOB_APPEND, NULL, &found), 0);
    assert_true(found.gl_pathc >= 11);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_file(found.gl_pathv[i]);
    globfree(&found);
}

static void shapes_of_the_tiny_model_are_those_it_was_trained_with(void **state)
{
    (void)state;
    NEED_SHARED();
    struct model *m = load(SHARED "tiny/tiny-q4_0.gguf");
    const struct layer *l = &m->layers[7];
    assert_int_equal(m->layer_count, 8);
    assert_int_equal(m->hidden, 256);
    assert_int_equal(m->vocab, 256);
    assert_false(m->tied_embeddings);
    assert_int_equal(l->attention.heads, 4);
    assert_int_equal(l->attention.kv_heads, 2);
    assert_int_equal(l->attention.head_dim, 64);
    assert_true(l->attention.qk_norm && !l->attention.qkv_bias && l->attention.window == 0);
    assert_int_equal(l->ffn.experts, 32);
    assert_int_equal(l->ffn.top_k, 4);
    assert_int_equal(l->ffn.expert_width, 128);
    assert_int_equal(l->expert_bytes, 3 * 256 * 128 / 32 * 18);
    assert_string_equal(m->quant.name, "q4_0");
    assert_string_equal(m->quant.group[GROUP_HEAD]->name, "q6_k");
    assert_string_equal(m->quant.group[GROUP_EXPERT]->name, "q4_0");
    assert_string_equal(m->name, "tiny-q4-0");
    assert_int_equal(model_params_total(m), 26940672);
    model_free(m);
}

static void latent_attention_sinks_and_shared_experts_are_seen(void **state)
{
    (void)state;
    NEED_SHARED();
    struct model *m = load(SHARED "golden/deepseek3-f16.gguf");
    const struct attention *a = &m->layers[1].attention;
    assert_int_equal(a->family, ATTENTION_MLA);
    assert_true(a->q_lora_rank == 96 && a->kv_lora_rank == 128);
    assert_true(a->nope_head_dim == 64 && a->rope_head_dim == 32 && a->v_head_dim == 64);
    assert_true(m->layers[0].ffn.dense_width == 512 && m->layers[0].ffn.experts == 0);
    assert_true(m->layers[1].ffn.shared_width == 256 && m->layers[1].ffn.router_bias);
    model_free(m);
    m = load(SHARED "golden/gptoss-f16.gguf");
    a = &m->layers[0].attention;
    assert_true(a->sinks && a->qkv_bias && a->output_bias && a->window == 16);
    assert_int_equal(m->layers[1].attention.window, 0);
    assert_true(m->layers[0].ffn.expert_bias);
    assert_int_equal(m->layers[0].expert_bias_params, 3 * 256);
    assert_int_equal(m->layers[0].expert_bias_bytes, 4 * 3 * 256);
    model_free(m);
    m = load(SHARED "golden/qwen2moe-f16.gguf");
    assert_true(m->layers[0].ffn.shared_gate && m->layers[0].ffn.shared_width == 512);
    model_free(m);
}

/* llama.cpp's mix on a model of 8 experts, tensor by tensor. */
static void a_mix_predicts_every_format_of_a_file_made_by_another_quantiser(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct {
        const char *name;
        int group, part;
    } parts[] = {{"attn_q", GROUP_ATTENTION, QUANT_QUERY},
                 {"attn_k", GROUP_ATTENTION, QUANT_KEY},
                 {"attn_v", GROUP_ATTENTION, QUANT_VALUE},
                 {"attn_output", GROUP_ATTENTION, QUANT_ATTENTION_OUT},
                 {"ffn_gate_inp", GROUP_ROUTER, QUANT_ANY},
                 {"ffn_gate_exps", GROUP_EXPERT, QUANT_GATE},
                 {"ffn_up_exps", GROUP_EXPERT, QUANT_UP},
                 {"ffn_down_exps", GROUP_EXPERT, QUANT_DOWN}};
    struct diag dg;
    struct gguf *g;
    struct quant_mix mix;
    assert_ok(gguf_open(&g, SHARED "golden/qwen3moe-q4_k_m.gguf", &dg));
    assert_ok(quant_mix_find(&mix, "q4_k_m", &dg));
    mix.experts = 8;
    mix.heads_per_kv = 2;
    for (size_t i = 0; i < 3; i++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%zu.%s.weight", i, parts[p].name);
            const struct gguf_tensor *t = gguf_tensor_find(g, name);
            assert_ptr_equal(t->format,
                             quant_mix_format(&mix, parts[p].group, parts[p].part, i, 3));
            assert_int_equal(t->bytes, quant_mix_bytes(&mix, parts[p].group, parts[p].part, i, 3,
                                                       t->extent[1] * t->extent[2], t->extent[0]));
        }
    assert_ptr_equal(gguf_tensor_find(g, "output.weight")->format, mix.group[GROUP_HEAD]);
    gguf_close(g);
}

static void a_written_model_imports_with_tied_embeddings(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 2);
    struct model *m = import(&w);
    assert_true(m->tied_embeddings && m->params_head == 0 && m->bytes_head == 0);
    assert_int_equal(m->params_embedding, 256);
    assert_int_equal(m->bytes_embedding, 8 * 34);
    assert_int_equal(m->layers[1].params[GROUP_ROUTER], 128);
    assert_int_equal(m->layers[1].params[GROUP_OTHER], 64);
    assert_int_equal(m->layers[1].params[GROUP_ATTENTION], 32 * 96);
    assert_int_equal(m->layers[1].expert_bytes, 3 * 32 * 34);
    assert_ptr_equal(m->quant.group[GROUP_HEAD], quant_find("q8_0"));
    model_free(m);
}

static void mixed_formats_are_summed_layer_by_layer(void **state)
{
    (void)state;
    enum { Q4_0 = 2, Q5_0 = 6 };
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 2);
    for (size_t i = 0; i < w.tensors_used; i++) { /* smaller than Q8_0, so the places stay good */
        struct writer_tensor *t = &w.tensors[i];
        if (!strcmp(t->name, "blk.0.ffn_down_exps.weight"))
            t->type = Q5_0;
        else if (strstr(t->name, "exps"))
            t->type = Q4_0;
    }
    struct model *m = import(&w);
    assert_int_equal(m->layers[0].expert_bytes, 32 * (18 + 18 + 22));
    assert_int_equal(m->layers[1].expert_bytes, 32 * (18 + 18 + 18));
    assert_int_equal(model_experts_bytes(m), 4 * 32 * (58 + 54));
    assert_int_equal(model_token_cycle_bytes(m), 2 * 32 * (58 + 54));
    assert_int_equal(m->layers[0].extent[PART_DOWN].type, Q5_0);
    assert_string_equal(m->quant.name, "mixed");
    assert_string_equal(m->quant.group[GROUP_EXPERT]->name, "q4_0");
    model_free(m);
}

static void fused_gate_and_up_are_two_runs_of_one_tensor(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "qwen3moe", 1);
    writer_u32(&w, "qwen3moe.expert_count", 4);
    writer_u32(&w, "qwen3moe.expert_used_count", 1);
    gqa(&w, 0);
    uint64_t from_first = w.data_bytes;
    writer_tensor(&w, "blk.0.ffn_gate_up_exps.weight", Q8_0, 32, 128, 4);
    writer_tensor(&w, "blk.0.ffn_down_exps.weight", Q8_0, 64, 32, 4);
    uint64_t data_bytes = w.data_bytes;
    struct model *m = import(&w);
    const struct expert_extent *e = m->layers[0].extent;
    assert_int_equal(e[PART_GATE].bytes, 64 * 34);
    assert_int_equal(e[PART_GATE].stride_bytes, 128 * 34);
    assert_int_equal(e[PART_UP].offset, e[PART_GATE].offset + 64 * 34);
    assert_int_equal(e[PART_UP].stride_bytes, 128 * 34);
    assert_int_equal(e[PART_DOWN].offset, e[PART_GATE].offset + 4 * 128 * 34);
    assert_int_equal(m->file_bytes - e[PART_GATE].offset, data_bytes - from_first);
    assert_int_equal(m->layers[0].expert_params, 3 * 32 * 64);
    assert_int_equal(m->layers[0].ffn.matrices, 3);
    model_free(m);
}

static void experts_of_a_split_model_name_their_file(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    w.tensors_used = w.tensor_count = 2; /* the layer moves to the second part */
    writer_u32(&w, "split.no", 0);
    writer_u32(&w, "split.count", 2);
    const char *first = temp_path("parts-00001-of-00002.gguf");
    writer_save(&w, first);
    writer_end(&w);
    writer_start(&w);
    writer_u32(&w, "split.no", 1);
    writer_u32(&w, "split.count", 2);
    writer_qwen3moe_layer(&w, 0);
    writer_save(&w, temp_path("parts-00002-of-00002.gguf"));
    writer_end(&w);
    struct model *m = load(first);
    assert_int_equal(m->layers[0].extent[PART_UP].file, 1);
    assert_string_equal(m->name, "parts");
    model_free(m);
}

static void layers_of_predicted_tokens_are_left_out(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 3);
    writer_u32(&w, "qwen3moe.nextn_predict_layers", 1);
    matrix(&w, 1, "nextn.eh_proj.weight", 64, 32);
    struct model *m = import(&w);
    writer_start(&w);
    writer_qwen3moe(&w, 2);
    struct model *same = import(&w);
    assert_int_equal(m->layer_count, 2);
    assert_int_equal(model_weight_bytes(m), model_weight_bytes(same));
    assert_true(m->file_bytes > same->file_bytes);
    model_free(m);
    model_free(same);
}

static void linear_layers_stand_beside_gated_full_ones(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "qwen3next", 2);
    writer_u32(&w, "qwen3next.attention.key_length", 16);
    writer_u32(&w, "qwen3next.attention.value_length", 16);
    writer_u32(&w, "qwen3next.ssm.conv_kernel", 4);
    writer_u32(&w, "qwen3next.ssm.state_size", 8);
    writer_u32(&w, "qwen3next.ssm.group_count", 2);
    writer_u32(&w, "qwen3next.ssm.time_step_rank", 4);
    writer_u32(&w, "qwen3next.ssm.inner_size", 32);
    matrix(&w, 0, "attn_qkv.weight", 32, 64);
    matrix(&w, 0, "ssm_conv1d.weight", 4, 64);
    matrix(&w, 0, "ssm_out.weight", 32, 32);
    writer_tensor(&w, "blk.0.ssm_a", F32, 4, 0, 0);
    dense_ffn(&w, 0);
    matrix(&w, 1, "attn_q.weight", 32, 64); /* query and gate */
    matrix(&w, 1, "attn_k.weight", 32, 32);
    matrix(&w, 1, "attn_v.weight", 32, 32);
    matrix(&w, 1, "attn_output.weight", 32, 32);
    dense_ffn(&w, 1);
    struct model *m = import(&w);
    const struct attention *a = &m->layers[0].attention;
    assert_int_equal(a->family, ATTENTION_LINEAR);
    assert_int_equal(a->linear_kind, LINEAR_DELTA_NET);
    assert_true(a->linear_key_heads == 2 && a->linear_key_dim == 8);
    assert_true(a->linear_value_heads == 4 && a->linear_value_dim == 8 && a->conv_kernel == 4);
    assert_int_equal(m->layers[0].params[GROUP_ATTENTION], 32 * 64 + 4 * 64 + 32 * 32);
    assert_int_equal(m->layers[0].params[GROUP_OTHER], 4);
    assert_int_equal(m->layers[1].attention.family, ATTENTION_GQA);
    assert_true(m->layers[1].attention.output_gate);
    assert_true(m->layers[1].ffn.dense_width == 96 && m->layers[1].ffn.matrices == 3);
    model_free(m);
}

static void kimi_layers_are_delta_attention_or_latent(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "kimi-linear", 2);
    writer_u32(&w, "kimi-linear.kda.head_dim", 16);
    writer_u32(&w, "kimi-linear.ssm.conv_kernel", 4);
    writer_u32(&w, "kimi-linear.attention.kv_lora_rank", 24);
    writer_u32(&w, "kimi-linear.rope.dimension_count", 8);
    writer_u32(&w, "kimi-linear.attention.key_length", 32);
    writer_u32(&w, "kimi-linear.attention.value_length", 24);
    writer_u32(&w, "kimi-linear.attention.key_length_mla", 20);
    writer_u32(&w, "kimi-linear.attention.value_length_mla", 16);
    gqa(&w, 0);
    matrix(&w, 0, "ssm_conv1d_q.weight", 4, 32);
    matrix(&w, 0, "ssm_f_a.weight", 32, 16);
    matrix(&w, 0, "ssm_g_a.weight", 32, 12);
    dense_ffn(&w, 0);
    matrix(&w, 1, "attn_q.weight", 32, 40);
    matrix(&w, 1, "attn_kv_a_mqa.weight", 32, 32);
    matrix(&w, 1, "attn_output.weight", 32, 32);
    dense_ffn(&w, 1);
    struct model *m = import(&w);
    const struct attention *a = &m->layers[0].attention;
    assert_true(a->family == ATTENTION_LINEAR && a->linear_kind == LINEAR_KDA);
    assert_true(a->linear_key_heads == 2 && a->linear_value_dim == 16 && a->linear_gate_rank == 12);
    a = &m->layers[1].attention;
    assert_int_equal(a->family, ATTENTION_MLA);
    assert_true(a->nope_head_dim == 12 && a->rope_head_dim == 8 && a->v_head_dim == 16);
    assert_true(a->q_lora_rank == 0);
    model_free(m);
}

static void indexers_are_owned_borrowed_or_absent(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "glm-dsa", 2);
    writer_u32(&w, "glm-dsa.attention.q_lora_rank", 24);
    writer_u32(&w, "glm-dsa.attention.kv_lora_rank", 24);
    writer_u32(&w, "glm-dsa.rope.dimension_count", 8);
    writer_u32(&w, "glm-dsa.attention.key_length", 20);
    writer_u32(&w, "glm-dsa.attention.value_length", 16);
    writer_u32(&w, "glm-dsa.attention.indexer.head_count", 3);
    writer_u32(&w, "glm-dsa.attention.indexer.key_length", 12);
    writer_u32(&w, "glm-dsa.attention.indexer.top_k", 5);
    for (size_t i = 0; i < 2; i++) {
        matrix(&w, i, "attn_q_a.weight", 32, 24);
        matrix(&w, i, "attn_kv_a_mqa.weight", 32, 32);
        dense_ffn(&w, i);
    }
    matrix(&w, 0, "indexer.attn_q_b.weight", 24, 36);
    matrix(&w, 0, "indexer.k_norm.weight", 12, 0);
    struct model *m = import(&w);
    const struct attention *a = &m->layers[0].attention;
    assert_true(a->index_heads == 3 && a->index_dim == 12 && a->index_top_k == 5);
    assert_true(!a->index_borrowed && m->layers[1].attention.index_borrowed);
    assert_int_equal(a->q_lora_rank, 24);
    assert_int_equal(m->layers[0].params[GROUP_INDEXER], 24 * 36 + 12);
    model_free(m);
}

static void compressed_layers_have_ratios_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {{"q_lora_rank", 24},        {"key_length", 16},    {"output_lora_rank", 8},
                {"output_group_count", 2},  {"sliding_window", 6}, {"indexer.head_count", 3},
                {"indexer.key_length", 12}, {"indexer.top_k", 5}};
    struct gguf_writer w;
    start(&w, "deepseek4", 2);
    writer_u32(&w, "deepseek4.rope.dimension_count", 8);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[80];
        snprintf(key, sizeof key, "deepseek4.attention.%s", keys[i].key);
        writer_u32(&w, key, keys[i].value);
    }
    writer_key(&w, "deepseek4.attention.compress_ratios", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_U32);
    writer_u64_raw(&w, 2);
    writer_u32_raw(&w, 4);
    writer_u32_raw(&w, 128);
    for (size_t i = 0; i < 2; i++) {
        matrix(&w, i, "attn_q_a.weight", 32, 24);
        dense_ffn(&w, i);
    }
    matrix(&w, 0, "indexer.proj.weight", 32, 3);
    matrix(&w, 0, "indexer_compressor_kv.weight", 32, 12);
    struct model *m = import(&w);
    const struct attention *a = &m->layers[0].attention, *b = &m->layers[1].attention;
    assert_true(a->family == ATTENTION_COMPRESSED && a->compress_ratio == 4);
    assert_true(a->window == 6 && a->o_groups == 2 && a->o_lora_rank == 8 && a->index_heads == 3);
    assert_true(b->compress_ratio == 128 && b->index_heads == 0 && b->window == 6);
    assert_int_equal(m->layers[0].params[GROUP_INDEXER], 32 * 15);
    model_free(m);
}

static void windows_come_from_the_file_or_from_the_custom_of_the_architecture(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "gemma4", 2);
    writer_u32(&w, "gemma4.attention.key_length", 32);
    writer_u32(&w, "gemma4.attention.value_length", 32);
    writer_u32(&w, "gemma4.attention.key_length_swa", 16);
    writer_u32(&w, "gemma4.attention.value_length_swa", 16);
    writer_u32(&w, "gemma4.attention.sliding_window", 10);
    writer_key(&w, "gemma4.attention.sliding_window_pattern", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_BOOL);
    writer_u64_raw(&w, 2);
    writer_bytes(&w, "\1\0", 2);
    writer_key(&w, "gemma4.attention.head_count_kv", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_I32);
    writer_u64_raw(&w, 2);
    writer_u32_raw(&w, 2);
    writer_u32_raw(&w, 1);
    gqa(&w, 0);
    dense_ffn(&w, 0);
    matrix(&w, 1, "attn_q.weight", 32, 64);
    matrix(&w, 1, "attn_k.weight", 32, 32);
    matrix(&w, 1, "attn_output.weight", 64, 32);
    dense_ffn(&w, 1);
    struct model *m = import(&w);
    const struct attention *near = &m->layers[0].attention, *global = &m->layers[1].attention;
    assert_true(near->window == 10 && near->head_dim == 16 && near->kv_heads == 2);
    assert_true(global->window == 0 && global->head_dim == 32 && global->kv_heads == 1);
    assert_true(global->keys_are_values && !near->keys_are_values);
    model_free(m);
    start(&w, "llama4", 4);
    for (size_t i = 0; i < 4; i++)
        gqa(&w, i), dense_ffn(&w, i);
    m = import(&w);
    assert_int_equal(m->layers[0].attention.window, 8192);
    assert_int_equal(m->layers[3].attention.window, 0);
    model_free(m);
}

static void a_key_that_is_missing_is_named(void **state)
{
    (void)state;
    static const char *const keys[] = {"general.architecture",          "qwen3moe.block_count",
                                       "qwen3moe.context_length",       "qwen3moe.embedding_length",
                                       "qwen3moe.attention.head_count", "qwen3moe.expert_count",
                                       "qwen3moe.expert_used_count"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct gguf_writer w;
        writer_start(&w);
        writer_qwen3moe(&w, 1);
        for (size_t at = 0; at + strlen(keys[i]) <= w.key_bytes; at++) /* spoils the name */
            if (!memcmp(w.keys + at, keys[i], strlen(keys[i])) && w.keys[at - 8] == strlen(keys[i]))
                w.keys[at + strlen(keys[i]) - 1] = '?';
        char word[80];
        snprintf(word, sizeof word, "'%s' is missing", keys[i]);
        assert_refused(&w, ST_PARSE, word);
    }
    struct gguf_writer w;
    start(&w, "gpt-oss", 1);
    gqa(&w, 0);
    assert_refused(&w, ST_PARSE, "'gpt-oss.attention.sliding_window' is missing");
}

static void an_unknown_architecture_is_named_with_a_hint(void **state)
{
    (void)state;
    struct gguf_writer w;
    start(&w, "qwen3mow", 1);
    assert_refused(&w, ST_UNSUPPORTED, "'qwen3mow' is not known; nearest is 'qwen3moe'");
    start(&w, "rwkv7", 1);
    assert_refused(&w, ST_UNSUPPORTED, "'rwkv7'");
}

static void edit_tensor(struct gguf_writer *w, const char *name, const char *new_name,
                        size_t extent, uint64_t value)
{
    writer_start(w);
    writer_qwen3moe(w, 1);
    for (size_t i = 0; i < w->tensors_used; i++)
        if (!strcmp(w->tensors[i].name, name)) {
            snprintf(w->tensors[i].name, sizeof w->tensors[i].name, "%s", new_name);
            if (value)
                w->tensors[i].extent[extent] = value;
            return;
        }
    fail_msg("%s is not there", name);
}

static void tensors_that_contradict_the_metadata_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *new_name;
        size_t extent;
        uint64_t value;
        const char *word;
    } lies[] = {
        {"blk.0.attn_q.weight", "blk.0.attn_q.weight", 1, 16, "blk.0.attn_q.weight"},
        {"blk.0.attn_k.weight", "blk.0.attn_k.weight", 1, 8, "blk.0.attn_k.weight"},
        {"blk.0.ffn_up_exps.weight", "blk.0.ffn_up_exps.weight", 2, 3, "must hold 4 experts"},
        {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_gate_exps.weight", 1, 16, "ffn_gate_exps"},
        {"blk.0.ffn_down_exps.weight", "blk.0.ffn_down_exps.weight", 2, 2, "expert_count"},
        {"blk.0.ffn_gate_inp.weight", "blk.0.ffn_gate_inp.weight", 1, 3, "ffn_gate_inp"},
        {"blk.0.ffn_up_exps.weight", "blk.0.other.weight", 0, 0, "either ffn_up_exps"},
        {"blk.0.ffn_up_exps.weight", "blk.7.ffn_up_exps.weight", 0, 0, "beyond block_count"},
        {"token_embd.weight", "other.weight", 0, 0, "'token_embd.weight' is missing"},
        {"blk.0.ffn_up_exps.weight", "blk.0.ffn_down.0.weight", 0, 0, "convert the model again"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct gguf_writer w;
        edit_tensor(&w, lies[i].name, lies[i].new_name, lies[i].extent, lies[i].value);
        bool old = strstr(lies[i].word, "convert");
        assert_refused(&w, old ? ST_UNSUPPORTED : ST_PARSE, lies[i].word);
    }
    struct gguf_writer w;
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    w.keys[w.key_bytes - 4] = 5; /* expert_used_count, the last key: one more than there are */
    assert_refused(&w, ST_PARSE, "from 1 to the number of experts");
    start(&w, "llama", 2);
    gqa(&w, 0);
    assert_refused(&w, ST_PARSE, "layer 1 of 2 has no tensors");
}

static void mutated_metadata_never_crashes_the_import(void **state)
{
    (void)state;
    struct pcg p;
    struct gguf_writer w;
    size_t bytes;
    unsigned imported = 0;
    pcg_stream(&p, 2, "test/gguf_model");
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    size_t keys = w.key_bytes;
    unsigned char *file = writer_build(&w, &bytes);
    writer_end(&w);
    char path[64];
    int fd = memfd_create("gguf", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(write(fd, file, bytes), bytes);
    for (unsigned round = 0; round < 5000; round++) {
        struct model *m;
        struct diag dg = {.text = ""};
        unsigned char byte = (unsigned char)pcg_below(&p, pcg_below(&p, 2) ? 256 : 8);
        off_t at = 24 + (off_t)pcg_below(&p, (uint32_t)keys);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        if (gguf_model_load(&m, path, &dg) == ST_OK) {
            imported++;
            model_free(m);
        } else {
            assert_true(*dg.text != 0);
        }
        assert_int_equal(pwrite(fd, file + at, 1, at), 1);
    }
    assert_true(imported > 0 && imported < 5000);
    close(fd);
    free(file);
}

static void each_allocation_may_fail_once(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    struct gguf_writer w;
    const char *path = temp_path("memory.gguf");
    writer_start(&w);
    writer_qwen3moe(&w, 3);
    writer_save(&w, path);
    writer_end(&w);
    size_t failed = 0;
    for (size_t n = 1;; n++) {
        struct model *m;
        struct diag dg = {.text = ""};
        allocations_fail_at(n);
        enum status s = gguf_model_load(&m, path, &dg);
        allocations_fail_at(0);
        if (s == ST_OK) {
            model_free(m);
            break;
        }
        assert_int_equal(s, ST_NO_MEMORY);
        failed++;
    }
    assert_true(failed >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_every_shared_file_are_the_sums_over_its_tensors),
        cmocka_unit_test(shapes_of_the_tiny_model_are_those_it_was_trained_with),
        cmocka_unit_test(latent_attention_sinks_and_shared_experts_are_seen),
        cmocka_unit_test(a_mix_predicts_every_format_of_a_file_made_by_another_quantiser),
        cmocka_unit_test(a_written_model_imports_with_tied_embeddings),
        cmocka_unit_test(mixed_formats_are_summed_layer_by_layer),
        cmocka_unit_test(fused_gate_and_up_are_two_runs_of_one_tensor),
        cmocka_unit_test(experts_of_a_split_model_name_their_file),
        cmocka_unit_test(layers_of_predicted_tokens_are_left_out),
        cmocka_unit_test(linear_layers_stand_beside_gated_full_ones),
        cmocka_unit_test(kimi_layers_are_delta_attention_or_latent),
        cmocka_unit_test(indexers_are_owned_borrowed_or_absent),
        cmocka_unit_test(compressed_layers_have_ratios_of_their_own),
        cmocka_unit_test(windows_come_from_the_file_or_from_the_custom_of_the_architecture),
        cmocka_unit_test(a_key_that_is_missing_is_named),
        cmocka_unit_test(an_unknown_architecture_is_named_with_a_hint),
        cmocka_unit_test(tensors_that_contradict_the_metadata_are_refused),
        cmocka_unit_test(mutated_metadata_never_crashes_the_import),
        cmocka_unit_test(each_allocation_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

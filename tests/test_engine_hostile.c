/* test_engine_hostile.c -- a model file that is cut short, lacks a tensor, or says what cannot be, is refused when it
 * is opened, with one line that names it. */
#include "tests/engine_rig.h"
#include "tests/gguf_edit.h"
#include "tests/support.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#define MODEL SHARED "golden/qwen3moe-q4_0.gguf"

/* Opens the file and, if that goes, runs a few tokens. */
static enum status run_file(const char *path, struct diag *dg)
{
    uint32_t prompt[GOLDEN_TOKENS];
    struct engine_rig r = {.path = path};
    golden_prompt(prompt);
    *dg = (struct diag){0};
    enum status st = engine_rig_open(&r, dg);
    if (st == ST_OK)
        st = engine_rig_prompt(&r, prompt, 4, NULL, dg);
    engine_rig_close(&r);
    return st;
}

/* Refused, with one line that has the path and `reason` in it. */
static void expect_refused(const char *path, const char *reason)
{
    struct diag dg;
    if (run_file(path, &dg) == ST_OK)
        fail_msg("not refused: %s", reason);
    if (!strstr(dg.text, path) || !strstr(dg.text, reason) || strchr(dg.text, '\n'))
        fail_msg("expected '%s', not: %s", reason, dg.text);
}

static void expect_edit_refused(struct gguf_edit *e, const char *reason)
{
    const char *path = temp_path("edited.gguf");
    gguf_edit_save(e, path);
    expect_refused(path, reason);
    unlink(path);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    struct gguf_edit e;
    gguf_edit_load(&e, MODEL);
    const char *path = temp_path("cut.gguf");
    size_t header = gguf_edit_header_bytes(&e);
    gguf_edit_save(&e, path);
    for (size_t i = gguf_edit_tensors(&e); i-- > 0;) {
        char name[128];
        gguf_edit_name(&e, i, name);
        off_t offset = (off_t)(gguf_edit_get(&e, name).offset + (header + 31) / 32 * 32);
        for (off_t past = 1; past >= -1; past--) {
            assert_int_equal(truncate(path, offset + past), 0);
            expect_refused(path, "");
        }
    }
    for (size_t cut = header; cut-- > 0; cut -= cut % 3) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        expect_refused(path, "");
    }
    unlink(path);
    gguf_edit_free(&e);
}

/* What is done to each tensor in turn; false: it is left alone, or the model is still sound without. */
typedef bool damage_fn(struct gguf_edit *e, const char *name, char reason[64]);

static void damage_each_tensor(const char *model, damage_fn *damage)
{
    struct gguf_edit whole;
    gguf_edit_load(&whole, model);
    for (size_t i = 0; i < gguf_edit_tensors(&whole); i++) {
        struct gguf_edit e;
        char name[128], reason[64] = "";
        gguf_edit_load(&e, model);
        gguf_edit_name(&e, i, name);
        if (damage(&e, name, reason))
            expect_edit_refused(&e, reason);
        gguf_edit_free(&e);
    }
    gguf_edit_free(&whole);
}

static void for_each_tensor(damage_fn *damage)
{
    damage_each_tensor(MODEL, damage);
}

static bool drop(struct gguf_edit *e, const char *name, char reason[64])
{
    gguf_edit_drop(e, name);
    /* Sizes are learnt from some; without one of those another tensor has the wrong shape. */
    static const char *const learnt_from[] = {"_exps.weight", "_shexp.weight", "attn_q_a.weight",
                                              "ffn_down.weight"};
    bool needed_first = false;
    for (size_t i = 0; i < sizeof learnt_from / sizeof *learnt_from; i++)
        needed_first = needed_first || strstr(name, learnt_from[i]);
    snprintf(reason, 64, "%.60s", needed_first ? "" : name);
    return strcmp(name, "output.weight") != 0; /* then the embedding is the head */
}

static bool rename_it(struct gguf_edit *e, const char *name, char reason[64])
{
    char as[128];
    snprintf(as, sizeof as, "%s", name);
    as[strlen(as) - 1] = 'd';
    gguf_edit_rename(e, name, as);
    bool needed_first =
        strstr(name, "token_embd") || strstr(name, "_exps") || strstr(name, "attn_q.");
    snprintf(reason, 64, "%.60s", needed_first ? "" : as);
    return true;
}

static bool take_a_row(struct gguf_edit *e, const char *name, char reason[64])
{
    struct gguf_edit_tensor t = gguf_edit_get(e, name);
    t.extent[t.dims - 1] -= t.dims == 1 ? 32 : 1;
    gguf_edit_put(e, name, &t);
    bool elsewhere = strstr(name, "token_embd") || strstr(name, "_exps");
    snprintf(reason, 64, "%.60s", elsewhere ? "" : name);
    return true;
}

static bool take_a_format(struct gguf_edit *e, const char *name, char reason[64])
{
    struct gguf_edit_tensor t = gguf_edit_get(e, name);
    t.type = 16; /* IQ2_XXS, smaller than all of the model's */
    gguf_edit_put(e, name, &t);
    snprintf(reason, 64, "has a format that no kernel computes with");
    return t.extent[0] % 256 == 0;
}

static void a_tensor_that_is_missing_is_named(void **state)
{
    (void)state;
    NEED_SHARED();
    for_each_tensor(drop);
}

/* Whatever an architecture has that others do not: sinks, biases, a gate of the shared expert, latents. */
static void a_tensor_that_is_missing_is_named_in_every_architecture(void **state)
{
    (void)state;
    NEED_SHARED();
    static const char *const models[] = {"gptoss-f16", "qwen2moe-f16", "deepseek3-f16",
                                         "mixtral-q4_k_m"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[100];
        snprintf(path, sizeof path, SHARED "golden/%s.gguf", models[i]);
        damage_each_tensor(path, drop);
    }
}

static void a_tensor_that_nothing_uses_is_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    for_each_tensor(rename_it);
}

static void a_tensor_of_another_shape_is_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    for_each_tensor(take_a_row);
}

static void a_format_without_kernels_is_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    for_each_tensor(take_a_format);
}

#define NOT_A_NUMBER 0x7fc00000u
#define INFINITE     0x7f800000u
#define MINUS_ONE    0xbf800000u

static void metadata_that_cannot_be_are_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct {
        const char *key;
        uint32_t value;
        const char *reason;
    } rows[] = {
        {"attention.head_count", 0, "head_count"},
        {"attention.head_count", 3, "head_count"},
        {"attention.head_count", UINT32_MAX, "head_count"},
        {"attention.head_count_kv", 0, "head_count"},
        {"attention.head_count_kv", 4, "attn_k"},
        {"attention.key_length", 0, "attn_q"},
        {"attention.key_length", 63, "attn_q"},
        {"attention.value_length", 0, "attn_v"},
        {"attention.value_length", UINT32_MAX, "value_length"},
        {"attention.layer_norm_rms_epsilon", NOT_A_NUMBER, "out of range"},
        {"attention.layer_norm_rms_epsilon", INFINITE, "out of range"},
        {"attention.layer_norm_rms_epsilon", MINUS_ONE, "out of range"},
        {"rope.freq_base", NOT_A_NUMBER, "out of range"},
        {"rope.freq_base", 0, "out of range"},
        {"expert_used_count", 0, "expert_used_count"},
        {"expert_used_count", 9, "expert_used_count"},
        {"expert_used_count", UINT32_MAX, "expert_used_count"},
        {"expert_count", 0, "expert_count"},
        {"expert_count", 65536, "expert_count"},
        {"embedding_length", 0, "embedding_length"},
        {"embedding_length", 255, "embedding_length"},
        {"block_count", 0, "block_count"},
        {"block_count", 2, "block_count"},
        {"block_count", 4, "layer 3"},
        {"block_count", UINT32_MAX, "block_count"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_edit e;
        char key[128];
        gguf_edit_load(&e, MODEL);
        snprintf(key, sizeof key, "qwen3moe.%s", rows[i].key);
        gguf_edit_set_u32(&e, key, rows[i].value);
        expect_edit_refused(&e, rows[i].reason);
        gguf_edit_free(&e);
    }
}

static void metadata_that_no_engine_can_follow_are_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct {
        const char *key;
        uint32_t value;
        const char *reason; /* NULL: it is sound */
    } rows[] = {
        {"rope.dimension_count", 63, "must be even"},
        {"rope.dimension_count", 0, "out of range"},
        {"rope.dimension_count", 66, "out of range"},
        {"rope.dimension_count", 32, NULL},
        {"expert_group_count", 3, "must divide"},
        {"expert_group_count", 300, "above the 256"},
        {"expert_group_count", 4, NULL},
        {"expert_gating_func", 0, "out of range"},
        {"expert_gating_func", 9, "out of range"},
        {"nextn_predict_layers", 3, "nextn_predict_layers"},
        {"nextn_predict_layers", 1, NULL},
        {"attention.scale", 2, "attention.scale' changes what is computed"},
        {"attention.scale", 0, NULL},
        {"logit_scale", 3, "logit_scale' changes what is computed"},
        {"logit_scale", 1, NULL},
        {"final_logit_softcapping", 30, "final_logit_softcapping' changes what is computed"},
        {"attention.sliding_window", 8, "has no windows"},
        {"attention.sliding_window", 1 << 30, NULL}, /* as wide as the context */
        {"attention.sliding_window", 0, NULL},
        {"rope.scaling.factor", 0, "rope.scaling.factor"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_edit e;
        struct diag dg;
        char key[128];
        gguf_edit_load(&e, MODEL);
        snprintf(key, sizeof key, "qwen3moe.%s", rows[i].key);
        gguf_edit_add_u32(&e, key, rows[i].value);
        const char *path = temp_path("added.gguf");
        gguf_edit_save(&e, path);
        if (rows[i].reason)
            expect_refused(path, rows[i].reason);
        else if (run_file(path, &dg) != ST_OK)
            fail_msg("%s = %u: %s", key, rows[i].value, dg.text);
        unlink(path);
        gguf_edit_free(&e);
    }
}

/* The file has holes where the tensors are: a header may say much and weigh little. */
static void more_experts_than_ids_have_room_for_are_refused(void **state)
{
    (void)state;
    NEED_SHARED();
    static const char *const parts[] = {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps",
                                        "ffn_down_exps"};
    struct gguf_edit e;
    uint64_t offset = UINT64_C(1) << 30;
    gguf_edit_load(&e, MODEL);
    gguf_edit_set_u32(&e, "qwen3moe.expert_count", 65537);
    for (int layer = 0; layer < 3; layer++)
        for (int p = 0; p < 4; p++, offset += UINT64_C(4) << 30) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, parts[p]);
            struct gguf_edit_tensor t = gguf_edit_get(&e, name);
            t.extent[t.dims - 1] = 65537;
            t.offset = offset;
            gguf_edit_put(&e, name, &t);
        }
    const char *path = temp_path("holes.gguf");
    gguf_edit_save(&e, path);
    assert_int_equal(truncate(path, (off_t)offset), 0);
    expect_refused(path, "3 of 65537 experts: expected at most 256 of 65536");
    unlink(path);
    gguf_edit_free(&e);
}

/* llama.cpp takes a factor without a type as linear; old files call it rope.scale_linear. */
static void a_factor_without_a_type_is_linear(void **state)
{
    (void)state;
    NEED_SHARED();
    static const char *const keys[] = {"qwen3moe.rope.scaling.factor",
                                       "qwen3moe.rope.scale_linear"};
    for (size_t i = 0; i < 2; i++) {
        struct gguf_edit e;
        struct diag dg;
        struct graph_weights *w;
        const char *path = temp_path("linear.gguf");
        gguf_edit_load(&e, MODEL);
        gguf_edit_add_u32(&e, keys[i], 4);
        gguf_edit_save(&e, path);
        assert_ok(graph_weights_load(&w, path, NULL, NULL, &dg));
        assert_close(w->numbers.rope.factor, 4, 0);
        assert_int_equal(w->numbers.rope.original, 0);
        graph_weights_free(w);
        unlink(path);
        gguf_edit_free(&e);
    }
}

/* The first number of a tensor of F32. */
static void spoil(struct gguf_edit *e, const char *tensor)
{
    const float not_a_number = NAN;
    size_t data = (gguf_edit_header_bytes(e) + 31) / 32 * 32;
    memcpy(e->bytes + data + gguf_edit_get(e, tensor).offset, &not_a_number, sizeof not_a_number);
}

/* Also where no token is asked for, and before a trace has been told. */
static void weights_that_are_not_numbers_end_the_run(void **state)
{
    (void)state;
    NEED_SHARED();
    static const struct {
        const char *tensor, *reason;
    } rows[] = {
        {"blk.1.ffn_norm.weight", "layer 1, token 0: the router's weights are not numbers"},
        {"output_norm.weight", "token 0: the logit of 0 is not a number"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct gguf_edit e;
        char *model = strdup(temp_path("spoilt.gguf")), *trace = strdup(temp_path("spoilt.csv"));
        char command[900];
        assert_true(model && trace);
        gguf_edit_load(&e, MODEL);
        spoil(&e, rows[i].tensor);
        gguf_edit_save(&e, model);
        snprintf(command, sizeof command, "engine run %s --tokens 5 --generate 0 --trace-out %s",
                 model, trace);
        struct run r = run_memwall(command);
        assert_int_equal(r.exit_code, 1);
        if (!strstr(r.err, rows[i].reason))
            fail_msg("expected '%s', not: %s", rows[i].reason, r.err);
        assert_int_equal(access(trace, F_OK), -1);
        run_free(&r);
        unlink(model);
        gguf_edit_free(&e);
        free(model);
        free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_tensor_that_is_missing_is_named),
        cmocka_unit_test(a_tensor_that_is_missing_is_named_in_every_architecture),
        cmocka_unit_test(a_tensor_that_nothing_uses_is_refused),
        cmocka_unit_test(a_tensor_of_another_shape_is_refused),
        cmocka_unit_test(a_format_without_kernels_is_refused),
        cmocka_unit_test(metadata_that_cannot_be_are_refused),
        cmocka_unit_test(metadata_that_no_engine_can_follow_are_refused),
        cmocka_unit_test(a_factor_without_a_type_is_linear),
        cmocka_unit_test(weights_that_are_not_numbers_end_the_run),
        cmocka_unit_test(more_experts_than_ids_have_room_for_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

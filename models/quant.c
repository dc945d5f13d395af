/* quant.c -- the table of weight formats, and the mixes as rules over it.
 *
 * Both are data: a format is a row of `formats`, a mix a row of `mixes` with a list of rules that is
 * read from the top until one applies. The lists follow the if-chains of llama.cpp's quantiser, so a
 * GGUF file that it wrote has the same format in every matrix.
 */
#include "models/quant.h"

#include "models/model.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static_assert(QUANT_GROUPS == GROUP_MAX, "a mix has one format a tensor group");
static_assert(QUANT_GATE == (int)PART_GATE && QUANT_UP == (int)PART_UP &&
                  QUANT_DOWN == (int)PART_DOWN,
              "expert parts are quantisation parts");

#define PLAIN(bytes)        1, 1, 2 * (bytes)
#define ROW(weights, bytes) 1, weights, 2 * (bytes)

static const struct quant_format formats[] = {
    {"f32", "F32", PLAIN(4), 0},
    {"f16", "F16", PLAIN(2), 1},
    {"bf16", "BF16", PLAIN(2), 30},
    {"f64", "F64", PLAIN(8), 28},
    {"i8", "I8", PLAIN(1), 24},
    {"i16", "I16", PLAIN(2), 25},
    {"i32", "I32", PLAIN(4), 26},
    {"i64", "I64", PLAIN(8), 27},
    {"q1_0", "Q1_0", ROW(128, 18), 41},
    {"q2_0", "Q2_0", ROW(64, 18), 42},
    {"q4_0", "Q4_0", ROW(32, 18), 2},
    {"q4_1", "Q4_1", ROW(32, 20), 3},
    {"q5_0", "Q5_0", ROW(32, 22), 6},
    {"q5_1", "Q5_1", ROW(32, 24), 7},
    {"q8_0", "Q8_0", ROW(32, 34), 8},
    {"q8_1", "Q8_1 (activation)", ROW(32, 36), 9},
    {"q2_k", "Q2_K", ROW(256, 84), 10},
    {"q3_k", "Q3_K", ROW(256, 110), 11},
    {"q4_k", "Q4_K", ROW(256, 144), 12},
    {"q5_k", "Q5_K", ROW(256, 176), 13},
    {"q6_k", "Q6_K", ROW(256, 210), 14},
    {"q8_k", "Q8_K (activation)", ROW(256, 292), 15},
    {"iq1_s", "IQ1_S", ROW(256, 50), 19},
    {"iq1_m", "IQ1_M", ROW(256, 56), 29},
    {"iq2_xxs", "IQ2_XXS", ROW(256, 66), 16},
    {"iq2_xs", "IQ2_XS", ROW(256, 74), 17},
    {"iq2_s", "IQ2_S", ROW(256, 82), 22},
    {"iq3_xxs", "IQ3_XXS", ROW(256, 98), 18},
    {"iq3_s", "IQ3_S", ROW(256, 110), 21},
    {"iq4_nl", "IQ4_NL", ROW(32, 18), 20},
    {"iq4_xs", "IQ4_XS", ROW(256, 136), 23},
    {"tq1_0", "TQ1_0", ROW(256, 54), 34},
    {"tq2_0", "TQ2_0", ROW(256, 66), 35},
    {"mxfp4", "MXFP4", ROW(32, 17), 39},
    {"nvfp4", "NVFP4 (ggml)", ROW(64, 36), 40},
    {"mlx2-g64", "MLX affine 2-bit g64", ROW(64, 20), -1},
    {"mlx3-g64", "MLX affine 3-bit g64", ROW(64, 28), -1},
    {"mlx4-g64", "MLX affine 4-bit g64", ROW(64, 36), -1},
    {"mlx8-g64", "MLX affine 8-bit g64", ROW(64, 68), -1},
    {"gptq4-g128", "GPTQ int4 g128 sym", ROW(128, 66), -1},
    {"awq4-g128", "AWQ / GPTQ int4 g128 asym", 1, 128, 133, -1},
    {"int4-g32", "compressed-tensors INT4 g32 (Kimi K2.5)", ROW(32, 18), -1},
    {"fp8-128x128", "FP8 E4M3 128x128 (DeepSeek V3/V4)", 128, 128, 2 * 16388, -1},
    {"fp8-32x32", "FP8 E4M3 32x32 UE8M0 (V4.1)", 32, 32, 2 * 1025, -1},
};

static const struct {
    const char *alias, *name;
} aliases[] = {
    {"F16 / BF16", "f16"},    {"fp16", "f16"},
    {"float16", "f16"},       {"half", "f16"},
    {"bfloat16", "bf16"},     {"fp32", "f32"},
    {"float32", "f32"},       {"fp64", "f64"},
    {"mxfp4_e2m1", "mxfp4"},  {"q8_1 activation", "q8_1"},
    {"mlx-2bit", "mlx2-g64"}, {"mlx-3bit", "mlx3-g64"},
    {"mlx-4bit", "mlx4-g64"}, {"mlx-8bit", "mlx8-g64"},
    {"mlx2", "mlx2-g64"},     {"mlx3", "mlx3-g64"},
    {"mlx4", "mlx4-g64"},     {"mlx8", "mlx8-g64"},
    {"gptq", "gptq4-g128"},   {"gptq-int4", "gptq4-g128"},
    {"awq", "awq4-g128"},     {"compressed-tensors", "int4-g32"},
    {"fp8", "fp8-128x128"},   {"fp8_e4m3", "fp8-128x128"},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

size_t quant_count(void)
{
    return COUNT(formats);
}

const struct quant_format *quant_at(size_t i)
{
    assert(i < COUNT(formats));
    return &formats[i];
}

const struct quant_format *quant_find(const char *name)
{
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (!strcasecmp(name, aliases[i].alias))
            name = aliases[i].name;
    for (size_t i = 0; i < COUNT(formats); i++)
        if (!strcasecmp(name, formats[i].name) || !strcasecmp(name, formats[i].label))
            return &formats[i];
    return NULL;
}

const struct quant_format *quant_find_gguf(uint32_t gguf_type)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].gguf_type >= 0 && (uint32_t)formats[i].gguf_type == gguf_type)
            return &formats[i];
    return NULL;
}

uint64_t quant_bytes(const struct quant_format *f, uint64_t rows, uint64_t cols)
{
    uint64_t down = rows / f->block_rows + (rows % f->block_rows != 0);
    uint64_t along = cols / f->block_cols + (cols % f->block_cols != 0);
    unsigned __int128 blocks = (unsigned __int128)down * along;
    if (blocks > UINT64_MAX)
        return UINT64_MAX;
    unsigned __int128 bytes = (blocks * f->half_bytes_per_block + 1) / 2;
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

uint32_t quant_bits_e4(const struct quant_format *f)
{
    uint64_t weights = (uint64_t)f->block_rows * f->block_cols;
    return (uint32_t)((f->half_bytes_per_block * UINT64_C(40000) + weights / 2) / weights);
}

const struct quant_format *quant_fit(const struct quant_format *f, uint64_t cols)
{
    static const struct {
        const char *name, *instead;
    } fallback[] = {{"q4_k", "q5_0"},     {"q5_k", "q5_1"},    {"q6_k", "q8_0"},
                    {"q2_k", "iq4_nl"},   {"q3_k", "iq4_nl"},  {"iq4_xs", "iq4_nl"},
                    {"iq1_s", "iq4_nl"},  {"iq1_m", "iq4_nl"}, {"iq2_xxs", "iq4_nl"},
                    {"iq2_xs", "iq4_nl"}, {"iq2_s", "iq4_nl"}, {"iq3_xxs", "iq4_nl"},
                    {"iq3_s", "iq4_nl"},  {"tq1_0", "q4_0"},   {"tq2_0", "q4_0"}};
    if (f->gguf_type < 0 || cols % f->block_cols == 0)
        return f;
    for (size_t i = 0; i < COUNT(fallback); i++)
        if (!strcmp(f->name, fallback[i].name)) {
            const struct quant_format *other = quant_find(fallback[i].instead);
            return cols % other->block_cols == 0 ? other : quant_find("f16");
        }
    return quant_find("f16");
}

/* Which models, and which of a model's layers, a rule is about. */
enum rule_model { ANY_MODEL, EIGHT_EXPERTS, SHARED_KEYS, SHARED_KEYS_OR_EXPERTS };
enum rule_layers { ALL, FIRST_2, FIRST_4, FIRST_16TH, FIRST_8TH, MIDDLE, MORE_BITS };

struct quant_rule {
    enum quant_part part;
    enum rule_model model;
    enum rule_layers layers;
    const char *format; /* NULL ends the list; "" keeps the group's own format */
};

static bool rule_model_matches(enum rule_model model, const struct quant_mix *mix)
{
    switch (model) {
    case EIGHT_EXPERTS: /* Mixtral: keys and values are a hundredth of the file */
        return mix->experts == 8;
    case SHARED_KEYS:
        return mix->heads_per_kv >= 4;
    case SHARED_KEYS_OR_EXPERTS:
        return mix->heads_per_kv >= 4 || mix->experts >= 4;
    default:
        return true;
    }
}

static bool rule_layer_matches(enum rule_layers layers, size_t i, size_t n)
{
    switch (layers) {
    case FIRST_2:
        return i < 2;
    case FIRST_4:
        return i < 4;
    case FIRST_16TH:
        return i < n / 16;
    case FIRST_8TH:
        return i < n / 8;
    case MIDDLE:
        return i >= n / 8 && i < 7 * n / 8;
    case MORE_BITS:
        return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    default:
        return true;
    }
}

/* Rules of many mixes: in 8-expert models attention is small, so it gets more bits. */
#define EIGHT_KV                                                                                   \
    {QUANT_VALUE, EIGHT_EXPERTS, ALL, "q8_0"},                                                     \
    {                                                                                              \
        QUANT_KEY, EIGHT_EXPERTS, ALL, "q8_0"                                                      \
    }
#define EIGHT_OUT                                                                                  \
    {                                                                                              \
        QUANT_ATTENTION_OUT, EIGHT_EXPERTS, ALL, "q5_k"                                            \
    }
#define EIGHT_OUT_OWN                                                                              \
    {                                                                                              \
        QUANT_ATTENTION_OUT, EIGHT_EXPERTS, ALL, ""                                                \
    }
#define VALUE(model, layers, format)                                                               \
    {                                                                                              \
        QUANT_VALUE, model, layers, format                                                         \
    }
#define DOWN(layers, format)                                                                       \
    {                                                                                              \
        QUANT_DOWN, ANY_MODEL, layers, format                                                      \
    }
#define OUT(format)                                                                                \
    {                                                                                              \
        QUANT_ATTENTION_OUT, ANY_MODEL, ALL, format                                                \
    }
#define QKV(format)                                                                                \
    {                                                                                              \
        QUANT_QKV, ANY_MODEL, ALL, format                                                          \
    }
#define END                                                                                        \
    {                                                                                              \
        QUANT_ANY, ANY_MODEL, ALL, NULL                                                            \
    }

static const struct quant_rule rules_q2_k[] = {EIGHT_KV,
                                               VALUE(SHARED_KEYS, ALL, "q4_k"),
                                               VALUE(ANY_MODEL, ALL, "q3_k"),
                                               DOWN(ALL, "q3_k"),
                                               EIGHT_OUT,
                                               OUT("q3_k"),
                                               END};
static const struct quant_rule rules_q2_k_s[] = {EIGHT_KV, VALUE(SHARED_KEYS, ALL, "q4_k"),
                                                 DOWN(FIRST_8TH, "q4_k"), END};
static const struct quant_rule rules_eight_kv[] = {EIGHT_KV, END};
static const struct quant_rule rules_q3_k_s[] = {EIGHT_KV, EIGHT_OUT, END};
static const struct quant_rule rules_q3_k_m[] = {EIGHT_KV,
                                                 VALUE(ANY_MODEL, FIRST_2, "q5_k"),
                                                 VALUE(ANY_MODEL, ALL, "q4_k"),
                                                 DOWN(FIRST_16TH, "q5_k"),
                                                 DOWN(ALL, "q4_k"),
                                                 EIGHT_OUT,
                                                 OUT("q4_k"),
                                                 QKV("q4_k"),
                                                 END};
static const struct quant_rule rules_q3_k_l[] = {EIGHT_KV,
                                                 VALUE(ANY_MODEL, ALL, "q5_k"),
                                                 DOWN(ALL, "q5_k"),
                                                 EIGHT_OUT_OWN,
                                                 OUT("q5_k"),
                                                 QKV("q4_k"),
                                                 END};
static const struct quant_rule rules_q4_k_s[] = {EIGHT_KV, VALUE(ANY_MODEL, FIRST_4, "q5_k"),
                                                 DOWN(FIRST_8TH, "q5_k"), EIGHT_OUT, END};
static const struct quant_rule rules_q4_k_m[] = {
    EIGHT_KV, VALUE(ANY_MODEL, MORE_BITS, "q6_k"), DOWN(MORE_BITS, "q6_k"), EIGHT_OUT, QKV("q5_k"),
    END};
static const struct quant_rule rules_q5_k_m[] = {EIGHT_KV, VALUE(ANY_MODEL, MORE_BITS, "q6_k"),
                                                 DOWN(MORE_BITS, "q6_k"), QKV("q6_k"), END};
static const struct quant_rule rules_iq4[] = {EIGHT_KV, VALUE(SHARED_KEYS, ALL, "q5_k"),
                                              DOWN(FIRST_8TH, "q5_k"), EIGHT_OUT, END};
#define IQ_LOW(first)                                                                              \
    VALUE(SHARED_KEYS_OR_EXPERTS, ALL, "q4_k"), VALUE(ANY_MODEL, ALL, first),                      \
        {QUANT_KEY, EIGHT_EXPERTS, ALL, "q4_k"}, DOWN(FIRST_8TH, first), EIGHT_OUT
static const struct quant_rule rules_iq1[] = {IQ_LOW("q2_k"), OUT("iq2_xxs"), END};
static const struct quant_rule rules_iq2_x[] = {IQ_LOW("q2_k"), END};
static const struct quant_rule rules_iq2_s[] = {IQ_LOW("iq3_s"), OUT("iq3_s"), END};
static const struct quant_rule rules_iq3_xxs[] = {EIGHT_KV,
                                                  VALUE(SHARED_KEYS, ALL, "q4_k"),
                                                  {QUANT_KEY, ANY_MODEL, ALL, "iq2_s"},
                                                  {QUANT_QUERY, ANY_MODEL, ALL, "iq2_s"},
                                                  EIGHT_OUT,
                                                  OUT("iq3_s"),
                                                  END};
static const struct quant_rule rules_iq3_xs[] = {EIGHT_KV,
                                                 VALUE(SHARED_KEYS, ALL, "q4_k"),
                                                 {QUANT_KEY, ANY_MODEL, ALL, "iq3_xxs"},
                                                 {QUANT_QUERY, ANY_MODEL, ALL, "iq3_xxs"},
                                                 {QUANT_GATE, ANY_MODEL, MIDDLE, "iq3_xxs"},
                                                 {QUANT_UP, ANY_MODEL, MIDDLE, "iq3_xxs"},
                                                 EIGHT_OUT,
                                                 END};
static const struct quant_rule rules_iq3_s[] = {EIGHT_KV, VALUE(SHARED_KEYS, ALL, "q4_k"),
                                                EIGHT_OUT, END};
static const struct quant_rule rules_iq3_m[] = {EIGHT_KV,
                                                VALUE(ANY_MODEL, ALL, "q4_k"),
                                                DOWN(FIRST_8TH, "q4_k"),
                                                {QUANT_DOWN, EIGHT_EXPERTS, MORE_BITS, "q4_k"},
                                                EIGHT_OUT,
                                                OUT("q4_k"),
                                                QKV("q4_k"),
                                                END};

static const struct {
    const char *name, *base, *embedding, *head;
    const struct quant_rule *rules;
} mixes[] = {
    {"q2_k", "q2_k", "q2_k", "q6_k", rules_q2_k},
    {"q2_k_s", "q2_k", "q2_k", "q6_k", rules_q2_k_s},
    {"q3_k_s", "q3_k", "q3_k", "q6_k", rules_q3_k_s},
    {"q3_k_m", "q3_k", "q3_k", "q6_k", rules_q3_k_m},
    {"q3_k_l", "q3_k", "q3_k", "q6_k", rules_q3_k_l},
    {"q4_0", "q4_0", "q4_0", "q6_k", rules_eight_kv},
    {"q4_1", "q4_1", "q4_1", "q6_k", rules_eight_kv},
    {"q5_0", "q5_0", "q5_0", "q6_k", rules_eight_kv},
    {"q5_1", "q5_1", "q5_1", "q6_k", rules_eight_kv},
    {"q4_k_s", "q4_k", "q4_k", "q6_k", rules_q4_k_s},
    {"q4_k_m", "q4_k", "q4_k", "q6_k", rules_q4_k_m},
    {"q5_k_s", "q5_k", "q5_k", "q6_k", rules_eight_kv},
    {"q5_k_m", "q5_k", "q5_k", "q6_k", rules_q5_k_m},
    {"q6_k", "q6_k", "q6_k", "q6_k", rules_eight_kv},
    {"iq1_s", "iq1_s", "q2_k", "q5_k", rules_iq1},
    {"iq1_m", "iq1_m", "q2_k", "q5_k", rules_iq1},
    {"iq2_xxs", "iq2_xxs", "q2_k", "q5_k", rules_iq2_x},
    {"iq2_xs", "iq2_xs", "q2_k", "q5_k", rules_iq2_x},
    {"iq2_s", "iq2_xs", "iq3_s", "q5_k", rules_iq2_s},
    {"iq2_m", "iq2_s", "iq3_s", "q5_k", rules_iq2_s},
    {"iq3_xxs", "iq3_xxs", "iq3_s", "q5_k", rules_iq3_xxs},
    {"iq3_xs", "iq3_s", "iq3_s", "q6_k", rules_iq3_xs},
    {"iq3_s", "iq3_s", "iq3_s", "q6_k", rules_iq3_s},
    {"iq3_m", "iq3_s", "iq3_s", "q6_k", rules_iq3_m},
    {"iq4_xs", "iq4_xs", "iq4_xs", "q6_k", rules_iq4},
    {"iq4_nl", "iq4_nl", "iq4_nl", "q6_k", rules_iq4},
    {"tq1_0", "tq1_0", "q4_k", "q6_k", NULL},
    {"tq2_0", "tq2_0", "q4_k", "q6_k", NULL},
    {"mxfp4_moe", "q8_0", "q8_0", "q8_0", NULL},
};

static void mix_fill(struct quant_mix *mix, const char *base, const char *embedding,
                     const char *head, const char *rest)
{
    for (int g = 0; g < GROUP_MAX; g++)
        mix->group[g] = quant_find(base);
    mix->group[GROUP_EMBEDDING] = quant_find(embedding);
    mix->group[GROUP_HEAD] = quant_find(head);
    mix->group[GROUP_ROUTER] = mix->group[GROUP_OTHER] = quant_find(rest);
}

/* One format for every matrix, but for what files in that format leave alone. */
static void mix_of_format(struct quant_mix *mix, const struct quant_format *f)
{
    const char *name = f->name;
    bool wide = f->block_cols == 1 || f->half_bytes_per_block >= 2 * f->block_cols;
    mix->name = name;
    if (f->gguf_type >= 0) {
        mix_fill(mix, name, name, wide ? name : "q6_k", "f32");
    } else if (!strncmp(name, "mlx", 3)) {
        mix_fill(mix, name, name, name, "bf16");
    } else if (!strcmp(name, "int4-g32")) {
        mix_fill(mix, "bf16", "bf16", "bf16", "bf16");
        mix->group[GROUP_EXPERT] = f;
    } else {
        mix_fill(mix, name, "bf16", "bf16", "bf16");
    }
}

enum status quant_mix_find(struct quant_mix *out, const char *name, struct diag *dg)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < COUNT(mixes); i++)
        if (!strcasecmp(name, mixes[i].name)) {
            mix_fill(out, mixes[i].base, mixes[i].embedding, mixes[i].head, "f32");
            out->name = mixes[i].name;
            out->rules = mixes[i].rules;
            if (!strcmp(out->name, "mxfp4_moe"))
                out->group[GROUP_EXPERT] = quant_find("mxfp4");
            return ST_OK;
        }
    const struct quant_format *f = quant_find(name);
    if (!f)
        return diag_set(
            dg, ST_MISSING,
            "no weight format or mix is called '%s' (such as q4_k_m, q8_0, mxfp4, bf16)", name);
    mix_of_format(out, f);
    return ST_OK;
}

enum status quant_mix_set(struct quant_mix *mix, int group, const char *format, struct diag *dg)
{
    assert(group >= 0 && group < GROUP_MAX);
    const struct quant_format *f = quant_find(format);
    if (!f)
        return diag_set(dg, ST_MISSING, "no weight format is called '%s'", format);
    mix->group[group] = f;
    mix->plain_groups |= 1u << group;
    mix->name = "mixed";
    return ST_OK;
}

static bool group_has_rules(const struct quant_mix *mix, int group)
{
    bool can = group == GROUP_ATTENTION || group == GROUP_DENSE_FFN ||
               group == GROUP_SHARED_EXPERT || group == GROUP_EXPERT;
    return can && mix->rules && !(mix->plain_groups >> group & 1);
}

/* Llama 70B: eight query heads share a value head, so its matrix is small and gets more bits. */
static bool shares_values_among_eight(const struct quant_mix *mix, int part, size_t layer_count)
{
    return part == QUANT_VALUE && layer_count == 80 && mix->heads_per_kv == 8 && mix->experts == 0;
}

static const struct quant_format *ruled_format(const struct quant_mix *mix, int group, int part,
                                               size_t layer, size_t layer_count)
{
    for (const struct quant_rule *r = mix->rules; r->format; r++)
        if ((int)r->part == part && rule_model_matches(r->model, mix) &&
            rule_layer_matches(r->layers, layer, layer_count))
            return *r->format ? quant_find(r->format) : mix->group[group];
    return mix->group[group];
}

const struct quant_format *quant_mix_format(const struct quant_mix *mix, int group, int part,
                                            size_t layer, size_t layer_count)
{
    assert(group >= 0 && group < GROUP_MAX);
    if (!group_has_rules(mix, group))
        return mix->group[group];
    const struct quant_format *f = ruled_format(mix, group, part, layer, layer_count);
    bool few_bits = f == quant_find("q3_k") || f == quant_find("q4_k");
    return few_bits && shares_values_among_eight(mix, part, layer_count) ? quant_find("q5_k") : f;
}

uint64_t quant_mix_bytes(const struct quant_mix *mix, int group, int part, size_t layer,
                         size_t layer_count, uint64_t rows, uint64_t cols)
{
    const struct quant_format *f = quant_mix_format(mix, group, part, layer, layer_count);
    return quant_bytes(quant_fit(f, cols), rows, cols);
}

/* quant.h -- weight formats by name: how many bytes a matrix takes.
 *
 * A format stores blocks of weights; the size of a tensor is a whole number of blocks a row, so it is
 * exact, not an average of bits. A mix says which format each matrix of a model has: one format a
 * tensor group, and rules for the matrices that get more bits or fewer ("q4_k_m" keeps half of the
 * down projections at 6 bits). Block layouts: ggml src/ggml-common.h (commit d99724f2), the MLX, GPTQ,
 * AWQ, compressed-tensors and FP8 checkpoints they are named after. Mixes: llama_tensor_get_type of
 * llama.cpp's quantiser.
 */
#ifndef MODELS_QUANT_H
#define MODELS_QUANT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quant_format {
    const char *name;              /* slug: q4_k, mlx4-g64, fp8-128x128 */
    const char *label;             /* as published: "MLX affine 4-bit g64" */
    uint32_t block_rows;           /* 1 but for two-dimensional blocks */
    uint32_t block_cols;           /* weights along a row in one block */
    uint32_t half_bytes_per_block; /* twice the bytes, because AWQ has 66.5 */
    int32_t gguf_type;             /* GGUF tensor type number, -1 if none */
};

/* By slug, label or a customary alias, case ignored; NULL if unknown. */
const struct quant_format *quant_find(const char *name);
/* NULL for a number that ggml never gave out, or withdrew (Q4_2, Q4_0_4_4 ...). */
const struct quant_format *quant_find_gguf(uint32_t gguf_type);
size_t quant_count(void);
const struct quant_format *quant_at(size_t i);

/* Bytes of a rows x cols matrix (cols: the inner dimension, contiguous in memory); partial blocks
 * count whole. Saturates at UINT64_MAX. */
uint64_t quant_bytes(const struct quant_format *f, uint64_t rows, uint64_t cols);
/* Bits per weight in parts per 10^4, rounded to nearest. */
uint32_t quant_bits_e4(const struct quant_format *f);

/* What a row of `cols` weights is really stored as: a GGUF format whose block does not divide the row
 * is replaced by a smaller-block one as llama.cpp does (q4_k: q5_0, q5_k: q5_1, q6_k: q8_0, lower
 * ones: iq4_nl, else f16). Formats of other checkpoints are returned as they are. */
const struct quant_format *quant_fit(const struct quant_format *f, uint64_t cols);

/* Which matrix of a group. The first three are enum expert_part of model.h, for every kind of FFN. */
enum quant_part {
    QUANT_GATE,
    QUANT_UP,
    QUANT_DOWN,
    QUANT_QUERY,
    QUANT_KEY,
    QUANT_VALUE,
    QUANT_ATTENTION_OUT,
    QUANT_QKV, /* fused, or the input projection of a linear layer */
    QUANT_ANY  /* a matrix that no rule names */
};

struct quant_rule;
#define QUANT_GROUPS 9 /* = GROUP_MAX of model.h */
struct quant_mix {
    const char *name; /* q4_k_m, native, mixed */
    const struct quant_format *group[QUANT_GROUPS];
    const struct quant_rule *rules; /* exceptions by part and layer; NULL: none */
    uint32_t plain_groups;          /* bit g: group g has its own format alone, no rules */
    /* What the rules ask about the model; quant_mix_find leaves 0, the owner of the model sets them. */
    uint64_t experts;      /* routed experts a layer */
    uint64_t heads_per_kv; /* query heads that share one key head */
};

/* A mix by name: any format alone (norms and router stay F32 and the head Q6_K as in GGUF files, or
 * BF16 where the checkpoint of that format leaves them so), or as llama.cpp makes them: q2_k, q2_k_s,
 * q3_k_s, q3_k_m, q3_k_l, q4_k_s, q4_k_m, q5_k_s, q5_k_m, iq1_s .. iq4_xs, mxfp4_moe. Unknown:
 * ST_MISSING. Lower-bit i-quants are sized as made with an importance matrix, the others without. */
MUST_CHECK enum status quant_mix_find(struct quant_mix *out, const char *name, struct diag *dg);

/* Gives one tensor group a format of its own, without rules; the mix is then called "mixed" unless the
 * caller names it. A native mix is quant_mix_find(&mix, "bf16", dg) and then
 * quant_mix_set(&mix, GROUP_EXPERT, "mxfp4", dg). */
MUST_CHECK enum status quant_mix_set(struct quant_mix *mix, int group, const char *format,
                                     struct diag *dg);

/* The format of matrix `part` of group `group` (enum tensor_group) in layer `layer` of `layer_count`;
 * both are 0 for what belongs to no layer.
 * An embedding that is also the head has the head's format: ask for GROUP_HEAD. */
const struct quant_format *quant_mix_format(const struct quant_mix *mix, int group, int part,
                                            size_t layer, size_t layer_count);
/* Bytes of that matrix, rows x cols: quant_mix_format, quant_fit and quant_bytes in one. */
uint64_t quant_mix_bytes(const struct quant_mix *mix, int group, int part, size_t layer,
                         size_t layer_count, uint64_t rows, uint64_t cols);

#endif

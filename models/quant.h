/* quant.h -- weight formats by name: how many bytes a matrix takes.
 *
 * A format stores blocks of weights; the size of a tensor is a whole number of blocks a row, so it is
 * exact, not an average of bits. A mix says which format each tensor group has ("q4_k_m" keeps some
 * matrices at 6 bits). Block layouts: ggml src/ggml-common.h (commit d99724f2), the MLX, GPTQ, AWQ,
 * compressed-tensors and FP8 checkpoints they are named after.
 */
#ifndef MODELS_QUANT_H
#define MODELS_QUANT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct quant_format {
    const char *name;            /* slug: q4_k, mlx4-g64, fp8-128x128 */
    const char *label;           /* as published: "MLX affine 4-bit g64" */
    uint32_t block_rows;         /* 1 but for two-dimensional blocks */
    uint32_t block_cols;         /* weights along a row in one block */
    uint32_t half_bytes_per_block; /* twice the bytes, because AWQ has 66.5 */
    int32_t gguf_type;           /* GGUF tensor type number, -1 if none */
};

/* By slug, label or a customary alias, case ignored; NULL if unknown. */
const struct quant_format *quant_find(const char *name);
const struct quant_format *quant_find_gguf(uint32_t gguf_type);
size_t quant_count(void);
const struct quant_format *quant_at(size_t i);

/* Bytes of a rows x cols matrix; partial blocks count whole. Saturates at UINT64_MAX. */
uint64_t quant_bytes(const struct quant_format *f, uint64_t rows, uint64_t cols);
/* Bits per weight in parts per 10^4. */
uint32_t quant_bits_e4(const struct quant_format *f);

#define QUANT_GROUPS 9 /* = GROUP_MAX of model.h */
struct quant_mix {
    const char *name;                                /* q4_k_m, native, mixed */
    const struct quant_format *group[QUANT_GROUPS];
    const struct quant_format *expert_down;          /* NULL: as GROUP_EXPERT */
    /* Of 100 layers, how many use expert_down's format for the down projection (q4_k_m: half). */
    uint32_t down_layers_percent;
};

/* A mix by name: any format alone, or q2_k, q3_k_m, q4_k_s, q4_k_m, q5_k_m as llama.cpp makes them. */
MUST_CHECK enum status quant_mix_find(struct quant_mix *out, const char *name, struct diag *dg);

#endif

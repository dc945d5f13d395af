/* isa.h -- the arithmetic of the engine, in one table for each instruction set.
 *
 * Scalar C defines every kernel; AVX2, AVX-512 (VNNI) and NEON (dot product) variants must give the same
 * bits. They can, because the order of every floating-point sum is part of the definition, multiply-adds
 * are fused where the definition says so, and integer sums are exact:
 *
 *   product, 8-bit activations   For group g of a row (group_weights columns; block_format.h), n = the
 *       integer sum of value(code) * byte; then s[g % 4] = fma(n, factor * scale, s[g % 4]), and with a minimum
 *       s[g % 4] = fma(minimum, scale * sum of bytes, s[g % 4]). The result is (s0 + s1) + (s2 + s3).
 *   product, F32 activations     s[i % 16] = fma(weight[i], x[i], s[i % 16]); the sixteen are added in
 *       halves: s[j] += s[j + 8] for j < 8, then 4, 2, 1. This is `dot`; sums of squares and of
 *       exponentials are added in the same way.
 *
 * So the result of a product does not depend on the layout, the number of tokens in the batch, how rows
 * are shared among threads, or the processor. Exponentials are isa_exp(), not libm's.
 *
 * Vectors may have any length and any alignment of a float; activations in 8 bits are aligned to
 * ACTIVATION_ALIGN. No kernel allocates or fails. NaN and infinity in give NaN or infinity out.
 */
#ifndef KERNELS_ISA_ISA_H
#define KERNELS_ISA_ISA_H

#include "base/status.h"
#include "kernels/formats/activation.h"
#include "kernels/formats/block_format.h"

enum weight_layout {
    LAYOUT_BLOCKS, /* rows of GGUF blocks, one after another, at any address */
    LAYOUT_PACKED, /* packed.h; at a multiple of 64 */
    LAYOUT_COUNT
};

struct weights {
    const struct block_format *format;
    enum weight_layout layout;
    size_t rows, cols; /* cols: the inner dimension; a multiple of the format's block_weights */
    const void *data;
};

/* `tokens` vectors of length cols. */
struct activations {
    size_t tokens;
    const float *values; /* token t at values + t * stride */
    size_t stride;
    const void *quantised; /* their buffers (activation.h), or NULL: compute in F32 */
};

/* y[t * y_stride + r] = row r of w times token t, for row_begin <= r < row_end. In the packed layout
 * row_begin is a multiple of 16, and row_end too or w->rows. */
typedef void isa_product_fn(float *y, size_t y_stride, const struct weights *w,
                            const struct activations *x, size_t row_begin, size_t row_end);

/* Attention of one token over an F16 cache, for the query heads that share a key head. */
struct attention_task {
    size_t heads;         /* query heads: h = 0 .. heads - 1 */
    const float *queries; /* head h at queries + h * key_dim */
    const uint16_t *keys; /* F16; position p at keys + p * key_stride */
    const uint16_t *values;
    size_t key_stride, value_stride; /* in elements */
    size_t key_dim, value_dim;
    size_t begin, end; /* positions attended to: begin <= p < end; begin > 0 is a sliding window */
    float scale;       /* of the scores, usually 1 / sqrt(key_dim) */
    const float
        *sinks;    /* a logit a head that takes part in the softmax and adds nothing, or NULL */
    float *scores; /* scratch: heads * (end - begin) */
};

struct isa {
    const char *name;
    const char *summary;
    bool (*supported)(void); /* by this processor */

    isa_product_fn *const *product8[LAYOUT_COUNT]; /* by format; NULL for float formats */
    isa_product_fn *product_f32;                   /* of any format and layout */

    /* As activation_quantise(). */
    void (*quantise)(void *buffer, const float *values, size_t cols);
    float (*dot)(const float *a, const float *b, size_t n);
    /* y = x * weight / sqrt(sum of squares / n + epsilon); y may be x. */
    void (*rms_norm)(float *y, const float *x, const float *weight, size_t n, float epsilon);
    /* Rotates pairs (a, b) to (a c - b s, a s + b c) with c, s of pair i; n even. NEOX: pair i is
     * (x[i], x[i + n / 2]); adjacent: (x[2i], x[2i + 1]). */
    void (*rope_neox)(float *x, const float *cosine, const float *sine, size_t n);
    void (*rope_adjacent)(float *x, const float *cosine, const float *sine, size_t n);
    /* In place; n > 0. */
    void (*softmax)(float *x, size_t n);
    /* out: heads * value_dim, summed over positions in ascending order. */
    void (*attention)(float *out, const struct attention_task *task);
    /* y = gate * sigmoid(gate) * up; y may be gate or up. */
    void (*swiglu)(float *y, const float *gate, const float *up, size_t n);
    /* gpt-oss: gate and up clamped to limit (up from below too), y = gate * sigmoid(alpha * gate) * (up + 1). */
    void (*swiglu_clamped)(float *y, const float *gate, const float *up, size_t n, float alpha,
                           float limit);
    /* y += factor * x, fused. */
    void (*add_scaled)(float *y, const float *x, float factor, size_t n);

    /* For `engine bench`: `rounds` of multiply-adds and nothing else, of bytes as product8 does them, and
     * of floats. Returns the operations done (a multiply-add is two); `sink` keeps them from
     * being optimised away. */
    uint64_t (*peak8)(int32_t sink[16], size_t rounds);
    uint64_t (*peak_f32)(float sink[16], size_t rounds);
};

/* The table: scalar first, better ones after it. */
size_t isa_count(void);
const struct isa *isa_at(size_t i);
/* "auto": the last one in the table that this processor supports; else by name. ST_MISSING: no such
 * name in this program; ST_UNSUPPORTED: this processor lacks it. */
MUST_CHECK enum status isa_choose(const struct isa **out, const char *name, struct diag *dg);

/* The product in the precision that x and w ask for: F32 weights with F32, F16, BF16 always in F32. */
void isa_product(const struct isa *isa, float *y, size_t y_stride, const struct weights *w,
                 const struct activations *x, size_t row_begin, size_t row_end);

/* e^x to 2 units in the last place: 0 below -87.3, infinity above 88.3, NaN of NaN. The vector routine of Arm's
 * optimized-routines, of which every variant repeats each operation. */
float isa_exp(float x);

#endif

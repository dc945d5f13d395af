/* test_isa.c -- every instruction set against scalar C, bit for bit; scalar C against arithmetic in double. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/formats/half.h"
#include "kernels/formats/packed.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/rope.h"
#include "kernels/isa/top_k.h"

#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Calls `body` with `isa` set to each variant that this processor has. */
#define for_each_variant(isa)                                                                      \
    for (size_t i_ = 1; i_ < isa_count(); i_++)                                                    \
        for (const struct isa *isa = isa_at(i_); isa && isa->supported(); isa = NULL)

static const struct isa *scalar(void)
{
    return isa_at(0);
}

/* What the data look like: from a matrix as models have them to bytes without sense. */
enum data_kind {
    DATA_PLAIN,   /* scales near 0.01, activations near 1 */
    DATA_EXTREME, /* all codes and activations at their ends, alternating */
    DATA_BYTES, /* random bytes: scales infinite, NaN, subnormal; activations from 1e-38 to 1e38 */
    DATA_KINDS
};

static float gauss(struct pcg *p)
{
    return (float)pcg_gauss_q16(p) / 65536.0f;
}

static void fill_activations(struct pcg *p, enum data_kind kind, float *x, size_t n)
{
    static const float ends[] = {127, -127, 127, 127, -127};
    for (size_t i = 0; i < n; i++)
        x[i] = kind == DATA_PLAIN     ? gauss(p)
               : kind == DATA_EXTREME ? ends[pcg_below(p, 5)]
                                      : ldexpf(gauss(p), (int)pcg_below(p, 250) - 125);
}

static void fill_blocks(struct pcg *p, const struct block_format *f, enum data_kind kind,
                        uint8_t *data, size_t blocks)
{
    for (size_t b = 0; b < blocks; b++, data += f->block_bytes) {
        uint8_t codes[BLOCK_WEIGHTS_MAX], scales[BLOCK_SCALE_BYTES_MAX];
        bool high = pcg_below(p, 2);
        for (size_t i = 0; i < f->block_weights; i++)
            codes[i] = kind == DATA_EXTREME ? (high ? 0xff : 0) : (uint8_t)pcg_u32(p);
        if (f->code_bits)
            for (size_t i = 0; i < f->block_weights; i++)
                codes[i] &= (uint8_t)((1u << f->code_bits) - 1);
        for (size_t i = 0; i < f->scale_bytes; i++)
            scales[i] = kind == DATA_EXTREME ? 0xff : (uint8_t)pcg_u32(p);
        if (kind != DATA_BYTES)
            for (size_t i = 0; i < f->scale_halves; i++)
                store_u16(scales + 2 * i, half_of_float(0.01f + 0.01f * gauss(p)));
        if (kind != DATA_BYTES && f->id == FORMAT_MXFP4)
            scales[0] = (uint8_t)(118 + pcg_below(p, 6));
        if (f->code_bits)
            f->join(data, codes, scales);
        else if (kind == DATA_BYTES)
            memcpy(data, codes, f->block_bytes);
        else {
            float weight = gauss(p);
            assert_true(block_quantise(f, data, &weight, 1));
        }
    }
}

/* The same bits; of NaN any. */
static bool same(float a, float b)
{
    return bits_of_float(a) == bits_of_float(b) || (isnan(a) && isnan(b)) || (a == 0 && b == 0);
}

/* A matrix in both layouts, its blocks at an odd address, and a batch of activations. */
struct product_case {
    const struct block_format *format;
    size_t rows, cols, tokens;
    uint8_t *blocks; /* allocated one byte earlier */
    void *packed, *quantised;
    float *values;
    float *want, *got; /* tokens x (rows + 3) */
};

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(p);
    return p;
}

static struct product_case case_new(struct pcg *p, enum format_id id, enum data_kind kind,
                                    size_t rows, size_t cols, size_t tokens)
{
    struct product_case c = {
        block_format(id), rows, cols, tokens, NULL, NULL, NULL, NULL, NULL, NULL};
    size_t bytes = rows * block_row_bytes(c.format, cols);
    c.blocks = (uint8_t *)malloc(bytes + 1) + 1;
    c.packed = aligned(packed_bytes(c.format, rows, cols));
    c.quantised = aligned(tokens * activation_bytes(cols));
    c.values = (float *)malloc((tokens * (cols + 1) + 1) * sizeof(float)) + 1;
    c.want = malloc(tokens * (rows + 3) * sizeof(float));
    c.got = malloc(tokens * (rows + 3) * sizeof(float));
    fill_blocks(p, c.format, kind, c.blocks, bytes / c.format->block_bytes);
    packed_from_blocks(c.format, c.packed, c.blocks, rows, cols);
    fill_activations(p, kind, c.values, tokens * (cols + 1));
    for (size_t t = 0; t < tokens; t++)
        activation_quantise((char *)c.quantised + t * activation_bytes(cols),
                            c.values + t * (cols + 1), cols);
    return c;
}

static void case_free(struct product_case *c)
{
    free(c->blocks - 1);
    free(c->packed);
    free(c->quantised);
    free(c->values - 1);
    free(c->want);
    free(c->got);
}

static void run_case(const struct isa *isa, const struct product_case *c, float *y,
                     enum weight_layout layout, bool in_f32, size_t row_begin, size_t row_end)
{
    struct weights w = {c->format, layout, c->rows, c->cols,
                        layout == LAYOUT_PACKED ? c->packed : c->blocks};
    struct activations x = {c->tokens, c->values, c->cols + 1, in_f32 ? NULL : c->quantised};
    for (size_t i = 0; i < c->tokens * (c->rows + 3); i++)
        y[i] = 12345;
    isa_product(isa, y, c->rows + 3, &w, &x, row_begin, row_end);
}

static void compare(const struct isa *isa, const struct product_case *c, enum weight_layout layout,
                    bool in_f32, size_t row_begin)
{
    run_case(isa, c, c->got, layout, in_f32, row_begin, c->rows);
    for (size_t i = 0; i < c->tokens * (c->rows + 3); i++) {
        float want = i % (c->rows + 3) < row_begin ? 12345 : c->want[i];
        if (!same(c->got[i], want))
            fail_msg("%s %s %s %s %zux%zu, %zu tokens: token %zu row %zu is %.9g, not %.9g",
                     isa->name, c->format->name, layout == LAYOUT_PACKED ? "packed" : "blocks",
                     in_f32 ? "f32" : "8 bit", c->rows, c->cols, c->tokens, i / (c->rows + 3),
                     i % (c->rows + 3), (double)c->got[i], (double)want);
    }
}

static void compare_everywhere(struct pcg *p, enum format_id id, enum data_kind kind, size_t rows,
                               size_t cols, size_t tokens, bool in_f32)
{
    struct product_case c = case_new(p, id, kind, rows, cols, tokens);
    run_case(scalar(), &c, c.want, LAYOUT_BLOCKS, in_f32, 0, rows);
    compare(scalar(), &c, LAYOUT_PACKED, in_f32, 0);
    for_each_variant(isa) for (int layout = 0; layout < LAYOUT_COUNT; layout++)
    {
        compare(isa, &c, (enum weight_layout)layout, in_f32, 0);
        compare(isa, &c, (enum weight_layout)layout, in_f32, rows > 16 ? 16 : 0);
    }
    case_free(&c);
}

static void
products_of_quantised_weights_are_the_same_bits_in_every_variant_and_layout(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 3, 16, 19, 37};
    static const size_t small[] = {32, 64, 96, 128, 160, 352, 768}, super[] = {256, 512, 768};
    struct pcg p;
    pcg_stream(&p, 1, "products");
    for (int id = FORMAT_Q4_0; id < FORMAT_COUNT; id++) {
        bool is_small = block_format((enum format_id)id)->block_weights == 32;
        for (int kind = 0; kind < DATA_KINDS; kind++)
            for (size_t r = 0; r < COUNT(rows); r++)
                for (size_t c = 0; c < (is_small ? COUNT(small) : COUNT(super)); c++)
                    compare_everywhere(&p, (enum format_id)id, (enum data_kind)kind, rows[r],
                                       is_small ? small[c] : super[c], 1 + (r + c) % 3, false);
    }
}

static void a_batch_gives_each_token_what_it_gets_alone(void **state)
{
    (void)state;
    static const size_t tokens[] = {4, 5, 7, 32, 33};
    struct pcg p;
    pcg_stream(&p, 2, "batches");
    for (int id = 0; id < FORMAT_COUNT; id++)
        for (size_t t = 0; t < COUNT(tokens); t++)
            compare_everywhere(&p, (enum format_id)id, DATA_PLAIN, 21, 512, tokens[t], false);
}

static void products_in_f32_are_the_same_bits_in_every_variant_and_layout(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 3, "float products");
    for (int id = 0; id < FORMAT_COUNT; id++)
        for (int kind = 0; kind < DATA_KINDS; kind++)
            for (size_t tokens = 1; tokens <= 9; tokens += 4) {
                compare_everywhere(&p, (enum format_id)id, (enum data_kind)kind, 19, 256, tokens,
                                   true);
                compare_everywhere(&p, (enum format_id)id, (enum data_kind)kind, 5, 768, tokens,
                                   true);
            }
}

static void float_weights_may_have_rows_of_any_length(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 4, "odd rows");
    for (int id = FORMAT_F32; id <= FORMAT_BF16; id++)
        for (size_t cols = 1; cols < 70; cols++)
            compare_everywhere(&p, (enum format_id)id, cols % 2 ? DATA_PLAIN : DATA_BYTES, 6, cols,
                               1 + cols % 5, true);
}

static void the_definition_agrees_with_a_sum_in_double(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 5, "definition");
    for (int id = 0; id < FORMAT_COUNT; id++) {
        struct product_case c = case_new(&p, (enum format_id)id, DATA_PLAIN, 7, 512, 1);
        struct activation a = activation_view(c.quantised, 0, 512);
        float weights[512];
        for (int in_f32 = c.format->code_bits == 0; in_f32 < 2; in_f32++) {
            run_case(scalar(), &c, c.got, LAYOUT_BLOCKS, in_f32, 0, 7);
            for (size_t r = 0; r < 7; r++) {
                double sum = 0, size = 0;
                block_dequantise(c.format, weights, c.blocks + r * block_row_bytes(c.format, 512),
                                 512);
                for (size_t i = 0; i < 512; i++) {
                    double x =
                        in_f32 ? (double)c.values[i] : (double)a.scale[i / 32] * (double)a.bytes[i];
                    sum += (double)weights[i] * x;
                    size += fabs((double)weights[i] * x);
                }
                assert_close(c.got[r], sum, 3e-7 * size);
            }
        }
        case_free(&c);
    }
}

static void eight_bit_activations_cost_less_than_a_percent_of_a_random_product(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 6, "8 bits");
    for (int id = FORMAT_Q4_0; id < FORMAT_COUNT; id++) {
        struct product_case c = case_new(&p, (enum format_id)id, DATA_PLAIN, 64, 768, 1);
        double error = 0, size = 0;
        run_case(scalar(), &c, c.want, LAYOUT_BLOCKS, true, 0, 64);
        run_case(scalar(), &c, c.got, LAYOUT_BLOCKS, false, 0, 64);
        for (size_t r = 0; r < 64; r++) {
            double apart = (double)c.got[r] - (double)c.want[r];
            error += apart * apart;
            size += (double)c.want[r] * (double)c.want[r];
        }
        assert_true(sqrt(error / size) < 0.01);
        case_free(&c);
    }
}

static void an_activation_that_is_no_number_spoils_its_products(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 7, "no number");
    for (int id = 0; id < FORMAT_COUNT; id++) {
        struct product_case c = case_new(&p, (enum format_id)id, DATA_PLAIN, 16, 256, 1);
        c.values[100] = NAN;
        activation_quantise(c.quantised, c.values, 256);
        for (size_t i = 0; i < isa_count(); i++)
            for (int layout = 0; layout < LAYOUT_COUNT && isa_at(i)->supported(); layout++) {
                run_case(isa_at(i), &c, c.got, (enum weight_layout)layout, false, 0, 16);
                for (size_t r = 0; r < 16; r++)
                    assert_true(isnan(c.got[r]));
            }
        case_free(&c);
    }
}

/* Vectors: inputs a, b, c and an output by scalar and by the variant, each at an odd multiple of 4. */
#define LENGTH_MAX 300
struct vectors {
    float a[LENGTH_MAX + 1], b[LENGTH_MAX + 1], c[LENGTH_MAX + 1];
    float want[LENGTH_MAX + 1], got[LENGTH_MAX + 1];
};

static void vectors_fill(struct vectors *v, struct pcg *p, size_t turn)
{
    enum data_kind kind = turn % 4 == 3 ? DATA_BYTES : turn % 4 == 2 ? DATA_EXTREME : DATA_PLAIN;
    fill_activations(p, kind, v->a, LENGTH_MAX + 1);
    fill_activations(p, kind, v->b, LENGTH_MAX + 1);
    fill_activations(p, kind, v->c, LENGTH_MAX + 1);
    if (turn % 8 == 7)
        v->a[1 + pcg_below(p, 20)] = turn % 16 == 7 ? INFINITY : NAN;
    memcpy(v->want, v->a, sizeof v->a);
    memcpy(v->got, v->a, sizeof v->a);
}

static void vectors_compare(const struct vectors *v, const struct isa *isa, const char *what,
                            size_t n)
{
    for (size_t i = 0; i <= LENGTH_MAX; i++)
        if (!same(v->want[i], v->got[i]))
            fail_msg("%s %s of %zu: element %zu is %.9g, not %.9g", isa->name, what, n, i,
                     (double)v->got[i], (double)v->want[i]);
}

/* Lengths 1 to 70, then some. */
#define for_each_length(n, turn)                                                                   \
    for (size_t turn = 0, n = 1; n <= LENGTH_MAX; turn++, n += n < 70 ? 1 : 23)

#define COMPARE(what, ...)                                                                         \
    do {                                                                                           \
        vectors_fill(v, &p, turn);                                                                 \
        const struct isa *k = scalar();                                                            \
        float *y = v->want + 1;                                                                    \
        __VA_ARGS__;                                                                               \
        k = isa, y = v->got + 1;                                                                   \
        __VA_ARGS__;                                                                               \
        vectors_compare(v, isa, what, n);                                                          \
    } while (0)

static void vector_kernels_are_the_same_bits_in_every_variant(void **state)
{
    (void)state;
    struct pcg p;
    struct vectors *v = malloc(sizeof *v);
    assert_non_null(v);
    pcg_stream(&p, 8, "vectors");
    const float *a = v->a + 1, *b = v->b + 1, *c = v->c + 1;
    for_each_variant(isa) for_each_length(n, turn)
    {
        COMPARE("dot", y[0] = k->dot(a, b, n));
        COMPARE("rms_norm", k->rms_norm(y, a, b, n, 1e-6f));
        COMPARE("rms_norm in place", k->rms_norm(y, y, b, n, 1e-6f));
        COMPARE("softmax", k->softmax(y, n));
        COMPARE("swiglu", k->swiglu(y, a, b, n));
        COMPARE("swiglu in place", k->swiglu(y, y, b, n));
        COMPARE("swiglu_clamped", k->swiglu_clamped(y, a, b, n, 1.702f, 7.0f));
        COMPARE("add_scaled", k->add_scaled(y, b, 0.37f, n));
        if (n % 2 == 0) {
            COMPARE("rope_neox", k->rope_neox(y, b, c, n));
            COMPARE("rope_adjacent", k->rope_adjacent(y, b, c, n));
        }
    }
    free(v);
}

static void activations_are_rounded_to_the_same_bytes_in_every_variant(void **state)
{
    (void)state;
    struct pcg p;
    struct vectors *v = malloc(sizeof *v);
    char *want = aligned(activation_bytes(LENGTH_MAX)),
         *got = aligned(activation_bytes(LENGTH_MAX));
    assert_non_null(v);
    pcg_stream(&p, 9, "rounding");
    for_each_variant(isa) for_each_length(n, turn)
    {
        vectors_fill(v, &p, turn);
        if (turn % 5 == 0) /* halves, for ties */
            for (size_t i = 0; i <= n; i++)
                v->a[i] = (float)((int)pcg_below(&p, 255) - 127) / 2;
        memset(want, 0xaa, activation_bytes(n));
        memset(got, 0x55, activation_bytes(n));
        scalar()->quantise(want, v->a + 1, n);
        isa->quantise(got, v->a + 1, n);
        const float *a = (const float *)(const void *)want, *b = (const float *)(const void *)got;
        for (size_t i = 0; i < activation_bytes(n) / sizeof(float); i++)
            if (!(isnan(a[i]) && isnan(b[i])) && bits_of_float(a[i]) != bits_of_float(b[i]))
                fail_msg("%s of %zu: word %zu differs", isa->name, n, i);
    }
    free(got);
    free(want);
    free(v);
}

struct attention_case {
    struct attention_task task;
    float *queries, *scores, *out, *want;
    uint16_t *keys, *values;
    float sinks[8];
};

static struct attention_case attention_new(struct pcg *p, size_t heads, size_t key_dim,
                                           size_t value_dim, size_t positions, float spread)
{
    struct attention_case c = {0};
    c.queries = malloc(heads * key_dim * sizeof(float));
    c.scores = malloc(heads * positions * sizeof(float));
    c.out = malloc(heads * value_dim * sizeof(float));
    c.want = malloc(heads * value_dim * sizeof(float));
    c.keys = malloc(positions * (key_dim + 5) * sizeof(uint16_t));
    c.values = malloc(positions * (value_dim + 3) * sizeof(uint16_t));
    for (size_t i = 0; i < heads * key_dim; i++)
        c.queries[i] = spread * gauss(p);
    for (size_t i = 0; i < positions * (key_dim + 5); i++)
        c.keys[i] = half_of_float(gauss(p));
    for (size_t i = 0; i < positions * (value_dim + 3); i++)
        c.values[i] = half_of_float(gauss(p));
    for (size_t h = 0; h < heads; h++)
        c.sinks[h] = gauss(p);
    c.task = (struct attention_task){.heads = heads,
                                     .queries = c.queries,
                                     .keys = c.keys,
                                     .values = c.values,
                                     .key_stride = key_dim + 5,
                                     .value_stride = value_dim + 3,
                                     .key_dim = key_dim,
                                     .value_dim = value_dim,
                                     .begin = 0,
                                     .end = positions,
                                     .scale = 1 / sqrtf((float)key_dim),
                                     .sinks = NULL,
                                     .scores = c.scores};
    return c;
}

static void attention_free(struct attention_case *c)
{
    free(c->queries);
    free(c->scores);
    free(c->out);
    free(c->want);
    free(c->keys);
    free(c->values);
}

static void attention_in_double(float *out, const struct attention_task *t, size_t head)
{
    double weights[200], sum = t->sinks ? exp((double)t->sinks[head]) : 0;
    for (size_t p = t->begin; p < t->end; p++) {
        double dot = 0;
        for (size_t i = 0; i < t->key_dim; i++)
            dot += (double)t->queries[head * t->key_dim + i] *
                   (double)half_to_float(t->keys[p * t->key_stride + i]);
        sum += weights[p] = exp(dot * (double)t->scale);
    }
    for (size_t i = 0; i < t->value_dim; i++) {
        double total = 0;
        for (size_t p = t->begin; p < t->end; p++)
            total += weights[p] / sum * (double)half_to_float(t->values[p * t->value_stride + i]);
        out[i] = (float)total;
    }
}

static void attention_is_a_softmax_over_the_window_and_the_sink(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 10, "attention");
    for (int with_sinks = 0; with_sinks < 2; with_sinks++)
        for (size_t begin = 0; begin < 100; begin += 33) {
            struct attention_case c = attention_new(&p, 3, 24, 17, 130, 1);
            c.task.begin = begin;
            c.task.sinks = with_sinks ? c.sinks : NULL;
            scalar()->attention(c.out, &c.task);
            for (size_t h = 0; h < 3; h++)
                attention_in_double(c.want + 17 * h, &c.task, h);
            for (size_t i = 0; i < 3 * 17; i++)
                assert_close(c.out[i], c.want[i], 2e-6);
            attention_free(&c);
        }
}

static void attention_is_the_same_bits_in_every_variant(void **state)
{
    (void)state;
    static const size_t dims[][2] = {{128, 128}, {64, 64}, {192, 128},
                                     {16, 8},    {7, 33},  {576, 512}};
    struct pcg p;
    pcg_stream(&p, 11, "attention variants");
    for_each_variant(isa) for (size_t d = 0; d < COUNT(dims); d++) for (size_t n = 1; n < 90;
                                                                        n += 11)
    {
        struct attention_case c =
            attention_new(&p, 1 + n % 4, dims[d][0], dims[d][1], n, n % 3 ? 1 : 90);
        c.task.begin = n % 2 ? n / 3 : 0;
        c.task.sinks = n % 5 ? c.sinks : NULL;
        scalar()->attention(c.want, &c.task);
        isa->attention(c.out, &c.task);
        for (size_t i = 0; i < c.task.heads * dims[d][1]; i++)
            if (!same(c.out[i], c.want[i]))
                fail_msg("%s, %zu positions: element %zu", isa->name, n, i);
        attention_free(&c);
    }
}

static void the_exponential_is_right_to_two_units_in_the_last_place(void **state)
{
    (void)state;
    for (double x = -87.3; x < 88.3; x += 0.00317) {
        double want = exp((double)(float)x);
        assert_close(isa_exp((float)x) / want, 1, 0x1.1p-22);
    }
    assert_true(isa_exp(0) == 1 && isa_exp(-88) == 0 && isa_exp(-INFINITY) == 0);
    assert_true(isa_exp(89) == INFINITY && isnan(isa_exp(NAN)));
}

static void gates_follow_their_formulas(void **state)
{
    (void)state;
    float gate[] = {0.5f, -3, 9, -100, 1}, up[] = {2, 1, -8, 3, 7.5f}, y[5];
    scalar()->swiglu(y, gate, up, 5);
    for (int i = 0; i < 5; i++)
        assert_close(y[i], gate[i] / (1 + exp(-(double)gate[i])) * (double)up[i], 1e-5);
    scalar()->swiglu_clamped(y, gate, up, 5, 1.702f, 7);
    for (int i = 0; i < 5; i++) {
        double g = fmin((double)gate[i], 7), u = fmax(-7, fmin((double)up[i], 7));
        assert_close(y[i], g / (1 + exp(-1.702 * g)) * (u + 1), 1e-5);
    }
}

static void both_rotations_turn_their_pairs_and_keep_their_lengths(void **state)
{
    (void)state;
    float frequency[4], c[4], s[4], neox[8], adjacent[8];
    struct rope_scaling plain = {.base = 10000, .factor = 1};
    rope_frequencies(frequency, 8, &plain);
    rope_angles(c, s, frequency, 4, 3, rope_magnitude(&plain));
    for (int i = 0; i < 8; i++) {
        neox[i] = (float)(i + 1);
        adjacent[i] = (float)(i / 2 + 4 * (i % 2) + 1); /* the same pairs */
    }
    scalar()->rope_neox(neox, c, s, 8);
    scalar()->rope_adjacent(adjacent, c, s, 8);
    for (int i = 0; i < 4; i++) {
        double angle = 3 * pow(10000, -2.0 * i / 8), a = i + 1, b = i + 5;
        assert_close(neox[i], a * cos(angle) - b * sin(angle), 1e-6);
        assert_close(neox[i + 4], a * sin(angle) + b * cos(angle), 1e-6);
        assert_true(neox[i] == adjacent[2 * i] && neox[i + 4] == adjacent[2 * i + 1]);
    }
}

/* gpt-oss: 64 dimensions, base 150000, factor 32 over 4096 tokens. */
static void yarn_keeps_fast_frequencies_and_divides_slow_ones(void **state)
{
    (void)state;
    struct rope_scaling yarn = {
        .base = 150000, .factor = 32, .original = 4096, .beta_fast = 32, .beta_slow = 1};
    struct rope_scaling plain = {.base = 150000, .factor = 1},
                        linear = {.base = 150000, .factor = 32};
    float scaled[32], kept[32], divided[32];
    rope_frequencies(scaled, 64, &yarn);
    rope_frequencies(kept, 64, &plain);
    rope_frequencies(divided, 64, &linear);
    for (int i = 0; i < 32; i++) {
        assert_true(i > 8 || scaled[i] == kept[i]);
        assert_true(i < 18 || scaled[i] == divided[i]);
        assert_true(scaled[i] <= kept[i] && scaled[i] >= divided[i]);
        assert_close(divided[i] * 32, kept[i], 1e-7);
    }
    /* Pairs 8.09 and 17.40 turn 32 times and once: the ramp goes from pair 8 to pair 18. */
    for (int i = 9; i < 18; i++) {
        double share = (i - 8) / 10.0;
        assert_close(scaled[i], divided[i] * share + kept[i] * (1 - share), 1e-8);
    }
    assert_close(rope_magnitude(&yarn), 0.1 * log(32) + 1, 1e-6);
    assert_true(rope_magnitude(&linear) == 1);
}

static void top_k_orders_by_score_then_index_and_puts_nan_last(void **state)
{
    (void)state;
    float scores[] = {1, NAN, 3, 3, -2, 1, INFINITY, -INFINITY};
    static const uint32_t want[] = {6, 2, 3, 0, 5, 4, 7, 1};
    for (size_t k = 0; k <= 8; k++) {
        uint32_t got[8];
        top_k(got, k, scores, 8);
        assert_memory_equal(got, want, k * sizeof want[0]);
    }
}

static void a_variant_is_chosen_by_name_or_by_the_processor(void **state)
{
    (void)state;
    const struct isa *isa;
    struct diag dg;
    assert_ok(isa_choose(&isa, "scalar", &dg));
    assert_ptr_equal(isa, scalar());
    assert_ok(isa_choose(&isa, "auto", &dg));
    assert_true(isa->supported());
    for (size_t i = isa_count(); i-- > 0 && isa != isa_at(i);)
        assert_false(isa_at(i)->supported());
    assert_int_equal(isa_choose(&isa, "mmx", &dg), ST_MISSING);
    assert_non_null(strstr(dg.text, "isa mmx: this program has auto, scalar"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            products_of_quantised_weights_are_the_same_bits_in_every_variant_and_layout),
        cmocka_unit_test(a_batch_gives_each_token_what_it_gets_alone),
        cmocka_unit_test(products_in_f32_are_the_same_bits_in_every_variant_and_layout),
        cmocka_unit_test(float_weights_may_have_rows_of_any_length),
        cmocka_unit_test(the_definition_agrees_with_a_sum_in_double),
        cmocka_unit_test(eight_bit_activations_cost_less_than_a_percent_of_a_random_product),
        cmocka_unit_test(an_activation_that_is_no_number_spoils_its_products),
        cmocka_unit_test(vector_kernels_are_the_same_bits_in_every_variant),
        cmocka_unit_test(activations_are_rounded_to_the_same_bytes_in_every_variant),
        cmocka_unit_test(attention_is_a_softmax_over_the_window_and_the_sink),
        cmocka_unit_test(attention_is_the_same_bits_in_every_variant),
        cmocka_unit_test(the_exponential_is_right_to_two_units_in_the_last_place),
        cmocka_unit_test(gates_follow_their_formulas),
        cmocka_unit_test(both_rotations_turn_their_pairs_and_keep_their_lengths),
        cmocka_unit_test(yarn_keeps_fast_frequencies_and_divides_slow_ones),
        cmocka_unit_test(top_k_orders_by_score_then_index_and_puts_nan_last),
        cmocka_unit_test(a_variant_is_chosen_by_name_or_by_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

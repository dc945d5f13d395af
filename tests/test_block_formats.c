/* test_block_formats.c -- block formats: exact values, exact conversions, 8-bit activations. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/formats/activation.h"
#include "kernels/formats/half.h"
#include "kernels/formats/packed.h"
#include "models/quant.h"

#include <math.h>

#define ROWS 19
#define COLS 512

static void random_bytes(struct pcg *p, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)pcg_u32(p);
}

static void each_format_dequantises_to_the_published_values_bit_for_bit(void **state)
{
    (void)state;
    NEED_SHARED();
    for (int id = FORMAT_F16; id < FORMAT_COUNT; id++) {
        const struct block_format *f = block_format((enum format_id)id);
        char path[160];
        size_t bytes, want_bytes;
        snprintf(path, sizeof path, SHARED "golden/quant/%s.bin", f->name);
        char *rows = read_whole(path, &bytes);
        snprintf(path, sizeof path, SHARED "golden/quant/%s.f32", f->name);
        char *want = read_whole(path, &want_bytes);
        assert_int_equal(want_bytes, 8 * COLS * sizeof(float));
        assert_int_equal(bytes, 8 * block_row_bytes(f, COLS));
        float *got = malloc(want_bytes);
        assert_non_null(got);
        for (size_t r = 0; r < 8; r++)
            block_dequantise(f, got + r * COLS, rows + r * block_row_bytes(f, COLS), COLS);
        if (memcmp(got, want, want_bytes) != 0)
            fail_msg("%s differs", f->name);
        free(got);
        free(want);
        free(rows);
    }
}

static void the_table_agrees_with_the_estimator_on_sizes(void **state)
{
    (void)state;
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const struct block_format *f = block_format((enum format_id)id);
        const struct quant_format *q = quant_find(f->name);
        assert_non_null(q);
        assert_int_equal(f->id, id);
        assert_int_equal(q->gguf_type, f->gguf_type);
        assert_int_equal(quant_bytes(q, 1, COLS), block_row_bytes(f, COLS));
        assert_ptr_equal(block_format_find(f->name), f);
        assert_ptr_equal(block_format_find_gguf(f->gguf_type), f);
        if (f->code_bits)
            assert_int_equal(f->block_bytes, f->block_weights * f->code_bits / 8 + f->scale_bytes);
    }
    assert_null(block_format_find_gguf(16));
    assert_null(block_format_find("mlx4-g64"));
}

static void packing_loses_no_bit(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 1, "packing");
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const struct block_format *f = block_format((enum format_id)id);
        size_t bytes = ROWS * block_row_bytes(f, COLS), room = packed_bytes(f, ROWS, COLS);
        uint8_t *blocks = malloc(bytes), *packed = malloc(room), *again = malloc(bytes);
        assert_true(blocks && packed && again);
        random_bytes(&p, blocks, bytes);
        memset(packed, 0xff, room);
        packed_from_blocks(f, packed, blocks, ROWS, COLS);
        packed_to_blocks(f, again, packed, ROWS, COLS);
        assert_memory_equal(again, blocks, bytes);
        float want[COLS], got[COLS];
        for (size_t r = 0; r < ROWS; r++) {
            block_dequantise(f, want, blocks + r * block_row_bytes(f, COLS), COLS);
            packed_dequantise(f, got, packed, r, 0, COLS, COLS);
            assert_memory_equal(got, want, sizeof want);
        }
        free(again);
        free(packed);
        free(blocks);
    }
}

static void a_packed_matrix_is_at_most_two_percent_larger_than_its_blocks(void **state)
{
    (void)state;
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const struct block_format *f = block_format((enum format_id)id);
        bool filled = id == FORMAT_Q3_K || id == FORMAT_Q6_K;
        size_t blocks = 64 * block_row_bytes(f, 768), packed = packed_bytes(f, 64, 768);
        assert_int_equal(packed % PACKED_LINE_BYTES, 0);
        assert_true(filled ? packed < blocks * 102 / 100 : packed == blocks);
    }
}

/* The picture in packed.h. */
static void a_line_holds_four_columns_of_sixteen_rows(void **state)
{
    (void)state;
    const struct block_format *f = block_format(FORMAT_Q4_0);
    uint8_t blocks[16 * 18], packed[64 * 5];
    assert_int_equal(packed_bytes(f, 16, 32), sizeof packed);
    for (int r = 0; r < 16; r++) {
        uint8_t codes[32], scales[2] = {(uint8_t)r, 0x3c};
        for (int i = 0; i < 32; i++)
            codes[i] = (uint8_t)((i + r) % 16);
        f->join(blocks + 18 * r, codes, scales);
    }
    packed_from_blocks(f, packed, blocks, 16, 32);
    for (int r = 0; r < 16; r++)
        for (int i = 0; i < 4; i++) {
            assert_int_equal(packed[64 + 4 * r + i] & 15, (i + r) % 16);
            assert_int_equal(packed[64 + 4 * r + i] >> 4, (i + 4 + r) % 16);
            assert_int_equal(packed[128 + 4 * r + i] & 15, (i + 8 + r) % 16);
        }
    for (int r = 0; r < 16; r++) {
        assert_int_equal(packed[2 * r], r);
        assert_int_equal(packed[2 * r + 1], 0x3c);
    }
    for (int i = 32; i < 64; i++)
        assert_int_equal(packed[i], 0);
}

static void every_half_comes_back_from_a_float(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        bool nan = (h & 0x7fff) > 0x7c00;
        uint32_t quiet = nan ? h | 0x200 : h;
        assert_int_equal(half_of_float(half_to_float((uint16_t)h)), quiet);
    }
}

static void a_float_between_two_halves_goes_to_the_nearest_or_the_even_one(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float low = half_to_float((uint16_t)h), high = half_to_float((uint16_t)(h + 1));
        float middle = (low + high) / 2;
        assert_int_equal(half_of_float(middle), h % 2 ? h + 1 : h);
        assert_int_equal(half_of_float(nextafterf(middle, 0)), h);
        assert_int_equal(half_of_float(-nextafterf(middle, high)), (h + 1) | 0x8000);
    }
    assert_int_equal(half_of_float(65519.996f), 0x7bff);
    assert_int_equal(half_of_float(65520.0f), 0x7c00);
    assert_int_equal(half_of_float(-INFINITY), 0xfc00);
    assert_int_equal(half_of_float(1e-30f), 0);
}

static void activations_keep_eight_bits_of_each_group_and_their_sums(void **state)
{
    (void)state;
    enum { cols = 333 };
    struct pcg p;
    float values[cols];
    void *buffer = aligned_alloc(ACTIVATION_ALIGN, activation_bytes(cols));
    assert_non_null(buffer);
    pcg_stream(&p, 3, "activations");
    for (int i = 0; i < cols; i++)
        values[i] = ldexpf((float)pcg_gauss_q16(&p), i / 32 - 20);
    activation_quantise(buffer, values, cols);
    struct activation a = activation_view(buffer, 0, cols);
    for (int g = 0; g < 512 / 32; g++) {
        int sum = 0;
        float max = 0;
        for (int i = 32 * g; i < 32 * g + 32; i++) {
            float value = i < cols ? values[i] : 0;
            assert_true(fabsf(a.scale[g] * a.bytes[i] - value) <= 0.5001f * a.scale[g]);
            max = fmaxf(max, fabsf(value));
            sum += a.bytes[i];
        }
        assert_close(a.scale[g], max / 127, 1e-9);
        assert_int_equal(a.minus_sum32[g], -sum);
        assert_int_equal(a.minus_sum16[2 * g] + a.minus_sum16[2 * g + 1], -sum);
        assert_true(a.weighted_sum32[g] == a.scale[g] * (float)sum);
    }
    free(buffer);
}

static void a_group_with_an_infinity_or_a_nan_has_the_scale_nan(void **state)
{
    (void)state;
    float values[96] = {[5] = INFINITY, [40] = 1e-31f, [70] = NAN};
    void *buffer = aligned_alloc(ACTIVATION_ALIGN, activation_bytes(96));
    assert_non_null(buffer);
    activation_quantise(buffer, values, 96);
    struct activation a = activation_view(buffer, 0, 96);
    assert_true(isnan(a.scale[0]) && isnan(a.scale[2]));
    assert_true(a.scale[1] == 0 && a.bytes[40] == 0);
    free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_format_dequantises_to_the_published_values_bit_for_bit),
        cmocka_unit_test(the_table_agrees_with_the_estimator_on_sizes),
        cmocka_unit_test(packing_loses_no_bit),
        cmocka_unit_test(a_packed_matrix_is_at_most_two_percent_larger_than_its_blocks),
        cmocka_unit_test(a_line_holds_four_columns_of_sixteen_rows),
        cmocka_unit_test(every_half_comes_back_from_a_float),
        cmocka_unit_test(a_float_between_two_halves_goes_to_the_nearest_or_the_even_one),
        cmocka_unit_test(activations_keep_eight_bits_of_each_group_and_their_sums),
        cmocka_unit_test(a_group_with_an_infinity_or_a_nan_has_the_scale_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_quantise.c -- writers of block formats: how near they come, what they give back, and the edges. */
#include "tests/support.h"

#include "base/pcg.h"
#include "kernels/formats/block_format.h"
#include "kernels/formats/half.h"

#include <float.h>
#include <math.h>

#define GOLDEN_WEIGHTS (8 * 512)

/* The formats that are written, and the error they may make: `step` of the block's largest magnitude, and
 * `least` wherever F16 scales and values end. */
static const struct writer {
    enum format_id id;
    double step, least;
} writers[] = {{FORMAT_F32, 0, 0},
               {FORMAT_F16, 0x1p-11, 0x1p-25},
               {FORMAT_BF16, 0x1p-8, 0x1p-134},
               {FORMAT_Q8_0, 0.5 / 127 + 0x1p-11, 127 * 0x1p-25},
               {FORMAT_Q4_0, 1.0 / 8 + 0x1p-11, 8 * 0x1p-25},
               {FORMAT_MXFP4, 1.0 / 4, 0x1p-128}};
#define WRITERS (sizeof writers / sizeof writers[0])

/* A block through a format and back. */
static void there_and_back(const struct block_format *f, float out[32], const float in[32])
{
    uint8_t row[32 * 4];
    assert_true(block_quantise(f, row, in, 32));
    block_dequantise(f, out, row, 32);
}

static double largest(const float values[32])
{
    double max = 0;
    for (int i = 0; i < 32; i++)
        max = fmax(max, fabs((double)values[i]));
    return max;
}

static void each_writer_exists_for_the_formats_it_should(void **state)
{
    (void)state;
    size_t count = 0;
    for (int id = 0; id < FORMAT_COUNT; id++)
        count += block_format((enum format_id)id)->quantise != NULL;
    assert_int_equal(count, WRITERS);
    for (size_t i = 0; i < WRITERS; i++)
        assert_non_null(block_format(writers[i].id)->quantise);
}

/* Magnitudes from far below the smallest F16 up to 2^14. */
static void writers_are_as_near_as_their_steps_allow(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 2, "writers");
    for (size_t c = 0; c < WRITERS; c++)
        for (int turn = 0; turn < 400; turn++) {
            float in[32], out[32];
            for (int i = 0; i < 32; i++)
                in[i] = ldexpf((float)pcg_gauss_q16(&p), turn % 48 - 52);
            there_and_back(block_format(writers[c].id), out, in);
            double error_max = writers[c].step * largest(in) + writers[c].least;
            for (int i = 0; i < 32; i++)
                assert_close(in[i], out[i], error_max);
        }
}

/* With the step that the block got, no other code would have been nearer. */
static void every_code_is_the_nearest_to_its_weight(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 3, "nearest");
    for (size_t c = 0; c < WRITERS; c++) {
        const struct block_format *f = block_format(writers[c].id);
        for (int turn = 0; turn < 100 && f->code_bits; turn++) {
            float in[32];
            uint8_t block[34], codes[32], scales[2];
            for (int i = 0; i < 32; i++)
                in[i] = (float)pcg_gauss_q16(&p) / 65536;
            assert_true(block_quantise(f, block, in, 32));
            f->split(codes, scales, block);
            float factor, minimum;
            f->scale(&factor, &minimum, scales);
            for (int i = 0; i < 32; i++) {
                double got = fabs((double)in[i] - (double)(factor * block_value(f, codes[i])));
                /* The writer divided by the step before it became an F16. */
                double slack = fabs((double)in[i]) * 0x1p-10;
                for (int code = 0; code < 1 << f->code_bits; code++)
                    assert_true(got <= fabs((double)in[i] -
                                            (double)(factor * block_value(f, (uint8_t)code))) +
                                           slack);
            }
        }
    }
}

/* Blocks of the public quantiser, whose largest weight has the largest code: reading and writing again gives
 * the same bytes. MXFP4 has a second zero, which is written as the first. */
static void golden_blocks_come_back_bit_for_bit(void **state)
{
    (void)state;
    NEED_SHARED();
    for (size_t c = 1; c < WRITERS; c++) {
        const struct block_format *f = block_format(writers[c].id);
        char path[160];
        size_t bytes;
        snprintf(path, sizeof path, SHARED "golden/quant/%s.bin", f->name);
        uint8_t *blocks = (uint8_t *)read_whole(path, &bytes), *again = malloc(bytes);
        float *values = malloc(GOLDEN_WEIGHTS * sizeof *values);
        assert_true(again && values);
        assert_int_equal(bytes, block_row_bytes(f, GOLDEN_WEIGHTS));
        block_dequantise(f, values, blocks, GOLDEN_WEIGHTS);
        assert_true(block_quantise(f, again, values, GOLDEN_WEIGHTS));
        for (size_t b = 0; b < bytes && f->id == FORMAT_MXFP4; b++)
            if (b % f->block_bytes != 0)
                for (unsigned shift = 0; shift < 8; shift += 4)
                    if ((blocks[b] >> shift & 15) == 8)
                        blocks[b] &= (uint8_t) ~(15u << shift);
        for (size_t b = 0; b < bytes; b++)
            if (blocks[b] != again[b])
                fail_msg("%s: byte %zu is %d, was %d", f->name, b, again[b], blocks[b]);
        free(values);
        free(again);
        free(blocks);
    }
}

/* What a writer wrote once, it writes again. */
static void writing_twice_changes_nothing(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 4, "twice");
    for (size_t c = 0; c < WRITERS; c++)
        for (int turn = 0; turn < 200; turn++) {
            float in[32], once[32], twice[32];
            for (int i = 0; i < 32; i++)
                in[i] = ldexpf((float)pcg_gauss_q16(&p), turn % 12 - 20);
            there_and_back(block_format(writers[c].id), once, in);
            there_and_back(block_format(writers[c].id), twice, once);
            assert_memory_equal(once, twice, sizeof once);
        }
}

/* No term of rounding depends on the magnitude, as long as scales are normal F16. */
static void weights_twice_as_large_have_twice_the_scale_and_the_same_codes(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 5, "doubled");
    for (size_t c = 0; c < WRITERS; c++)
        for (int turn = 0; turn < 100; turn++) {
            float in[32], out[32], doubled[32];
            for (int i = 0; i < 32; i++)
                in[i] = ldexpf((float)pcg_gauss_q16(&p), -16);
            there_and_back(block_format(writers[c].id), out, in);
            for (int i = 0; i < 32; i++)
                in[i] *= 2;
            there_and_back(block_format(writers[c].id), doubled, in);
            for (int i = 0; i < 32; i++)
                assert_true(doubled[i] == 2 * out[i]);
        }
}

static void zeros_are_written_as_zeros(void **state)
{
    (void)state;
    for (size_t c = 0; c < WRITERS; c++) {
        float in[32] = {0}, out[32];
        in[7] = -0.0f;
        there_and_back(block_format(writers[c].id), out, in);
        for (int i = 0; i < 32; i++)
            assert_true(out[i] == 0);
    }
}

static void denormal_weights_are_written_as_nothing_larger(void **state)
{
    (void)state;
    static const float tiny[] = {FLT_TRUE_MIN, 1e-42f, FLT_MIN / 2, FLT_MIN};
    for (size_t c = 0; c < WRITERS; c++)
        for (size_t i = 0; i < sizeof tiny / sizeof tiny[0]; i++) {
            float in[32] = {[3] = tiny[i], [9] = -tiny[i]}, out[32];
            there_and_back(block_format(writers[c].id), out, in);
            for (int k = 0; k < 32; k++)
                assert_true(fabsf(out[k]) <= 2 * tiny[i]);
        }
}

static void weights_beyond_a_formats_range_saturate(void **state)
{
    (void)state;
    static const struct {
        enum format_id id;
        float most;
    } cases[] = {{FORMAT_Q8_0, 127 * 65504.0f}, {FORMAT_Q4_0, 8 * 65504.0f}};
    for (size_t c = 0; c < 4; c++) {
        float most = cases[c / 2].most, over = c % 2 ? FLT_MAX : 1.01f * most;
        float in[32] = {[0] = over, [1] = -over, [3] = 1}, out[32];
        there_and_back(block_format(cases[c / 2].id), out, in);
        assert_true(fabsf(out[0]) == most); /* the first of two extremes has the end */
        assert_true(out[1] < -0.8f * most && out[1] >= -most);
        assert_true(out[3] == 0);
    }
    float in[32] = {[0] = FLT_MAX, [1] = -FLT_MAX}, out[32];
    there_and_back(block_format(FORMAT_MXFP4), out, in); /* its scales reach as far as F32 */
    assert_true(out[0] == 0x1.8p127f && out[1] == -0x1.8p127f);
    there_and_back(block_format(FORMAT_F16), out, in);
    assert_true(isinf(out[0]) && out[0] > 0 && isinf(out[1]) && out[1] < 0);
}

static void a_weight_that_is_no_number_is_refused_or_kept(void **state)
{
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t c = 0; c < WRITERS; c++)
        for (size_t i = 0; i < 3; i++) {
            const struct block_format *f = block_format(writers[c].id);
            float in[64] = {[0] = 1, [40] = bad[i]}, out[64];
            uint8_t row[64 * 4];
            memset(row, 0xa5, sizeof row);
            assert_int_equal(block_quantise(f, row, in, 64), f->code_bits == 0);
            if (f->code_bits) {
                for (size_t b = 0; b < sizeof row; b++)
                    assert_int_equal(row[b], 0xa5);
                continue;
            }
            block_dequantise(f, out, row, 64);
            assert_true(isnan(bad[i]) ? isnan(out[40]) : out[40] == bad[i]);
        }
}

static void every_bfloat_comes_back_from_a_float_and_halves_go_to_even(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {
        bool nan = (b & 0x7fff) > 0x7f80;
        assert_int_equal(bfloat_of_float(bfloat_to_float((uint16_t)b)), nan ? b | 0x40 : b);
        if ((b & 0x7f80) == 0x7f80)
            continue;
        assert_int_equal(bfloat_of_float(float_of_bits(b << 16 | 0x8000)), b + b % 2);
        assert_int_equal(bfloat_of_float(float_of_bits(b << 16 | 0x7fff)), b);
        assert_int_equal(bfloat_of_float(float_of_bits(b << 16 | 0x8001)), b + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_writer_exists_for_the_formats_it_should),
        cmocka_unit_test(writers_are_as_near_as_their_steps_allow),
        cmocka_unit_test(every_code_is_the_nearest_to_its_weight),
        cmocka_unit_test(golden_blocks_come_back_bit_for_bit),
        cmocka_unit_test(writing_twice_changes_nothing),
        cmocka_unit_test(weights_twice_as_large_have_twice_the_scale_and_the_same_codes),
        cmocka_unit_test(zeros_are_written_as_zeros),
        cmocka_unit_test(denormal_weights_are_written_as_nothing_larger),
        cmocka_unit_test(weights_beyond_a_formats_range_saturate),
        cmocka_unit_test(a_weight_that_is_no_number_is_refused_or_kept),
        cmocka_unit_test(every_bfloat_comes_back_from_a_float_and_halves_go_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

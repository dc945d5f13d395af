/* test_hash.c -- fingerprints against published vectors, and the order and spread they promise. */
#include "base/hash.h"

#include "tests/support.h"

/* The first outputs of splitmix64 from state 0 (Vigna), which is the finaliser over a counter. */
static void the_finaliser_is_that_of_splitmix64(void **state)
{
    (void)state;
    static const uint64_t published[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                         UINT64_C(0x06c45d188009454f)};
    for (uint64_t i = 0; i < 3; i++)
        assert_true(hash_mix((i + 1) * HASH_SEED) == published[i]);
}

/* Published FNV-1a 64-bit vectors (Fowler, Noll, Vo). */
static void a_text_is_hashed_with_fnv_1a(void **state)
{
    (void)state;
    assert_true(hash_text("") == hash_mix(UINT64_C(0xcbf29ce484222325)));
    assert_true(hash_text("a") == hash_mix(UINT64_C(0xaf63dc4c8601ec8c)));
    assert_true(hash_text("foobar") == hash_mix(UINT64_C(0x85944171f73967e8)));
}

static void the_order_of_fields_matters(void **state)
{
    (void)state;
    uint64_t one_two = hash_add(hash_add(HASH_SEED, 1), 2);
    assert_true(one_two != hash_add(hash_add(HASH_SEED, 2), 1));
    assert_true(hash_add(HASH_SEED, 0) != HASH_SEED);
    assert_true(hash_add(hash_add(HASH_SEED, 0), 0) != hash_add(HASH_SEED, 0));
}

static void one_changed_bit_changes_about_half_of_the_fingerprint(void **state)
{
    (void)state;
    int changed = 0;
    for (uint64_t field = 0; field < 100; field++)
        for (int bit = 0; bit < 64; bit++)
            changed += __builtin_popcountll(hash_add(HASH_SEED, field) ^
                                            hash_add(HASH_SEED, field ^ (UINT64_C(1) << bit)));
    assert_close(changed / 6400.0, 32, 0.5);
}

/* The formula of the header, word by word, on 100 bytes 0, 1, 2 ... */
static void bytes_are_hashed_as_the_header_says(void **state)
{
    (void)state;
    unsigned char bytes[128] = {0};
    uint64_t lane[8], expected = hash_mix(100);
    for (unsigned i = 0; i < 100; i++)
        bytes[i] = (unsigned char)i;
    for (unsigned i = 0; i < 8; i++) {
        lane[i] = HASH_SEED + i;
        for (unsigned line = 0; line < 2; line++) {
            uint64_t word = 0;
            for (unsigned k = 8; k-- > 0;)
                word = word << 8 | bytes[64 * line + 8 * i + k];
            uint64_t x = lane[i] ^ word;
            lane[i] = (x << 29 | x >> 35) * UINT64_C(0xd6e8feb86659fd93);
        }
        expected = hash_add(expected, lane[i]);
    }
    assert_true(hash_bytes(bytes, 100) == expected);
}

static void any_changed_bit_changes_the_hash_of_bytes(void **state)
{
    (void)state;
    unsigned char bytes[200] = {1, 2, 3};
    for (size_t count = 0; count <= sizeof bytes; count += 25) {
        uint64_t before = hash_bytes(bytes, count);
        for (size_t i = 0; i < 8 * count; i++) {
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
            assert_true(hash_bytes(bytes, count) != before);
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        }
        assert_true(count == sizeof bytes || hash_bytes(bytes, count + 1) != before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_finaliser_is_that_of_splitmix64),
        cmocka_unit_test(a_text_is_hashed_with_fnv_1a),
        cmocka_unit_test(the_order_of_fields_matters),
        cmocka_unit_test(bytes_are_hashed_as_the_header_says),
        cmocka_unit_test(any_changed_bit_changes_the_hash_of_bytes),
        cmocka_unit_test(one_changed_bit_changes_about_half_of_the_fingerprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

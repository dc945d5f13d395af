/* test_gguf_write.c -- what was declared is what the reader of GGUF files finds. */
#include "models/gguf_write.h"

#include "tests/allocations.h"
#include "tests/support.h"

#include <unistd.h>

static struct diag dg;

/* Declares one key of each kind and three tensors, the second of which ends at no multiple of 32. */
static void declare(struct gguf_write *w)
{
    gguf_write_text(w, "general.architecture", "llama");
    gguf_write_u32(w, "llama.block_count", 7);
    gguf_write_f32(w, "llama.rope.freq_base", 10000.5f);
    gguf_write_flag(w, "llama.flag", true);
    gguf_write_array(w, "tokens", GGUF_TEXT, 3);
    gguf_write_text_item(w, "a");
    gguf_write_text_item(w, "");
    gguf_write_text_item(w, "\xc4\x80");
    gguf_write_array(w, "types", GGUF_I32, 2);
    gguf_write_i32_item(w, 5);
    gguf_write_i32_item(w, -1);
    gguf_write_tensor(w, "first", quant_find("f32"), 1, (uint64_t[]){8});
    gguf_write_tensor(w, "second", quant_find("q4_0"), 2, (uint64_t[]){32, 3});
    gguf_write_tensor(w, "third", quant_find("mxfp4"), 3, (uint64_t[]){64, 2, 2});
}

enum { FIRST_BYTES = 32, SECOND_BYTES = 54, THIRD_BYTES = 136 };

static enum status write_file_of(const char *path, struct diag *reason)
{
    struct gguf_write *w;
    unsigned char data[THIRD_BYTES];
    enum status st = gguf_write_new(&w, reason);
    if (st != ST_OK)
        return st;
    declare(w);
    st = gguf_write_open(w, path, reason);
    for (unsigned char t = 0; t < 3 && st == ST_OK; t++) {
        static const size_t bytes[] = {FIRST_BYTES, SECOND_BYTES, THIRD_BYTES};
        memset(data, t + 1, sizeof data);
        st = gguf_write_data(w, data, 10, reason);
        if (st == ST_OK)
            st = gguf_write_data(w, data, bytes[t] - 10, reason);
    }
    if (st == ST_OK)
        return gguf_write_commit(w, reason);
    gguf_write_abandon(w);
    return st;
}

static struct gguf *written(const char *path)
{
    struct gguf *g;
    assert_ok(write_file_of(path, &dg));
    assert_ok(gguf_open(&g, path, &dg));
    return g;
}

static void keys_come_back_as_they_were_given(void **state)
{
    (void)state;
    struct gguf *g = written(temp_path("keys.gguf"));
    struct gguf_text text;
    struct gguf_array array;
    uint64_t number;
    double real;
    bool flag;
    assert_int_equal(gguf_key_count(g), 6);
    assert_true(gguf_get_text(g, "general.architecture", &text) && gguf_text_is(text, "llama"));
    assert_true(gguf_u64(g, "llama.block_count", &number) && number == 7);
    assert_true(gguf_double(g, "llama.rope.freq_base", &real) && real == 10000.5);
    assert_true(gguf_flag(g, "llama.flag", &flag) && flag);
    assert_true(gguf_get_array(g, "types", &array) && array.count == 2);
    assert_true(gguf_array_double(&array, 0, &real) && real == 5);
    assert_true(gguf_array_double(&array, 1, &real) && real == -1);
    assert_true(gguf_get_array(g, "tokens", &array) && array.count == 3);
    assert_true(gguf_array_take(&array, &text) && gguf_text_is(text, "a"));
    assert_true(gguf_array_take(&array, &text) && gguf_text_is(text, ""));
    assert_true(gguf_array_take(&array, &text) && gguf_text_is(text, "\xc4\x80"));
    gguf_close(g);
}

static void tensors_stand_aligned_in_their_order_with_their_data(void **state)
{
    (void)state;
    const char *path = temp_path("tensors.gguf");
    struct gguf *g = written(path);
    static const char *const names[] = {"first", "second", "third"};
    static const uint64_t bytes[] = {FIRST_BYTES, SECOND_BYTES, THIRD_BYTES};
    size_t file_bytes;
    char *file = read_whole(path, &file_bytes);
    assert_int_equal(gguf_tensor_count(g), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        assert_true(gguf_text_is(t->name, names[i]));
        assert_int_equal(t->dims, i + 1);
        assert_int_equal(t->bytes, bytes[i]);
        assert_int_equal(t->offset % 32, 0);
        for (size_t b = 0; b < t->bytes; b++)
            assert_int_equal(file[t->offset + b], i + 1);
    }
    assert_int_equal(gguf_tensor_at(g, 2)->extent[1], 2);
    assert_int_equal(gguf_tensor_at(g, 0)->offset, gguf_data_offset(g, 0));
    free(file);
    gguf_close(g);
}

static void the_size_is_known_before_anything_is_written(void **state)
{
    (void)state;
    struct gguf_write *w;
    const char *path = temp_path("size.gguf");
    size_t bytes;
    assert_ok(gguf_write_new(&w, &dg));
    declare(w);
    uint64_t promised = gguf_write_bytes(w);
    gguf_write_abandon(w);
    assert_ok(write_file_of(path, &dg));
    free(read_whole(path, &bytes));
    assert_int_equal(bytes, promised);
}

static void a_file_given_up_leaves_nothing(void **state)
{
    (void)state;
    struct gguf_write *w;
    const char *path = temp_path("given-up.gguf");
    assert_ok(gguf_write_new(&w, &dg));
    declare(w);
    assert_ok(gguf_write_open(w, path, &dg));
    gguf_write_abandon(w);
    assert_int_equal(access(path, F_OK), -1);
}

static void any_allocation_that_fails_is_reported(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    for (size_t n = 1; n < 100; n++) {
        const char *path = temp_path("scarce.gguf");
        allocations_fail_at(n);
        enum status st = write_file_of(path, &dg);
        allocations_fail_at(0);
        if (st == ST_OK) {
            assert_true(n > 5);
            return;
        }
        assert_int_equal(access(path, F_OK), -1);
    }
    fail_msg("no allocation succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_back_as_they_were_given),
        cmocka_unit_test(tensors_stand_aligned_in_their_order_with_their_data),
        cmocka_unit_test(the_size_is_known_before_anything_is_written),
        cmocka_unit_test(a_file_given_up_leaves_nothing),
        cmocka_unit_test(any_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

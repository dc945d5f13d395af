/* test_gguf.c -- the GGUF container: honest files, files that lie, and files that chance made. */
#include "models/gguf.h"

#include "base/pcg.h"
#include "tests/gguf_writer.h"
#include "tests/support.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { F32 = 0, Q8_0 = 8 };

/* AddressSanitizer keeps freed memory aside, so its growth says nothing. */
#ifdef __SANITIZE_ADDRESS__
#define MEMORY_MAX_KIB (1 << 30)
#else
#define MEMORY_MAX_KIB (64 << 10)
#endif

/* Opens bytes as if they were a file. */
static enum status open_bytes(struct gguf **g, const void *bytes, size_t count, struct diag *dg)
{
    char path[64];
    int fd = memfd_create("gguf", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum status s = gguf_open(g, path, dg);
    close(fd);
    return s;
}

static enum status open_writer(struct gguf **g, struct gguf_writer *w, struct diag *dg)
{
    size_t bytes;
    unsigned char *file = writer_build(w, &bytes);
    enum status s = open_bytes(g, file, bytes, dg);
    free(file);
    writer_end(w);
    return s;
}

/* The file is refused with `status`, and the one line of reason has `word` in it. */
static void assert_refused(struct gguf_writer *w, enum status status, const char *word)
{
    struct gguf *g;
    struct diag dg = {.text = ""};
    enum status s = open_writer(&g, w, &dg);
    if (s != status || !strstr(dg.text, word) || strchr(dg.text, '\n'))
        fail_msg("expected '%s', got status %d: %s", word, s, dg.text);
}

static void every_kind_of_value_is_read_by_key(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    writer_start(&w);
    writer_key(&w, "u8", GGUF_U8);
    writer_bytes(&w, "\xc8", 1);
    writer_key(&w, "i16", GGUF_I16);
    writer_bytes(&w, "\xff\xff", 2);
    writer_key(&w, "u64", GGUF_U64);
    writer_u64_raw(&w, UINT64_C(1) << 60);
    writer_key(&w, "f32", GGUF_F32);
    writer_u32_raw(&w, 0x3fc00000);
    writer_key(&w, "f64", GGUF_F64);
    writer_u64_raw(&w, UINT64_C(0xc004000000000000));
    writer_key(&w, "flag", GGUF_BOOL);
    writer_bytes(&w, "\1", 1);
    writer_text(&w, "text", "words");
    assert_ok(open_writer(&g, &w, &dg));
    uint64_t u = 7;
    double d = 7;
    bool flag = false;
    struct gguf_text text;
    assert_true(gguf_u64(g, "u8", &u) && u == 200);
    assert_true(gguf_u64(g, "u64", &u) && u == UINT64_C(1) << 60);
    assert_true(!gguf_u64(g, "i16", &u) && !gguf_u64(g, "f32", &u) && !gguf_u64(g, "none", &u));
    assert_true(!gguf_u64(g, "flag", &u) && !gguf_u64(g, "text", &u));
    assert_true(u == UINT64_C(1) << 60);
    assert_true(gguf_double(g, "i16", &d) && d == -1);
    assert_true(gguf_double(g, "f32", &d) && d == 1.5);
    assert_true(gguf_double(g, "f64", &d) && d == -2.5);
    assert_true(!gguf_double(g, "flag", &d) && !gguf_double(g, "text", &d));
    assert_true(gguf_flag(g, "flag", &flag) && flag);
    assert_false(gguf_flag(g, "u8", &flag));
    assert_true(gguf_get_text(g, "text", &text) && gguf_text_is(text, "words"));
    assert_false(gguf_get_text(g, "u8", &text));
    assert_int_equal(gguf_key_count(g), 7);
    assert_true(gguf_text_is(gguf_key_at(g, 0), "f32"));
    assert_true(gguf_has(g, "u8") && !gguf_has(g, "u"));
    gguf_close(g);
}

static void arrays_are_views_of_numbers_texts_and_arrays(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    writer_start(&w);
    writer_key(&w, "numbers", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_I32);
    writer_u64_raw(&w, 3);
    writer_u32_raw(&w, 5);
    writer_u32_raw(&w, UINT32_MAX);
    writer_u32_raw(&w, 6);
    writer_key(&w, "texts", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_TEXT);
    writer_u64_raw(&w, 3);
    writer_text_raw(&w, "a");
    writer_text_raw(&w, "");
    writer_text_raw(&w, "bcd");
    writer_key(&w, "nested", GGUF_ARRAY);
    for (int depth = 0; depth < 3; depth++) {
        writer_u32_raw(&w, depth < 2 ? GGUF_ARRAY : GGUF_U8);
        writer_u64_raw(&w, 1);
    }
    writer_bytes(&w, "x", 1);
    writer_u32(&w, "after", 9);
    assert_ok(open_writer(&g, &w, &dg));
    struct gguf_array a;
    struct gguf_text t;
    uint64_t u;
    double d;
    assert_true(gguf_get_array(g, "numbers", &a));
    assert_int_equal(a.count, 3);
    assert_true(gguf_array_u64(&a, 2, &u) && u == 6);
    assert_true(!gguf_array_u64(&a, 1, &u) && !gguf_array_u64(&a, 3, &u));
    assert_true(gguf_array_double(&a, 1, &d) && d == -1);
    assert_false(gguf_array_take(&a, &t));
    assert_true(gguf_get_array(g, "texts", &a));
    assert_false(gguf_array_u64(&a, 0, &u));
    assert_true(gguf_array_take(&a, &t) && gguf_text_is(t, "a"));
    assert_true(gguf_array_take(&a, &t) && gguf_text_is(t, ""));
    assert_true(gguf_array_take(&a, &t) && gguf_text_is(t, "bcd"));
    assert_false(gguf_array_take(&a, &t));
    assert_true(gguf_get_array(g, "nested", &a) && a.type == GGUF_ARRAY);
    assert_false(gguf_get_array(g, "after", &a));
    assert_true(gguf_u64(g, "after", &u) && u == 9);
    gguf_close(g);
}

static void tensors_are_found_by_name_and_placed_behind_the_header(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    writer_start(&w);
    writer_tensor(&w, "b", Q8_0, 64, 3, 2);
    writer_tensor(&w, "a", F32, 5, 0, 0);
    assert_ok(open_writer(&g, &w, &dg));
    const struct gguf_tensor *b = gguf_tensor_find(g, "b"), *a = gguf_tensor_find(g, "a");
    assert_int_equal(gguf_tensor_count(g), 2);
    assert_ptr_equal(gguf_tensor_at(g, 0), b);
    assert_ptr_equal(gguf_tensor_at(g, 1), a);
    assert_null(gguf_tensor_find(g, "c"));
    assert_int_equal(gguf_data_offset(g, 0) % 32, 0);
    assert_int_equal(b->offset, gguf_data_offset(g, 0));
    assert_int_equal(b->bytes, 2 * 3 * 68);
    assert_int_equal(b->weights, 384);
    assert_int_equal(b->extent[3], 1);
    assert_int_equal(a->offset, b->offset + 416);
    assert_string_equal(a->format->name, "f32");
    gguf_close(g);
}

static void a_header_of_many_pieces_is_read_whole(void **state)
{
    (void)state;
    enum { TOKENS = 100000 };
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    char name[32];
    writer_start(&w);
    writer_key(&w, "tokens", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_TEXT);
    writer_u64_raw(&w, TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        snprintf(name, sizeof name, "token %d", i);
        writer_text_raw(&w, name);
    }
    writer_tensor(&w, "t", F32, 5, 0, 0);
    assert_ok(open_writer(&g, &w, &dg));
    struct gguf_array a;
    struct gguf_text t;
    assert_true(gguf_data_offset(g, 0) > 1 << 20);
    assert_true(gguf_get_array(g, "tokens", &a));
    for (int i = 0; i < TOKENS; i++) {
        snprintf(name, sizeof name, "token %d", i);
        assert_true(gguf_array_take(&a, &t) && gguf_text_is(t, name));
    }
    gguf_close(g);
}

static void version_2_is_read_and_version_1_and_big_endian_are_refused_by_name(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    writer_start(&w);
    w.version = 2;
    assert_ok(open_writer(&g, &w, &dg));
    gguf_close(g);
    writer_start(&w);
    w.version = 1;
    assert_refused(&w, ST_UNSUPPORTED, "version 1");
    writer_start(&w);
    w.version = 0x03000000;
    assert_refused(&w, ST_UNSUPPORTED, "big-endian");
    writer_start(&w);
    w.version = 4;
    assert_refused(&w, ST_UNSUPPORTED, "version 4");
    writer_start(&w);
    memcpy(w.magic, "ggjt", 4);
    assert_refused(&w, ST_PARSE, "GGUF");
}

static void what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    assert_int_equal(gguf_open(&g, temp_path("none.gguf"), &dg), ST_IO);
    assert_non_null(strstr(dg.text, "none.gguf"));
    assert_int_equal(gguf_open(&g, "/tmp", &dg), ST_IO);
    assert_int_equal(gguf_open(&g, "/dev/null", &dg), ST_IO);
    assert_int_equal(open_bytes(&g, "", 0, &dg), ST_PARSE);
    assert_int_equal(open_bytes(&g, "GGU", 3, &dg), ST_PARSE);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    size_t bytes;
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    unsigned char *file = writer_build(&w, &bytes);
    writer_end(&w);
    assert_ok(open_bytes(&g, file, bytes, &dg));
    gguf_close(g);
    for (size_t cut = 0; cut < bytes; cut += cut < 2048 ? 1 : 997) {
        dg.text[0] = 0;
        assert_int_equal(open_bytes(&g, file, cut, &dg), ST_PARSE);
        assert_true(strlen(dg.text) > 0 && !strchr(dg.text, '\n'));
    }
    assert_int_equal(open_bytes(&g, file, bytes - 1, &dg), ST_PARSE);
    free(file);
}

static void counts_and_lengths_that_exceed_the_file_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    w.key_count = UINT64_C(1) << 60;
    assert_refused(&w, ST_PARSE, "keys do not fit");
    writer_start(&w);
    w.tensor_count = UINT64_MAX;
    assert_refused(&w, ST_PARSE, "tensors do not fit");
    writer_start(&w);
    w.tensor_count = 3;
    w.data_bytes = 96;
    assert_refused(&w, ST_PARSE, "name of a tensor");
    writer_start(&w);
    writer_u64_raw(&w, UINT64_MAX);
    w.key_count = 1;
    w.data_bytes = 64;
    assert_refused(&w, ST_PARSE, "past the end");
    writer_start(&w);
    writer_key(&w, "list", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_U64);
    writer_u64_raw(&w, UINT64_C(1) << 61);
    assert_refused(&w, ST_PARSE, "past the end");
    writer_start(&w);
    writer_key(&w, "list", GGUF_ARRAY);
    writer_u32_raw(&w, GGUF_TEXT);
    writer_u64_raw(&w, UINT64_C(1) << 60);
    assert_refused(&w, ST_PARSE, "past the end");
}

static void kinds_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_key(&w, "key", 13);
    writer_u32_raw(&w, 0);
    assert_refused(&w, ST_PARSE, "type of metadata");
    writer_start(&w);
    writer_key(&w, "list", GGUF_ARRAY);
    writer_u32_raw(&w, 99);
    writer_u64_raw(&w, 0);
    assert_refused(&w, ST_PARSE, "type of metadata");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->type = 31;
    assert_refused(&w, ST_UNSUPPORTED, "type 31");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->type = 4000000000;
    assert_refused(&w, ST_UNSUPPORTED, "4000000000");
    writer_start(&w);
    writer_key(&w, "deep", GGUF_ARRAY);
    for (int depth = 0; depth < 6; depth++) {
        writer_u32_raw(&w, GGUF_ARRAY);
        writer_u64_raw(&w, 1);
    }
    writer_u32_raw(&w, GGUF_U8);
    writer_u64_raw(&w, 0);
    assert_refused(&w, ST_PARSE, "nested");
}

static void names_that_repeat_or_are_empty_or_endless_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    char longest[1200];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    writer_start(&w);
    writer_u32(&w, "twice", 1);
    writer_u32(&w, "once", 1);
    writer_u32(&w, "twice", 2);
    assert_refused(&w, ST_PARSE, "'twice' stands there twice");
    writer_start(&w);
    writer_tensor(&w, "same", F32, 8, 0, 0);
    writer_tensor(&w, "same", F32, 8, 0, 0);
    assert_refused(&w, ST_PARSE, "'same' stands there twice");
    writer_start(&w);
    writer_u32(&w, "", 1);
    assert_refused(&w, ST_PARSE, "name of a key");
    writer_start(&w);
    writer_u32(&w, longest, 1);
    assert_refused(&w, ST_PARSE, "name of a key");
}

static void extents_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->extent[0] = 0;
    assert_refused(&w, ST_PARSE, "extent of 0");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->dims = 0;
    assert_refused(&w, ST_PARSE, "dimensions");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->dims = 5;
    assert_refused(&w, ST_PARSE, "dimensions");
    writer_start(&w);
    struct writer_tensor *t = writer_tensor(&w, "t", F32, 32, 32, 0);
    t->extent[0] = t->extent[1] = UINT64_C(1) << 32;
    assert_refused(&w, ST_PARSE, "overflow");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->extent[0] = UINT64_C(1) << 62;
    assert_refused(&w, ST_PARSE, "larger than the file");
    writer_start(&w);
    writer_tensor(&w, "t", Q8_0, 64, 2, 0)->extent[0] = 33;
    assert_refused(&w, ST_PARSE, "block");
}

static void places_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->offset = 8;
    assert_refused(&w, ST_PARSE, "misaligned");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->offset = 32;
    assert_refused(&w, ST_PARSE, "past the end");
    writer_start(&w);
    writer_tensor(&w, "t", F32, 32, 0, 0)->offset = UINT64_MAX - 31;
    assert_refused(&w, ST_PARSE, "past the end");
    writer_start(&w);
    writer_tensor(&w, "first", F32, 32, 0, 0);
    writer_tensor(&w, "second", F32, 32, 0, 0)->offset = 96;
    assert_refused(&w, ST_PARSE, "'first' and 'second' overlap");
    writer_start(&w);
    writer_tensor(&w, "first", F32, 32, 0, 0);
    writer_tensor(&w, "second", F32, 32, 0, 0)->offset = 0;
    assert_refused(&w, ST_PARSE, "overlap");
}

static void alignment_is_obeyed_and_must_be_a_power_of_two(void **state)
{
    (void)state;
    struct gguf *g;
    struct diag dg;
    struct gguf_writer w;
    static const uint32_t wrong[] = {0, 3, 48, UINT32_MAX};
    writer_start(&w);
    w.alignment = 4096;
    writer_u32(&w, "general.alignment", 4096);
    writer_tensor(&w, "a", F32, 1, 0, 0);
    writer_tensor(&w, "b", F32, 1, 0, 0);
    assert_ok(open_writer(&g, &w, &dg));
    assert_int_equal(gguf_tensor_find(g, "a")->offset, 4096);
    assert_int_equal(gguf_tensor_find(g, "b")->offset, 8192);
    gguf_close(g);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        writer_start(&w);
        writer_u32(&w, "general.alignment", wrong[i]);
        assert_refused(&w, ST_PARSE, "power of two");
    }
    writer_start(&w);
    writer_text(&w, "general.alignment", "32");
    assert_refused(&w, ST_PARSE, "power of two");
}

static void split_keys(struct gguf_writer *w, uint32_t number, uint32_t count, uint32_t tensors)
{
    writer_start(w);
    writer_u32(w, "split.no", number);
    writer_u32(w, "split.count", count);
    writer_u32(w, "split.tensors.count", tensors);
}

/* Three parts with a tensor each, as DIR/NAME-0000K-of-00003.gguf. */
static void save_parts(const char *name, const char *second_tensor, uint32_t tensors)
{
    static const char *const names[] = {"zero", "one", "two"};
    for (uint32_t i = 0; i < 3; i++) {
        char file[64];
        struct gguf_writer w;
        split_keys(&w, i, 3, tensors);
        if (i == 0)
            writer_text(&w, "general.architecture", "llama");
        writer_tensor(&w, i == 1 ? second_tensor : names[i], F32, 8, 0, 0);
        snprintf(file, sizeof file, "%s-%05u-of-00003.gguf", name, i + 1);
        writer_save(&w, temp_path(file));
        writer_end(&w);
    }
}

static void a_split_model_is_opened_from_any_of_its_parts(void **state)
{
    (void)state;
    struct diag dg;
    save_parts("whole", "one", 3);
    for (unsigned i = 1; i <= 3; i++) {
        struct gguf *g;
        struct gguf_text text;
        char file[64];
        snprintf(file, sizeof file, "whole-%05u-of-00003.gguf", i);
        assert_ok(gguf_open(&g, temp_path(file), &dg));
        assert_int_equal(gguf_file_count(g), 3);
        assert_int_equal(gguf_tensor_count(g), 3);
        assert_int_equal(gguf_tensor_find(g, "two")->file, 2);
        assert_int_equal(gguf_tensor_at(g, 1)->file, 1);
        assert_non_null(strstr(gguf_file_path(g, 1), "whole-00002-of-00003.gguf"));
        assert_true(gguf_file_bytes(g, 2) > 0);
        assert_true(gguf_get_text(g, "general.architecture", &text));
        gguf_close(g);
    }
}

static void assert_path_refused(const char *file, enum status status, const char *word)
{
    struct gguf *g;
    struct diag dg = {.text = ""};
    enum status s = gguf_open(&g, temp_path(file), &dg);
    if (s != status || !strstr(dg.text, word))
        fail_msg("expected '%s', got status %d: %s", word, s, dg.text);
}

static void parts_that_do_not_belong_together_are_refused(void **state)
{
    (void)state;
    struct gguf_writer w;
    save_parts("gap", "one", 3);
    assert_int_equal(remove(temp_path("gap-00002-of-00003.gguf")), 0);
    assert_path_refused("gap-00001-of-00003.gguf", ST_IO, "gap-00002-of-00003");
    save_parts("again", "zero", 3);
    assert_path_refused("again-00001-of-00003.gguf", ST_PARSE, "'zero' stands there twice");
    save_parts("less", "one", 4);
    assert_path_refused("less-00001-of-00003.gguf", ST_PARSE, "split.tensors.count");
    save_parts("mixed", "one", 3);
    split_keys(&w, 2, 3, 3);
    writer_save(&w, temp_path("mixed-00002-of-00003.gguf"));
    writer_end(&w);
    assert_path_refused("mixed-00001-of-00003.gguf", ST_PARSE, "expected part 2 of 3");
    split_keys(&w, 0, 3, 3);
    writer_save(&w, temp_path("renamed.gguf"));
    writer_end(&w);
    assert_path_refused("renamed.gguf", ST_PARSE, "-00001-of-00003.gguf");
    split_keys(&w, 3, 3, 3);
    writer_save(&w, temp_path("past-00004-of-00003.gguf"));
    writer_end(&w);
    assert_path_refused("past-00004-of-00003.gguf", ST_PARSE, "split.no");
}

static void mutated_headers_never_crash_nor_take_memory(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    struct pcg p;
    struct gguf_writer w;
    struct rusage before, after;
    size_t bytes;
    unsigned opened = 0;
    pcg_stream(&p, 1, "test/gguf");
    writer_start(&w);
    writer_qwen3moe(&w, 1);
    unsigned char *file = writer_build(&w, &bytes);
    writer_end(&w);
    size_t header = bytes - (size_t)w.data_bytes;
    char path[64];
    int fd = memfd_create("gguf", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(write(fd, file, bytes), bytes);
    getrusage(RUSAGE_SELF, &before);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct gguf *g;
        struct diag dg = {.text = ""};
        size_t at[4];
        unsigned changes = 1 + pcg_below(&p, 4);
        for (unsigned i = 0; i < changes; i++) {
            unsigned char byte = pcg_below(&p, 4) ? (unsigned char)pcg_u32(&p) : 0xff;
            at[i] = pcg_below(&p, (uint32_t)header);
            assert_int_equal(pwrite(fd, &byte, 1, (off_t)at[i]), 1);
        }
        enum status s = gguf_open(&g, path, &dg);
        if (s == ST_OK) {
            opened++;
            gguf_close(g);
        } else {
            assert_true(s == ST_PARSE || s == ST_UNSUPPORTED || s == ST_IO);
            assert_true(*dg.text && !strchr(dg.text, '\n'));
        }
        for (unsigned i = 0; i < changes; i++)
            assert_int_equal(pwrite(fd, file + at[i], 1, (off_t)at[i]), 1);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(opened > 0 && opened < ROUNDS);
    assert_true(after.ru_maxrss - before.ru_maxrss < MEMORY_MAX_KIB);
    close(fd);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_read_by_key),
        cmocka_unit_test(arrays_are_views_of_numbers_texts_and_arrays),
        cmocka_unit_test(tensors_are_found_by_name_and_placed_behind_the_header),
        cmocka_unit_test(a_header_of_many_pieces_is_read_whole),
        cmocka_unit_test(version_2_is_read_and_version_1_and_big_endian_are_refused_by_name),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(counts_and_lengths_that_exceed_the_file_are_refused),
        cmocka_unit_test(kinds_that_do_not_exist_are_refused),
        cmocka_unit_test(names_that_repeat_or_are_empty_or_endless_are_refused),
        cmocka_unit_test(extents_that_cannot_be_are_refused),
        cmocka_unit_test(places_that_cannot_be_are_refused),
        cmocka_unit_test(alignment_is_obeyed_and_must_be_a_power_of_two),
        cmocka_unit_test(a_split_model_is_opened_from_any_of_its_parts),
        cmocka_unit_test(parts_that_do_not_belong_together_are_refused),
        cmocka_unit_test(mutated_headers_never_crash_nor_take_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

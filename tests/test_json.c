/* test_json.c -- what is read, what is refused and where, and that what is written is JSON. */
#include "base/json.h"

#include "base/pcg.h"
#include "tests/allocations.h"
#include "tests/support.h"

static struct json_doc *open_text(const char *text)
{
    struct diag dg;
    struct json_doc *doc;
    write_file(temp_path("file.json"), text);
    assert_ok(json_open(&doc, temp_path("file.json"), &dg));
    return doc;
}

static void assert_refused(const char *text, enum status status, const char *start)
{
    struct diag dg;
    struct json_doc *doc;
    const char *path = temp_path("file.json");
    write_file(path, text);
    assert_int_equal(json_open(&doc, path, &dg), status);
    assert_null(doc);
    assert_int_equal(strncmp(dg.text, path, strlen(path)), 0);
    if (strncmp(dg.text + strlen(path), start, strlen(start)))
        assert_string_equal(dg.text + strlen(path), start);
}

static void values_of_every_type_are_read(void **state)
{
    (void)state;
    struct json_doc *doc = open_text("\xef\xbb\xbf{\"n\": 94, \"x\": -1.5e3, \"yes\": true, "
                                     "\"text\": \"\\u00e4\\n\", \"list\": [1, [], {}]}");
    const json_node *root = json_root(doc);
    uint64_t n;
    double x;
    bool yes;
    assert_true(json_u64(json_get(root, "n"), &n) && n == 94);
    assert_true(json_double(json_get(root, "x"), &x) && x == -1500);
    assert_true(json_double(json_get(root, "n"), &x) && x == 94);
    assert_true(json_flag(json_get(root, "yes"), &yes) && yes);
    assert_string_equal(json_text(json_get(root, "text")), "\xc3\xa4\n");
    const json_node *list = json_get(root, "list");
    assert_true(json_is_array(list) && !json_is_object(list) && json_count(list) == 3);
    assert_true(json_u64(json_at(list, 0), &n) && n == 1);
    assert_true(json_is_array(json_at(list, 1)) && json_count(json_at(list, 1)) == 0);
    assert_true(json_is_object(json_at(list, 2)) && !json_is_array(json_at(list, 2)));
    assert_string_equal(json_name(doc) + strlen(json_name(doc)) - 9, "file.json");
    json_close(doc);
}

static void what_is_absent_null_or_of_another_type_is_not_there(void **state)
{
    (void)state;
    struct json_doc *doc = open_text("{\"null\": null, \"list\": [null], \"text\": \"1\", "
                                     "\"real\": 4.0, \"minus\": -1, \"one\": 1}");
    const json_node *root = json_root(doc);
    uint64_t n = 7;
    double x = 7;
    bool flag = true;
    assert_null(json_get(root, "absent"));
    assert_null(json_get(root, "null"));
    assert_null(json_get(json_get(root, "list"), "text"));
    assert_null(json_get(NULL, "text"));
    assert_null(json_at(json_get(root, "list"), 0));
    assert_null(json_at(json_get(root, "list"), 1));
    assert_null(json_at(root, 0));
    assert_null(json_text(json_get(root, "one")));
    assert_null(json_text(NULL));
    static const char *const no_count[] = {"text", "real", "minus", "null", "absent", "list"};
    for (size_t i = 0; i < sizeof no_count / sizeof *no_count; i++) {
        assert_false(json_u64(json_get(root, no_count[i]), &n));
        assert_false(json_flag(json_get(root, no_count[i]), &flag));
    }
    assert_false(json_double(json_get(root, "text"), &x));
    assert_false(json_double(NULL, &x));
    assert_false(json_is_array(NULL) || json_is_object(NULL));
    assert_true(json_count(json_get(root, "text")) == 0 && json_count(NULL) == 0);
    assert_true(n == 7 && x == 7 && flag);
    json_close(doc);
    json_close(NULL);
}

static void keys_keep_the_order_of_the_file(void **state)
{
    (void)state;
    struct json_doc *doc = open_text("{\"z\":1,\"a\":2,\"m\":3,\"b\":4,\"y\":5,\"c\":6}");
    const json_node *root = json_root(doc);
    assert_int_equal(json_count(root), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(*json_key_at(root, i), "zambyc"[i]);
    assert_null(json_key_at(root, 6));
    assert_null(json_key_at(NULL, 0));
    json_close(doc);
}

static void broken_text_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_refused("", ST_PARSE, ":1: ");
    assert_refused("{\"a\": 1,\n\"b\": 2,\n}", ST_PARSE, ":3: ");
    assert_refused("{\"a\": 1}\n\n{}", ST_PARSE, ":3: ");
    assert_refused("{\n\"a\": 01}", ST_PARSE, ":2: ");
    assert_refused("{\n\"a\": NaN}", ST_PARSE, ":2: ");
    assert_refused("{\n\n\"a\": 99999999999999999999}", ST_PARSE, ":3: ");
    assert_refused("[\"\xff\"]", ST_PARSE, ":1: ");
    assert_refused("[\"\\u0000\"]", ST_PARSE, ":1: ");
    assert_refused("7", ST_PARSE, ":1: ");
}

static void a_repeated_key_is_refused_with_its_name(void **state)
{
    (void)state;
    assert_refused("{\"a\": 1,\n\"b\": 2,\n\"a\": 3}", ST_PARSE,
                   ":3: duplicate object key near '\"a\"'");
}

static void text_nested_without_end_is_refused(void **state)
{
    (void)state;
    char *deep = malloc(1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    assert_refused(deep, ST_PARSE, ":1: maximum parsing depth reached");
    free(deep);
}

static void a_file_beyond_the_largest_size_is_refused(void **state)
{
    (void)state;
    const char *path = temp_path("large.json");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)JSON_FILE_BYTES_MAX, SEEK_SET),
                     0); /* a hole: no disk is used */
    fputc('1', f);
    assert_int_equal(fclose(f), 0);
    struct diag dg;
    struct json_doc *doc;
    assert_int_equal(json_open(&doc, path, &dg), ST_RANGE);
    assert_string_equal(dg.text + strlen(path), ": a JSON file of at most 64 MiB was expected");
    assert_int_equal(json_open(&doc, "/dev/zero", &dg), ST_RANGE);
}

static void what_cannot_be_opened_or_read_is_reported_by_the_system(void **state)
{
    (void)state;
    struct diag dg;
    struct json_doc *doc;
    assert_int_equal(json_open(&doc, "/nowhere/x.json", &dg), ST_IO);
    assert_string_equal(dg.text, "/nowhere/x.json: cannot be opened: No such file or directory");
    assert_int_equal(json_open(&doc, "/tmp", &dg), ST_IO);
    assert_string_equal(dg.text, "/tmp: cannot be read: Is a directory");
    assert_null(doc);
}

/* The C library's stream may answer ST_IO, or do without its buffer. */
static void any_allocation_may_fail(void **state)
{
    (void)state;
    NEED_ALLOCATIONS();
    const char *path = temp_path("memory.json");
    write_file(path, "{\"a\": [1, 2.5, \"text\"], \"b\": {\"c\": null}}");
    struct diag dg;
    struct json_doc *doc;
    size_t before = allocations_count(), refused = 0;
    assert_ok(json_open(&doc, path, &dg));
    size_t needed = allocations_count() - before;
    json_close(doc);
    for (size_t n = 1; n <= needed; n++) {
        allocations_fail_at(n);
        enum status st = json_open(&doc, path, &dg);
        allocations_fail_at(0);
        assert_true(st == ST_OK || st == ST_NO_MEMORY || st == ST_IO);
        assert_true(st == ST_OK ? doc != NULL : doc == NULL && dg.status == st);
        refused += st != ST_OK;
        json_close(doc);
    }
    assert_in_range(refused, needed - 1, needed);
}

/* Texts of random bytes, read back by jansson, which refuses what is no UTF-8. */
static void any_text_is_written_as_json(void **state)
{
    (void)state;
    struct pcg p;
    pcg_stream(&p, 1, "json");
    for (int i = 0; i < 2000; i++) {
        char text[24] = "";
        for (uint32_t k = pcg_below(&p, 23); k > 0; k--)
            text[k - 1] = (char)(pcg_below(&p, 4) ? 0xa0 + pcg_below(&p, 96) : pcg_below(&p, 256));
        const char *path = temp_path("written.json");
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputc('[', f);
        json_write_text(f, text);
        fputc(']', f);
        assert_int_equal(fclose(f), 0);
        struct diag dg;
        struct json_doc *doc;
        assert_ok(json_open(&doc, path, &dg));
        json_close(doc);
    }
}

static void assert_written_as(const char *text, const char *expected)
{
    char got[128] = "";
    FILE *f = fmemopen(got, sizeof got, "w");
    assert_non_null(f);
    json_write_text(f, text);
    fclose(f);
    assert_string_equal(got, expected);
}

static void text_is_escaped_where_json_demands_and_kept_elsewhere(void **state)
{
    (void)state;
    assert_written_as("", "\"\"");
    assert_written_as("a/b \"c\" \\", "\"a/b \\\"c\\\" \\\\\"");
    assert_written_as("\n\t\x1f\x7f", "\"\\u000a\\u0009\\u001f\\u007f\"");
    static const char kept[] =
        "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80"
        "\xf4\x8f\xbf\xbf";
    char quoted[sizeof kept + 2];
    snprintf(quoted, sizeof quoted, "\"%s\"", kept);
    assert_written_as(kept, quoted);
    assert_written_as("\xff|\xc3", "\"\\ufffd|\\ufffd\"");
    assert_written_as("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
    assert_written_as("\xc0\xaf", "\"\\ufffd\\ufffd\"");            /* an overlong slash */
    assert_written_as("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    assert_written_as("\xe2\x82", "\"\\ufffd\\ufffd\""); /* ends too early */
}

static void a_published_config_is_read(void **state)
{
    (void)state;
    NEED_SHARED();
    struct diag dg;
    struct json_doc *doc;
    assert_ok(json_open(&doc, SHARED "hf-configs/Qwen--Qwen3-30B-A3B.json", &dg));
    uint64_t layers, experts;
    assert_true(json_u64(json_get(json_root(doc), "num_hidden_layers"), &layers) && layers == 48);
    assert_true(json_u64(json_get(json_root(doc), "num_experts"), &experts) && experts == 128);
    json_close(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_type_are_read),
        cmocka_unit_test(what_is_absent_null_or_of_another_type_is_not_there),
        cmocka_unit_test(keys_keep_the_order_of_the_file),
        cmocka_unit_test(broken_text_is_refused_with_its_line),
        cmocka_unit_test(a_repeated_key_is_refused_with_its_name),
        cmocka_unit_test(text_nested_without_end_is_refused),
        cmocka_unit_test(a_file_beyond_the_largest_size_is_refused),
        cmocka_unit_test(what_cannot_be_opened_or_read_is_reported_by_the_system),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(any_text_is_written_as_json),
        cmocka_unit_test(text_is_escaped_where_json_demands_and_kept_elsewhere),
        cmocka_unit_test(a_published_config_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_tokenizer_files.c -- what a file says of its vocabulary is checked, and what is wrong
 * with it is said in one line. */
#include "tests/support.h"

#include "base/pcg.h"
#include "tests/allocations.h"
#include "tests/vocabulary.h"

#include <malloc.h>

static struct diag dg;

static struct vocabulary *bytes_and_one_merge(void)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    assert_non_null(v);
    vocabulary_bytes(v);
    vocabulary_token(v, "ab", KIND_NORMAL, 0);
    vocabulary_token(v, "<|end|>", KIND_CONTROL, 0);
    vocabulary_merge(v, "a", "b");
    return v;
}

/* The reason why a file with these keys is refused holds `reason`; the writer is ended. */
static void expect_writer_refused(struct gguf_writer *w, enum status status, const char *reason)
{
    struct tokenizer *t;
    enum status s = vocabulary_try(&t, w, &dg);
    if (s != status || !strstr(dg.text, reason))
        fail_msg("expected status %d, '%s'; got %d, '%s'", status, reason, s, s ? dg.text : "");
    assert_non_null(strstr(dg.text, "vocabulary.gguf: "));
}

static void expect_refused(const struct vocabulary *v, const char *model, enum status status,
                           const char *reason)
{
    struct gguf_writer w;
    writer_start(&w);
    vocabulary_keys(v, &w, model, "gpt-2");
    expect_writer_refused(&w, status, reason);
}

static void a_file_without_vocabulary_says_that_tokens_run_it(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    struct gguf_writer w;
    (void)state;
    writer_start(&w);
    writer_text(&w, "general.architecture", "qwen3moe");
    expect_writer_refused(&w, ST_UNSUPPORTED, "has no vocabulary");
    assert_non_null(strstr(dg.text, "--tokens"));
    expect_refused(v, "no_vocab", ST_UNSUPPORTED, "has no vocabulary");
    expect_refused(v, "bert", ST_UNSUPPORTED, "of kind 'bert', expected gpt2 or llama");
    assert_non_null(strstr(dg.text, "--tokens"));
    free(v);
}

static void golden_files_have_no_vocabulary(void **state)
{
    struct gguf *g;
    struct tokenizer *t;
    (void)state;
    NEED_SHARED();
    assert_ok(gguf_open(&g, SHARED "golden/qwen3moe-q4_0.gguf", &dg));
    assert_int_equal(tokenizer_new(&t, g, &dg), ST_UNSUPPORTED);
    gguf_close(g);
}

static void lists_that_do_not_fit_each_other_are_refused(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    struct gguf_writer w;
    (void)state;
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "gpt2");
    expect_writer_refused(&w, ST_PARSE, "expected tokenizer.ggml.tokens, a list of texts");
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "gpt2");
    vocabulary_texts_key(&w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, 300);
    expect_writer_refused(&w, ST_PARSE, "is empty");
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "gpt2");
    vocabulary_texts_key(&w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, 258);
    expect_writer_refused(&w, ST_PARSE, "expected tokenizer.ggml.merges, a list of texts");
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "llama");
    vocabulary_texts_key(&w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, 258);
    expect_writer_refused(&w, ST_PARSE, "scores must have a number for each of 258 tokens");
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "gpt2");
    vocabulary_texts_key(&w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, 258);
    vocabulary_texts_key(&w, "tokenizer.ggml.token_type", v->tokens[0], VOCABULARY_TEXT_SIZE, 258);
    expect_writer_refused(&w, ST_PARSE, "the type of token 0 must be one of 0 to 6");
    writer_start(&w);
    writer_text(&w, "tokenizer.ggml.model", "gpt2");
    writer_u32(&w, "tokenizer.ggml.token_type", 1);
    vocabulary_texts_key(&w, "tokenizer.ggml.tokens", v->tokens[0], VOCABULARY_TEXT_SIZE, 258);
    expect_writer_refused(&w, ST_PARSE, "token_type must have a number for each of 258 tokens");
    free(v);
}

static void ids_outside_the_vocabulary_are_refused(void **state)
{
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.unknown_token_id"};
    struct vocabulary *v = bytes_and_one_merge();
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct gguf_writer w;
        writer_start(&w);
        vocabulary_keys(v, &w, "gpt2", "gpt-2");
        writer_u32(&w, keys[i], i % 2 ? UINT32_MAX : 258);
        expect_writer_refused(&w, ST_PARSE, "must be one of the 258 tokens");
        assert_non_null(strstr(dg.text, keys[i]));
    }
    free(v);
}

static void wrong_tokens_merges_and_flags_are_named(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    struct gguf_writer w;
    (void)state;
    v->kinds[3] = 7;
    expect_refused(v, "gpt2", ST_PARSE, "the type of token 3 must be one of 0 to 6");
    v->kinds[3] = KIND_NORMAL;
    v->kinds[5] = KIND_BYTE;
    expect_refused(v, "llama", ST_PARSE, "token 5 is of type byte, expected <0x00> to <0xFF>");
    v->kinds[5] = KIND_NORMAL;
    v->scores[7] = (float)(0.0 / 0.0);
    expect_refused(v, "llama", ST_PARSE, "the score of token 7 must be a number");
    vocabulary_merge(v, "ab", "nobody");
    expect_refused(v, "gpt2", ST_PARSE, "merge 2, 'ab nobody', names an unknown token");
    snprintf(v->merges[1], sizeof v->merges[1], "ab");
    expect_refused(v, "gpt2", ST_PARSE, "merge 2 must be two tokens with a space between");
    snprintf(v->merges[1], sizeof v->merges[1], " a");
    expect_refused(v, "gpt2", ST_PARSE, "merge 2 must be two tokens with a space between");
    snprintf(v->merges[1], sizeof v->merges[1], "a ");
    expect_refused(v, "gpt2", ST_PARSE, "merge 2 must be two tokens with a space between");
    v->merge_count = 1;
    writer_start(&w);
    vocabulary_keys(v, &w, "gpt2", "gpt-2");
    writer_u32(&w, "tokenizer.ggml.add_bos_token", 1);
    expect_writer_refused(&w, ST_PARSE, "tokenizer.ggml.add_bos_token must be true or false");
    v->tokens[256][0] = 0;
    expect_refused(v, "gpt2", ST_PARSE, "token 256 of tokenizer.ggml.tokens is empty");
    free(v);
}

/* An empty place that is marked as unused does no harm; a merge into nothing never applies. */
static void what_does_no_harm_is_taken(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    (void)state;
    vocabulary_token(v, "", KIND_UNUSED, 0);
    vocabulary_token(v, "ab", KIND_NORMAL, 0);
    vocabulary_merge(v, "ab", "a");
    struct tokenizer *t = vocabulary_open(v, "gpt2", "gpt-2");
    char *ids = vocabulary_ids(t, "aba", 3, TOKENIZER_CONTROL);
    assert_string_equal(ids, "256 97"); /* of two tokens 'ab' the first */
    assert_int_equal(tokenizer_decode(t, 258).length, 0);
    free(ids);
    tokenizer_free(t);
    free(v);
}

static void an_unknown_family_is_said_in_the_note(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    (void)state;
    struct tokenizer *t = vocabulary_open(v, "gpt2", "gpt-17");
    assert_non_null(strstr(tokenizer_note(t), "tokenizer.ggml.pre is 'gpt-17', which is unknown"));
    tokenizer_free(t);
    t = vocabulary_open(v, "gpt2", NULL);
    assert_non_null(strstr(tokenizer_note(t), "tokenizer.ggml.pre is missing"));
    tokenizer_free(t);
    t = vocabulary_open(v, "gpt2", "default");
    assert_string_equal(tokenizer_note(t), "");
    tokenizer_free(t);
    t = vocabulary_open(v, "llama", NULL);
    assert_string_equal(tokenizer_note(t), "");
    tokenizer_free(t);
    free(v);
}

static void bos_goes_first_where_the_file_or_the_family_says_so(void **state)
{
    static const struct {
        const char *pre;
        int flag; /* -1: absent */
        const char *ids;
    } cases[] = {{"gpt-2", -1, "256"},
                 {"gpt-2", 1, "257 256"},
                 {"gpt-2", 0, "256"},
                 {"llama-bpe", -1, "257 256"},
                 {"llama-bpe", 0, "256"}};
    struct vocabulary *v = bytes_and_one_merge();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_writer w;
        struct tokenizer *t;
        writer_start(&w);
        vocabulary_keys(v, &w, "gpt2", cases[i].pre);
        writer_u32(&w, "tokenizer.ggml.bos_token_id", 257);
        if (cases[i].flag >= 0)
            vocabulary_flag_key(&w, "tokenizer.ggml.add_bos_token", cases[i].flag);
        assert_ok(vocabulary_try(&t, &w, &dg));
        char *ids = vocabulary_ids(t, "ab", 2, TOKENIZER_BOS);
        assert_string_equal(ids, cases[i].ids);
        free(ids);
        ids = vocabulary_ids(t, "ab", 2, TOKENIZER_PLAIN);
        assert_string_equal(ids, "256");
        free(ids);
        tokenizer_free(t);
    }
    free(v);
}

static void a_byte_without_a_token_is_an_error_or_the_unknown_token(void **state)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    struct token_list list = {0};
    struct gguf_writer w;
    struct tokenizer *t;
    (void)state;
    assert_non_null(v);
    vocabulary_token(v, "a", KIND_NORMAL, 0);
    vocabulary_token(v, "<unk>", KIND_UNKNOWN, 0);
    t = vocabulary_open(v, "gpt2", "gpt-2");
    assert_ok(tokenizer_encode(&list, t, "aa", 2, 0, &dg));
    assert_int_equal(tokenizer_encode(&list, t, "aab", 3, 0, &dg), ST_MISSING);
    assert_string_equal(dg.text, "text: the vocabulary has no token for byte 0x62");
    assert_int_equal(list.count, 2); /* as before */
    token_list_free(&list);
    tokenizer_free(t);
    for (int llama = 0; llama < 2; llama++) {
        writer_start(&w);
        vocabulary_keys(v, &w, llama ? "llama" : "gpt2", "gpt-2");
        vocabulary_flag_key(&w, "tokenizer.ggml.add_space_prefix", false);
        writer_u32(&w, "tokenizer.ggml.unknown_token_id", 1);
        assert_ok(vocabulary_try(&t, &w, &dg));
        char *ids = vocabulary_ids(t, "aba", 3, 0);
        assert_string_equal(ids, "0 1 0");
        free(ids);
        tokenizer_free(t);
    }
    free(v);
}

static void a_text_too_long_to_count_is_refused_unread(void **state)
{
    struct vocabulary *v = bytes_and_one_merge();
    struct tokenizer *t = vocabulary_open(v, "gpt2", "gpt-2");
    struct token_list list = {0};
    (void)state;
    assert_int_equal(tokenizer_encode(&list, t, "", (size_t)1 << 30, 0, &dg), ST_RANGE);
    tokenizer_free(t);
    free(v);
}

/* One file with everything in it, as bytes. */
static unsigned char *whole_file(const char *model, size_t *bytes)
{
    struct vocabulary *v = bytes_and_one_merge();
    struct gguf_writer w;
    vocabulary_byte_names(v);
    writer_start(&w);
    vocabulary_keys(v, &w, model, "deepseek-v3");
    writer_u32(&w, "tokenizer.ggml.bos_token_id", 257);
    writer_u32(&w, "tokenizer.ggml.eos_token_id", 257);
    vocabulary_flag_key(&w, "tokenizer.ggml.add_bos_token", true);
    unsigned char *file = writer_build(&w, bytes);
    writer_end(&w);
    free(v);
    return file;
}

static void save(const char *path, const unsigned char *file, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static enum status read_and_encode(const char *path)
{
    static const char text[] = "abab <|end|> \xc3\xa9\xff 123";
    struct gguf *g;
    struct tokenizer *t = NULL;
    struct token_list list = {0};
    enum status s = gguf_open(&g, path, &dg);
    if (s)
        return s;
    s = tokenizer_new(&t, g, &dg);
    gguf_close(g);
    if (!s)
        s = tokenizer_encode(&list, t, text, strlen(text), TOKENIZER_CONTROL | TOKENIZER_BOS, &dg);
    for (size_t i = 0; i < list.count; i++)
        (void)tokenizer_decode(t, list.ids[i]);
    token_list_free(&list);
    tokenizer_free(t);
    return s;
}

static void damaged_files_are_refused_or_read_but_never_crash(void **state)
{
    static const char *const models[] = {"gpt2", "llama"};
    const char *path = temp_path("damaged.gguf");
    struct pcg chance;
    (void)state;
    pcg_stream(&chance, 7, "damage");
    for (int m = 0; m < 2; m++) {
        size_t bytes, read = 0;
        unsigned char *file = whole_file(models[m], &bytes);
        for (int i = 0; i < 500; i++) {
            size_t at[3];
            unsigned char old[3];
            for (int k = 0; k < 3; k++) {
                at[k] = pcg_below(&chance, (uint32_t)bytes);
                old[k] = file[at[k]];
                file[at[k]] = (unsigned char)pcg_u32(&chance);
            }
            save(path, file, bytes);
            dg.text[0] = 0;
            enum status s = read_and_encode(path);
            assert_true(s == ST_OK || dg.text[0]);
            read += s == ST_OK;
            for (int k = 3; k-- > 0;)
                file[at[k]] = old[k];
        }
        assert_true(read > 0);
        free(file);
    }
}

static void any_failed_allocation_is_reported_and_leaves_nothing_behind(void **state)
{
    static const char *const models[] = {"gpt2", "llama"};
    const char *path = temp_path("memory.gguf");
    (void)state;
    NEED_ALLOCATIONS();
    for (int m = 0; m < 2; m++) {
        size_t bytes, failed = 0;
        unsigned char *file = whole_file(models[m], &bytes);
        save(path, file, bytes);
        free(file);
        assert_ok(read_and_encode(path));
        size_t in_use = mallinfo2().uordblks;
        for (size_t n = 1;; n++) {
            allocations_fail_at(n);
            enum status s = read_and_encode(path);
            allocations_fail_at(0);
            assert_int_equal(mallinfo2().uordblks, in_use);
            if (s == ST_OK)
                break;
            assert_int_equal(s, ST_NO_MEMORY);
            failed++;
        }
        assert_true(failed > 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_vocabulary_says_that_tokens_run_it),
        cmocka_unit_test(golden_files_have_no_vocabulary),
        cmocka_unit_test(lists_that_do_not_fit_each_other_are_refused),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(wrong_tokens_merges_and_flags_are_named),
        cmocka_unit_test(what_does_no_harm_is_taken),
        cmocka_unit_test(an_unknown_family_is_said_in_the_note),
        cmocka_unit_test(bos_goes_first_where_the_file_or_the_family_says_so),
        cmocka_unit_test(a_byte_without_a_token_is_an_error_or_the_unknown_token),
        cmocka_unit_test(a_text_too_long_to_count_is_refused_unread),
        cmocka_unit_test(damaged_files_are_refused_or_read_but_never_crash),
        cmocka_unit_test(any_failed_allocation_is_reported_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

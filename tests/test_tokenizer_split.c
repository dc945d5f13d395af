/* test_tokenizer_split.c -- where the models' patterns cut, on examples worked out by hand. */
#include "tests/support.h"

#include "base/text.h"
#include "kernels/graph/tokenizer_split.h"

static struct diag dg;

static enum status append_piece(void *self, const char *piece, size_t length, struct diag *unused)
{
    (void)unused;
    text_list(self, 1024, "|", "%.*s", (int)length, piece);
    return ST_OK;
}

/* The pieces that a family cuts `text` into, with a bar between. */
static void expect(const char *name, const char *text, const char *pieces)
{
    struct splitter *s;
    char out[1024] = "";
    const struct split_family *f = split_family_find((struct gguf_text){name, strlen(name)});
    assert_non_null(f);
    assert_ok(splitter_new(&s, f, &dg));
    assert_ok(splitter_run(s, text, strlen(text), append_piece, out, &dg));
    if (strcmp(out, pieces))
        fail_msg("%s cuts '%s' into '%s', expected '%s'", name, text, out, pieces);
    splitter_free(s);
}

static void contractions_are_pieces_of_their_own(void **state)
{
    (void)state;
    expect("gpt-2", "don't we'll I'd", "don|'t| we|'ll| I|'d");
    expect("gpt-2", "DON'T", "DON|'|T");
    expect("llama-bpe", "DON'T we'LL", "DON|'T| we|'LL");
    expect("qwen2", "it's", "it|'s");
    expect("gpt-4o", "it's IT'S", "it's| IT'S");
    expect("bailingmoe", "it's", "it|'s");
    expect("tekken", "it's", "it|'s");
}

static void digits_go_alone_in_threes_or_together(void **state)
{
    (void)state;
    expect("gpt-2", "in 12345", "in| 12345");
    expect("llama-bpe", "in 12345", "in| |123|45");
    expect("dbrx", "12345", "123|45");
    expect("qwen2", "in 123", "in| |1|2|3");
    expect("gpt-4o", "1234567", "123|456|7");
    expect("deepseek-v3", "in 12345", "in| |123|45");
    expect("deepseek-llm", "in 123", "in| |1|2|3");
    expect("starcoder", "a 12", "a| |1|2");
    expect("default", "b 1234", "b| |123|4");
}

static void spaces_stay_behind_but_for_the_last_which_joins_the_word(void **state)
{
    (void)state;
    expect("gpt-2", "a   b  ", "a|  | b|  ");
    expect("llama-bpe", "a   b\t", "a|  | b|\t");
    expect("qwen2", "\tx", "\tx");
    expect("gpt-2", "\tx", "\t|x");
    expect("deepseek-v3", "   x", "  | x");
    expect("gpt-2", "a\xc2\xa0 b", "a|\xc2\xa0| b"); /* a no-break space is a space */
    expect("gpt-2",
           "a \xe3\x80\x80"
           "b",
           "a| |\xe3\x80\x80|b"); /* and so is an ideographic one */
}

static void newlines_end_pieces_as_the_family_says(void **state)
{
    (void)state;
    expect("gpt-2", "a!!\n\n  b", "a|!!|\n\n | b");
    expect("llama-bpe", "a!!\n\n  b", "a|!!\n\n| | b");
    expect("qwen2", "a \n \n b", "a| \n \n| b");
    expect("gpt-4o", "x/\n/y", "x|/\n/|y");
    expect("llama-bpe", "x/\n/y", "x|/\n|/y");
    expect("deepseek-llm", "a\r\nb", "a|\r|\n|b");
    expect("seed-coder", "!\n", "!|\n");
}

static void scripts_other_than_latin_are_words_too(void **state)
{
    (void)state;
    expect("gpt-2", "Straße 東京", "Straße| 東京");
    expect("qwen2", "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80",
           "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82|,| \xd0\xbc\xd0\xb8\xd1\x80");
    expect("deepseek-v3", "abc漢字かなabc", "abc|漢字かな|abc");
    expect("deepseek-llm", "Hello 世界 12\n", "Hello| |世界| |1|2|\n");
    expect("deepseek-coder", "你好 hello.", "你好| hello|.");
    expect("kimi-k2", "ab你好World", "ab|你好|World");
    expect("gpt-4o", "ab你好World", "ab你好|World");
}

/* Devanagari vowel signs are marks: part of the word only where the pattern says so. */
static void marks_belong_to_the_word_where_the_pattern_has_them(void **state)
{
    (void)state;
    expect("qwen35", "हिन्दी", "हिन्दी");
    expect("gpt-4o", "हिन्दी", "हिन्दी");
    expect("qwen2", "हिन्दी", "ह|िन|्द|ी");
}

static void cased_words_are_cut_where_upper_case_begins(void **state)
{
    (void)state;
    expect("gpt-4o", "helloWorld ABCdef", "hello|World| ABCdef");
    expect("tekken", "camelCase", "camel|Case");
    expect("kimi-k2", "camelCase's", "camel|Case's");
    expect("llama-bpe", "camelCase", "camelCase");
}

static void signs_join_words_as_the_family_says(void **state)
{
    (void)state;
    expect("llama-bpe", "f(x)=.y", "f|(x|)=.|y");
    expect("deepseek-v3", "a.method()", "a|.method|()");
    expect("default", "a,b", "a|,|b");
    expect("command-r", "x==y", "x|==|y");
}

/* All names of the table, and what no pattern may do: lose or invent a byte. */
static void the_pieces_of_every_family_are_the_text(void **state)
{
    static const char *const names[] = {
        "default",     "gpt-2",          "olmo",       "starcoder",  "command-r", "llama-bpe",
        "dbrx",        "glm4",           "qwen2",      "qwen35",     "grok-2",    "deepseek-llm",
        "deepseek-v3", "deepseek-coder", "gpt-4o",     "minimax-m2", "llama4",    "tekken",
        "kimi-k2",     "bailingmoe2",    "seed-coder", "hunyuan",    "smollm",    "smaug-bpe"};
    static const char text[] =
        " It's 3.14159, or \xcf\x80!\r\n\t\xe6\xbc\xa2\xe5\xad\x97 CamelCase\xe2\x80\xa6 x/y\n\n   "
        "\xf0\x9f\x98\x80 \xe0\xa4\xb9\xe0\xa4\xbf 'LL ";
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct splitter *s;
        char out[1024] = "", joined[1024] = "";
        assert_ok(splitter_new(
            &s, split_family_find((struct gguf_text){names[i], strlen(names[i])}), &dg));
        assert_ok(splitter_run(s, text, strlen(text), append_piece, out, &dg));
        for (char *c = out, *to = joined; *c; c++)
            if (*c != '|')
                *to++ = *c;
        assert_string_equal(joined, text);
        splitter_free(s);
    }
}

static void a_name_is_known_only_whole(void **state)
{
    static const char *const strangers[] = {"", " ", "gpt", "gpt-2 ", "gpt-2 olmo", "qwen", "wen2"};
    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        assert_null(split_family_find((struct gguf_text){strangers[i], strlen(strangers[i])}));
    assert_ptr_equal(split_family_default(),
                     split_family_find((struct gguf_text){"default", strlen("default")}));
}

/* Steps back in a run of spaces must not run into a limit, nor cost the square of its length. */
static void a_very_long_run_is_one_piece(void **state)
{
    enum { BYTES = 1 << 22 };
    struct splitter *s;
    char out[1024] = "", *text = malloc(BYTES);
    (void)state;
    assert_non_null(text);
    memset(text, ' ', BYTES);
    assert_ok(splitter_new(&s, split_family_find((struct gguf_text){"gpt-4o", 6}), &dg));
    assert_ok(splitter_run(s, text, BYTES, append_piece, out, &dg));
    assert_int_equal(strspn(out, " "), sizeof out - 1); /* one piece, cut short by the buffer */
    memset(text, 'A', BYTES);
    out[0] = 0;
    assert_ok(splitter_run(s, text, BYTES, append_piece, out, &dg));
    assert_int_equal(strspn(out, "A"), sizeof out - 1);
    splitter_free(s);
    free(text);
}

static enum status refuse_third(void *self, const char *piece, size_t length, struct diag *reason)
{
    (void)piece;
    (void)length;
    return ++*(int *)self == 3 ? diag_set(reason, ST_MISSING, "third") : ST_OK;
}

static void the_first_refusal_ends_the_run(void **state)
{
    struct splitter *s;
    int calls = 0;
    (void)state;
    assert_ok(splitter_new(&s, split_family_find((struct gguf_text){"deepseek-llm", 12}), &dg));
    assert_int_equal(splitter_run(s, "a 1 b 2 c 3", 11, refuse_third, &calls, &dg), ST_MISSING);
    assert_int_equal(calls, 3);
    splitter_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contractions_are_pieces_of_their_own),
        cmocka_unit_test(digits_go_alone_in_threes_or_together),
        cmocka_unit_test(spaces_stay_behind_but_for_the_last_which_joins_the_word),
        cmocka_unit_test(newlines_end_pieces_as_the_family_says),
        cmocka_unit_test(scripts_other_than_latin_are_words_too),
        cmocka_unit_test(marks_belong_to_the_word_where_the_pattern_has_them),
        cmocka_unit_test(cased_words_are_cut_where_upper_case_begins),
        cmocka_unit_test(signs_join_words_as_the_family_says),
        cmocka_unit_test(the_pieces_of_every_family_are_the_text),
        cmocka_unit_test(a_name_is_known_only_whole),
        cmocka_unit_test(a_very_long_run_is_one_piece),
        cmocka_unit_test(the_first_refusal_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

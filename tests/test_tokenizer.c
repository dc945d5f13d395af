/* test_tokenizer.c -- text becomes the tokens that the definition of its vocabulary says, and comes
 * back byte by byte. */
#include "tests/support.h"

#include "base/pcg.h"
#include "tests/vocabulary.h"

static struct diag dg;

static void expect_ids(const struct tokenizer *t, const char *text, unsigned flags, const char *ids)
{
    char *got = vocabulary_ids(t, text, strlen(text), flags);
    if (strcmp(got, ids))
        fail_msg("'%s' became %s, expected %s", text, got, ids);
    free(got);
}

static void expect_round_trip(const struct tokenizer *t, const void *text, size_t length,
                              unsigned flags)
{
    size_t bytes;
    char *back = vocabulary_round_trip(t, text, length, flags, &bytes);
    assert_int_equal(bytes, length);
    assert_memory_equal(back, text, length);
    free(back);
}

static struct tokenizer *open_file(const char *path)
{
    struct gguf *g;
    struct tokenizer *t;
    assert_ok(gguf_open(&g, path, &dg));
    assert_ok(tokenizer_new(&t, g, &dg));
    gguf_close(g);
    return t;
}

static void the_bundled_models_tokens_are_the_bytes(void **state)
{
    (void)state;
    NEED_SHARED();
    struct tokenizer *t = open_file(SHARED "tiny/tiny-q4_0.gguf");
    unsigned char all[2 * 256];
    struct token_list list = {0};
    uint32_t id = 99;
    for (int i = 0; i < 512; i++)
        all[i] = (unsigned char)(i < 256 ? i : 511 - i);
    assert_ok(tokenizer_encode(&list, t, (char *)all, sizeof all, TOKENIZER_PLAIN, &dg));
    assert_int_equal(list.count, sizeof all);
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(list.ids[i], all[i]);
    expect_ids(t, "In the beginning", TOKENIZER_BOS | TOKENIZER_CONTROL,
               "73 110 32 116 104 101 32 98 101 103 105 110 110 105 110 103");
    assert_int_equal(tokenizer_count(t), 256);
    assert_true(tokenizer_bos(t, &id) && id == 0);
    assert_true(tokenizer_eos(t, &id) && id == 0);
    assert_true(tokenizer_ends(t, 0) && !tokenizer_ends(t, 10));
    assert_false(tokenizer_adds_bos(t));
    assert_string_equal(tokenizer_note(t), "");
    token_list_free(&list);
    tokenizer_free(t);
}

/* Words with a space before them, as byte-level vocabularies have them. */
static struct tokenizer *small_gpt2(const char *pre, uint32_t *im_start)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    assert_non_null(v);
    vocabulary_bytes(v);
    const char *made[] = {"lo", "low", "er", "lower", "\xc4\xa0low", "\xc4\xa0lower", "12", "123"};
    const char *merges[][2] = {{"l", "o"},    {"lo", "w"},         {"e", "r"},
                               {"low", "er"}, {"\xc4\xa0", "low"}, {"\xc4\xa0low", "er"},
                               {"1", "2"},    {"12", "3"}};
    for (size_t i = 0; i < 8; i++) {
        vocabulary_token(v, made[i], KIND_NORMAL, 0); /* 256 to 263 */
        vocabulary_merge(v, merges[i][0], merges[i][1]);
    }
    *im_start = vocabulary_token(v, "<|im_start|>", KIND_CONTROL, 0);
    vocabulary_token(v, "<|im", KIND_CONTROL, 0);
    vocabulary_token(v, "<tool>", KIND_USER_DEFINED, 0);
    vocabulary_token(v, "<tool>s", KIND_USER_DEFINED, 0);
    struct tokenizer *t = vocabulary_open(v, "gpt2", pre);
    free(v);
    return t;
}

static void merges_apply_in_the_order_of_the_file(void **state)
{
    uint32_t special;
    struct tokenizer *t = small_gpt2("gpt-2", &special);
    (void)state;
    expect_ids(t, "low", 0, "257");
    expect_ids(t, "lower", 0, "259");
    expect_ids(t, " lower low", 0, "32 259 260"); /* low er comes before the space and low */
    expect_ids(t, "lowe", 0, "257 101");
    expect_ids(t, "slow", 0, "115 257");
    expect_ids(t, "1234", 0, "263 52");
    expect_ids(t, "", 0, "");
    tokenizer_free(t);
}

static void pieces_are_cut_before_merges_apply(void **state)
{
    uint32_t special;
    struct tokenizer *t = small_gpt2("qwen2", &special);
    (void)state;
    expect_ids(t, "123", 0, "49 50 51");
    tokenizer_free(t);
    t = small_gpt2("llama-bpe", &special);
    expect_ids(t, "1231", 0, "263 49");
    tokenizer_free(t);
}

static void control_tokens_are_read_only_if_asked_and_user_defined_ones_always(void **state)
{
    uint32_t special;
    struct tokenizer *t = small_gpt2("gpt-2", &special);
    (void)state;
    assert_int_equal(special, 264);
    expect_ids(t, "low<|im_start|>low<|im<|im_star", TOKENIZER_CONTROL,
               "257 264 257 265 265 95 115 116 97 114");
    expect_ids(t, "<|im", TOKENIZER_PLAIN, "60 124 105 109");
    expect_ids(t, "low<tool>low", TOKENIZER_PLAIN, "257 266 257");
    expect_ids(t, "<tool>s<tool>", TOKENIZER_CONTROL, "267 266"); /* the longest */
    expect_ids(t, "<<tool>", TOKENIZER_PLAIN, "60 266");
    assert_true(tokenizer_is_control(t, 264) && !tokenizer_is_control(t, 266));
    struct gguf_text name = tokenizer_decode(t, 264);
    assert_true(gguf_text_is(name, "<|im_start|>"));
    tokenizer_free(t);
}

/* Llama 3 and its kin look a piece up before merging: here the merges cannot build it. */
static void a_whole_piece_is_looked_up_where_the_family_does(void **state)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    (void)state;
    assert_non_null(v);
    vocabulary_bytes(v);
    vocabulary_token(v, "whole", KIND_NORMAL, 0);
    vocabulary_token(v, "END", KIND_CONTROL, 0);
    struct tokenizer *t = vocabulary_open(v, "gpt2", "llama-bpe");
    expect_ids(t, "whole", 0, "256");
    expect_ids(t, "END", 0, "69 78 68"); /* a text does not turn into a control token */
    tokenizer_free(t);
    t = vocabulary_open(v, "gpt2", "qwen2");
    expect_ids(t, "whole", 0, "119 104 111 108 101");
    tokenizer_free(t);
    free(v);
}

static size_t random_text(unsigned char *out, size_t room, struct pcg *chance)
{
    static const char *const parts[] = {"lower", " low",         "\xe2\x96\x81", "\xf0\x9f\x98\x80",
                                        "\n\n",  "  ",           "\xc3\xa9",     "123",
                                        "'s",    "<|im_start|>", "\xed\xa0\x80", "\xe6\xbc"};
    size_t n = 0;
    while (n + 16 < room && pcg_below(chance, 40)) {
        if (pcg_below(chance, 2)) {
            const char *part = parts[pcg_below(chance, sizeof parts / sizeof *parts)];
            memcpy(out + n, part, strlen(part));
            n += strlen(part);
        } else {
            out[n++] = (unsigned char)pcg_u32(chance);
        }
    }
    return n;
}

static void expect_round_trips(const struct tokenizer *t)
{
    struct pcg chance;
    unsigned char text[512];
    pcg_stream(&chance, 6, "text");
    for (int i = 0; i < 2000; i++) {
        size_t length = random_text(text, sizeof text, &chance);
        expect_round_trip(t, text, length, i % 2 ? TOKENIZER_CONTROL : TOKENIZER_PLAIN);
    }
}

static void any_bytes_come_back_from_a_byte_level_vocabulary(void **state)
{
    static const char *const families[] = {"gpt-2", "llama-bpe", "deepseek-v3", "gpt-4o",
                                           "default"};
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        uint32_t special;
        struct tokenizer *t = small_gpt2(families[i], &special);
        expect_round_trips(t);
        tokenizer_free(t);
    }
}

static struct vocabulary *small_llama(void)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    assert_non_null(v);
    vocabulary_token(v, "<unk>", KIND_UNKNOWN, 0);
    vocabulary_token(v, "<s>", KIND_CONTROL, 0);
    vocabulary_token(v, "</s>", KIND_CONTROL, 0);
    vocabulary_byte_names(v); /* 3 to 258 */
    const char *words[] = {"\xe2\x96\x81", "h", "i", "hi", "\xe2\x96\x81hi", "\xc3\xa9", "<", ">"};
    for (size_t i = 0; i < 8; i++)
        vocabulary_token(v, words[i], KIND_NORMAL, -(float)i); /* from 259 on */
    return v;
}

static struct tokenizer *open_llama(const struct vocabulary *v, bool add_space)
{
    struct gguf_writer w;
    struct tokenizer *t;
    writer_start(&w);
    vocabulary_keys(v, &w, "llama", NULL);
    vocabulary_flag_key(&w, "tokenizer.ggml.add_space_prefix", add_space);
    writer_u32(&w, "tokenizer.ggml.bos_token_id", 1);
    writer_u32(&w, "tokenizer.ggml.eos_token_id", 2);
    writer_u32(&w, "tokenizer.ggml.unknown_token_id", 0);
    assert_ok(vocabulary_try(&t, &w, &dg));
    return t;
}

static void a_llama_vocabulary_joins_by_score_and_falls_back_to_bytes(void **state)
{
    struct vocabulary *v = small_llama();
    struct tokenizer *t = open_llama(v, true);
    (void)state;
    expect_ids(t, "hi hi", 0, "263 263");
    expect_ids(t, "hi", TOKENIZER_BOS, "1 263");
    expect_ids(t, "\xc3\xa9z", 0, "259 264 125"); /* z is byte 0x7a, 3 + 122 */
    expect_ids(t, "<s>hi</s>", TOKENIZER_CONTROL, "1 263 2");
    expect_ids(t, "<s>", TOKENIZER_PLAIN, "259 265 118 266");
    expect_ids(t, "\xe2\x96\x81", 0, "259 229 153 132"); /* a real U+2581 is no space */
    assert_true(tokenizer_adds_bos(t) && tokenizer_ends(t, 2));
    size_t bytes;
    char *back = vocabulary_round_trip(t, "hi \xff", 4, 0, &bytes);
    assert_int_equal(bytes, 5);
    assert_memory_equal(back, " hi \xff", 5);
    free(back);
    tokenizer_free(t);
    free(v);
}

static void any_bytes_come_back_from_a_llama_vocabulary(void **state)
{
    struct vocabulary *v = small_llama();
    struct tokenizer *t = open_llama(v, false);
    (void)state;
    expect_round_trips(t);
    tokenizer_free(t);
    free(v);
}

/* A joining that compares every pair again after each join would take hours for it. */
static void a_long_piece_costs_little_more_than_its_length(void **state)
{
    enum { BYTES = 1 << 20 };
    struct vocabulary *v = calloc(1, sizeof *v);
    char *text = malloc(BYTES + 1);
    (void)state;
    assert_true(v && text);
    vocabulary_bytes(v);
    char token[VOCABULARY_TEXT_SIZE] = "a";
    for (int i = 0; i < 6; i++) { /* aa, aaaa, ... 64 times a */
        vocabulary_merge(v, token, token);
        memset(token, 'a', (size_t)2 << i);
        token[(size_t)2 << i] = 0;
        vocabulary_token(v, token, KIND_NORMAL, 0);
    }
    struct tokenizer *t = vocabulary_open(v, "gpt2", "gpt-2");
    struct token_list list = {0};
    memset(text, 'a', BYTES);
    text[BYTES] = 'a';
    assert_ok(tokenizer_encode(&list, t, text, BYTES + 1, 0, &dg));
    assert_int_equal(list.count, BYTES / 64 + 1);
    for (size_t i = 0; i + 1 < list.count; i++)
        assert_int_equal(list.ids[i], 256 + 5);
    assert_int_equal(list.ids[list.count - 1], 'a');
    token_list_free(&list);
    tokenizer_free(t);
    free(text);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bundled_models_tokens_are_the_bytes),
        cmocka_unit_test(merges_apply_in_the_order_of_the_file),
        cmocka_unit_test(pieces_are_cut_before_merges_apply),
        cmocka_unit_test(control_tokens_are_read_only_if_asked_and_user_defined_ones_always),
        cmocka_unit_test(a_whole_piece_is_looked_up_where_the_family_does),
        cmocka_unit_test(any_bytes_come_back_from_a_byte_level_vocabulary),
        cmocka_unit_test(a_llama_vocabulary_joins_by_score_and_falls_back_to_bytes),
        cmocka_unit_test(any_bytes_come_back_from_a_llama_vocabulary),
        cmocka_unit_test(a_long_piece_costs_little_more_than_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

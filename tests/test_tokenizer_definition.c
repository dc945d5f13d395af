/* test_tokenizer_definition.c -- the tokens are those of the definition taken literally: look at
 * every pair, join the most urgent, begin again. */
#include "tests/support.h"

#include "base/pcg.h"
#include "tests/vocabulary.h"

static struct diag dg;

struct naive {
    char text[64][VOCABULARY_TEXT_SIZE]; /* as the file spells it */
    size_t count;
};

static uint32_t naive_id(const struct vocabulary *v, const char *text)
{
    for (size_t i = 0; i < v->count; i++)
        if (!strcmp(v->tokens[i], text))
            return (uint32_t)i;
    return UINT32_MAX;
}

/* The urgency of joining a and b: a line number, or the negated score of what they make. */
static double naive_order(const struct vocabulary *v, bool by_score, const char *a, const char *b)
{
    char line[2 * VOCABULARY_TEXT_SIZE + 2];
    snprintf(line, sizeof line, by_score ? "%s%s" : "%s %s", a, b);
    if (by_score) {
        uint32_t id = naive_id(v, line);
        return id == UINT32_MAX ? 1e9 : -(double)v->scores[id];
    }
    for (size_t i = 0; i < v->merge_count; i++)
        if (!strcmp(v->merges[i], line))
            return (double)i;
    return 1e9;
}

static void naive_join(struct naive *n, const struct vocabulary *v, bool by_score)
{
    for (;;) {
        double best = 1e9;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n->count; i++) {
            double order = naive_order(v, by_score, n->text[i], n->text[i + 1]);
            if (order < best) {
                best = order;
                at = i;
            }
        }
        if (best == 1e9)
            return;
        size_t length = strlen(n->text[at]), more = strlen(n->text[at + 1]);
        assert_true(length + more < VOCABULARY_TEXT_SIZE);
        memcpy(n->text[at] + length, n->text[at + 1], more + 1);
        memmove(n->text[at + 1], n->text[at + 2], (n->count - at - 2) * sizeof n->text[0]);
        n->count--;
    }
}

static void expect_naive(const struct tokenizer *t, const struct vocabulary *v, bool by_score,
                         const char *word)
{
    struct naive n;
    char ids[1024] = "";
    n.count = strlen(word);
    for (size_t i = 0; i < n.count; i++)
        snprintf(n.text[i], sizeof n.text[i], "%c", word[i]);
    naive_join(&n, v, by_score);
    for (size_t i = 0, at = 0; i < n.count; i++)
        at += (size_t)snprintf(ids + at, sizeof ids - at, i ? " %u" : "%u", naive_id(v, n.text[i]));
    char *got = vocabulary_ids(t, word, strlen(word), TOKENIZER_PLAIN);
    assert_string_equal(got, ids);
    free(got);
}

/* Random tokens of the letters a to d, each made of two earlier ones. */
static void random_tokens(struct vocabulary *v, struct pcg *chance)
{
    char joined[2 * VOCABULARY_TEXT_SIZE];
    for (const char *letter = "abcd"; *letter; letter++) {
        char text[2] = {*letter, 0};
        if (naive_id(v, text) == UINT32_MAX)
            vocabulary_token(v, text, KIND_NORMAL, (float)pcg_below(chance, 20));
    }
    size_t first = v->count;
    for (int i = 0; i < 60; i++) {
        size_t known = 4 + v->count - first;
        size_t parts[2];
        for (int j = 0; j < 2; j++) {
            size_t k = pcg_below(chance, (uint32_t)known);
            parts[j] = k < 4 ? naive_id(v, (char[2]){(char)('a' + k), 0}) : first + k - 4;
        }
        snprintf(joined, sizeof joined, "%s%s", v->tokens[parts[0]], v->tokens[parts[1]]);
        if (strlen(joined) > 10)
            continue;
        vocabulary_merge(v, v->tokens[parts[0]], v->tokens[parts[1]]);
        if (naive_id(v, joined) == UINT32_MAX)
            vocabulary_token(v, joined, KIND_NORMAL, (float)pcg_below(chance, 20));
    }
}

static void expect_random_words(bool by_score)
{
    struct pcg chance;
    pcg_stream(&chance, 5, by_score ? "scores" : "merges");
    for (int round = 0; round < 40; round++) {
        struct vocabulary *v = calloc(1, sizeof *v);
        assert_non_null(v);
        if (by_score)
            vocabulary_byte_names(v);
        else
            vocabulary_bytes(v);
        random_tokens(v, &chance);
        struct gguf_writer w;
        struct tokenizer *t;
        writer_start(&w);
        vocabulary_keys(v, &w, by_score ? "llama" : "gpt2", "gpt-2");
        vocabulary_flag_key(&w, "tokenizer.ggml.add_space_prefix", false);
        assert_ok(vocabulary_try(&t, &w, &dg));
        for (int i = 0; i < 60; i++) {
            char word[64] = "";
            size_t length = 1 + pcg_below(&chance, 40);
            for (size_t k = 0; k < length; k++)
                word[k] = (char)('a' + pcg_below(&chance, 4));
            expect_naive(t, v, by_score, word);
        }
        tokenizer_free(t);
        free(v);
    }
}

static void random_merges_give_what_the_plain_definition_gives(void **state)
{
    (void)state;
    expect_random_words(false);
}

static void random_scores_give_what_the_plain_definition_gives(void **state)
{
    (void)state;
    expect_random_words(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_merges_give_what_the_plain_definition_gives),
        cmocka_unit_test(random_scores_give_what_the_plain_definition_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

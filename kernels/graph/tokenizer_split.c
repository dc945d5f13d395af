/* tokenizer_split.c -- see tokenizer_split.h: the patterns of each family, and PCRE2 to run them.
 *
 * A model must see the pieces it was trained on, so the patterns are those that the models' makers
 * published in their tokenizer.json (or, for kimi-k2, tokenization_kimi.py), by the names that GGUF
 * files give them. Where those are written for an engine with set intersection (&&), they are spelt
 * here as the complement of a union. What is a letter is what PCRE2's Unicode says (10.42: Unicode
 * 14), and its \s has one character more than Unicode's White_Space, U+180E.
 *
 * The patterns are run by the interpreter and not compiled to machine code: a prompt is short, and
 * the interpreter keeps what it must remember on the heap, so no text is too long for it.
 */
#include "kernels/graph/tokenizer_split.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2         "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define MARKS        " ?[^\\s\\p{L}\\p{N}]+"
#define ONE_DIGIT    "\\p{N}"
#define THREE_DIGITS "\\p{N}{1,3}"

/* Words with at most one sign before them: the pattern of GPT-4 and its many heirs. */
#define WORDS(digits)                                                                              \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "|" MARKS "[\\r\\n]*|" SPACES

/* The pattern of GPT-4o, which also cuts between a lower case letter and an upper case one. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(upper, lower, suffix)                                                          \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower  \
    "*" suffix

/* The same two sets without Chinese characters. */
#define NO_LETTER     "\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}"
#define UPPER_NOT_HAN "[^\\p{Ll}" NO_LETTER "\\p{sc:Han}]"
#define LOWER_NOT_HAN "[^\\p{Lu}\\p{Lt}" NO_LETTER "\\p{sc:Han}]"

/* The letters with case that DeepSeek LLM and V2 list one by one. */
#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{"    \
    "293}"                                                                                         \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"          \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{"    \
    "52f}"                                                                                         \
    "\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{"     \
    "1cba}"                                                                                        \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}"                 \
    "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                 \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}"         \
    "\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"        \
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}"        \
    "\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}"          \
    "\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}"        \
    "\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"         \
    "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"                  \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"                 \
    "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"               \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"         \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"
#define DEEPSEEK_MARKS                                                                             \
    "!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}"
#define DEEPSEEK_CJK "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define DEEPSEEK_V3_WORDS                                                                          \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"                                        \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

/* The first is for files that say `default`, and for names that are not in the table. */
static const struct split_family families[] = {
    {.names = "default ", .patterns = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {.names = "gpt-2 olmo phi-2 mpt jais trillion gigachat exaone4 ", .patterns = {GPT2}},
    {.names = "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2 ",
     .patterns = {ONE_DIGIT, GPT2}},
    {.names = "llama-bpe llama3 llama-v3 pixtral lfm2 ",
     .patterns = {WORDS(THREE_DIGITS)},
     .whole_words = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe glm4 chatglm-bpe ", .patterns = {WORDS(THREE_DIGITS)}},
    {.names = "qwen2 deepseek-r1-qwen stablelm2 hunyuan grok-2 megrez solar-open ",
     .patterns = {WORDS(ONE_DIGIT)}},
    {.names = "qwen35 ",
     .patterns = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|" ONE_DIGIT
                               "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES}},
    {.names = "deepseek-llm ",
     .patterns = {"[\\r\\n]", "\\s?[" DEEPSEEK_LETTERS "]+", "\\s?[" DEEPSEEK_MARKS "]+", "\\s+$",
                  DEEPSEEK_CJK, ONE_DIGIT}},
    {.names = "deepseek-coder ",
     .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, ONE_DIGIT}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm ",
     .patterns = {THREE_DIGITS, "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
                  DEEPSEEK_V3_WORDS}},
    {.names = "gpt-4o llama4 minimax-m2 kanana2 ",
     .patterns = {CASED_WORDS(UPPER, LOWER, CONTRACTIONS "?") "|" THREE_DIGITS "|" MARKS
                                                              "[\\r\\n/]*|" SPACES}},
    {.names = "tekken ",
     .patterns = {CASED_WORDS(UPPER, LOWER, "") "|" ONE_DIGIT "|" MARKS "[\\r\\n/]*|" SPACES},
     .whole_words = true,
     .adds_bos = true},
    {.names = "kimi-k2 ",
     .patterns = {"\\p{sc:Han}+|" CASED_WORDS(UPPER_NOT_HAN, LOWER_NOT_HAN,
                                              CONTRACTIONS "?") "|" THREE_DIGITS "|" MARKS
                                                                "[\\r\\n]*|" SPACES},
     .whole_words = true},
    {.names = "bailingmoe bailingmoe2 llada-moe ",
     .patterns = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" ONE_DIGIT "|" MARKS
                  "+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.names = "seed-coder ",
     .patterns = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" ONE_DIGIT
                               "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}},
};

static bool names_hold(const char *names, struct gguf_text name)
{
    for (const char *end; (end = strchr(names, ' ')); names = end + 1)
        if ((size_t)(end - names) == name.length && !memcmp(names, name.data, name.length))
            return true;
    return false;
}

const struct split_family *split_family_find(struct gguf_text name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (names_hold(families[i].names, name))
            return &families[i];
    return NULL;
}

const struct split_family *split_family_default(void)
{
    return &families[0];
}

struct splitter {
    pcre2_code *codes[SPLIT_PATTERNS_MAX];
    pcre2_match_context *limits;
    size_t count;
};

/* One run over a text. */
struct split_run {
    const struct splitter *splitter;
    pcre2_match_data *match;
    split_piece_fn *piece;
    void *self;
};

/* The table's patterns compile, as the tests show; so only memory can be missing. */
static enum status add_pattern(struct splitter *s, const char *pattern, struct diag *dg)
{
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE;
    int error;
    PCRE2_SIZE where;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &where, NULL);
    if (!code && error == PCRE2_ERROR_HEAP_FAILED)
        return diag_no_memory(dg);
    if (!code)
        return diag_set(dg, ST_UNSUPPORTED,
                        "this PCRE2 library cannot compile the pattern '%s' (its error %d at %zu)",
                        pattern, error, (size_t)where);
    s->codes[s->count++] = code;
    return ST_OK;
}

enum status splitter_new(struct splitter **out, const struct split_family *family, struct diag *dg)
{
    struct splitter *s = calloc(1, sizeof *s);
    if (!s)
        return diag_no_memory(dg);
    enum status status = ST_OK;
    s->limits = pcre2_match_context_create(NULL);
    if (!s->limits)
        status = diag_no_memory(dg);
    else /* every step back of a long run of spaces counts */
        pcre2_set_match_limit(s->limits, UINT32_MAX);
    for (size_t i = 0; family->patterns[i] && !status; i++)
        status = add_pattern(s, family->patterns[i], dg);
    if (status) {
        splitter_free(s);
        return status;
    }
    *out = s;
    return ST_OK;
}

void splitter_free(struct splitter *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        pcre2_code_free(s->codes[i]);
    pcre2_match_context_free(s->limits);
    free(s);
}

/* The first match at or after `from`, if there is one. */
static enum status next_match(const struct split_run *run, size_t level, const char *text,
                              size_t length, size_t from, bool *found, size_t span[2],
                              struct diag *dg)
{
    int code = pcre2_match(run->splitter->codes[level], (PCRE2_SPTR)text, length, from,
                           PCRE2_NO_UTF_CHECK, run->match, run->splitter->limits);
    *found = code >= 0;
    if (code == PCRE2_ERROR_NOMATCH)
        return ST_OK;
    if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAPLIMIT)
        return diag_no_memory(dg);
    if (code < 0)
        return diag_set(dg, ST_RANGE, "text: PCRE2 cannot cut it into words (its error %d)", code);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(run->match);
    span[0] = ends[0];
    span[1] = ends[1];
    assert(span[1] > span[0]); /* no pattern matches nothing */
    return ST_OK;
}

/* Cuts by the pattern of `level`, and each piece by the ones after it. */
static enum status cut(const struct split_run *run, size_t level, const char *text, size_t length,
                       struct diag *dg)
{
    if (level == run->splitter->count)
        return run->piece(run->self, text, length, dg);
    size_t done = 0;
    while (done < length) {
        bool found;
        size_t span[2] = {0, 0};
        enum status s = next_match(run, level, text, length, done, &found, span, dg);
        if (!s && !found)
            return cut(run, level + 1, text + done, length - done, dg);
        if (!s && span[0] > done)
            s = cut(run, level + 1, text + done, span[0] - done, dg);
        if (!s)
            s = cut(run, level + 1, text + span[0], span[1] - span[0], dg);
        if (s)
            return s;
        done = span[1];
    }
    return ST_OK;
}

enum status splitter_run(const struct splitter *s, const char *text, size_t length,
                         split_piece_fn *piece, void *self, struct diag *dg)
{
    struct split_run run = {.splitter = s, .piece = piece, .self = self};
    run.match = pcre2_match_data_create(1, NULL);
    if (!run.match)
        return diag_no_memory(dg);
    enum status status = cut(&run, 0, text, length, dg);
    pcre2_match_data_free(run.match);
    return status;
}

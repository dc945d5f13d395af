/* engine_run_text.c -- see engine_run_text.h. */
#include "cli/engine_run_text.h"

#include "base/infile.h"
#include "cli/command.h"
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status engine_text_open(struct engine_text *t, const char *path, struct diag *dg)
{
    struct gguf *g;
    *t = (struct engine_text){0};
    enum status st = gguf_open(&g, path, dg);
    if (st != ST_OK)
        return st;
    st = tokenizer_new(&t->tokenizer, g, &t->why_none);
    gguf_close(g);
    if (st == ST_OK && *tokenizer_note(t->tokenizer))
        say("%s", tokenizer_note(t->tokenizer));
    if (st == ST_OK || st == ST_UNSUPPORTED)
        return ST_OK;
    *dg = t->why_none;
    return st;
}

void engine_text_close(struct engine_text *t)
{
    tokenizer_free(t->tokenizer);
    t->tokenizer = NULL;
}

enum status engine_text_ids(struct token_list *out, struct args *a, struct diag *dg)
{
    size_t count;
    const char *const *piece = args_split(a, args_text(a, "tokens"), &count);
    if (!piece)
        return diag_no_memory(dg);
    out->ids = calloc(count, sizeof *out->ids);
    if (!out->ids)
        return diag_no_memory(dg);
    out->count = out->room = count;
    for (size_t i = 0; i < count; i++) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(piece[i], &end, 10);
        if (piece[i][0] < '0' || piece[i][0] > '9' || *end || errno || id > UINT32_MAX)
            return diag_set(dg, ST_USAGE, "--tokens: token ids separated by commas, not '%s'",
                            piece[i]);
        out->ids[i] = (uint32_t)id;
    }
    return ST_OK;
}

#define PROMPT_BYTES_MAX ((size_t)16 << 20)

static enum status encode(struct token_list *out, const struct engine_text *t, const char *text,
                          size_t length, struct diag *dg)
{
    if (!t->tokenizer)
        return diag_set(dg, ST_USAGE, "%s", t->why_none.text);
    enum status st =
        tokenizer_encode(out, t->tokenizer, text, length, TOKENIZER_BOS | TOKENIZER_CONTROL, dg);
    if (st == ST_OK && out->count == 0)
        return diag_set(dg, ST_USAGE, "the prompt is empty: at least one token is needed");
    return st;
}

enum status engine_text_file(struct token_list *out, const struct engine_text *t, const char *path,
                             struct diag *dg)
{
    int fd;
    enum status st = infile_open(&fd, path, INFILE_STREAM, dg);
    if (st != ST_OK)
        return st;
    FILE *f = fdopen(fd, "rb");
    char *text = malloc(PROMPT_BYTES_MAX + 1);
    size_t n = f && text ? fread(text, 1, PROMPT_BYTES_MAX + 1, f) : 0;
    if (!f || !text)
        st = diag_no_memory(dg);
    else if (ferror(f))
        st = diag_errno(dg, path, "cannot be read");
    if (f)
        fclose(f);
    else
        close(fd);
    if (st == ST_OK && n > PROMPT_BYTES_MAX)
        st = diag_set(dg, ST_RANGE, "%s: a text of at most 16 MiB is expected", path);
    if (st == ST_OK)
        st = encode(out, t, text, n, dg);
    free(text);
    return st;
}

enum status engine_text_prompt(struct token_list *out, const struct engine_text *t, struct args *a,
                               struct diag *dg)
{
    static const char *const ways[] = {"prompt", "prompt-file", "tokens"};
    size_t given = 0;
    for (size_t i = 0; i < 3; i++)
        given += args_given(a, ways[i]);
    if (given > 1 || (given == 0 && !args_given(a, "route")))
        return diag_set(dg, ST_USAGE, "one of --prompt, --prompt-file, --tokens%s is expected",
                        given ? "" : " or --route");
    if (args_given(a, "tokens"))
        return engine_text_ids(out, a, dg);
    if (args_given(a, "prompt"))
        return encode(out, t, args_text(a, "prompt"), strlen(args_text(a, "prompt")), dg);
    if (args_given(a, "prompt-file"))
        return engine_text_file(out, t, args_text(a, "prompt-file"), dg);
    return ST_OK;
}

bool engine_text_ends(const struct engine_text *t, uint32_t token)
{
    return t->tokenizer && token < tokenizer_count(t->tokenizer) &&
           tokenizer_ends(t->tokenizer, token);
}

enum status engine_text_print(const struct engine_text *t, uint32_t token, bool first,
                              struct diag *dg)
{
    if (t->tokenizer && token < tokenizer_count(t->tokenizer)) {
        struct gguf_text text = tokenizer_decode(t->tokenizer, token);
        if (!tokenizer_is_control(t->tokenizer, token))
            fwrite(text.data, 1, text.length, stdout);
    } else {
        printf("%s%" PRIu32, first ? "" : ",", token);
    }
    return flush_stdout(dg);
}

/* engine_passage.c -- see engine_passage.h. */
#include "cli/engine_passage.h"

#include "base/infile.h"
#include "base/progress.h"
#include "cli/command.h"
#include "models/gguf_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_USUAL   512
#define TEXT_BYTES_MAX ((size_t)64 << 20)

/* ---- tokens ---- */

/* At most `most` bytes of a file. */
static enum status read_text(char **text, size_t *length, const char *path, size_t most,
                             struct diag *dg)
{
    int fd;
    enum status st = infile_open(&fd, path, INFILE_STREAM, dg);
    if (st != ST_OK)
        return st;
    FILE *f = fdopen(fd, "rb");
    *text = malloc(most);
    *length = f && *text ? fread(*text, 1, most, f) : 0;
    if (!f || !*text)
        st = diag_no_memory(dg);
    else if (ferror(f))
        st = diag_errno(dg, path, "cannot be read");
    else if (*length == 0)
        st = diag_set(dg, ST_PARSE, "%s: is empty: a text is expected", path);
    if (f)
        fclose(f);
    else
        close(fd);
    return st;
}

static enum status open_tokenizer(struct tokenizer **out, const char *model, struct diag *dg)
{
    struct gguf *g;
    enum status st = gguf_open(&g, model, dg);
    if (st != ST_OK)
        return st;
    st = tokenizer_new(out, g, dg);
    gguf_close(g);
    if (st == ST_OK && *tokenizer_note(*out))
        say("%s", tokenizer_note(*out));
    return st;
}

enum status passage_from_file(struct token_list *out, const struct args *a, const char *model,
                              const char *path, struct diag *dg)
{
    struct tokenizer *t = NULL;
    char *text = NULL;
    size_t length, most = args_count(a, "tokens-max");
    enum status st = open_tokenizer(&t, model, dg);
    if (st == ST_OK) /* a token is rarely longer than 16 bytes on average */
        st = read_text(&text, &length, path,
                       most < TEXT_BYTES_MAX / 16 ? 16 * most : TEXT_BYTES_MAX, dg);
    if (st == ST_OK)
        st = tokenizer_encode(out, t, text, length, TOKENIZER_PLAIN, dg);
    if (out->count > most)
        out->count = most;
    free(text);
    tokenizer_free(t);
    return st;
}

enum status passage_from_ids(struct token_list *out, struct args *a, const char *option,
                             struct diag *dg)
{
    size_t count, most = args_count(a, "tokens-max");
    const char *const *piece = args_split(a, args_text(a, option), &count);
    out->ids = piece ? calloc(count, sizeof *out->ids) : NULL;
    if (!out->ids)
        return diag_no_memory(dg);
    out->room = count;
    out->count = count < most ? count : most;
    for (size_t i = 0; i < out->count; i++) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(piece[i], &end, 10);
        if (piece[i][0] < '0' || piece[i][0] > '9' || *end || errno || id > UINT32_MAX)
            return diag_set(dg, ST_USAGE, "--%s: token ids separated by commas, not '%s'", option,
                            piece[i]);
        out->ids[i] = (uint32_t)id;
    }
    return ST_OK;
}

/* ---- the engine ---- */

void passage_setup(struct engine_setup *s, const struct args *a, const char *model)
{
    *s = (struct engine_setup){
        .model = model,
        .isa = args_text(a, "isa"),
        .threads = args_count(a, "threads"),
        .overlap = true,
        .direct = true,
        .decide = {.policy = cache_policy_find("lru"), .budget_bytes = args_count(a, "cache")},
        .loader = {.backend = LOADER_URING, .depth = 16},
    };
    s->decide.prefetch_distance = 1;
}

enum status passage_window(size_t *window, struct engine_setup *s, const struct args *a,
                           struct diag *dg)
{
    struct gguf *g;
    struct model *m = NULL;
    enum status st = gguf_open(&g, s->model, dg);
    if (st == ST_OK) {
        st = gguf_model_import(&m, g, dg);
        gguf_close(g);
    }
    if (st != ST_OK)
        return st;
    uint64_t most = m->max_context ? m->max_context : WINDOW_USUAL;
    *window = args_given(a, "window") ? args_count(a, "window")
              : most < WINDOW_USUAL   ? most
                                      : WINDOW_USUAL;
    s->context = *window;
    if (*window > most)
        st = diag_set(dg, ST_RANGE, "--window: the model's context has %zu tokens", (size_t)most);
    model_free(m);
    return st;
}

void passage_progress(void *self, uint64_t done, uint64_t all)
{
    struct progress *bar = self;
    if (bar->total != all)
        progress_start(bar, bar->label, all);
    progress_add(bar, done - bar->done);
}

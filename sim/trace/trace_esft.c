/* trace_esft.c -- folders of ESFT expert scores (deepseek-ai/ESFT): expert_weights_1.txt .. _L.txt.
 *
 * A line is one text: token_count x top_k expert ids, an empty field, token_count x top_k weights, all
 * separated by tabs; the files line up line by line. The architecture is DeepSeek-V2-Lite's: 64 routed
 * experts, top 6, file i is MoE layer i. The text is teacher-forced but ordered, so each token becomes a
 * decode pass of its own and each text a turn. The files say nothing of sizes: an expert counts as its
 * 8,650,752 parameters in BF16. */
#include "sim/trace/trace_file.h"

#include "base/infile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXPERTS = 64, TOP_K = 6, LAYERS_MAX = 512 };
#define FILE_BYTES_MAX ((off_t)1 << 30)
#define EXPERT_BYTES   UINT64_C(17301504) /* 3 * 2048 * 1408 parameters of 2 bytes */

struct source {
    char path[512];
    char *text;
    const char *line; /* the next unread one */
    size_t number;    /* of that line */
};

/* *found is false, and nothing read, if there is no such file. */
static enum status read_text(struct source *s, bool *found, struct diag *dg)
{
    struct stat info;
    *found = stat(s->path, &info) == 0 || errno != ENOENT;
    if (!*found)
        return ST_OK;
    int fd;
    enum status st = infile_open(&fd, s->path, INFILE_REGULAR, dg);
    if (st != ST_OK)
        return st;
    FILE *f = fdopen(fd, "rb");
    size_t size = 0;
    if (!f || fstat(fd, &info) != 0)
        st = diag_errno(dg, s->path, "cannot be examined");
    else if (info.st_size > FILE_BYTES_MAX)
        st = diag_set(dg, ST_PARSE, "%s: expected a text file of at most 1 GiB", s->path);
    else if (!(s->text = malloc((size_t)info.st_size + 1)))
        st = diag_no_memory(dg);
    else
        size = fread(s->text, 1, (size_t)info.st_size, f);
    if (st == ST_OK && ferror(f))
        st = diag_errno(dg, s->path, "cannot be read");
    if (st == ST_OK && memchr(s->text, 0, size))
        st = diag_set(dg, ST_PARSE, "%s: expected text, found a NUL byte", s->path);
    if (s->text)
        s->text[size] = 0;
    if (f)
        fclose(f);
    else
        close(fd);
    s->line = s->text;
    s->number = 1;
    return st;
}

/* The fields of one line: ids and weights of `count` choices. */
struct text_line {
    uint32_t *id;
    int64_t *weight;
    size_t count, room;
};

static bool grow_line(struct text_line *l)
{
    if (l->count < l->room)
        return true;
    size_t room = l->room ? l->room * 2 : 4096;
    uint32_t *id = realloc(l->id, room * sizeof *id);
    if (id)
        l->id = id;
    int64_t *weight = realloc(l->weight, room * sizeof *weight);
    if (weight)
        l->weight = weight;
    if (!id || !weight)
        return false;
    l->room = room;
    return true;
}

static struct csv_field next_field(const char **p, const char *end)
{
    const char *tab = memchr(*p, '\t', (size_t)(end - *p));
    const char *stop = tab ? tab : end;
    struct csv_field f = {*p, (size_t)(stop - *p)};
    *p = tab ? tab + 1 : end + 1;
    return f;
}

/* Splits the source's next line; the two halves must be equally long. */
static enum status next_line(struct source *s, struct text_line *l, struct diag *dg)
{
    const char *end = strchr(s->line, '\n');
    end = end ? end : s->line + strlen(s->line);
    const char *p = s->line;
    l->count = 0;
    for (;;) {
        struct csv_field f = next_field(&p, end);
        uint64_t id;
        if (f.length == 0 && l->count > 0)
            break;
        if (!csv_u64(f, &id) || id >= EXPERTS)
            return diag_set(dg, ST_PARSE,
                            "%s:%zu: expected an expert id below %d, then an empty field", s->path,
                            s->number, EXPERTS);
        if (!grow_line(l))
            return diag_no_memory(dg);
        l->id[l->count++] = (uint32_t)id;
        if (p > end)
            return diag_set(dg, ST_PARSE, "%s:%zu: truncated: the weights are missing", s->path,
                            s->number);
    }
    for (size_t i = 0; i < l->count; i++)
        if (p > end || !trace_weight_parse(next_field(&p, end), &l->weight[i]))
            return diag_set(dg, ST_PARSE, "%s:%zu: %zu weights expected, %zu found", s->path,
                            s->number, l->count, i);
    if (p <= end && p != end)
        return diag_set(dg, ST_PARSE, "%s:%zu: more weights than expert ids", s->path, s->number);
    if (l->count % TOP_K != 0)
        return diag_set(dg, ST_PARSE, "%s:%zu: the number of ids must be a multiple of %d", s->path,
                        s->number, TOP_K);
    s->line = *end ? end + 1 : end;
    s->number++;
    return ST_OK;
}

/* One text: every source's next line, then the rows token by token. */
static enum status add_turn(struct trace_builder *b, struct source *s, uint32_t layers,
                            struct text_line *lines, uint32_t turn, uint32_t *pass, struct diag *dg)
{
    for (uint32_t l = 0; l < layers; l++) {
        enum status st = next_line(&s[l], &lines[l], dg);
        if (st != ST_OK)
            return st;
        if (lines[l].count != lines[0].count)
            return diag_set(dg, ST_PARSE, "%s:%zu: %zu tokens expected as in layer 1, %zu found",
                            s[l].path, s[l].number - 1, lines[0].count / TOP_K,
                            lines[l].count / TOP_K);
    }
    size_t tokens = lines[0].count / TOP_K;
    for (size_t t = 0; t < tokens; t++, ++*pass)
        for (uint32_t l = 0; l < layers; l++)
            for (uint32_t k = 0; k < TOP_K; k++) {
                struct diag why;
                size_t i = t * TOP_K + k;
                enum status st = trace_builder_row(b, turn, PHASE_DECODE, *pass, (uint32_t)t, l, k,
                                                   lines[l].id[i], lines[l].weight[i], &why);
                if (st != ST_OK)
                    return diag_set(dg, st, "%s:%zu: token %zu: %s", s[l].path, s[l].number - 1, t,
                                    why.text);
            }
    return ST_OK;
}

static enum status open_sources(struct source *s, uint32_t *layers, const char *dir,
                                struct diag *dg)
{
    for (*layers = 0; *layers < LAYERS_MAX; ++*layers) {
        struct source *next = &s[*layers];
        int n =
            snprintf(next->path, sizeof next->path, "%s/expert_weights_%u.txt", dir, *layers + 1);
        if (n < 0 || (size_t)n >= sizeof next->path)
            return diag_set(dg, ST_PARSE, "%s: the path is too long", dir);
        bool found;
        enum status st = read_text(next, &found, dg);
        if (st != ST_OK)
            return st;
        if (!found)
            break;
    }
    if (*layers == 0)
        return diag_set(dg, ST_PARSE, "%s: a folder; expected expert_weights_1.txt in it", dir);
    return ST_OK;
}

static enum status read_turns(struct trace **out, struct source *s, uint32_t layers,
                              const char *dir, struct text_line *lines, struct diag *dg)
{
    struct trace_layer layer[LAYERS_MAX];
    for (uint32_t l = 0; l < layers; l++)
        layer[l] = (struct trace_layer){.expert_bytes = EXPERT_BYTES};
    struct trace_builder *b;
    enum status st = trace_builder_new(&b, "deepseek-v2-lite", layers, EXPERTS, TOP_K, layer, dg);
    if (st != ST_OK)
        return st;
    uint32_t pass = 0;
    for (uint32_t turn = 0; st == ST_OK && *s[0].line; turn++)
        st = add_turn(b, s, layers, lines, turn, &pass, dg);
    for (uint32_t l = 0; st == ST_OK && l < layers; l++)
        if (*s[l].line)
            st = diag_set(dg, ST_PARSE, "%s:%zu: more lines than in %s/expert_weights_1.txt",
                          s[l].path, s[l].number, dir);
    if (st == ST_OK)
        return trace_builder_finish(b, out, dg);
    trace_builder_free(b);
    return st;
}

enum status trace_read_esft(struct trace **out, const char *dir, struct diag *dg)
{
    struct source *s = calloc(LAYERS_MAX, sizeof *s);
    struct text_line *lines = calloc(LAYERS_MAX, sizeof *lines);
    uint32_t layers = 0;
    enum status st = s && lines ? open_sources(s, &layers, dir, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = read_turns(out, s, layers, dir, lines, dg);
    for (uint32_t l = 0; s && lines && l < LAYERS_MAX; l++) {
        free(s[l].text);
        free(lines[l].id);
        free(lines[l].weight);
    }
    free(s);
    free(lines);
    return st;
}

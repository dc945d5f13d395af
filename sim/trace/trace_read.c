/* trace_read.c -- the memwall trace format, read strictly: see trace.h for the format. */
#include "sim/trace/trace_file.h"

#include "base/infile.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool trace_weight_parse(struct csv_field f, int64_t *out)
{
    const char *p = f.text, *end = p + f.length;
    bool negative = p < end && *p == '-';
    p += negative;
    uint64_t digits = 0;
    int scale = 9, count = 0;
    bool point = false;
    for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        count++;
        if (digits <
            UINT64_C(1000000000000000)) { /* further digits lie below 10^-9 of any weight */
            digits = digits * 10 + (uint64_t)(*p - '0');
            scale -= point;
        } else {
            scale += !point;
        }
    }
    int exponent = 0;
    if (count > 0 && p < end && (*p == 'e' || *p == 'E')) {
        bool down = ++p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        int exponent_digits = 0;
        for (; p < end && *p >= '0' && *p <= '9' && exponent < 1000; p++, exponent_digits++)
            exponent = exponent * 10 + (*p - '0');
        if (exponent_digits == 0)
            return false;
        exponent = down ? -exponent : exponent;
    }
    if (p != end || (count == 0 && f.length > 0))
        return false;
    for (scale += exponent; scale < 0 && digits > 0; scale++)
        digits = scale == -1 ? (digits + 5) / 10 : digits / 10;
    for (; scale > 0 && digits > 0; scale--) {
        if (digits > UINT64_C(900000000000000000))
            return false;
        digits *= 10;
    }
    if (digits > UINT64_C(9000000000000000000))
        return false;
    *out = negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

bool trace_comment_u64(const char *text, size_t length, const char *key, uint64_t *out)
{
    size_t n = strlen(key);
    for (size_t i = 0; i + n + 1 < length; i++) {
        if ((text[i] != ' ' && text[i] != '#') || memcmp(text + i + 1, key, n) != 0 ||
            i + n + 1 >= length || text[i + n + 1] != '=')
            continue;
        size_t from = i + n + 2, to = from;
        while (to < length && text[to] != ' ')
            to++;
        return csv_u64((struct csv_field){text + from, to - from}, out);
    }
    return false;
}

char *trace_comment_text(const char *text, size_t length, const char *key, bool to_end)
{
    size_t n = strlen(key);
    for (size_t i = 0; i + n + 1 < length; i++) {
        if ((text[i] != ' ' && text[i] != '#') || memcmp(text + i + 1, key, n) != 0 ||
            text[i + n + 1] != '=')
            continue;
        size_t from = i + n + 2, to = from;
        while (to < length && (to_end || text[to] != ' '))
            to++;
        return to > from ? strndup(text + from, to - from) : NULL;
    }
    return NULL;
}

enum status trace_comment_model(char **out, const char *path, size_t line, const char *text,
                                size_t length, bool to_end, struct diag *dg)
{
    char *model = trace_comment_text(text, length, "model", to_end);
    bool fit = model != NULL;
    for (const char *c = model; fit && *c; c++)
        fit = !utf8_is_control(c, utf8_length(c));
    if (!fit) {
        free(model);
        return diag_set(dg, ST_PARSE, "%s:%zu: '# model=' needs a name without control characters",
                        path, line);
    }
    *out = model;
    return ST_OK;
}

enum status trace_comment_layer(const char *path, size_t line, const char *text, size_t length,
                                struct trace_layer *layer, uint32_t *layer_count, struct diag *dg)
{
    uint64_t number;
    struct trace_layer l;
    if (!trace_comment_u64(text, length, "layer", &number) ||
        !trace_comment_u64(text, length, "expert_bytes", &l.expert_bytes) ||
        !trace_comment_u64(text, length, "dense_bytes", &l.dense_bytes))
        return diag_set(dg, ST_PARSE, "%s:%zu: expected '# layer=L expert_bytes=N dense_bytes=N'",
                        path, line);
    if (l.expert_bytes > TRACE_EXPERT_BYTES_MAX || l.dense_bytes > TRACE_DENSE_BYTES_MAX)
        return diag_set(dg, ST_RANGE,
                        "%s:%zu: expert_bytes up to 2^40 and dense_bytes up to 2^48 are expected",
                        path, line);
    if (number != *layer_count || *layer_count >= TRACE_LAYERS_MAX)
        return diag_set(dg, ST_PARSE, "%s:%zu: expected layer=%u", path, line, *layer_count);
    layer[(*layer_count)++] = l;
    return ST_OK;
}

enum column { KIND, TURN, PHASE, PASS, STEP, LAYER, SLOT, EXPERT, WEIGHT, COLUMNS };
static const struct csv_column columns[COLUMNS] = {
    [KIND] = {"kind", true}, [TURN] = {"turn", true},     [PHASE] = {"phase", true},
    [PASS] = {"pass", true}, [STEP] = {"step", true},     [LAYER] = {"layer", true},
    [SLOT] = {"slot", true}, [EXPERT] = {"expert", true}, [WEIGHT] = {"weight", true},
};

struct reading {
    const char *path;
    struct trace_builder *builder;
    struct trace_layer *layer; /* TRACE_LAYERS_MAX of them */
    char *model;
    uint64_t layers, experts, top_k;
    uint32_t layers_seen;
    uint64_t rows;
    bool magic, ended;
};

static enum status on_end(struct reading *r, size_t line, const char *text, size_t length,
                          struct diag *dg)
{
    uint64_t rows;
    if (!trace_comment_u64(text, length, "rows", &rows))
        return diag_set(dg, ST_PARSE, "%s:%zu: expected '# end rows=N'", r->path, line);
    if (rows != r->rows)
        return diag_set(dg, ST_PARSE, "%s:%zu: %" PRIu64 " rows expected, %" PRIu64 " found",
                        r->path, line, rows, r->rows);
    r->ended = true;
    return ST_OK;
}

/* The line says `key`: it begins with "# key=". */
static bool says(const char *text, size_t length, const char *key)
{
    size_t n = strlen(key);
    return length > n + 2 && memcmp(text, "# ", 2) == 0 && memcmp(text + 2, key, n) == 0 &&
           text[n + 2] == '=';
}

/* A line `# key=value` before the rows. */
static enum status on_key(struct reading *r, size_t line, const char *text, size_t length,
                          struct diag *dg)
{
    const struct {
        const char *key;
        uint64_t *value;
    } numbers[] = {{"layers", &r->layers}, {"experts", &r->experts}, {"top_k", &r->top_k}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!says(text, length, numbers[i].key))
            continue;
        if (*numbers[i].value != 0)
            return diag_set(dg, ST_PARSE, "%s:%zu: '# %s=' was expected only once", r->path, line,
                            numbers[i].key);
        if (!trace_comment_u64(text, length, numbers[i].key, numbers[i].value) ||
            *numbers[i].value == 0)
            return diag_set(dg, ST_PARSE, "%s:%zu: '# %s=' needs a whole number above 0", r->path,
                            line, numbers[i].key);
        return ST_OK;
    }
    if (!says(text, length, "model"))
        return memchr(text, '=', length)
                   ? ST_OK /* further keys are welcome: how the trace was made, say */
                   : diag_set(dg, ST_PARSE, "%s:%zu: expected '# key=value'", r->path, line);
    if (r->model)
        return diag_set(dg, ST_PARSE, "%s:%zu: '# model=' was expected only once", r->path, line);
    return trace_comment_model(&r->model, r->path, line, text, length, true, dg);
}

static enum status on_comment(void *self, size_t line, const char *text, size_t length,
                              struct diag *dg)
{
    struct reading *r = self;
    static const char magic[] = "# memwall-trace 1";
    if (r->ended)
        return diag_set(dg, ST_PARSE, "%s:%zu: nothing expected after '# end'", r->path, line);
    if (!r->magic) {
        r->magic = length == sizeof magic - 1 && memcmp(text, magic, length) == 0;
        return r->magic ? ST_OK
                        : diag_set(dg, ST_PARSE, "%s:%zu: expected '%s'", r->path, line, magic);
    }
    if (length >= 6 && memcmp(text, "# end ", 6) == 0)
        return on_end(r, line, text, length, dg);
    if (r->builder)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: a comment between rows; only '# end rows=N' may follow", r->path,
                        line);
    if (length >= 8 && memcmp(text, "# layer=", 8) == 0)
        return trace_comment_layer(r->path, line, text, length, r->layer, &r->layers_seen, dg);
    return on_key(r, line, text, length, dg);
}

static enum status begin_rows(struct reading *r, size_t line, struct diag *dg)
{
    if (!r->magic)
        return diag_set(dg, ST_PARSE, "%s:1: expected '# memwall-trace 1'", r->path);
    if (!r->model || r->layers == 0 || r->experts == 0 || r->top_k == 0)
        return diag_set(
            dg, ST_PARSE,
            "%s:%zu: '# model=', '# layers=', '# experts=' and '# top_k=' must come first", r->path,
            line);
    if (r->layers != r->layers_seen)
        return diag_set(dg, ST_PARSE, "%s:%zu: %" PRIu64 " '# layer=' lines expected, %u found",
                        r->path, line, r->layers, r->layers_seen);
    if (r->experts > TRACE_EXPERTS_MAX || r->top_k > r->experts)
        return diag_set(dg, ST_PARSE, "%s:%zu: experts must be 1..%d and top_k at most experts",
                        r->path, line, TRACE_EXPERTS_MAX);
    struct diag why;
    enum status st = trace_builder_new(&r->builder, r->model, (uint32_t)r->layers,
                                       (uint32_t)r->experts, (uint32_t)r->top_k, r->layer, &why);
    return st == ST_OK ? st : diag_set(dg, st, "%s:%zu: %s", r->path, line, why.text);
}

static enum status on_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    if (r->ended)
        return diag_set(dg, ST_PARSE, "%s:%zu: nothing expected after '# end'", r->path, line);
    enum status st = r->builder ? ST_OK : begin_rows(r, line, dg);
    if (st != ST_OK)
        return st;
    uint64_t n[COLUMNS];
    for (int c = TURN; c <= EXPERT; c++)
        if (!csv_u64(f[c], &n[c]) || n[c] > UINT32_MAX)
            return diag_set(dg, ST_PARSE, "%s:%zu: %s: a whole number expected, not '%.*s'",
                            r->path, line, columns[c].name,
                            (int)(f[c].length < 40 ? f[c].length : 40), f[c].text);
    int64_t weight;
    if (!trace_weight_parse(f[WEIGHT], &weight))
        return diag_set(dg, ST_PARSE, "%s:%zu: weight: a decimal number expected", r->path, line);
    bool choice = f[KIND].length == 1 && f[KIND].text[0] == 'r';
    if (!choice && !csv_equal(f[KIND], "p"))
        return diag_set(dg, ST_PARSE, "%s:%zu: kind must be r or p", r->path, line);
    struct diag why;
    uint32_t turn = (uint32_t)n[TURN], phase = (uint32_t)n[PHASE], pass = (uint32_t)n[PASS];
    uint32_t step = (uint32_t)n[STEP], layer = (uint32_t)n[LAYER], slot = (uint32_t)n[SLOT];
    uint32_t expert = (uint32_t)n[EXPERT];
    st = choice ? trace_builder_row(r->builder, turn, phase, pass, step, layer, slot, expert,
                                    weight, &why)
                : trace_builder_guess(r->builder, turn, phase, pass, step, layer, slot, expert,
                                      weight, &why);
    if (st != ST_OK)
        return diag_set(dg, st, "%s:%zu: %s", r->path, line, why.text);
    r->rows++;
    return ST_OK;
}

enum status trace_read_memwall(struct trace **out, const char *path, struct diag *dg)
{
    struct reading r = {.path = path};
    r.layer = calloc(TRACE_LAYERS_MAX, sizeof *r.layer);
    if (!r.layer)
        return diag_no_memory(dg);
    enum status st = csv_read(path, columns, COLUMNS, false, on_row, on_comment, &r, dg);
    if (st == ST_OK && !r.builder)
        st = diag_set(dg, ST_PARSE, "%s: no rows", path);
    if (st == ST_OK && !r.ended)
        st = diag_set(dg, ST_PARSE, "%s: truncated: '# end rows=N' is missing", path);
    if (st == ST_OK) {
        struct diag why;
        st = trace_builder_finish(r.builder, out, &why);
        r.builder = NULL;
        if (st != ST_OK)
            diag_set(dg, st, "%s: %s", path, why.text);
    }
    trace_builder_free(r.builder);
    free(r.model);
    free(r.layer);
    return st;
}

enum status trace_load(struct trace **out, const char *path, struct diag *dg)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return diag_errno(dg, path, "cannot be read");
    if (S_ISDIR(info.st_mode))
        return trace_read_esft(out, path, dg);
    int fd;
    enum status st = infile_open(&fd, path, INFILE_REGULAR, dg); /* it is read twice */
    if (st != ST_OK)
        return st;
    char first[32] = "";
    ssize_t got = read(fd, first, sizeof first - 1);
    if (got < 0)
        st = diag_errno(dg, path, "cannot be read");
    close(fd);
    if (st != ST_OK)
        return st;
    if (strncmp(first, "# route_trace v1", 16) == 0)
        return trace_read_bmoe(out, path, dg);
    if (strncmp(first, "# memwall-trace 1", 17) == 0)
        return trace_read_memwall(out, path, dg);
    return diag_set(dg, ST_PARSE,
                    "%s:1: expected '# memwall-trace 1' or '# route_trace v1' (or a folder of "
                    "expert_weights_N.txt)",
                    path);
}

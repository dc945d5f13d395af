/* decision_log_read.c -- see decision_log.h: reading, and making the calls again.
 *
 * Rows are checked before they become calls: decide.h asserts that its caller keeps to the order of layers and to
 * the sizes it announced, and a file is nobody's word. */
#include "sim/policy/decision_log.h"

#include "base/csv.h"
#include "base/hash.h"
#include "sim/policy/decision_log_inside.h"
#include "sim/policy/future.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct csv_column columns[LOG_COLUMNS] = {
    [LOG_CALL] = {"call", true},         [LOG_PASS] = {"pass", true},
    [LOG_LAYER] = {"layer", true},       [LOG_ARGUMENT] = {"argument", true},
    [LOG_COMMANDS] = {"commands", true},
};

struct reading {
    struct log_place at;
    struct decision_log_result *out;
    struct log_preamble preamble;
    /* A clairvoyant policy needs the batches of the whole file before the first: it is read twice. */
    bool collecting;
    struct future *future;
    struct decide *decide;
    uint64_t hash, rows;
    bool ended;
    /* where the calls stand */
    bool begun, open; /* a batch has come; its layer has not ended */
    uint32_t pass, layer;
    uint32_t *under_way; /* by key: reads commanded and not landed */
    uint64_t under_way_sum;
    uint16_t *ids;
    size_t ids_room, ids_count;
    uint32_t *seen; /* by expert: row of the last batch that asked for it */
};

/* One row, parsed. */
struct row {
    enum log_call call;
    uint32_t pass, layer;
    struct csv_field argument, commands;
    uint64_t number; /* target, bytes or key */
};

static enum status expected(const struct reading *r, const char *what, struct diag *dg)
{
    return log_expected(&r->at, what, dg);
}

/* The preamble is over: fresh decisions. */
static enum status start(struct reading *r, struct diag *dg)
{
    struct log_preamble *p = &r->preamble;
    enum status st = log_preamble_end(p, &r->at, dg);
    if (st != ST_OK)
        return st;
    struct decide_setup *s = &p->setup;
    if (s->policy->clairvoyant && !r->future) {
        r->collecting = true;
        return future_new(&r->future, s->layers, s->experts, s->scope, dg);
    }
    s->future = r->future ? future_list(r->future) : NULL;
    *r->out = (struct decision_log_result){.policy = s->policy,
                                           .prefetch = s->prefetch,
                                           .scope = s->scope,
                                           .evict = s->evict,
                                           .timed = p->timed,
                                           .cache_bytes = s->budget_bytes,
                                           .equal = true};
    r->layer = s->layers - 1; /* so that the first of all comes next */
    r->hash = log_hash_setup(p->name, p->number, p->expert_bytes);
    r->seen = calloc(s->experts, sizeof *r->seen);
    r->under_way = calloc((size_t)s->layers * s->experts, sizeof *r->under_way);
    if (!r->seen || !r->under_way)
        return diag_no_memory(dg);
    struct diag why;
    st = decide_new(&r->decide, s, p->number[LOG_BATCH], &why);
    return st == ST_OK ? st : diag_set(dg, st, "%s:%zu: %s", r->at.path, r->at.line, why.text);
}

/* ---- arguments ---- */

static bool take_number(const char **at, const char *end, uint64_t *out)
{
    const char *word = *at;
    while (*at < end && **at != ' ')
        ++*at;
    bool fit = csv_u64((struct csv_field){word, (size_t)(*at - word)}, out);
    if (*at < end)
        fit = fit && ++*at < end; /* one blank, and something behind it */
    return fit;
}

static enum status read_ids(struct reading *r, const char *at, const char *end, struct diag *dg)
{
    for (r->ids_count = 0; at < end;) {
        uint64_t id;
        if (!take_number(&at, end, &id) || id >= r->preamble.setup.experts)
            return expected(r, "experts of the layer, one blank between two", dg);
        if (r->ids_count == r->ids_room) {
            size_t room = r->ids_room ? 2 * r->ids_room : 256;
            uint16_t *bigger = realloc(r->ids, room * sizeof *bigger);
            if (!bigger)
                return diag_no_memory(dg);
            r->ids = bigger;
            r->ids_room = room;
        }
        r->ids[r->ids_count++] = (uint16_t)id;
        r->hash = hash_add(r->hash, id);
    }
    return ST_OK;
}

static enum status read_row(struct reading *r, struct row *x, const struct csv_field *f,
                            struct diag *dg)
{
    int call = log_index_of(log_calls, f[LOG_CALL].text, f[LOG_CALL].length);
    uint64_t pass, layer;
    if (call < 0)
        return expected(r, "a call: batch, predict, layer_end, resize or landed", dg);
    if (!csv_u64(f[LOG_PASS], &pass) || pass > UINT32_MAX || !csv_u64(f[LOG_LAYER], &layer) ||
        layer >= r->preamble.setup.layers)
        return expected(r, "a pass, and a layer of the model", dg);
    *x = (struct row){.call = (enum log_call)call,
                      .pass = (uint32_t)pass,
                      .layer = (uint32_t)layer,
                      .argument = f[LOG_ARGUMENT],
                      .commands = f[LOG_COMMANDS]};
    r->hash = log_hash_call(r->hash, x->call, x->pass, x->layer);
    const char *at = x->argument.text, *end = at + x->argument.length;
    if (x->call == LOG_CALL_END)
        return at == end ? ST_OK : expected(r, "no argument of layer_end", dg);
    if (x->call != LOG_CALL_BATCH) {
        if (!take_number(&at, end, &x->number))
            return expected(r, "a whole number as the argument", dg);
        r->hash = hash_add(r->hash, x->number);
    }
    if (x->call == LOG_CALL_BATCH || x->call == LOG_CALL_PREDICT)
        return read_ids(r, at, end, dg);
    return at == end ? ST_OK : expected(r, "one number as the argument", dg);
}

/* ---- what may come when ---- */

static uint32_t next_layer(const struct reading *r, uint32_t layer)
{
    uint32_t next = layer;
    for (uint32_t i = 0; i < r->preamble.setup.layers; i++) {
        next = (next + 1) % r->preamble.setup.layers;
        if (r->preamble.expert_bytes[next] > 0)
            break;
    }
    return next;
}

static enum status check_batch(struct reading *r, const struct row *x, struct diag *dg)
{
    char what[96];
    uint32_t next = next_layer(r, r->layer);
    bool same_pass = next > r->layer;
    if (r->open)
        return expected(r, "layer_end before the next batch", dg);
    if (x->layer != next || r->preamble.expert_bytes[next] == 0) {
        snprintf(what, sizeof what, "layer %" PRIu32, next);
        return expected(r, what, dg);
    }
    if (r->begun && (same_pass ? x->pass != r->pass : x->pass <= r->pass))
        return expected(r, "all layers of a pass, then a later one", dg);
    uint64_t unique = 0;
    for (size_t i = 0; i < r->ids_count; i++) {
        unique += r->seen[r->ids[i]] != r->at.line;
        r->seen[r->ids[i]] = (uint32_t)r->at.line;
    }
    if (unique == 0 || unique * r->preamble.expert_bytes[next] > r->preamble.number[LOG_BATCH])
        return expected(r, "experts of at most batch_bytes_max", dg);
    return ST_OK;
}

/* Layers with experts are counted: others come and go without a batch. */
static bool within_reach(const struct reading *r, uint64_t target)
{
    uint32_t layer = r->layer;
    for (uint32_t i = 0; i < r->preamble.setup.prefetch_distance; i++) {
        layer = next_layer(r, layer);
        if (layer == target)
            return true;
        if (layer == r->layer)
            break;
    }
    return false;
}

static enum status check_predict(const struct reading *r, const struct row *x, struct diag *dg)
{
    if (!r->preamble.setup.prefetch || !r->preamble.setup.prefetch->from_outside)
        return expected(r, "no guesses from outside with this prefetcher", dg);
    if (x->pass != r->pass || x->layer != r->layer || !r->begun)
        return expected(r, "a guess made at the layer of the last batch", dg);
    if (!within_reach(r, x->number))
        return expected(r, "a target at most prefetch_distance layers ahead", dg);
    if (r->out->timed && r->out->equal && r->under_way_sum > 0)
        return expected(r, "a timed guess only after all reads have landed", dg);
    return ST_OK;
}

static enum status check_landed(struct reading *r, const struct row *x, struct diag *dg)
{
    if (!r->out->timed)
        return expected(r, "no landings: when=ordered", dg);
    if (x->number >= (uint64_t)r->preamble.setup.layers * r->preamble.setup.experts)
        return expected(r, "the key of an expert", dg);
    if (!r->out->equal)
        return ST_OK; /* other reads are under way than those of the file */
    if (r->under_way[x->number] == 0)
        return expected(r, "the landing of a read that is under way", dg);
    r->under_way[x->number]--;
    r->under_way_sum--;
    return ST_OK;
}

static enum status check_row(struct reading *r, const struct row *x, struct diag *dg)
{
    switch (x->call) {
    case LOG_CALL_BATCH:
        return check_batch(r, x, dg);
    case LOG_CALL_PREDICT:
        return check_predict(r, x, dg);
    case LOG_CALL_END:
        return r->open && x->pass == r->pass && x->layer == r->layer
                   ? ST_OK
                   : expected(r, "layer_end of the batch before it", dg);
    case LOG_CALL_LANDED:
        return check_landed(r, x, dg);
    default:
        return x->number >= decide_minimum_bytes(&r->preamble.setup,
                                                 r->preamble.number[LOG_BATCH]) &&
                       x->number <= INT64_MAX
                   ? ST_OK
                   : expected(r, "a cache that holds one batch", dg);
    }
}

/* ---- the calls, made again ---- */

static const struct decision *call(struct reading *r, const struct row *x, size_t *count)
{
    *count = 0;
    switch (x->call) {
    case LOG_CALL_BATCH:
        r->begun = r->open = true;
        r->pass = x->pass;
        r->layer = x->layer;
        return decide_batch(r->decide, x->pass, x->layer, r->ids, r->ids_count, count);
    case LOG_CALL_PREDICT:
        return decide_predict(r->decide, x->pass, x->layer, (uint32_t)x->number, r->ids, NULL,
                              r->ids_count, count);
    case LOG_CALL_END:
        r->open = false;
        return decide_layer_end(r->decide, x->pass, x->layer, count);
    case LOG_CALL_RESIZE:
        r->preamble.setup.budget_bytes = x->number;
        return decide_resize(r->decide, x->number, count);
    default:
        return NULL;
    }
}

static void differ(struct reading *r, const struct row *x, size_t index, const char *at,
                   size_t length, const char *fresh)
{
    r->out->equal = false;
    diag_set(&r->out->difference, ST_MISFIT,
             "%s:%zu: command %zu of this %s is %.*s; made again it is %s", r->at.path, r->at.line,
             index + 1, log_calls[x->call], (int)(length ? length : 4), length ? at : "none",
             fresh);
}

/* Command by command, as they are written. */
static void compare(struct reading *r, const struct row *x, const struct decision *d, size_t count)
{
    const char *at = x->commands.text, *end = at + x->commands.length;
    for (size_t i = 0; r->out->equal && (i < count || at < end); i++) {
        char fresh[LOG_COMMAND_TEXT_MAX] = "none";
        size_t n = i < count ? (size_t)log_command_print(fresh, &d[i]) : 0, length = 0;
        while (at + length < end && at[length] != ' ')
            length++;
        if (n == 0 || length != n || memcmp(at, fresh, n) != 0)
            differ(r, x, i, at, length < 32 ? length : 32, fresh);
        at += length;
        if (at < end)
            at++;
    }
}

static enum status on_row(void *self, size_t line, const struct csv_field *f, struct diag *dg)
{
    struct reading *r = self;
    struct row x;
    r->at.line = line;
    if (r->ended)
        return expected(r, "nothing after '# end'", dg);
    enum status st = r->decide || r->collecting ? ST_OK : start(r, dg);
    if (st == ST_OK)
        st = read_row(r, &x, f, dg);
    if (st == ST_OK && r->collecting)
        return x.call == LOG_CALL_BATCH ? future_batch(r->future, x.layer, r->ids, r->ids_count, dg)
                                        : ST_OK;
    if (st == ST_OK)
        st = check_row(r, &x, dg);
    if (st != ST_OK)
        return st;
    size_t count;
    const struct decision *d = call(r, &x, &count);
    r->rows++;
    compare(r, &x, d, count);
    for (size_t i = 0; r->out->timed && i < count; i++)
        if (d[i].class_of != COMMAND_DROP) {
            r->under_way[d[i].key]++;
            r->under_way_sum++;
        }
    return ST_OK;
}

/* ---- the whole file ---- */

static enum status on_end(struct reading *r, const char *text, size_t length, struct diag *dg)
{
    char rows[64], arguments[64], commands[64];
    enum status st = r->decide || r->collecting ? ST_OK : start(r, dg);
    if (st != ST_OK || r->collecting) {
        r->ended = true;
        return st;
    }
    r->out->counts = *decide_counts(r->decide);
    size_t a = (size_t)snprintf(rows, sizeof rows, "# end rows=%" PRIu64, r->rows);
    size_t b = (size_t)snprintf(arguments, sizeof arguments, " arguments=%016" PRIx64, r->hash);
    size_t c = (size_t)snprintf(commands, sizeof commands, " commands=%016" PRIx64,
                                r->out->counts.command_hash);
    if (length < a || memcmp(text, rows, a) != 0)
        return expected(r, rows, dg);
    if (length < a + b || memcmp(text + a, arguments, b) != 0)
        return diag_set(dg, ST_PARSE,
                        "%s:%zu: the calls are not those that were written: expected %s",
                        r->at.path, r->at.line, arguments + 1);
    if (r->out->equal && (length != a + b + c || memcmp(text + a + b, commands, c) != 0))
        return expected(r, commands + 1, dg);
    r->out->calls = r->rows;
    r->ended = true;
    return ST_OK;
}

static enum status on_comment(void *self, size_t line, const char *text, size_t length,
                              struct diag *dg)
{
    struct reading *r = self;
    static const char magic[] = LOG_MAGIC;
    r->at.line = line;
    if (r->ended)
        return expected(r, "nothing after '# end'", dg);
    if (line == 1)
        return length == sizeof magic - 1 && memcmp(text, magic, length) == 0
                   ? ST_OK
                   : expected(r, "'" LOG_MAGIC "'", dg);
    if (length >= 6 && memcmp(text, "# end ", 6) == 0)
        return on_end(r, text, length, dg);
    if (r->decide || r->collecting)
        return expected(r, "rows or '# end rows=N'", dg);
    return log_preamble_line(&r->preamble, &r->at, text, length, dg);
}

static enum status read_whole(struct reading *r, struct diag *dg)
{
    enum status st = csv_read(r->at.path, columns, LOG_COLUMNS, false, on_row, on_comment, r, dg);
    r->at.line++;
    if (st == ST_OK && !r->ended)
        st = expected(r, "'# end rows=N': the file is cut short", dg);
    return st;
}

static void reading_free(struct reading *r)
{
    decide_free(r->decide);
    free(r->preamble.expert_bytes);
    free(r->under_way);
    free(r->ids);
    free(r->seen);
}

enum status decision_log_replay(const char *path, struct decision_log_result *out, struct diag *dg)
{
    *out = (struct decision_log_result){.equal = true};
    struct reading r = {.at = {path, 0}, .out = out};
    enum status st = read_whole(&r, dg);
    if (st == ST_OK && r.collecting) {
        struct future *future = r.future;
        reading_free(&r);
        r = (struct reading){.at = {path, 0}, .out = out, .future = future};
        st = future_finish(future, dg);
        if (st == ST_OK)
            st = read_whole(&r, dg);
    }
    reading_free(&r);
    future_free(r.future);
    return st;
}

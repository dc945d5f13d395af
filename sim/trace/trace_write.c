/* trace_write.c -- writes the memwall format, and libCacheSim's oracleGeneral for cross-checks. */
#include "sim/trace/trace_write.h"

#include "base/outfile.h"
#include "sim/trace/trace_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *trace_weight_print(char buffer[TRACE_WEIGHT_TEXT_MAX], int64_t weight)
{
    uint64_t size = weight < 0 ? 0 - (uint64_t)weight : (uint64_t)weight;
    int n = snprintf(buffer, TRACE_WEIGHT_TEXT_MAX, "%s%" PRIu64 ".%09" PRIu64,
                     weight < 0 ? "-" : "", size / TRACE_WEIGHT_ONE, size % TRACE_WEIGHT_ONE);
    while (n > 0 && buffer[n - 1] == '0')
        buffer[--n] = 0;
    if (n > 0 && buffer[n - 1] == '.')
        buffer[--n] = 0;
    return buffer;
}

static void write_preamble(FILE *f, const struct trace *t)
{
    fprintf(f, "# memwall-trace 1\n# model=%s\n# layers=%u\n# experts=%u\n# top_k=%u\n", t->model,
            t->layers, t->experts, t->top_k);
    for (uint32_t l = 0; l < t->layers; l++)
        fprintf(f, "# layer=%u expert_bytes=%" PRIu64 " dense_bytes=%" PRIu64 "\n", l,
                t->layer[l].expert_bytes, t->layer[l].dense_bytes);
    fprintf(f, "kind,turn,phase,pass,step,layer,slot,expert,weight\n");
}

static void write_batch(FILE *f, const struct trace *t, const struct trace_batch *b)
{
    const struct trace_pass *p = &t->pass[b->pass];
    char weight[TRACE_WEIGHT_TEXT_MAX];
    for (size_t i = b->first_row; i < b->first_row + b->row_count; i++)
        fprintf(f, "r,%u,%u,%u,%u,%u,%u,%u,%s\n", p->turn, p->phase, b->pass, t->step[i], b->layer,
                t->slot[i], t->expert[i],
                t->weights_given ? trace_weight_print(weight, t->weight[i]) : "");
    for (size_t i = b->first_guess; i < b->first_guess + b->guess_count; i++)
        fprintf(f, "p,%u,%u,%u,%u,%u,%u,%u,%s\n", p->turn, p->phase, b->pass, b->layer,
                t->guess[i].target, t->guess[i].rank, t->guess[i].expert,
                trace_weight_print(weight, t->guess[i].score));
}

enum status trace_save(const struct trace *t, const char *path, struct diag *dg)
{
    struct outfile *out;
    enum status st = outfile_open(&out, path, dg);
    if (st != ST_OK)
        return st;
    FILE *f = outfile_stream(out);
    write_preamble(f, t);
    for (size_t i = 0; i < t->batch_count; i++)
        write_batch(f, t, &t->batch[i]);
    fprintf(f, "# end rows=%zu\n", t->row_count + t->guess_count);
    return outfile_commit(out, dg);
}

/* One record, packed and little-endian: u32 clock, u64 object, u32 size, i64 next access. */
static void write_record(FILE *f, uint32_t clock, uint64_t object, uint32_t size, int64_t next)
{
    unsigned char r[24];
    for (int i = 0; i < 4; i++) {
        r[i] = (unsigned char)(clock >> (8 * i));
        r[12 + i] = (unsigned char)(size >> (8 * i));
    }
    for (int i = 0; i < 8; i++) {
        r[4 + i] = (unsigned char)(object >> (8 * i));
        r[16 + i] = (unsigned char)((uint64_t)next >> (8 * i));
    }
    fwrite(r, sizeof r, 1, f);
}

static bool is_repeat(const struct trace *t, const struct trace_batch *b, size_t row,
                      uint64_t *seen, uint64_t stamp)
{
    uint64_t *mark = &seen[(size_t)b->layer * t->experts + t->expert[row]];
    bool repeat = *mark == stamp;
    *mark = stamp;
    return repeat;
}

/* Every lookup (one a unique expert of a batch), numbered from 0 in time. */
static size_t list_lookups(const struct trace *t, uint64_t *seen, uint32_t *key, uint32_t *pass)
{
    size_t n = 0;
    for (size_t i = 0; i < t->batch_count; i++) {
        const struct trace_batch *b = &t->batch[i];
        for (size_t row = b->first_row; row < b->first_row + b->row_count; row++) {
            if (is_repeat(t, b, row, seen, i + 1))
                continue;
            key[n] = b->layer * t->experts + t->expert[row];
            pass[n++] = b->pass;
        }
    }
    return n;
}

static enum status write_oracle(const struct trace *t, const char *path, uint64_t *last,
                                uint32_t *key, uint32_t *pass, int64_t *next, struct diag *dg)
{
    size_t n = list_lookups(t, last, key, pass);
    memset(last, 0, (size_t)t->layers * t->experts * sizeof *last);
    for (size_t i = n; i-- > 0;) {
        next[i] = last[key[i]] ? (int64_t)last[key[i]] : -1;
        last[key[i]] = i + 1; /* virtual time counts requests from 1 */
    }
    struct outfile *out;
    enum status st = outfile_open(&out, path, dg);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        write_record(outfile_stream(out), pass[i], key[i],
                     (uint32_t)t->layer[key[i] / t->experts].expert_bytes, next[i]);
    return outfile_commit(out, dg);
}

enum status trace_save_oracle_general(const struct trace *t, const char *path, struct diag *dg)
{
    for (uint32_t l = 0; l < t->layers; l++)
        if (t->layer[l].expert_bytes > UINT32_MAX)
            return diag_set(dg, ST_RANGE,
                            "layer %u: oracleGeneral cannot hold an object of 4 GiB or more", l);
    uint64_t *last = calloc((size_t)t->layers * t->experts, sizeof *last);
    uint32_t *key = malloc(t->row_count * sizeof *key);
    uint32_t *pass = malloc(t->row_count * sizeof *pass);
    int64_t *next = malloc(t->row_count * sizeof *next);
    enum status st = last && key && pass && next ? write_oracle(t, path, last, key, pass, next, dg)
                                                 : diag_no_memory(dg);
    free(last);
    free(key);
    free(pass);
    free(next);
    return st;
}

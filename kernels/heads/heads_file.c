/* heads_file.c -- heads on disk; heads.h says what the file looks like. */
#include "base/hash.h"
#include "base/infile.h"
#include "base/outfile.h"
#include "kernels/formats/half.h"
#include "kernels/heads/heads_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC        "MWHEADS\n"
#define VERSION      1
#define HEADER_BYTES 48
#define HEAD_BYTES   16 /* before the numbers of a head */

static size_t head_bytes(const struct heads *h, size_t i)
{
    return HEAD_BYTES + h->head[i].experts * (sizeof(float) + h->hidden * sizeof(uint16_t));
}

static size_t file_bytes(const struct heads *h)
{
    size_t bytes = HEADER_BYTES + sizeof(uint64_t);
    for (size_t i = 0; i < h->count; i++)
        bytes += head_bytes(h, i);
    return bytes;
}

/* ---- little-endian numbers, one after another ---- */

static void put(uint8_t **at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(value >> 8 * i);
}

static uint64_t take(const uint8_t **at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

static void put_float(uint8_t **at, float value)
{
    put(at, bits_of_float(value), 4);
}

static float take_float(const uint8_t **at)
{
    return float_of_bits((uint32_t)take(at, 4));
}

/* ---- writing ---- */

static void put_header(uint8_t **at, const struct heads *h)
{
    uint64_t ridge;
    memcpy(&ridge, &h->ridge, sizeof ridge);
    memcpy(*at, MAGIC, 8);
    *at += 8;
    put(at, VERSION, 4);
    put(at, h->distance, 4);
    put(at, h->hidden, 4);
    put(at, h->count, 4);
    put(at, h->fingerprint, 8);
    put(at, ridge, 8);
    put(at, h->tokens, 8);
}

static void put_head(uint8_t **at, const struct head *head, size_t hidden)
{
    put(at, head->source, 4);
    put(at, head->experts, 4);
    put_float(at, head->recall_early);
    put_float(at, head->recall);
    for (size_t e = 0; e < head->experts; e++)
        put_float(at, head->bias[e]);
    for (size_t i = 0; i < head->experts * hidden; i++)
        put(at, head->rows[i], 2);
}

enum status heads_save(const struct heads *h, const char *path, struct diag *dg)
{
    size_t bytes = file_bytes(h);
    uint8_t *file = malloc(bytes), *at = file;
    struct outfile *out;
    if (!file)
        return diag_no_memory(dg);
    put_header(&at, h);
    for (size_t i = 0; i < h->count; i++)
        put_head(&at, &h->head[i], h->hidden);
    put(&at, hash_bytes(file, bytes - sizeof(uint64_t)), 8);
    enum status st = outfile_open(&out, path, dg);
    if (st == ST_OK) {
        if (fwrite(file, 1, bytes, outfile_stream(out)) <
            bytes) { /* only now the reason is known */
            st = diag_errno(dg, path, "cannot be written");
            outfile_abandon(out);
        } else {
            st = outfile_commit(out, dg);
        }
    }
    free(file);
    return st;
}

/* ---- reading ---- */

static enum status read_file(int fd, const char *path, uint8_t **out, size_t *bytes,
                             struct diag *dg)
{
    struct stat info;
    *out = NULL;
    if (fstat(fd, &info) != 0)
        return diag_errno(dg, path, "cannot be examined");
    *bytes = (size_t)info.st_size;
    if (*bytes < HEADER_BYTES + sizeof(uint64_t))
        return diag_set(dg, ST_PARSE, "%s: trained heads were expected ('memwall engine heads')",
                        path);
    *out = malloc(*bytes);
    if (!*out)
        return diag_no_memory(dg);
    size_t got;
    enum status st = infile_read_at(fd, path, *out, *bytes, 0, &got, dg);
    if (st == ST_OK && got < *bytes)
        st = diag_set(dg, ST_IO, "%s: became shorter while it was read", path);
    return st;
}

static enum status check_whole(const uint8_t *file, size_t bytes, const char *path, struct diag *dg)
{
    const uint8_t *version = file + 8, *hash = file + bytes - sizeof(uint64_t);
    if (memcmp(file, MAGIC, 8) != 0)
        return diag_set(dg, ST_PARSE, "%s: trained heads were expected ('memwall engine heads')",
                        path);
    uint64_t number = take(&version, 4);
    if (number != VERSION)
        return diag_set(dg, ST_UNSUPPORTED, "%s: heads of version %" PRIu64 ": only %d is known",
                        path, number, VERSION);
    if (take(&hash, 8) != hash_bytes(file, bytes - sizeof(uint64_t)))
        return diag_set(dg, ST_PARSE, "%s: is truncated or was altered", path);
    return ST_OK;
}

static bool take_head(const uint8_t **at, struct head *head, size_t hidden)
{
    bool same = take(at, 4) == head->source;
    same = take(at, 4) == head->experts && same;
    if (!same)
        return false;
    head->recall_early = take_float(at);
    head->recall = take_float(at);
    for (size_t e = 0; e < head->experts; e++)
        head->bias[e] = take_float(at);
    for (size_t i = 0; i < head->experts * hidden; i++)
        head->rows[i] = (uint16_t)take(at, 2);
    return true;
}

static enum status misfit(const char *path, const struct graph_weights *w, struct diag *dg)
{
    return diag_set(dg, ST_MISFIT, "%s: was trained for another model than %s", path,
                    gguf_file_path(w->file, 0));
}

/* The fingerprint tells all shapes; that the rest agrees is checked because a file may lie. */
static enum status take_all(struct heads **out, const uint8_t *file, size_t bytes, const char *path,
                            const struct graph_weights *w, struct diag *dg)
{
    const uint8_t *at = file + 12;
    uint64_t distance = take(&at, 4), hidden = take(&at, 4), count = take(&at, 4);
    if (take(&at, 8) != heads_fingerprint(w) || hidden != w->model->hidden || distance == 0)
        return misfit(path, w, dg);
    uint64_t ridge = take(&at, 8);
    struct heads *h;
    enum status st = heads_new(&h, w, distance, dg);
    if (st != ST_OK)
        return st;
    memcpy(&h->ridge, &ridge, sizeof ridge);
    h->tokens = take(&at, 8);
    bool fits = h->count == count && bytes == file_bytes(h);
    for (size_t i = 0; fits && i < h->count; i++)
        fits = take_head(&at, &h->head[i], h->hidden);
    if (!fits) {
        heads_free(h);
        return misfit(path, w, dg);
    }
    heads_ready(h);
    *out = h;
    return ST_OK;
}

enum status heads_load(struct heads **out, const char *path, const struct graph_weights *w,
                       struct diag *dg)
{
    int fd;
    uint8_t *file;
    size_t bytes = 0;
    enum status st = infile_open(&fd, path, INFILE_REGULAR, dg);
    if (st != ST_OK)
        return st;
    st = read_file(fd, path, &file, &bytes, dg);
    close(fd);
    if (st == ST_OK)
        st = check_whole(file, bytes, path, dg);
    if (st == ST_OK)
        st = take_all(out, file, bytes, path, w, dg);
    free(file);
    return st;
}

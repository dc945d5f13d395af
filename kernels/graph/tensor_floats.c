/* tensor_floats.c -- see tensor_floats.h. */
#include "kernels/graph/tensor_floats.h"

#include "base/infile.h"
#include "kernels/formats/block_format.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#define BAND_BLOCKS 64 /* read at a time */

enum status tensor_floats_open(struct tensor_floats *r, const struct gguf *g, struct diag *dg)
{
    size_t files = gguf_file_count(g);
    *r = (struct tensor_floats){.file = g, .fd = malloc(files * sizeof(int))};
    if (!r->fd)
        return diag_no_memory(dg);
    for (size_t f = 0; f < files; f++)
        r->fd[f] = -1;
    enum status st = ST_OK;
    for (size_t f = 0; st == ST_OK && f < files; f++)
        st = infile_open(&r->fd[f], gguf_file_path(g, f), INFILE_REGULAR, dg);
    if (st != ST_OK)
        tensor_floats_close(r);
    return st;
}

void tensor_floats_close(struct tensor_floats *r)
{
    for (size_t f = 0; r->fd && f < gguf_file_count(r->file); f++)
        if (r->fd[f] >= 0)
            close(r->fd[f]);
    free(r->fd);
    *r = (struct tensor_floats){0};
}

static enum status read_bytes(const struct tensor_floats *r, const struct gguf_tensor *t, void *to,
                              uint64_t from, size_t bytes, struct diag *dg)
{
    const char *path = gguf_file_path(r->file, t->file);
    size_t got;
    enum status st = infile_read_at(r->fd[t->file], path, to, bytes, t->offset + from, &got, dg);
    if (st == ST_OK && got < bytes)
        st = diag_set(dg, ST_IO, "%s: ends before its last byte: the file is truncated", path);
    return st;
}

enum status tensor_floats_read(const struct tensor_floats *r, const struct gguf_tensor *t,
                               uint64_t first, size_t count, float *out, struct diag *dg)
{
    const struct block_format *f = block_format_find_gguf((uint32_t)t->format->gguf_type);
    unsigned char band[BAND_BLOCKS * BLOCK_BYTES_MAX];
    if (!f)
        return diag_set(dg, ST_UNSUPPORTED, "%s: tensor '%.*s' has a format without kernels: %s",
                        gguf_file_path(r->file, t->file), (int)t->name.length, t->name.data,
                        t->format->name);
    assert(first % f->block_weights == 0 && count % f->block_weights == 0);
    assert(first + count <= t->weights);
    size_t step = sizeof band / f->block_bytes * f->block_weights;
    for (size_t at = 0; at < count; at += step) {
        size_t n = count - at < step ? count - at : step;
        enum status st = read_bytes(r, t, band, (first + at) / f->block_weights * f->block_bytes,
                                    n / f->block_weights * f->block_bytes, dg);
        if (st != ST_OK)
            return st;
        block_dequantise(f, out + at, band, n);
    }
    return ST_OK;
}

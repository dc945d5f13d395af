/* pack_source.c -- see pack_source.h. */
#include "kernels/pack/pack_source.h"

#include "base/infile.h"
#include "kernels/formats/packed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum status pack_read(int fd, const char *path, void *to, size_t bytes, uint64_t offset,
                      struct diag *dg)
{
    size_t done;
    enum status st = infile_read_at(fd, path, to, bytes, offset, &done, dg);
    if (st == ST_OK && done < bytes)
        st = diag_set(dg, ST_PARSE, "%s: is cut short: %zu bytes are missing at byte %" PRIu64,
                      path, bytes - done, offset + done);
    return st;
}

static uint64_t largest_matrix(const struct model *m)
{
    uint64_t most = 1;
    for (size_t i = 0; i < m->layer_count; i++)
        for (int part = 0; part < PART_MAX; part++)
            if (m->layers[i].extent[part].bytes > most)
                most = m->layers[i].extent[part].bytes;
    return most;
}

enum status pack_source_open(struct pack_source *s, const struct pack_shape *shape, size_t threads,
                             struct diag *dg)
{
    size_t files = gguf_file_count(shape->g), bytes = (size_t)largest_matrix(shape->m);
    *s = (struct pack_source){.shape = shape};
    s->fd = calloc(files, sizeof *s->fd);
    s->blocks = malloc(bytes);
    s->again = malloc(bytes);
    if (!s->fd || !s->blocks || !s->again)
        return diag_no_memory(dg);
    enum status st = workers_new(&s->workers, threads, dg);
    while (s->files < files && st == ST_OK) {
        st = infile_open(&s->fd[s->files], gguf_file_path(shape->g, s->files), INFILE_REGULAR, dg);
        s->files += st == ST_OK;
    }
    return st;
}

void pack_source_close(struct pack_source *s)
{
    for (size_t i = 0; i < s->files; i++)
        close(s->fd[i]);
    workers_free(s->workers);
    free(s->fd);
    free(s->blocks);
    free(s->again);
    *s = (struct pack_source){0};
}

static enum status read_file(struct pack_source *s, uint32_t file, void *to, uint64_t bytes,
                             uint64_t offset, struct diag *dg)
{
    return pack_read(s->fd[file], gguf_file_path(s->shape->g, file), to, (size_t)bytes, offset, dg);
}

enum status pack_source_matrix(struct pack_source *s, size_t layer, size_t expert,
                               enum expert_part part, struct diag *dg)
{
    const struct expert_extent *e = &s->shape->m->layers[layer].extent[part];
    return read_file(s, e->file, s->blocks, e->bytes, e->offset + expert * e->stride_bytes, dg);
}

struct conversion {
    const struct pack_part *matrix;
    uint8_t *packed, *blocks;
    bool back;
};

/* Rows from a tile's first one on; those before take packed_bytes() as a matrix of their own would. */
static void convert_rows(void *context, size_t begin, size_t end, size_t thread)
{
    const struct conversion *c = context;
    const struct block_format *f = c->matrix->format;
    size_t cols = c->matrix->cols;
    uint8_t *packed = c->packed + packed_bytes(f, begin, cols);
    uint8_t *blocks = c->blocks + begin * block_row_bytes(f, cols);
    (void)thread;
    if (c->back)
        packed_to_blocks(f, blocks, packed, end - begin, cols);
    else
        packed_from_blocks(f, packed, blocks, end - begin, cols);
}

void pack_source_pack(struct pack_source *s, const struct pack_part *matrix, uint8_t *packed)
{
    struct conversion c = {matrix, packed, s->blocks, false};
    workers_each(s->workers, convert_rows, &c, matrix->rows, PACKED_TILE_ROWS);
}

void pack_source_unpack(struct pack_source *s, const struct pack_part *matrix, uint8_t *packed)
{
    struct conversion c = {matrix, packed, s->again, true};
    workers_each(s->workers, convert_rows, &c, matrix->rows, PACKED_TILE_ROWS);
}

enum status pack_source_bias(struct pack_source *s, void *to, size_t layer, size_t expert,
                             enum expert_part part, struct diag *dg)
{
    struct pack_bias b;
    if (!pack_shape_bias(s->shape, layer, part, &b))
        return ST_OK;
    return read_file(s, b.file, to, b.bytes, b.offset + expert * b.stride_bytes, dg);
}

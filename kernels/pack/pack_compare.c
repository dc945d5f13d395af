/* pack_compare.c -- a pack against the file it was made from; see pack_write.h. */
#include "kernels/pack/pack_write.h"

#include "base/infile.h"
#include "kernels/pack/pack_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pack_compare {
    const struct pack *pack;
    struct pack_shape shape;
    struct pack_source source;
    uint8_t *record;
    int fd; /* of the pack; -1: not open */
};

enum status pack_compare_new(struct pack_compare **out, const struct pack *p, const struct gguf *g,
                             const struct model *m, size_t threads, struct diag *dg)
{
    *out = NULL;
    struct pack_compare *c = calloc(1, sizeof *c);
    if (!c)
        return diag_no_memory(dg);
    c->pack = p;
    c->fd = -1;
    c->record = malloc((size_t)pack_record_bytes_max(p));
    enum status st = c->record ? pack_shape_init(&c->shape, g, m, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = pack_source_open(&c->source, &c->shape, threads, dg);
    if (st == ST_OK)
        st = infile_open(&c->fd, pack_path(p), INFILE_REGULAR, dg);
    if (st == ST_OK)
        *out = c;
    else
        pack_compare_free(c);
    return st;
}

void pack_compare_free(struct pack_compare *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        close(c->fd);
    pack_source_close(&c->source);
    pack_shape_free(&c->shape);
    free(c->record);
    free(c);
}

static enum status differs(const struct pack_compare *c, size_t layer, size_t expert,
                           const char *what, struct diag *dg)
{
    return diag_set(dg, ST_MISFIT,
                    "%s: byte %" PRIu64 ": layer %zu, expert %zu: %s is not that of %s",
                    pack_path(c->pack), pack_record(c->pack, layer, expert).offset_bytes, layer,
                    expert, what, gguf_file_path(c->shape.g, 0));
}

static const char *const matrix_names[PART_MAX] = {"the gate matrix", "the up matrix",
                                                   "the down matrix"};
static const char *const bias_names[PART_MAX] = {"the gate bias", "the up bias", "the down bias"};

static enum status compare_part(struct pack_compare *c, size_t layer, size_t expert,
                                enum expert_part part, struct diag *dg)
{
    const struct pack_layout *l = pack_layout(c->pack, layer);
    const struct pack_part *matrix = &l->matrix[part], *bias = &l->bias[part];
    if (matrix->bytes) {
        size_t bytes = matrix->rows * block_row_bytes(matrix->format, matrix->cols);
        enum status st = pack_source_matrix(&c->source, layer, expert, part, dg);
        if (st != ST_OK)
            return st;
        pack_source_unpack(&c->source, matrix, c->record + matrix->offset_bytes);
        if (memcmp(c->source.blocks, c->source.again, bytes))
            return differs(c, layer, expert, matrix_names[part], dg);
    }
    if (bias->bytes) {
        enum status st = pack_source_bias(&c->source, c->source.blocks, layer, expert, part, dg);
        if (st != ST_OK)
            return st;
        if (memcmp(c->source.blocks, c->record + bias->offset_bytes, bias->bytes))
            return differs(c, layer, expert, bias_names[part], dg);
    }
    return ST_OK;
}

enum status pack_compare_step(struct pack_compare *c, size_t layer, size_t expert, struct diag *dg)
{
    struct pack_record r = pack_record(c->pack, layer, expert);
    enum status st =
        pack_read(c->fd, pack_path(c->pack), c->record, (size_t)r.bytes, r.offset_bytes, dg);
    if (st == ST_OK)
        st = pack_check(c->pack, layer, expert, c->record, dg);
    for (int part = 0; part < PART_MAX && st == ST_OK; part++)
        st = compare_part(c, layer, expert, (enum expert_part)part, dg);
    uint64_t payload = pack_layout(c->pack, layer)->payload_bytes;
    for (uint64_t i = payload; i < r.bytes && st == ST_OK; i++)
        if (c->record[i] != 0)
            st = differs(c, layer, expert, "the fill behind it", dg);
    return st;
}

/* expert_source.c -- see expert_source.h. */
#include "kernels/graph/expert_source.h"

#include <stdlib.h>

static const struct layer *layer_of(const struct expert_source *s, uint32_t layer)
{
    return &s->weights->model->layers[layer];
}

enum status expert_source_open(struct expert_source *s, const struct graph_weights *w,
                               const char *pack_path, struct diag *dg)
{
    size_t layers = w->model->layer_count;
    *s = (struct expert_source){.weights = w};
    s->expert_bytes = calloc(layers, sizeof *s->expert_bytes);
    s->room_bytes = calloc(layers, sizeof *s->room_bytes);
    enum status st = s->expert_bytes && s->room_bytes ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK && pack_path)
        st = pack_open(&s->pack, pack_path, w->file, w->model, dg);
    for (size_t l = 0; st == ST_OK && l < layers; l++) {
        const struct pack_layout *packed = s->pack ? pack_layout(s->pack, l) : NULL;
        s->expert_bytes[l] = packed ? packed->record_bytes : w->model->layers[l].expert_bytes;
    }
    if (st != ST_OK)
        expert_source_close(s);
    return st;
}

void expert_source_close(struct expert_source *s)
{
    pack_close(s->pack);
    free(s->expert_bytes);
    free(s->room_bytes);
    *s = (struct expert_source){0};
}

void expert_source_load(const struct expert_source *s, uint32_t layer, uint32_t expert,
                        struct load *load)
{
    load->layer = layer;
    load->expert = expert;
    load->piece_count = 0;
    if (s->pack) {
        struct pack_record r = pack_record(s->pack, layer, expert);
        load->piece[load->piece_count++] = (struct load_piece){0, r.offset_bytes, r.bytes};
        return;
    }
    for (int part = 0; part < PART_MAX; part++) {
        const struct expert_extent *e = &layer_of(s, layer)->extent[part];
        load->piece[load->piece_count++] =
            (struct load_piece){e->file, e->offset + expert * e->stride_bytes, e->bytes};
    }
}

static enum status add_files(struct expert_source *s, struct loader_io *io, bool direct,
                             struct diag *dg)
{
    uint32_t file;
    if (s->pack)
        return loader_io_add_file(io, pack_path(s->pack), direct, &file, dg);
    const struct gguf *g = s->weights->file;
    enum status st = ST_OK;
    for (size_t f = 0; st == ST_OK && f < gguf_file_count(g); f++)
        st = loader_io_add_file(io, gguf_file_path(g, f), direct, &file, dg);
    return st;
}

/* Bytes that reading whole blocks adds to a payload, at most. */
static uint64_t most_slack(const struct expert_source *s, const struct loader_io *io)
{
    uint64_t slack = 0;
    for (uint32_t l = 0; l < s->weights->model->layer_count; l++)
        for (uint32_t e = 0; s->expert_bytes[l] && e < layer_of(s, l)->ffn.experts; e++) {
            struct load load = {0};
            uint64_t offset[LOADER_PIECES_MAX];
            expert_source_load(s, l, e, &load);
            uint64_t room = loader_io_layout(io, load.piece, load.piece_count, offset);
            if (room - s->expert_bytes[l] > slack)
                slack = room - s->expert_bytes[l];
        }
    return slack;
}

/* Experts of one size get rooms of one size, wherever they lie, so that their slots keep their places. */
enum status expert_source_attach(struct expert_source *s, struct loader_io *io, bool direct,
                                 struct diag *dg)
{
    enum status st = add_files(s, io, direct, dg);
    if (st == ST_OK) /* they were opened anew: are they those that the extents are of? */
        st = gguf_check_unchanged(s->weights->file, dg);
    if (st != ST_OK)
        return st;
    uint64_t slack = most_slack(s, io), align = loader_io_block_bytes(io);
    for (uint32_t l = 0; l < s->weights->model->layer_count; l++)
        if (s->expert_bytes[l])
            s->room_bytes[l] = (s->expert_bytes[l] + slack + align - 1) / align * align;
    return ST_OK;
}

void expert_source_matrices(const struct expert_source *s, const struct loader_io *io,
                            uint32_t layer, uint32_t expert, const void *room,
                            struct weights out[PART_MAX])
{
    struct load load = {0};
    uint64_t offset[LOADER_PIECES_MAX];
    const struct layer *l = layer_of(s, layer);
    const struct pack_layout *packed = s->pack ? pack_layout(s->pack, layer) : NULL;
    expert_source_load(s, layer, expert, &load);
    loader_io_layout(io, load.piece, load.piece_count, offset);
    for (int part = 0; part < PART_MAX; part++) {
        bool down = part == PART_DOWN;
        out[part] = (struct weights){
            .format = block_format_find_gguf(l->extent[part].type),
            .layout = packed ? LAYOUT_PACKED : LAYOUT_BLOCKS,
            .rows = down ? l->ffn.expert_io_width : l->ffn.expert_width,
            .cols = down ? l->ffn.expert_width : l->ffn.expert_io_width,
            .data = (const char *)room +
                    (packed ? offset[0] + packed->matrix[part].offset_bytes : offset[part]),
        };
    }
}

enum status expert_source_check(const struct expert_source *s, uint32_t layer, uint32_t expert,
                                const void *room, struct diag *dg)
{
    return s->pack ? pack_check(s->pack, layer, expert, room, dg) : ST_OK;
}

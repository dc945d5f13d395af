/* expert_source.c -- see expert_source.h. */
#include "kernels/graph/expert_source.h"

#include <stdlib.h>

/* A record of a pack is read in pieces of about this size, which disks read at their full rate. */
#define RECORD_PIECE_BYTES ((uint64_t)256 << 10)

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
    if (st == ST_OK && s->pack) {
        s->sound = calloc(layers * model_experts(w->model), sizeof *s->sound);
        st = s->sound ? ST_OK : diag_no_memory(dg);
    }
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
    free(s->sound);
    *s = (struct expert_source){0};
}

/* Reads of one batch share the device evenly, so records read in one go would land together, at the end, and nothing could
 * be computed until then. In pieces the first record lands first. They lie one behind the other in the
 * room, too, where they are whole blocks of the device; where those are larger, a record is one piece. */
static void cut_record(struct pack_record r, uint32_t block_bytes, struct load *load)
{
    uint64_t count = block_bytes > PACK_ALIGN ? 1 : r.bytes / RECORD_PIECE_BYTES;
    count = count < 1 ? 1 : count > LOADER_PIECES_MAX ? LOADER_PIECES_MAX : count;
    uint64_t each = (r.bytes / count + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    for (uint64_t at = 0; at < r.bytes; at += each) {
        uint64_t left = r.bytes - at;
        load->piece[load->piece_count++] =
            (struct load_piece){0, r.offset_bytes + at, left < each ? left : each};
    }
}

void expert_source_load(const struct expert_source *s, uint32_t layer, uint32_t expert,
                        struct load *load)
{
    load->layer = layer;
    load->expert = expert;
    load->piece_count = 0;
    if (s->pack) {
        cut_record(pack_record(s->pack, layer, expert), s->block_bytes, load);
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
    s->block_bytes = loader_io_block_bytes(io);
    uint64_t slack = most_slack(s, io), align = s->block_bytes;
    for (uint32_t l = 0; l < s->weights->model->layer_count; l++)
        if (s->expert_bytes[l])
            s->room_bytes[l] = (s->expert_bytes[l] + slack + align - 1) / align * align;
    return ST_OK;
}

/* Rooms depend on the files' block size, which the loader knows once they are open; but the arena must
 * exist before the loader that is to use it. So a first loader only looks. */
enum status expert_source_measure(struct expert_source *s, const struct loader_io_setup *loader,
                                  bool direct, uint32_t *align, struct diag *dg)
{
    struct loader_io_setup look = *loader;
    struct loader_io *io;
    look.backend = LOADER_THREADS;
    look.depth = 1;
    look.loads_max = 1;
    enum status st = loader_io_new(&io, &look, dg);
    if (st != ST_OK)
        return st;
    st = expert_source_attach(s, io, direct, dg);
    if (st == ST_OK)
        *align = loader_io_block_bytes(io);
    loader_io_free(io);
    return st;
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

enum status expert_source_check(struct expert_source *s, uint32_t layer, uint32_t expert,
                                const void *room, struct diag *dg)
{
    if (!s->pack)
        return ST_OK;
    bool *sound = &s->sound[layer * model_experts(s->weights->model) + expert];
    enum status st = *sound ? ST_OK : pack_check(s->pack, layer, expert, room, dg);
    *sound = st == ST_OK;
    return st;
}

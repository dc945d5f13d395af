/* pack_write.c -- see pack_write.h. */
#include "kernels/pack/pack_write.h"

#include "base/bulkfile.h"
#include "base/hash.h"
#include "kernels/pack/pack_source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pack_write {
    struct pack_shape shape;
    struct pack_source source;
    const struct pack_order *order;
    struct bulkfile *file;
    uint8_t *record, *table;
    size_t done;
};

static uint64_t largest_record(const struct pack_shape *s)
{
    uint64_t most = 0;
    for (size_t i = 0; i < s->m->layer_count; i++)
        if (s->layout[i].record_bytes > most)
            most = s->layout[i].record_bytes;
    return most;
}

static enum status write_header(struct pack_write *w, struct diag *dg)
{
    uint8_t header[PACK_HEADER_SIZE];
    pack_shape_header(&w->shape, header);
    return bulkfile_write(w->file, header, sizeof header, dg);
}

enum status pack_write_new(struct pack_write **out, const char *path, const struct gguf *g,
                           const struct model *m, const struct pack_order *order, size_t threads,
                           struct diag *dg)
{
    *out = NULL;
    struct pack_write *w = calloc(1, sizeof *w);
    if (!w)
        return diag_no_memory(dg);
    w->order = order;
    enum status st = pack_shape_init(&w->shape, g, m, dg);
    if (st == ST_OK) {
        assert(order->count == w->shape.record_count);
        w->record = malloc((size_t)largest_record(&w->shape));
        w->table = calloc(1, (size_t)pack_table_bytes(&w->shape));
        st = w->record && w->table ? pack_source_open(&w->source, &w->shape, threads, dg)
                                   : diag_no_memory(dg);
    }
    if (st == ST_OK)
        st = bulkfile_open(&w->file, path, pack_bytes(&w->shape), dg);
    if (st == ST_OK)
        st = write_header(w, dg);
    if (st == ST_OK)
        *out = w;
    else
        pack_write_abandon(w);
    return st;
}

uint64_t pack_write_bytes(const struct pack_write *w)
{
    return pack_bytes(&w->shape);
}

size_t pack_write_left(const struct pack_write *w)
{
    return w->order->count - w->done;
}

static enum status fill_record(struct pack_write *w, struct pack_key key, struct diag *dg)
{
    const struct pack_layout *l = &w->shape.layout[key.layer];
    enum status st = ST_OK;
    memset(w->record, 0, (size_t)l->record_bytes);
    for (int part = 0; part < PART_MAX && st == ST_OK; part++) {
        const struct pack_part *p = &l->matrix[part];
        if (p->bytes == 0)
            continue;
        st = pack_source_matrix(&w->source, key.layer, key.expert, (enum expert_part)part, dg);
        if (st == ST_OK)
            pack_source_pack(&w->source, p, w->record + p->offset_bytes);
    }
    for (int part = 0; part < PART_MAX && st == ST_OK; part++)
        st = pack_source_bias(&w->source, w->record + l->bias[part].offset_bytes, key.layer,
                              key.expert, (enum expert_part)part, dg);
    return st;
}

static uint8_t *record_entry(struct pack_write *w, struct pack_key key)
{
    size_t number = w->shape.first_record[key.layer] + key.expert;
    return w->table + w->shape.layer_count * PACK_LAYER_ENTRY + number * PACK_RECORD_ENTRY;
}

enum status pack_write_step(struct pack_write *w, uint64_t *bytes, struct diag *dg)
{
    struct pack_key key = w->order->key[w->done];
    const struct pack_layout *l = &w->shape.layout[key.layer];
    enum status st = fill_record(w, key, dg);
    if (st != ST_OK)
        return st;
    uint8_t *entry = record_entry(w, key);
    assert(pack_load_u64(entry) == 0); /* each expert once */
    pack_store_u64(entry, bulkfile_at(w->file));
    pack_store_u64(entry + 8, hash_bytes(w->record, (size_t)l->payload_bytes));
    *bytes = l->record_bytes;
    w->done++;
    return bulkfile_write(w->file, w->record, (size_t)l->record_bytes, dg);
}

enum status pack_write_commit(struct pack_write *w, struct diag *dg)
{
    assert(pack_write_left(w) == 0);
    size_t bytes = (size_t)pack_table_bytes(&w->shape), hashed = bytes - sizeof(uint64_t);
    pack_shape_layers(&w->shape, w->table);
    pack_store_u64(w->table + hashed, hash_bytes(w->table, hashed));
    enum status st = bulkfile_write(w->file, w->table, bytes, dg);
    if (st == ST_OK) {
        struct bulkfile *file = w->file;
        w->file = NULL;
        st = bulkfile_commit(file, dg);
    }
    pack_write_abandon(w);
    return st;
}

void pack_write_abandon(struct pack_write *w)
{
    if (!w)
        return;
    bulkfile_abandon(w->file);
    pack_source_close(&w->source);
    pack_shape_free(&w->shape);
    free(w->record);
    free(w->table);
    free(w);
}

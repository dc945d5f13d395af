/* pack_shape.c -- see pack_shape.h. */
#include "kernels/pack/pack_shape.h"

#include "base/hash.h"
#include "base/infile.h"
#include "kernels/formats/half.h"
#include "kernels/formats/packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_BYTES 4096
#define NO_MATRIX    UINT32_MAX
#define TYPE_F32     0u

void pack_store_u32(uint8_t *p, uint32_t value)
{
    store_u16(p, (uint16_t)value);
    store_u16(p + 2, (uint16_t)(value >> 16));
}

void pack_store_u64(uint8_t *p, uint64_t value)
{
    pack_store_u32(p, (uint32_t)value);
    pack_store_u32(p + 4, (uint32_t)(value >> 32));
}

uint64_t pack_load_u64(const uint8_t *p)
{
    return load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

const struct gguf_tensor *pack_shape_tensor(const struct gguf *g, size_t layer, const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "blk.%zu.%s", layer, name);
    return gguf_tensor_find(g, text);
}

bool pack_shape_bias(const struct pack_shape *s, size_t layer, enum expert_part part,
                     struct pack_bias *out)
{
    static const char *const names[PART_MAX] = {"ffn_gate_exps.bias", "ffn_up_exps.bias",
                                                "ffn_down_exps.bias"};
    const struct gguf_tensor *t = pack_shape_tensor(s->g, layer, names[part]);
    if (!t)
        return false;
    uint64_t bytes = t->bytes / s->m->layers[layer].ffn.experts;
    *out = (struct pack_bias){
        .offset = t->offset, .stride_bytes = bytes, .bytes = bytes, .file = t->file};
    return true;
}

static void place(struct pack_layout *l, struct pack_part *part, uint64_t bytes)
{
    uint64_t line = PACK_PART_ALIGN;
    part->offset_bytes = (l->payload_bytes + line - 1) / line * line;
    part->bytes = bytes;
    l->payload_bytes = part->offset_bytes + bytes;
}

static enum status place_matrix(struct pack_shape *s, size_t i, enum expert_part part,
                                struct diag *dg)
{
    const struct layer *l = &s->m->layers[i];
    if (l->extent[part].bytes == 0)
        return ST_OK;
    struct pack_part *p = &s->layout[i].matrix[part];
    p->format = block_format_find_gguf(l->extent[part].type);
    if (!p->format)
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s: layer %zu has experts in %s, which the engine has no kernels for",
                        s->m->origin, i, quant_find_gguf(l->extent[part].type)->label);
    p->rows = part == PART_DOWN ? l->ffn.expert_io_width : l->ffn.expert_width;
    p->cols = part == PART_DOWN ? l->ffn.expert_width : l->ffn.expert_io_width;
    place(&s->layout[i], p, packed_bytes(p->format, p->rows, p->cols));
    return ST_OK;
}

static enum status place_bias(struct pack_shape *s, size_t i, enum expert_part part,
                              struct diag *dg)
{
    struct pack_bias bias;
    const struct pack_part *matrix = &s->layout[i].matrix[part];
    struct pack_part *p = &s->layout[i].bias[part];
    if (!pack_shape_bias(s, i, part, &bias))
        return ST_OK;
    if (matrix->bytes == 0 || bias.bytes != matrix->rows * sizeof(float))
        return diag_set(dg, ST_UNSUPPORTED, "%s: the biases of layer %zu's experts must be F32",
                        s->m->origin, i);
    p->format = block_format_find_gguf(TYPE_F32);
    p->rows = matrix->rows;
    p->cols = 1;
    place(&s->layout[i], p, bias.bytes);
    return ST_OK;
}

static enum status place_layer(struct pack_shape *s, size_t i, struct diag *dg)
{
    struct pack_layout *l = &s->layout[i];
    enum status st = ST_OK;
    if (pack_shape_tensor(s->g, i, "ffn_gate_up_exps.bias"))
        return diag_set(dg, ST_UNSUPPORTED,
                        "%s: layer %zu has the biases of gate and up in one tensor, which the "
                        "engine does not run",
                        s->m->origin, i);
    for (int part = 0; part < PART_MAX && st == ST_OK; part++)
        st = place_matrix(s, i, (enum expert_part)part, dg);
    for (int part = 0; part < PART_MAX && st == ST_OK; part++)
        st = place_bias(s, i, (enum expert_part)part, dg);
    l->record_bytes = (l->payload_bytes + PACK_ALIGN - 1) / PACK_ALIGN * PACK_ALIGN;
    s->first_record[i] = s->record_count;
    s->layer_count++;
    s->record_count += (uint32_t)s->m->layers[i].ffn.experts;
    s->record_bytes += s->m->layers[i].ffn.experts * l->record_bytes;
    return st;
}

/* 4096 bytes from the middle of a tensor of experts: another training state has others. */
static enum status sample(uint64_t *h, const struct gguf *g, const struct gguf_tensor *t,
                          struct diag *dg)
{
    uint8_t bytes[SAMPLE_BYTES];
    const char *path = gguf_file_path(g, t->file);
    uint64_t middle = t->bytes / 2, rest = t->bytes - middle;
    size_t wanted = rest < sizeof bytes ? (size_t)rest : sizeof bytes;
    int fd;
    enum status st = infile_open(&fd, path, INFILE_REGULAR, dg);
    if (st != ST_OK)
        return st;
    size_t got = 0;
    st = infile_read_at(fd, path, bytes, wanted, t->offset + middle, &got, dg);
    if (st == ST_OK && got != wanted)
        st = diag_set(dg, ST_IO, "%s: ends within its tensors", path);
    if (st == ST_OK)
        *h = hash_add(*h, hash_bytes(bytes, wanted));
    close(fd);
    return st;
}

static enum status take_fingerprint(struct pack_shape *s, struct diag *dg)
{
    enum status st = ST_OK;
    uint64_t h = HASH_SEED;
    for (size_t i = 0; i < gguf_tensor_count(s->g) && st == ST_OK; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(s->g, i);
        h = hash_add(h, hash_bytes(t->name.data, t->name.length));
        h = hash_add(h, (uint64_t)t->format->gguf_type);
        for (int d = 0; d < GGUF_DIMS_MAX; d++)
            h = hash_add(h, t->extent[d]);
        h = hash_add(h, t->file);
        h = hash_add(h, t->offset);
        if (memmem(t->name.data, t->name.length, "_exps.", 6))
            st = sample(&h, s->g, t, dg);
    }
    s->fingerprint = h;
    return st;
}

enum status pack_shape_init(struct pack_shape *s, const struct gguf *g, const struct model *m,
                            struct diag *dg)
{
    *s = (struct pack_shape){.g = g, .m = m};
    s->layout = calloc(m->layer_count, sizeof *s->layout);
    s->first_record = calloc(m->layer_count, sizeof *s->first_record);
    if (!s->layout || !s->first_record)
        return diag_no_memory(dg);
    enum status st = ST_OK;
    for (size_t i = 0; i < m->layer_count && st == ST_OK; i++)
        if (m->layers[i].ffn.experts)
            st = place_layer(s, i, dg);
    if (st == ST_OK && s->record_count == 0)
        st = diag_set(dg, ST_MISFIT, "%s: a model without routed experts has nothing to pack",
                      m->origin);
    return st == ST_OK ? take_fingerprint(s, dg) : st;
}

void pack_shape_free(struct pack_shape *s)
{
    free(s->layout);
    free(s->first_record);
    *s = (struct pack_shape){0};
}

uint64_t pack_table_offset(const struct pack_shape *s)
{
    return PACK_HEADER_SIZE + s->record_bytes;
}

uint64_t pack_table_bytes(const struct pack_shape *s)
{
    return (uint64_t)s->layer_count * PACK_LAYER_ENTRY +
           (uint64_t)s->record_count * PACK_RECORD_ENTRY + sizeof(uint64_t);
}

uint64_t pack_bytes(const struct pack_shape *s)
{
    return pack_table_offset(s) + pack_table_bytes(s);
}

void pack_shape_header(const struct pack_shape *s, uint8_t *header)
{
    const char *path = gguf_file_path(s->g, 0), *slash = strrchr(path, '/');
    memset(header, 0, PACK_HEADER_SIZE);
    memcpy(header, "MWPACK\r\n", 8);
    pack_store_u32(header + 8, PACK_VERSION);
    pack_store_u32(header + 12, PACK_ALIGN);
    pack_store_u64(header + 16, pack_bytes(s));
    pack_store_u64(header + 24, pack_table_offset(s));
    pack_store_u32(header + 32, s->layer_count);
    pack_store_u32(header + 36, s->record_count);
    pack_store_u64(header + 40, s->m->file_bytes);
    pack_store_u64(header + 48, s->fingerprint);
    snprintf((char *)header + PACK_NAME_AT, PACK_NAME_BYTES, "%s", slash ? slash + 1 : path);
    pack_store_u64(header + PACK_HASH_AT, hash_bytes(header, PACK_HASH_AT));
}

static void store_part(uint8_t *p, const struct pack_part *matrix, const struct pack_part *bias)
{
    pack_store_u32(p, matrix->bytes ? matrix->format->gguf_type : NO_MATRIX);
    pack_store_u32(p + 4, bias->bytes != 0);
    pack_store_u64(p + 8, matrix->rows);
    pack_store_u64(p + 16, matrix->cols);
}

void pack_shape_layers(const struct pack_shape *s, uint8_t *table)
{
    for (size_t i = 0; i < s->m->layer_count; i++) {
        const struct pack_layout *l = &s->layout[i];
        if (l->payload_bytes == 0)
            continue;
        pack_store_u32(table, (uint32_t)i);
        pack_store_u32(table + 4, (uint32_t)s->m->layers[i].ffn.experts);
        for (int part = 0; part < PART_MAX; part++)
            store_part(table + 8 + 24 * part, &l->matrix[part], &l->bias[part]);
        table += PACK_LAYER_ENTRY;
    }
}

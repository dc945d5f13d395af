/* pack.c -- see pack.h: opening a pack, and proving that it belongs to the model.
 *
 * The header and the layers' entries follow from the model, so they are not parsed but compared with what they
 * must be; what is read from the file are the places and checksums of the records. */
#include "kernels/pack/pack.h"

#include "base/hash.h"
#include "base/infile.h"
#include "kernels/formats/half.h"
#include "kernels/pack/pack_source.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pack {
    struct pack_shape shape;
    char *path;
    uint64_t *offset, *checksum; /* by number of the record */
};

/* What the header says of itself; only then is it compared with the model's. */
static enum status check_header(const struct pack *p, const uint8_t *header, uint64_t file_bytes,
                                struct diag *dg)
{
    if (memcmp(header, "MWPACK\r\n", 8))
        return diag_set(dg, ST_PARSE, "%s: a pack of experts was expected ('memwall engine pack')",
                        p->path);
    if (file_bytes < PACK_HEADER_SIZE)
        return diag_set(dg, ST_PARSE, "%s: is cut short: it ends within its header", p->path);
    if (load_u32(header + 8) != PACK_VERSION)
        return diag_set(dg, ST_UNSUPPORTED, "%s: pack version %" PRIu32 " is not supported (%d is)",
                        p->path, load_u32(header + 8), PACK_VERSION);
    if (pack_load_u64(header + PACK_HASH_AT) != hash_bytes(header, PACK_HASH_AT))
        return diag_set(dg, ST_PARSE, "%s: byte 0: the header was altered", p->path);
    if (pack_load_u64(header + 16) != file_bytes)
        return diag_set(dg, ST_PARSE,
                        "%s: is %" PRIu64 " bytes long, its header says %" PRIu64
                        ": is it cut short?",
                        p->path, file_bytes, pack_load_u64(header + 16));
    return ST_OK;
}

/* The file may have been renamed since, so the model's name is no reason to refuse it. */
static enum status check_model(const struct pack *p, const uint8_t *header, struct diag *dg)
{
    uint8_t expected[PACK_HEADER_SIZE];
    pack_shape_header(&p->shape, expected);
    memcpy(expected + PACK_NAME_AT, header + PACK_NAME_AT, PACK_NAME_BYTES);
    if (!memcmp(header, expected, PACK_HASH_AT))
        return ST_OK;
    bool same_size = pack_load_u64(header + 40) == p->shape.m->file_bytes;
    return diag_set(dg, ST_MISFIT, "%s: was made from %s '%.*s', not from %s", p->path,
                    same_size ? "another" : "the model", PACK_NAME_BYTES - 1,
                    (const char *)header + PACK_NAME_AT, gguf_file_path(p->shape.g, 0));
}

static enum status take_records(struct pack *p, const uint8_t *entries, struct diag *dg)
{
    for (size_t i = 0; i < p->shape.m->layer_count; i++) {
        const struct pack_layout *l = &p->shape.layout[i];
        for (size_t e = 0; l->payload_bytes && e < p->shape.m->layers[i].ffn.experts; e++) {
            size_t n = p->shape.first_record[i] + e;
            const uint8_t *entry = entries + n * PACK_RECORD_ENTRY;
            p->offset[n] = pack_load_u64(entry);
            p->checksum[n] = pack_load_u64(entry + 8);
            uint64_t end = pack_table_offset(&p->shape);
            if (p->offset[n] % PACK_ALIGN || p->offset[n] < PACK_HEADER_SIZE ||
                p->offset[n] > end - l->record_bytes)
                return diag_set(dg, ST_PARSE,
                                "%s: the record of layer %zu, expert %zu, lies at byte %" PRIu64
                                ", outside the records",
                                p->path, i, e, p->offset[n]);
        }
    }
    return ST_OK;
}

static enum status read_table(struct pack *p, int fd, struct diag *dg)
{
    size_t bytes = (size_t)pack_table_bytes(&p->shape), hashed = bytes - sizeof(uint64_t);
    size_t layer_bytes = (size_t)p->shape.layer_count * PACK_LAYER_ENTRY;
    uint64_t at = pack_table_offset(&p->shape);
    uint8_t *table = malloc(bytes), *layers = malloc(layer_bytes);
    enum status st = table && layers ? ST_OK : diag_no_memory(dg);
    if (st == ST_OK)
        st = pack_read(fd, p->path, table, bytes, at, dg);
    if (st == ST_OK && pack_load_u64(table + hashed) != hash_bytes(table, hashed))
        st = diag_set(dg, ST_PARSE, "%s: byte %" PRIu64 ": the table of records was altered",
                      p->path, at);
    if (st == ST_OK) {
        pack_shape_layers(&p->shape, layers);
        if (memcmp(table, layers, layer_bytes))
            st = diag_set(dg, ST_MISFIT, "%s: byte %" PRIu64 ": its layers are not those of %s",
                          p->path, at, gguf_file_path(p->shape.g, 0));
    }
    if (st == ST_OK)
        st = take_records(p, table + layer_bytes, dg);
    free(table);
    free(layers);
    return st;
}

static enum status read_file(struct pack *p, int fd, struct diag *dg)
{
    struct stat info;
    uint8_t header[PACK_HEADER_SIZE];
    if (fstat(fd, &info))
        return diag_errno(dg, p->path, "cannot be examined");
    uint64_t bytes = (uint64_t)info.st_size;
    memset(header, 0, sizeof header);
    size_t there = bytes < sizeof header ? (size_t)bytes : sizeof header;
    enum status st = pack_read(fd, p->path, header, there, 0, dg);
    if (st == ST_OK)
        st = check_header(p, header, bytes, dg);
    if (st == ST_OK)
        st = check_model(p, header, dg);
    return st == ST_OK ? read_table(p, fd, dg) : st;
}

enum status pack_open(struct pack **out, const char *path, const struct gguf *g,
                      const struct model *m, struct diag *dg)
{
    *out = NULL;
    struct pack *p = calloc(1, sizeof *p);
    if (!p)
        return diag_no_memory(dg);
    int fd = -1;
    p->path = strdup(path);
    enum status st = p->path ? infile_open(&fd, path, INFILE_REGULAR, dg) : diag_no_memory(dg);
    if (st == ST_OK)
        st = pack_shape_init(&p->shape, g, m, dg);
    if (st == ST_OK) {
        p->offset = calloc(p->shape.record_count, sizeof *p->offset);
        p->checksum = calloc(p->shape.record_count, sizeof *p->checksum);
        st = p->offset && p->checksum ? read_file(p, fd, dg) : diag_no_memory(dg);
    }
    if (fd >= 0)
        close(fd);
    if (st == ST_OK)
        *out = p;
    else
        pack_close(p);
    return st;
}

void pack_close(struct pack *p)
{
    if (!p)
        return;
    pack_shape_free(&p->shape);
    free(p->path);
    free(p->offset);
    free(p->checksum);
    free(p);
}

const char *pack_path(const struct pack *p)
{
    return p->path;
}

uint64_t pack_file_bytes(const struct pack *p)
{
    return pack_bytes(&p->shape);
}

uint64_t pack_record_bytes_max(const struct pack *p)
{
    uint64_t most = 0;
    for (size_t i = 0; i < p->shape.m->layer_count; i++)
        if (p->shape.layout[i].record_bytes > most)
            most = p->shape.layout[i].record_bytes;
    return most;
}

const struct pack_layout *pack_layout(const struct pack *p, size_t layer)
{
    assert(layer < p->shape.m->layer_count);
    const struct pack_layout *l = &p->shape.layout[layer];
    return l->payload_bytes ? l : NULL;
}

static size_t record_number(const struct pack *p, size_t layer, size_t expert)
{
    assert(pack_layout(p, layer) && expert < p->shape.m->layers[layer].ffn.experts);
    return p->shape.first_record[layer] + expert;
}

struct pack_record pack_record(const struct pack *p, size_t layer, size_t expert)
{
    size_t n = record_number(p, layer, expert);
    return (struct pack_record){.offset_bytes = p->offset[n],
                                .bytes = p->shape.layout[layer].record_bytes,
                                .checksum = p->checksum[n]};
}

enum status pack_check(const struct pack *p, size_t layer, size_t expert, const void *record,
                       struct diag *dg)
{
    struct pack_record r = pack_record(p, layer, expert);
    if (hash_bytes(record, (size_t)p->shape.layout[layer].payload_bytes) == r.checksum)
        return ST_OK;
    return diag_set(dg, ST_PARSE,
                    "%s: byte %" PRIu64 ": the record of layer %zu, expert %zu, does not match its "
                    "checksum",
                    p->path, r.offset_bytes, layer, expert);
}

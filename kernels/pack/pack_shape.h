/* pack_shape.h -- what a pack of a model looks like, from the model alone: the records' layouts, the header and
 * the part of the table that is no record. Writer and reader share it, so they cannot disagree. */
#ifndef KERNELS_PACK_PACK_SHAPE_H
#define KERNELS_PACK_PACK_SHAPE_H

#include "kernels/pack/pack.h"

#define PACK_LAYER_ENTRY  80 /* bytes in the table */
#define PACK_RECORD_ENTRY 16
#define PACK_HASH_AT      4088 /* in the header */
#define PACK_NAME_AT      56
#define PACK_NAME_BYTES   192

struct pack_shape {
    const struct gguf *g;
    const struct model *m;
    struct pack_layout *layout; /* by layer; payload_bytes 0: no experts */
    size_t *first_record;       /* by layer: number of its expert 0 in the table */
    uint32_t layer_count;       /* with experts */
    uint32_t record_count;
    uint64_t record_bytes; /* of all records together */
    uint64_t fingerprint;
};

/* ST_UNSUPPORTED: experts in a format without kernels, or biases that are not F32; ST_MISFIT: no routed experts.
 * After a failure too, free it. */
MUST_CHECK enum status pack_shape_init(struct pack_shape *s, const struct gguf *g,
                                       const struct model *m, struct diag *dg);
void pack_shape_free(struct pack_shape *s);

/* Where the table starts, how long it is with its hash, and the whole file. */
uint64_t pack_table_offset(const struct pack_shape *s);
uint64_t pack_table_bytes(const struct pack_shape *s);
uint64_t pack_bytes(const struct pack_shape *s);

/* The header as it stands in the file, PACK_HEADER_SIZE bytes. */
void pack_shape_header(const struct pack_shape *s, uint8_t *header);
/* The layers' entries of the table, PACK_LAYER_ENTRY bytes each. */
void pack_shape_layers(const struct pack_shape *s, uint8_t *table);

/* Tensor blk.LAYER.NAME, or NULL. */
const struct gguf_tensor *pack_shape_tensor(const struct gguf *g, size_t layer, const char *name);

/* Where the bias of a part lies for expert 0, and from one expert to the next; false if it has none. */
struct pack_bias {
    uint64_t offset, stride_bytes, bytes;
    uint32_t file;
};
bool pack_shape_bias(const struct pack_shape *s, size_t layer, enum expert_part part,
                     struct pack_bias *out);

/* Little-endian numbers. */
void pack_store_u32(uint8_t *p, uint32_t value);
void pack_store_u64(uint8_t *p, uint64_t value);
uint64_t pack_load_u64(const uint8_t *p);

#endif

/* pack.h -- expert-major files: all that one expert is, in one aligned record.
 *
 * A stacked GGUF tensor keeps the gate, up and down matrices of an expert megabytes apart, so a miss is
 * three reads, none of them aligned. In a pack it is one stretch for direct reads, of matrices that lie as the
 * kernels want them (kernels/formats/packed.h), with a checksum. Everything else of the model stays in
 * the GGUF file; a pack is of use only beside the file it was made from, and proves that it is:
 * nothing is ever computed with experts of another model, or of another training state of the same shapes.
 *
 * The file. All numbers are little-endian; what is not named is zero.
 *
 *   header      4096 bytes
 *        0  u8[8]    "MWPACK\r\n"
 *        8  u32      version, 1
 *       12  u32      alignment of records, 4096
 *       16  u64      bytes of this file
 *       24  u64      where the table starts: behind the last record
 *       32  u32      layers with routed experts
 *       36  u32      records
 *       40  u64      bytes of the model's files together
 *       48  u64      fingerprint of the model (below)
 *       56  u8[192]  name of the model's first file, without folder, cut to 191 bytes
 *     4088  u64      hash of bytes 0..4087
 *   records     each at a multiple of 4096, in any order, back to back
 *   table
 *       for each layer with experts, ascending:
 *        0  u32      layer
 *        4  u32      experts
 *        8           gate, up, down, each: u32 GGUF type of the matrix (2^32 - 1: there is none), u32 whether
 *                    there is a bias (0, 1), u64 rows, u64 columns
 *       for each record, by layer, then expert:
 *        0  u64      offset in the file
 *        8  u64      checksum of its payload
 *       u64          hash of the table before it
 *
 * A record holds, each at the next multiple of 64 bytes: the matrices gate, up, down in the packed layout;
 * then the biases of gate, up, down as F32, as far as the model has them. That is its payload; zeros
 * fill it to a multiple of 4096. A tensor with gate and up in one is taken apart. All records of
 * a layer have one size.
 *
 * Checksums and hashes are hash_bytes of base/hash.h. The fingerprint covers name, type, extents and place
 * of every tensor of the model, and 4096 bytes from the middle of each tensor of experts.
 */
#ifndef KERNELS_PACK_PACK_H
#define KERNELS_PACK_PACK_H

#include "kernels/formats/block_format.h"
#include "models/gguf.h"
#include "models/model.h"

#define PACK_VERSION     1
#define PACK_ALIGN       4096
#define PACK_PART_ALIGN  64
#define PACK_HEADER_SIZE 4096

/* One matrix (packed layout) or bias (rows F32 numbers) in a record. */
struct pack_part {
    uint64_t offset_bytes;             /* from the start of the record */
    uint64_t bytes;                    /* 0: the expert has no such part */
    const struct block_format *format; /* NULL if it has none */
    uint64_t rows, cols;               /* a bias: its rows, 1 */
};

/* The records of one layer. */
struct pack_layout {
    struct pack_part matrix[PART_MAX]; /* by enum expert_part */
    struct pack_part bias[PART_MAX];
    uint64_t payload_bytes; /* what the checksum covers */
    uint64_t record_bytes;  /* what is read: the payload, rounded up to PACK_ALIGN */
};

struct pack_record {
    uint64_t offset_bytes; /* from the start of the file, a multiple of PACK_ALIGN */
    uint64_t bytes;        /* record_bytes of its layer */
    uint64_t checksum;
};

struct pack;

/* Opens a pack of the model that `m` was imported from `g`; both must outlive it. Reads header and
 * table, and 4 KiB of each tensor of experts from the GGUF. ST_PARSE: no pack, truncated or altered;
 * ST_MISFIT: of another model, or of another state of it; ST_UNSUPPORTED: another version, or the model has
 * experts without kernels. The file is not kept open: pack_path is for the loader. */
MUST_CHECK enum status pack_open(struct pack **out, const char *path, const struct gguf *g,
                                 const struct model *m, struct diag *dg);
void pack_close(struct pack *p); /* NULL is fine */

const char *pack_path(const struct pack *p);
uint64_t pack_file_bytes(const struct pack *p);
uint64_t pack_record_bytes_max(const struct pack *p); /* over all layers */

/* NULL for a layer without routed experts. */
const struct pack_layout *pack_layout(const struct pack *p, size_t layer);
/* The layer must have experts, and more than `expert` of them. */
struct pack_record pack_record(const struct pack *p, size_t layer, size_t expert);
/* Compares what was read with the record's checksum; `record` is record_bytes long. ST_PARSE, naming file,
 * offset, layer and expert. */
MUST_CHECK enum status pack_check(const struct pack *p, size_t layer, size_t expert,
                                  const void *record, struct diag *dg);

#endif

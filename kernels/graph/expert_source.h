/* expert_source.h -- where the routed experts lie, and what one is once it has been read.
 *
 * Either in the GGUF file, three slices an expert in rows of blocks, or in a pack (kernels/pack), one
 * record in the layout of the kernels. The rest of the engine knows only pieces to read, the room they
 * take, and where in the room each matrix then starts.
 */
#ifndef KERNELS_GRAPH_EXPERT_SOURCE_H
#define KERNELS_GRAPH_EXPERT_SOURCE_H

#include "kernels/graph/graph_weights.h"
#include "kernels/loader/loader_io.h"
#include "kernels/pack/pack.h"

struct expert_source {
    const struct graph_weights *weights;
    struct pack *pack;      /* NULL: from the GGUF */
    uint64_t *expert_bytes; /* by layer: payload of one expert; 0: no routed experts */
    uint64_t *room_bytes;   /* by layer: the largest room that an expert of it takes */
    uint32_t block_bytes;   /* of the files' device, once attached */
    bool *sound; /* by layer x experts of the model: its record was read and matched its checksum */
};

/* `pack_path` may be NULL. */
MUST_CHECK enum status expert_source_open(struct expert_source *s, const struct graph_weights *w,
                                          const char *pack_path, struct diag *dg);
void expert_source_close(struct expert_source *s);

/* Opens the source's files in the loader, and learns the rooms. Before the first load. */
MUST_CHECK enum status expert_source_attach(struct expert_source *s, struct loader_io *io,
                                            bool direct, struct diag *dg);

/* Learns the rooms and the block of the device (bytes) before the loader that will read is there: an arena is made to
 * measure, and a loader needs its arena. Attaches to a small loader of its own for the while. */
MUST_CHECK enum status expert_source_measure(struct expert_source *s,
                                             const struct loader_io_setup *loader, bool direct,
                                             uint32_t *align, struct diag *dg);

/* Fills pieces and names of a load; its class, room and room size are the caller's. */
void expert_source_load(const struct expert_source *s, uint32_t layer, uint32_t expert,
                        struct load *load);

/* The matrices of an expert that lies in `room`. */
void expert_source_matrices(const struct expert_source *s, const struct loader_io *io,
                            uint32_t layer, uint32_t expert, const void *room,
                            struct weights out[PART_MAX]);

/* A pack has checksums: what was read is compared, the first time that it is read. The loader looks after each read whether
 * the file is still the one that was opened, so what was sound once stays so; checking every read anew would
 * hold up the one thread that computes, most of all where experts come and go. ST_OK for a GGUF. */
MUST_CHECK enum status expert_source_check(struct expert_source *s, uint32_t layer, uint32_t expert,
                                           const void *room, struct diag *dg);

#endif

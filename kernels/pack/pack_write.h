/* pack_write.h -- makes a pack (pack.h) from a GGUF file, one record a step, and compares one with its origin.
 *
 *     pack_write_new(&w, path, g, m, order, dg);
 *     while (pack_write_left(w))
 *         pack_write_step(w, dg);
 *     pack_write_commit(w, dg);
 */
#ifndef KERNELS_PACK_PACK_WRITE_H
#define KERNELS_PACK_PACK_WRITE_H

#include "kernels/pack/pack.h"
#include "kernels/pack/pack_order.h"

struct pack_write;

/* `order` names every expert of the model once; what it points to must outlive the writer, as must g and m. `threads`
 * convert; the file does not depend on how many. ST_MISFIT without room for the file (base/bulkfile.h); else as pack_shape.h. */
MUST_CHECK enum status pack_write_new(struct pack_write **out, const char *path,
                                      const struct gguf *g, const struct model *m,
                                      const struct pack_order *order, size_t threads,
                                      struct diag *dg);
uint64_t pack_write_bytes(const struct pack_write *w); /* of the whole file */
size_t pack_write_left(const struct pack_write *w);    /* records still to be written */
/* Writes the next record; *bytes is its size in the file. */
MUST_CHECK enum status pack_write_step(struct pack_write *w, uint64_t *bytes, struct diag *dg);
/* Table and name. Frees w either way. */
MUST_CHECK enum status pack_write_commit(struct pack_write *w, struct diag *dg);
void pack_write_abandon(struct pack_write *w); /* NULL is fine */

/* Reads the records of a pack and of its GGUF file, and converts the former back. */
struct pack_compare;
MUST_CHECK enum status pack_compare_new(struct pack_compare **out, const struct pack *p,
                                        const struct gguf *g, const struct model *m, size_t threads,
                                        struct diag *dg);
void pack_compare_free(struct pack_compare *c);
/* ST_PARSE: the checksum does not match; ST_MISFIT: it does, but what was packed is not what the GGUF holds. */
MUST_CHECK enum status pack_compare_step(struct pack_compare *c, size_t layer, size_t expert,
                                         struct diag *dg);

#endif

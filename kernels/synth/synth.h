/* synth.h -- a GGUF file of any shape with made-up weights, a piece a step.
 *
 * Such a model computes noise, but finite noise, and everything else about it is real: names, keys,
 * formats, bytes, and with `engine run --route` the experts it asks for. It stands in for models that are too
 * large to carry around. How weights are made: synth_pool.h.
 *
 *     synth_new(&s, m, &options, path, dg);
 *     while (synth_left(s))
 *         synth_step(s, &bytes, dg);
 *     synth_commit(s, dg);
 */
#ifndef KERNELS_SYNTH_SYNTH_H
#define KERNELS_SYNTH_SYNTH_H

#include "kernels/synth/synth_shape.h"

struct synth_options {
    const struct synth_architecture *architecture; /* one that the model fits */
    uint64_t seed;
    bool vocabulary; /* bytes as tokens (synth_tensors.h) */
};

struct synth;

/* `m` as synth_model_quantise leaves it; it must outlive the writer. ST_UNSUPPORTED: a matrix would have a format
 * that cannot be made up, or that has no whole blocks in its rows; ST_MISFIT: no room for the file. */
MUST_CHECK enum status synth_new(struct synth **out, const struct model *m,
                                 const struct synth_options *o, const char *path, struct diag *dg);
uint64_t synth_bytes(const struct synth *s); /* of the file */
bool synth_left(const struct synth *s);
/* Writes some rows of the present tensor, about a megabyte. */
MUST_CHECK enum status synth_step(struct synth *s, uint64_t *bytes, struct diag *dg);
/* Frees s either way. */
MUST_CHECK enum status synth_commit(struct synth *s, struct diag *dg);
void synth_abandon(struct synth *s); /* NULL is fine */

#endif

/* synth_tensors.h -- the tensors of a file that is made up, in their order, and its metadata: names and keys as
 * llama.cpp has them. */
#ifndef KERNELS_SYNTH_SYNTH_TENSORS_H
#define KERNELS_SYNTH_SYNTH_TENSORS_H

#include "kernels/synth/synth_shape.h"
#include "models/gguf_write.h"

enum synth_fill {
    SYNTH_ONES,   /* norms */
    SYNTH_WEIGHTS /* zero mean, standard deviation 1 / sqrt(fan_in) */
};

struct synth_tensor {
    char name[64];
    const struct quant_format *format;
    uint32_t dims;
    uint64_t extent[3]; /* 1 beyond dims */
    enum synth_fill fill;
    uint64_t fan_in;
};

typedef enum status synth_tensor_fn(void *self, const struct synth_tensor *t, struct diag *dg);

/* Calls back for each tensor until one call fails. */
MUST_CHECK enum status synth_tensors(const struct model *m, const struct synth_architecture *a,
                                     synth_tensor_fn *fn, void *self, struct diag *dg);

/* Declares all keys. `name` is general.name. With `vocabulary`, the first 256 tokens are the bytes and the rest
 * unused ones (of a smaller vocabulary there are as many bytes as it has tokens); without, the file
 * says that it has none. */
void synth_keys(struct gguf_write *w, const struct model *m, const struct synth_architecture *a,
                const char *name, bool vocabulary);

#endif

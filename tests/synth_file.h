/* synth_file.h -- small made-up models for tests of what reads models. */
#ifndef TESTS_SYNTH_FILE_H
#define TESTS_SYNTH_FILE_H

#include "kernels/synth/synth.h"
#include "models/gguf_model.h"
#include "tests/support.h"

/* Five layers of 256, 4 experts of 256, top 2, 4 heads of 64 over 2, 300 tokens. */
extern const struct synth_figures small_figures;

/* Writes `m` as `architecture` (NULL: the one that fits) in `quant`; the test fails if that fails. */
void write_synth(struct model *m, const char *architecture, const char *quant, uint64_t seed,
                 const char *path);
/* The small model of an architecture, written to temp_path(name). Returns the path. */
const char *small_synth(const char *name, const char *architecture, const char *quant,
                        uint64_t seed);

/* A GGUF file open for its weights. */
struct opened {
    struct gguf *g;
    struct model *m;
};
struct opened open_gguf(const char *path);
void close_gguf(struct opened *o);

#endif

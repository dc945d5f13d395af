/* lora_rig.h -- adapters for tests, and models with them merged in. */
#ifndef TESTS_LORA_RIG_H
#define TESTS_LORA_RIG_H

#include "models/gguf.h"

#include <stdbool.h>

/* Which tensors of a model a test adapts. */
typedef bool lora_pick_fn(const struct gguf_tensor *t);
bool lora_pick_all(const struct gguf_tensor *t); /* all matrices but the embedding */

/* Writes an adapter with pseudo-random numbers in F32 for the picked tensors of the model at
 * `model`; `amplitude` is about how large a share of a weight it adds. */
void lora_write(const char *path, const char *model, lora_pick_fn *pick, uint64_t rank, float alpha,
                float amplitude, uint64_t seed);

/* Writes the model with the adapters merged into its F16 and F32 weights, each in its format. */
void lora_merge(const char *path, const char *model, const char *const *adapters, size_t n);

#endif

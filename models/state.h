/* state.h -- KV cache and recurrent state in exact bytes, by attention family (SYSTEMS 1.8). */
#ifndef MODELS_STATE_H
#define MODELS_STATE_H

#include "models/model.h"

/* Growing part of one more token, in 1/1000 bytes (compressed families store a token's share), for
 * unbounded context: windowed layers count as fixed. */
uint64_t state_millibytes_per_token(const struct model *m, uint32_t state_bits);
/* Windows at their full size plus linear and convolution states (kept at 32 bits). */
uint64_t state_fixed_bytes(const struct model *m, uint32_t state_bits);
/* What `context` tokens occupy, windows filled only as far as the context goes. */
uint64_t state_bytes(const struct model *m, uint64_t context, uint32_t state_bits);
/* One layer's share, and what one decode step at `context` reads and writes of it. */
uint64_t state_layer_bytes(const struct attention *a, uint64_t context, uint32_t state_bits);
uint64_t state_layer_read_bytes(const struct attention *a, uint64_t context, uint32_t state_bits);
uint64_t state_layer_write_bytes(const struct attention *a, uint64_t tokens, uint32_t state_bits);

/* State formats by name: f16 16, f32 32, fp8 8, q8_0 8.5, q4_0 4.5 bits; in 1/16 bit. 0 if unknown. */
uint32_t state_bits_find(const char *name);

#endif

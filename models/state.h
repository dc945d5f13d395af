/* state.h -- KV cache and recurrent state in exact bytes, by attention family (SYSTEMS 1.8). */
#ifndef MODELS_STATE_H
#define MODELS_STATE_H

#include "models/model.h"

/* Every `state_bits` below counts the bits of one element, scales included, in 1/16 bit, so that
 * q8_0 (8.5 bits) is exact. Anything below one bit is a mistake of the caller and asserted. */
#define STATE_BITS_F16 256u /* 16 bits: what published figures count */

/* State formats by name: f32, f16, bf16, fp8, q8_0 (8.5), q5_1, q5_0, q4_1, q4_0 (4.5), mxfp4 (4.25).
 * 0 if unknown. */
uint32_t state_bits_find(const char *name);

/* Growing part of one more token, in 1/1000 bytes (compressed families store a token's share), for
 * unbounded context: windowed layers count as fixed. */
uint64_t state_millibytes_per_token(const struct model *m, uint32_t state_bits);

/* Windows at their full size, plus linear states (32 bits an element) and short-convolution layers'
 * states (16 bits). The few convolution columns in front of a linear layer are not counted. */
uint64_t state_fixed_bytes(const struct model *m, uint32_t state_bits);

/* What `context` tokens occupy, windows filled only as far as the context goes. */
uint64_t state_bytes(const struct model *m, uint64_t context, uint32_t state_bits);

/* One layer's share. A layer that borrows its cache owns only its window, if it has one. */
uint64_t state_layer_bytes(const struct attention *a, uint64_t context, uint32_t state_bits);

/* What one decode step reads of it when `context` tokens are stored: all of a plain cache, the index
 * keys and the chosen positions of a sparse one, the whole of a linear state (SYSTEMS 1.8, last
 * column). A borrowed cache is read like an owned one. */
uint64_t state_layer_read_bytes(const struct attention *a, uint64_t context, uint32_t state_bits);

/* The same for a pass of `tokens` tokens behind `context` stored ones, which share one read of a cache:
 * what the pass itself stores is read too, but for its last token; sparse choices are taken as
 * disjoint as they can be; a linear state is read once a token. */
uint64_t state_layer_pass_read_bytes(const struct attention *a, uint64_t context, uint64_t tokens,
                                     uint32_t state_bits);

/* What `tokens` tokens write: their entries; a linear state is written once a token. */
uint64_t state_layer_write_bytes(const struct attention *a, uint64_t tokens, uint32_t state_bits);

#endif

/* read_roof.h -- reading and nothing else: the rate that no kernel over the same bytes can pass.
 *
 * A plain loop over ascending addresses. Wider registers, software prefetch, and four streams in place of
 * one were tried and are no faster: the loop waits for memory, not for instructions. */
#ifndef KERNELS_BENCH_READ_ROOF_H
#define KERNELS_BENCH_READ_ROOF_H

#include <stddef.h>
#include <stdint.h>

#define READ_ROOF_STEP 128

/* The exclusive or of all 64-bit words, so that every byte is needed. `data` is aligned to 16; `bytes` is
 * a multiple of READ_ROOF_STEP. */
uint64_t read_roof_pass(const void *data, size_t bytes);

#endif

/* pcg_reference.h -- the PCG authors' own generator, for comparison with ours. */
#ifndef TESTS_PCG_REFERENCE_H
#define TESTS_PCG_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first `count` outputs after seeding. */
void pcg_reference_u32(uint32_t *out, size_t count, uint64_t initstate, uint64_t initseq);
/* The same for draws below each of `bounds`. */
void pcg_reference_below(uint32_t *out, const uint32_t *bounds, size_t count, uint64_t initstate,
                         uint64_t initseq);

#ifdef __cplusplus
}
#endif

#endif

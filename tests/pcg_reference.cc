/* pcg_reference.cc -- see pcg_reference.h. The library is C++ templates, hence the only C++ file. */
#include "tests/pcg_reference.h"

#include <pcg_random.hpp>

extern "C" void pcg_reference_u32(uint32_t *out, size_t count, uint64_t initstate, uint64_t initseq)
{
    pcg32 generator(initstate, initseq);
    for (size_t i = 0; i < count; i++)
        out[i] = generator();
}

extern "C" void pcg_reference_below(uint32_t *out, const uint32_t *bounds, size_t count,
                                    uint64_t initstate, uint64_t initseq)
{
    pcg32 generator(initstate, initseq);
    for (size_t i = 0; i < count; i++)
        out[i] = generator(bounds[i]);
}

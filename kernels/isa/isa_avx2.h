/* isa_avx2.h -- x86-64 with AVX2, FMA and F16C: Intel since Haswell, AMD since Zen. */
#ifndef KERNELS_ISA_ISA_AVX2_H
#define KERNELS_ISA_ISA_AVX2_H

#include "kernels/isa/isa.h"

extern const struct isa isa_avx2;

#endif

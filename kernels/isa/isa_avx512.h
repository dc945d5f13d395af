/* isa_avx512.h -- x86-64 with AVX-512 F, BW, VL, DQ and VNNI: Intel since Cascade Lake, AMD since Zen 4. */
#ifndef KERNELS_ISA_ISA_AVX512_H
#define KERNELS_ISA_ISA_AVX512_H

#include "kernels/isa/isa.h"

extern const struct isa isa_avx512;

#endif

/* isa_neon.h -- AArch64 with the dot product of ARMv8.2: Cortex-A76 and later, Apple since A13 and M1. */
#ifndef KERNELS_ISA_ISA_NEON_H
#define KERNELS_ISA_ISA_NEON_H

#include "kernels/isa/isa.h"

extern const struct isa isa_neon;

#endif

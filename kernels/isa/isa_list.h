/* isa_list.h -- the instruction sets of one architecture, worst first; isa_list_ARCHITECTURE.c has them. */
#ifndef KERNELS_ISA_ISA_LIST_H
#define KERNELS_ISA_ISA_LIST_H

#include "kernels/isa/isa.h"

extern const struct isa *const isa_list[];
extern const size_t isa_list_count;

#endif
